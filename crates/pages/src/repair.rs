//! Pages of a copy of a cluster, judged before they take the place of pages that may be torn.
//!
//! Nothing of another machine is trusted: a page is taken if it is whole by its own checksum, and
//! says of itself nothing that the crashed cluster's WAL does not know.

use std::{fs::File, io::ErrorKind, os::unix::fs::FileExt};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    error::Error,
    lsn::Lsn,
    page::{PageHeader, checksum, is_new},
};

const CHECKSUM_AT: usize = 8;

/// What is alike for all pages of a repair.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairSpec {
    /// Bytes of each.
    pub block_bytes: u32,
    /// End of the crashed cluster's WAL: no page may be newer.
    pub end_lsn: String,
    /// Pages of the copy have checksums.
    pub source_has_checksums: bool,
    /// Pages of the crashed cluster have.
    pub has_checksums: bool,
}

/// Where pages are that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct PagesAt<'a> {
    /// The file, as errors name it.
    pub path: &'a str,
    /// Number of the first page within its fork.
    pub first_block: u32,
}

/// What became of the pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Repaired {
    /// What takes the place of the old ones.
    pages: Vec<u8>,
    /// Numbers of those whose checksum is wrong: they were read while they were written, or are
    /// damaged. Nothing else of the answer counts where there are any.
    unsound: Vec<u32>,
    /// LSN of each of `pages`; none: a page of zeroes.
    lsns: Vec<Option<String>>,
}

/// Pages of a file that follow each other, and the copy's in their place.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Number of the first one within its fork.
    pub first_block: u32,
    /// Bytes into the file.
    pub file_at: u64,
    /// How many.
    pub blocks: u32,
    /// The copy's, as long as it has them.
    pub source: &'a [u8],
}

/// Pages that differ and follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The first one, counted from the first that was wanted.
    pub first: usize,
    /// What the crashed cluster's disk has.
    pub old: Vec<u8>,
    /// What takes its place.
    pub new: Vec<u8>,
    /// LSN of each new page; none: a page of zeroes.
    pub lsns: Vec<Option<String>>,
}

/// What of the pages on the crashed cluster's disk others take the place of.
///
/// None: the copy's were read while they were written, or are damaged.
///
/// # Errors
///
/// As [`repaired`]; or the file has not all of them.
pub fn changes(
    spec: &RepairSpec,
    path: &str,
    file: &File,
    wanted: &Wanted<'_>,
) -> Result<Option<Vec<Change>>, Error> {
    let size = spec.block_bytes as usize;
    let mut target = vec![0; size * wanted.blocks as usize];
    file.read_exact_at(&mut target, wanted.file_at).map_err(|error| {
        Error::new(match error.kind() {
            ErrorKind::UnexpectedEof => format!("{path} became shorter while it was looked at"),
            _ => format!("cannot read {path}: {error}"),
        })
    })?;
    let at = PagesAt { path, first_block: wanted.first_block };
    let told = repaired(spec, at, wanted.source, &target)?;
    if !told.unsound.is_empty() {
        return Ok(None);
    }
    let change = |(first, count): (usize, usize)| {
        let bytes = first * size..(first + count) * size;
        Change {
            first,
            old: target[bytes.clone()].to_vec(),
            new: told.pages[bytes].to_vec(),
            lsns: told.lsns[first..first + count].to_vec(),
        }
    };
    Ok(Some(differing(size, &target, &told.pages).into_iter().map(change).collect()))
}

/// Which of the new pages are others than the old ones: the first of those that follow each other,
/// and how many. Those that are missing among the old ones are others.
#[must_use]
pub fn differing(block_bytes: usize, old: &[u8], new: &[u8]) -> Vec<(usize, usize)> {
    let (size, mut runs) = (block_bytes.max(1), Vec::<(usize, usize)>::new());
    for (nth, page) in new.chunks(size).enumerate() {
        let begin = nth * size;
        if old.get(begin..begin + page.len()) == Some(page) {
            continue;
        }
        match runs.last_mut() {
            Some((first, count)) if *first + *count == nth => *count += 1,
            _ => runs.push((nth, 1)),
        }
    }
    runs
}

/// Numbers of those pages of a copy whose checksum is wrong.
///
/// # Errors
///
/// As [`repaired`].
pub fn unsound(spec: &RepairSpec, at: PagesAt<'_>, source: &[u8]) -> Result<Vec<u32>, Error> {
    let whole = source.len().next_multiple_of((spec.block_bytes as usize).max(1));
    repaired(spec, at, source, &vec![0; whole]).map(|told| told.unsound)
}

/// The pages that take the place of those on the crashed cluster's disk.
///
/// `source` are the copy's, as long as it has them; what is missing, replay removed there, and
/// becomes zeroes. `target` are the crashed cluster's.
///
/// # Errors
///
/// A page of either is newer than the WAL's end, or is none.
fn repaired(
    spec: &RepairSpec,
    at: PagesAt<'_>,
    source: &[u8],
    target: &[u8],
) -> Result<Repaired, Error> {
    let size = usize::try_from(spec.block_bytes).unwrap_or(0);
    if size <= PageHeader::BYTES
        || source.len() > target.len()
        || !target.len().is_multiple_of(size)
    {
        return Err(Error::new(format!(
            "{} bytes of {} bytes of pages of {size} bytes were given",
            source.len(),
            target.len()
        )));
    }
    let end: Lsn = spec.end_lsn.parse()?;
    let (mut pages, mut told) = (Vec::with_capacity(target.len()), Repaired::default());
    for (nth, ours) in target.chunks_exact(size).enumerate() {
        let number = u32::try_from(nth)
            .ok()
            .and_then(|nth| at.first_block.checked_add(nth))
            .ok_or_else(|| Error::new(format!("{} has no block after 4294967295", at.path)))?;
        not_beyond(at.path, "crashed cluster", number, ours, end)?;
        // Half a page at the end of a file is none: PostgreSQL writes whole ones.
        let theirs = source.get(nth * size..(nth + 1) * size).filter(|page| !is_new(page));
        let Some(theirs) = theirs else {
            pages.resize(pages.len() + size, 0);
            told.lsns.push(None);
            continue;
        };
        let head = PageHeader::read(theirs).filter(|head| head.is_plausible(size));
        let sum = checksum(theirs, number);
        if spec.source_has_checksums && head.is_none_or(|head| sum != Some(head.checksum)) {
            told.unsound.push(number);
            continue;
        }
        let Some(head) = head else {
            return Err(Error::hinted(
                format!("block {number} of {} is no page on the standby", at.path),
                "The standby is damaged: repair nothing from it.",
            ));
        };
        not_beyond(at.path, "standby", number, theirs, end)?;
        let begin = pages.len();
        pages.extend_from_slice(theirs);
        let sum = if spec.has_checksums { sum.unwrap_or(0) } else { head.checksum };
        pages[begin + CHECKSUM_AT..begin + CHECKSUM_AT + 2].copy_from_slice(&sum.to_le_bytes());
        told.lsns.push(Some(head.lsn.to_string()));
    }
    Ok(Repaired { pages, ..told })
}

fn not_beyond(path: &str, whose: &str, number: u32, page: &[u8], end: Lsn) -> Result<(), Error> {
    match PageHeader::read(page) {
        Some(head) if head.lsn > end => Err(Error::hinted(
            format!(
                "block {number} of {path} is of {} on the {whose}, the crashed cluster's WAL ends \
                 at {end}",
                head.lsn
            ),
            "Its disk lost WAL that it had said to be durable: promote the standby instead.",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u32 = 40;
    const AT: PagesAt<'_> = PagesAt { path: "base/5/16384", first_block: BLOCK };

    fn spec() -> RepairSpec {
        RepairSpec {
            block_bytes: 8192,
            end_lsn: "0/3000000".to_owned(),
            source_has_checksums: true,
            has_checksums: true,
        }
    }

    fn page(lsn: u32, block: u32, fill: u8) -> Vec<u8> {
        let mut page = vec![fill; 8192];
        page[..24].fill(0);
        page[4..8].copy_from_slice(&lsn.to_le_bytes());
        page[12..20].copy_from_slice(&[40, 0, 0, 0x1F, 0xF0, 0x1F, 4, 0x20]);
        let sum = checksum(&page, block).expect("a page");
        page[8..10].copy_from_slice(&sum.to_le_bytes());
        page
    }

    #[test]
    fn whole_pages_take_the_place_of_torn_ones_and_missing_ones_become_zeroes() {
        let mut torn = page(0x10, BLOCK, 1);
        torn[4096..].fill(9);
        let target = [torn, page(0x10, BLOCK + 1, 1), page(0x10, BLOCK + 2, 1)].concat();
        let source = [page(0x20, BLOCK, 2), vec![0; 8192]].concat();
        let told = repaired(&spec(), AT, &source, &target).expect("sound pages");
        assert_eq!(told.pages[..8192], source[..8192]);
        assert!(is_new(&told.pages[8192..]) && told.pages.len() == target.len());
        assert_eq!(told.lsns, [Some("0/20".to_owned()), None, None]);
    }

    #[test]
    fn a_page_with_a_wrong_checksum_is_not_taken() {
        let mut source = [page(0x20, BLOCK, 2), page(0x20, BLOCK + 1, 2)].concat();
        let target = vec![0; source.len()];
        source[9000] ^= 1;
        let told = repaired(&spec(), AT, &source, &target).expect("pages");
        assert_eq!(told.unsound, [BLOCK + 1]);
        // Of another block it is wrong, too.
        let other = PagesAt { first_block: 7, ..AT };
        let told = repaired(&spec(), other, &source[..8192], &target[..8192]).expect("pages");
        assert_eq!(told.unsound, [7]);
    }

    #[test]
    fn checksums_are_those_of_the_crashed_cluster() {
        let without = RepairSpec { source_has_checksums: false, ..spec() };
        let mut source = page(0x20, BLOCK, 2);
        source[8..10].fill(0);
        let told = repaired(&without, AT, &source, &vec![0; 8192]).expect("pages");
        assert_eq!(told.pages, page(0x20, BLOCK, 2));
        let neither = RepairSpec { has_checksums: false, ..without };
        let told = repaired(&neither, AT, &source, &vec![0; 8192]).expect("pages");
        assert_eq!(told.pages, source);
    }

    #[test]
    fn what_is_newer_than_the_wal_is_refused() {
        let (new, old) = (page(0x300_0001, BLOCK, 1), page(0x300_0000, BLOCK, 1));
        for (source, target, whose) in [(&new, &old, "standby"), (&old, &new, "crashed cluster")] {
            let error = repaired(&spec(), AT, source, target).expect_err("too new");
            assert_eq!(
                error.fact,
                format!(
                    "block 40 of base/5/16384 is of 0/3000001 on the {whose}, the crashed \
                     cluster's WAL ends at 0/3000000"
                )
            );
        }
        assert!(repaired(&spec(), AT, &old, &old).is_ok());
    }

    #[test]
    fn only_pages_that_differ_change_and_a_file_that_is_too_short_is_refused() {
        let ours = [
            page(0x10, BLOCK, 1),
            page(0x10, BLOCK + 1, 1),
            page(0x10, BLOCK + 2, 1),
            page(0x10, BLOCK + 3, 1),
        ];
        let theirs = [&page(0x20, BLOCK, 2)[..], &ours[1], &page(0x20, BLOCK + 2, 2)].concat();
        let path = std::env::temp_dir().join(format!("pgdyno-changes-{}", std::process::id()));
        let before = [vec![7; 100], ours.concat()].concat();
        std::fs::write(&path, before).expect("a file");
        let file = File::open(&path).expect("the file");
        std::fs::remove_file(&path).expect("its name");
        let mut wanted = Wanted { first_block: BLOCK, file_at: 100, blocks: 4, source: &theirs };
        let found = changes(&spec(), AT.path, &file, &wanted).expect("pages").expect("sound");
        let change = |first: usize, new: &[u8], old: &[Vec<u8>], lsns: &[Option<&str>]| Change {
            first,
            old: old.concat(),
            new: new.to_vec(),
            lsns: lsns.iter().map(|one| one.map(str::to_owned)).collect(),
        };
        let zeroed = [&theirs[16384..], &[0; 8192]].concat();
        let wrong = [
            change(0, &theirs[..8192], &ours[..1], &[Some("0/20")]),
            change(2, &zeroed, &ours[2..], &[Some("0/20"), None]),
        ];
        assert_eq!(found, wrong);
        let mut torn = theirs.clone();
        torn[9000] ^= 1;
        wanted.source = &torn;
        assert_eq!(changes(&spec(), AT.path, &file, &wanted).expect("pages"), None);
        wanted.blocks = 5;
        let error = changes(&spec(), AT.path, &file, &wanted).expect_err("too short");
        assert_eq!(error.fact, "base/5/16384 became shorter while it was looked at");
    }

    #[test]
    fn pages_that_are_missing_differ() {
        assert_eq!(differing(2, b"aabbccdd", b"aaxxyydd"), [(1, 2)]);
        assert_eq!(differing(2, b"aab", b"aabbc"), [(1, 2)]);
        assert_eq!(differing(2, b"", b"aabb"), [(0, 2)]);
        assert_eq!(differing(2, b"aabb", b"aa"), []);
    }

    #[test]
    fn what_is_no_page_is_refused() {
        let without = RepairSpec { source_has_checksums: false, ..spec() };
        let source = [page(0x20, BLOCK, 2), vec![0xFF; 8192]].concat();
        let error = repaired(&without, AT, &source, &vec![0; 16384]).expect_err("no page");
        assert_eq!(error.fact, "block 41 of base/5/16384 is no page on the standby");
        let (small, large) = (vec![0; 8192], vec![0; 16384]);
        for (source, target) in [(&large, &small), (&small, &vec![0; 8193])] {
            let error = repaired(&spec(), AT, source, target).expect_err("other lengths");
            assert!(error.fact.contains("bytes of pages"), "{error}");
        }
    }
}
