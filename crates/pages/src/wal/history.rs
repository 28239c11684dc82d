//! Timelines: which one came from which, and where.

use crate::{error::Error, lsn::Lsn};

/// A timeline, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Its number.
    pub timeline: u32,
    /// Where it left the one before; zero of the first.
    pub begin: Lsn,
}

/// A timeline with those that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Newest first; never empty.
    ancestors: Vec<Ancestor>,
}

impl History {
    /// A timeline without a history file.
    #[must_use]
    pub fn alone(timeline: u32) -> Self {
        Self { ancestors: vec![Ancestor { timeline, begin: Lsn::ZERO }] }
    }

    /// The text of a timeline's history file, e.g. of `00000003.history`.
    ///
    /// # Errors
    ///
    /// A line cannot be read, or timelines or places do not ascend.
    pub fn parse(timeline: u32, text: &str) -> Result<Self, Error> {
        let mut ancestors = Vec::new();
        let mut begin = Lsn::ZERO;
        let mut last = 0;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refused = || Error::new(format!("{timeline:08X}.history has the line {line:?}"));
            let mut words = line.split_whitespace();
            let parent: u32 =
                words.next().and_then(|word| word.parse().ok()).ok_or_else(refused)?;
            let end: Lsn = words.next().and_then(|word| word.parse().ok()).ok_or_else(refused)?;
            if parent <= last || parent >= timeline || end < begin {
                return Err(Error::new(format!(
                    "{timeline:08X}.history has timeline {parent} up to {end} after {last} up to \
                     {begin}"
                )));
            }
            ancestors.push(Ancestor { timeline: parent, begin });
            (last, begin) = (parent, end);
        }
        ancestors.push(Ancestor { timeline, begin });
        ancestors.reverse();
        Ok(Self { ancestors })
    }

    /// Newest first.
    #[must_use]
    pub fn ancestors(&self) -> &[Ancestor] {
        &self.ancestors
    }

    /// The newest one.
    #[must_use]
    pub fn timeline(&self) -> u32 {
        self.ancestors.first().map_or(0, |newest| newest.timeline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_read() {
        let text = "# a comment\n1\t0/3000110\tno recovery target specified\n\n2\t0/5000000\tx\n";
        let history = History::parse(3, text).expect("a history");
        let found: Vec<_> =
            history.ancestors().iter().map(|one| (one.timeline, one.begin.0)).collect();
        assert_eq!(found, [(3, 0x500_0000), (2, 0x300_0110), (1, 0)]);
        assert_eq!(history.timeline(), 3);
        for wrong in ["1", "x 0/1", "1 0-1", "2 0/1\n1 0/2", "1 0/2\n2 0/1", "3 0/1", "0 0/1"] {
            let error = History::parse(3, wrong).expect_err(wrong);
            assert!(error.fact.starts_with("00000003.history has "), "{error}");
        }
    }
}
