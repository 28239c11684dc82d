//! Pages of a copy of a cluster, judged before they take the place of pages that may be torn.
//!
//! Nothing of another machine is trusted: a page is taken if it is whole by its own checksum, and
//! says of itself nothing that the crashed cluster's WAL does not know.

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
pub struct Repaired {
    /// What takes the place of the old ones.
    pub pages: Vec<u8>,
    /// Numbers of those whose checksum is wrong: they were read while they were written, or are
    /// damaged. Nothing else of the answer counts where there are any.
    pub unsound: Vec<u32>,
    /// LSN of each of `pages`; none: a page of zeroes.
    pub lsns: Vec<Option<String>>,
}

/// The pages that take the place of those on the crashed cluster's disk.
///
/// `source` are the copy's, as long as it has them; what is missing, replay removed there, and
/// becomes zeroes. `target` are the crashed cluster's.
///
/// # Errors
///
/// A page of either is newer than the WAL's end, or is none.
pub fn repaired(
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
