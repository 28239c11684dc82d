//! Headers of WAL pages. The first page of each segment has a long one, which says of what size
//! segments and pages are, and of which cluster.

use crate::{
    bytes::{u16_at, u32_at, u64_at},
    error::Error,
    lsn::Lsn,
    version::Major,
};

/// The page begins with the rest of a record.
pub(super) const CONTINUES: u16 = 0x1;
/// The header is a long one.
pub(super) const LONG: u16 = 0x2;
/// The record that was to be continued here was given up: a crash took its rest.
pub(super) const OVERWRITES: u16 = 0x8;
const ALL_FLAGS: u16 = 0xF;
/// Of WAL pages, smallest and largest that PostgreSQL can be built with.
const PAGE_BYTES: std::ops::RangeInclusive<u32> = 1024..=65_536;
/// Of segments, smallest and largest that `initdb` makes.
const SEGMENT_BYTES: std::ops::RangeInclusive<u32> = 1 << 20..=1 << 30;

/// What all pages of a WAL have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// PostgreSQL's major.
    pub major: Major,
    /// Of the cluster.
    pub system_identifier: u64,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Bytes of a page of WAL.
    pub page_bytes: u32,
}

/// A page's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHead {
    /// Which PostgreSQL wrote it.
    pub magic: u16,
    /// `XLP_*`.
    pub flags: u16,
    /// Timeline of the first record on it.
    pub timeline: u32,
    /// Where it is in the WAL.
    pub address: Lsn,
    /// Bytes of the record that is continued on it that are still to come.
    pub remaining: u32,
    /// System identifier, bytes of a segment, bytes of a page: of a long one.
    pub long: Option<(u64, u32, u32)>,
}

impl PageHead {
    /// Reads it; `None` of too few bytes.
    #[must_use]
    pub fn read(page: &[u8]) -> Option<Self> {
        let flags = u16_at(page, 2)?;
        let long = match flags & LONG {
            0 => None,
            _ => Some((u64_at(page, 24)?, u32_at(page, 32)?, u32_at(page, 36)?)),
        };
        Some(Self {
            magic: u16_at(page, 0)?,
            flags,
            timeline: u32_at(page, 4)?,
            address: Lsn(u64_at(page, 8)?),
            remaining: u32_at(page, 16)?,
            long,
        })
    }

    /// Bytes of the header itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        if self.long.is_some() { 40 } else { 24 }
    }

    /// Whether a flag is set.
    pub(super) fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// What is wrong with it as the page at `at`; `None`: nothing.
    pub(super) fn flaw(&self, format: &Format, at: Lsn) -> Option<String> {
        if self.magic != format.major.magic() {
            let expected = format.major.magic();
            return Some(if self.magic == 0 {
                "page was never written".to_owned()
            } else {
                format!("page begins with {:04X}, expected {expected:04X}", self.magic)
            });
        }
        if self.flags & !ALL_FLAGS != 0 {
            return Some(format!("page has the flags {:04X}, known are 000F", self.flags));
        }
        if let Some((system, segment_bytes, page_bytes)) = self.long {
            let format_here = (format.system_identifier, format.segment_bytes, format.page_bytes);
            if (system, segment_bytes, page_bytes) != format_here {
                return Some(format!(
                    "page is of system {system} with segments of {segment_bytes} and pages of \
                     {page_bytes} bytes, expected {}, {} and {}",
                    format.system_identifier, format.segment_bytes, format.page_bytes
                ));
            }
        } else if at.0.is_multiple_of(u64::from(format.segment_bytes)) {
            return Some("first page of a segment has a short header".to_owned());
        }
        (self.address != at).then(|| format!("page is that of {}", self.address))
    }
}

impl Format {
    /// What the first page of a segment says of the WAL.
    ///
    /// # Errors
    ///
    /// It is no such page, or of a version that is not read here.
    pub fn read(page: &[u8]) -> Result<(Self, PageHead), Error> {
        let magic = u16_at(page, 0).ok_or_else(|| {
            Error::new(format!("{} bytes are no page of WAL, expected at least 40", page.len()))
        })?;
        let Some(major) = Major::of_magic(magic) else { return Err(unknown(magic)) };
        let no_head = || Error::new("the first page of a segment has no long header");
        let head = PageHead::read(page).ok_or_else(no_head)?;
        let (system_identifier, segment_bytes, page_bytes) = head.long.ok_or_else(no_head)?;
        let is_size = |bytes: u32, range: std::ops::RangeInclusive<u32>| {
            bytes.is_power_of_two() && range.contains(&bytes)
        };
        if !is_size(segment_bytes, SEGMENT_BYTES) || !is_size(page_bytes, PAGE_BYTES) {
            return Err(Error::new(format!(
                "its header tells of segments of {segment_bytes} bytes and pages of {page_bytes}, \
                 sizes are powers of two from 1 MiB to 1 GiB and from 1 KiB to 64 KiB"
            )));
        }
        Ok((Self { major, system_identifier, segment_bytes, page_bytes }, head))
    }
}

fn unknown(magic: u16) -> Error {
    let fact = format!("its first page begins with {magic:04X}, which no WAL that is read does");
    let hint = match magic {
        0 => "The file was never written to.",
        _ if Major::of_magic(magic.swap_bytes()).is_some() => {
            "It is of a machine with the other byte order, which is not read."
        }
        _ if magic >> 8 == 0xD0 || magic >> 8 == 0xD1 => "WAL of PostgreSQL 12 to 18 is read.",
        _ => "It is no segment of WAL, or is compressed.",
    };
    Error::hinted(fact, hint)
}
