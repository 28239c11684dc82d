//! Segments of WAL by their names, and which of them hold a range.

use std::{collections::HashSet, fmt};

use crate::{error::Error, lsn::Lsn, wal::history::History};

/// The name of a segment: 24 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// Timeline.
    pub timeline: u32,
    /// Which 4 GiB.
    log: u32,
    /// Which segment of these.
    part: u32,
}

impl SegmentName {
    /// Reads a file's name; `None` of other files.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let is_hex = |one: u8| one.is_ascii_digit() || (b'A'..=b'F').contains(&one);
        if name.len() != 24 || !name.bytes().all(is_hex) {
            return None;
        }
        let word = |at: usize| u32::from_str_radix(name.get(at..at + 8)?, 16).ok();
        Some(Self { timeline: word(0)?, log: word(8)?, part: word(16)? })
    }

    /// The one that holds a place.
    #[must_use]
    pub fn holding(timeline: u32, at: Lsn, segment_bytes: u32) -> Self {
        let [log, low] =
            [at.0 >> 32, at.0 & 0xFFFF_FFFF].map(|half| u32::try_from(half).unwrap_or(0));
        Self { timeline, log, part: low / segment_bytes.max(1) }
    }

    /// Where it begins; `None` where no segment of that size has the name.
    #[must_use]
    pub fn start(&self, segment_bytes: u32) -> Option<Lsn> {
        let low = self.part.checked_mul(segment_bytes)?;
        Some(Lsn(u64::from(self.log) << 32 | u64::from(low)))
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}{:08X}{:08X}", self.timeline, self.log, self.part)
    }
}

/// A segment of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its file.
    pub name: SegmentName,
    /// Where it begins.
    pub start: Lsn,
}

/// The segments that hold a range, in order: each of the newest timeline that has it.
///
/// Without `from` the oldest there is comes first, without `to` the newest last.
///
/// # Errors
///
/// There is none, one is missing, or the range is empty.
pub fn choose(
    names: &[SegmentName],
    history: &History,
    segment_bytes: u32,
    from: Option<Lsn>,
    to: Option<Lsn>,
) -> Result<Vec<Segment>, Error> {
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
    {
        return Err(Error::new(format!("the range begins at {from} and ends at {to}")));
    }
    let there: HashSet<SegmentName> = names.iter().copied().collect();
    let mut starts: Vec<Lsn> = names
        .iter()
        .filter(|name| history.ancestors().iter().any(|one| one.timeline == name.timeline))
        .filter_map(|name| name.start(segment_bytes))
        .collect();
    starts.sort_unstable();
    let (Some(first), Some(last)) = (starts.first(), starts.last()) else {
        return Err(Error::new(format!(
            "there is no segment of {segment_bytes} bytes on timeline {}",
            history.timeline()
        )));
    };
    let size = u64::from(segment_bytes);
    let begin = from.unwrap_or(*first).floor(size);
    let end = to.map_or(*last, |to| Lsn(to.0 - 1).floor(size));
    let mut chosen = Vec::new();
    let mut start = begin;
    while start <= end {
        let name = held(&there, history, start, segment_bytes)
            .ok_or_else(|| missing(history, start, segment_bytes, *first, *last))?;
        chosen.push(Segment { name, start });
        match start.after(size) {
            Some(next) => start = next,
            None => break,
        }
    }
    Ok(chosen)
}

/// The segment at a place, of the newest timeline that may have one there.
fn held(
    there: &HashSet<SegmentName>,
    history: &History,
    start: Lsn,
    segment_bytes: u32,
) -> Option<SegmentName> {
    let may = history
        .ancestors()
        .iter()
        .filter(|one| one.begin.floor(u64::from(segment_bytes)) <= start)
        .map(|one| SegmentName::holding(one.timeline, start, segment_bytes));
    may.into_iter().find(|name| there.contains(name))
}

fn missing(history: &History, start: Lsn, segment_bytes: u32, first: Lsn, last: Lsn) -> Error {
    let name = SegmentName::holding(history.timeline(), start, segment_bytes);
    let size = u64::from(segment_bytes);
    let end = last.after(size).unwrap_or(last);
    Error::hinted(
        format!("segment {name} is missing, which holds {start}; there is WAL of {first} to {end}"),
        "PostgreSQL removes WAL that it needs no more; an archive may still have it.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    fn names(all: &[&str]) -> Vec<SegmentName> {
        all.iter().map(|name| SegmentName::parse(name).expect("a name")).collect()
    }

    #[test]
    fn names_are_read_and_written_for_all_sizes() {
        let name = SegmentName::parse("0000000A0000001200000003").expect("a name");
        assert_eq!(name.to_string(), "0000000A0000001200000003");
        assert_eq!(name.start(16 * MIB), Some(Lsn(0x12_0300_0000)));
        assert_eq!(name.start(1024 * MIB), Some(Lsn(0x12_C000_0000)));
        assert_eq!(name.start(MIB), Some(Lsn(0x12_0030_0000)));
        assert_eq!(SegmentName::holding(10, Lsn(0x12_03FF_FFFF), 16 * MIB), name);
        let last = SegmentName::parse("000000010000000000000004").expect("a name");
        assert_eq!(last.start(1024 * MIB), None);
        for wrong in [
            "",
            "00000001000000000000000",
            "00000001000000000000000g",
            "00000001000000000000000a",
            "000000010000000000000001.partial",
        ] {
            assert_eq!(SegmentName::parse(wrong), None);
        }
    }

    #[test]
    fn segments_of_the_newest_timeline_come_first() {
        let there = names(&[
            "000000010000000000000001",
            "000000010000000000000002",
            "000000010000000000000003",
            "000000020000000000000003",
            "000000020000000000000004",
        ]);
        let history = History::parse(2, "1\t0/3000110\tx").expect("a history");
        let all = choose(&there, &history, 16 * MIB, None, None).expect("segments");
        let found: Vec<_> = all.iter().map(|one| one.name.to_string()).collect();
        assert_eq!(
            found,
            [
                "000000010000000000000001",
                "000000010000000000000002",
                "000000020000000000000003",
                "000000020000000000000004",
            ]
        );
        let one = choose(
            &there,
            &History::alone(1),
            16 * MIB,
            Some(Lsn(0x2FF_FFFF)),
            Some(Lsn(0x300_0001)),
        );
        assert_eq!(one.expect("segments").len(), 2);
    }

    #[test]
    fn what_is_missing_is_named() {
        let there = names(&["000000010000000000000001", "000000010000000000000003"]);
        let alone = History::alone(1);
        let said =
            |from, to| choose(&there, &alone, 16 * MIB, from, to).expect_err("an error").fact;
        let gap = "segment 000000010000000000000002 is missing, which holds 0/2000000; there is \
                   WAL of 0/1000000 to 0/4000000";
        assert_eq!(said(None, None), gap);
        assert!(said(None, Some(Lsn(u64::MAX))).starts_with("segment 000000010000000000000002"));
        assert!(said(Some(Lsn(0)), None).starts_with("segment 000000010000000000000000"));
        assert_eq!(said(Some(Lsn(9)), Some(Lsn(9))), "the range begins at 0/9 and ends at 0/9");
        let none = choose(&there, &History::alone(7), 16 * MIB, None, None).expect_err("none");
        assert_eq!(none.fact, "there is no segment of 16777216 bytes on timeline 7");
    }
}
