//! Pages of relations: the header, and the checksum.

use crate::{
    bytes::{u16_at, u32_at},
    lsn::Lsn,
};

/// Sums that are computed side by side.
const SUMS: usize = 32;
const FNV_PRIME: u32 = 16_777_619;
const CHECKSUM_AT: usize = 8;
/// `checksumBaseOffsets` of PostgreSQL's `checksum_impl.h`.
const BASES: [u32; SUMS] = [
    0x5B1F_36E9,
    0xB852_5960,
    0x02AB_50AA,
    0x1DE6_6D2A,
    0x79FF_467A,
    0x9BB9_F8A3,
    0x217E_7CD2,
    0x83E1_3D2C,
    0xF8D4_474F,
    0xE39E_B970,
    0x42C6_AE16,
    0x9932_16FA,
    0x7B09_3B5D,
    0x98DA_FF3C,
    0xF718_902A,
    0x0B1C_9CDB,
    0xE58F_764B,
    0x1876_36BC,
    0x5D7B_3BB1,
    0xE73D_E7DE,
    0x92BE_C979,
    0xCCA6_C0B2,
    0x304A_0979,
    0x85AA_43D4,
    0x7831_25BB,
    0x6CA8_EAA2,
    0xE407_EAC6,
    0x4B5C_FC3E,
    0x9FBF_8C76,
    0x15CA_20BE,
    0xF2CA_9FD3,
    0x959B_D756,
];

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// End of the last record that changed it.
    pub lsn: Lsn,
    /// 0 where checksums are off.
    pub checksum: u16,
    /// `PD_*`.
    pub flags: u16,
    /// End of the line pointers.
    pub lower: u16,
    /// Begin of the tuples.
    pub upper: u16,
    /// Begin of what the access method keeps.
    pub special: u16,
    /// Bytes of the page, as it says itself.
    pub page_bytes: u16,
    /// Version of the layout: 4.
    pub layout: u8,
    /// Oldest transaction that left something to prune; 0: none.
    pub prune_xid: u32,
}

impl PageHeader {
    /// Length in bytes.
    pub const BYTES: usize = 24;

    /// That of a page; `None` of too few bytes. What it says may still make no sense.
    #[must_use]
    pub fn read(page: &[u8]) -> Option<Self> {
        let size_and_layout = u16_at(page, 18)?;
        Some(Self {
            lsn: Lsn(u64::from(u32_at(page, 0)?) << 32 | u64::from(u32_at(page, 4)?)),
            checksum: u16_at(page, CHECKSUM_AT)?,
            flags: u16_at(page, 10)?,
            lower: u16_at(page, 12)?,
            upper: u16_at(page, 14)?,
            special: u16_at(page, 16)?,
            page_bytes: size_and_layout & 0xFF00,
            layout: size_and_layout.to_le_bytes()[0],
            prune_xid: u32_at(page, 20)?,
        })
    }

    /// Whether it makes sense for a page of so many bytes, as PostgreSQL asks before it reads one.
    #[must_use]
    pub fn is_plausible(&self, page_bytes: usize) -> bool {
        let special = usize::from(self.special);
        self.flags & !0x7 == 0
            && self.lower <= self.upper
            && self.upper <= self.special
            && special <= page_bytes
            && special % 8 == 0
    }
}

/// Whether a page was never used: PostgreSQL takes pages of zeroes as they are.
#[must_use]
pub fn is_new(page: &[u8]) -> bool {
    page.iter().all(|byte| *byte == 0)
}

/// The checksum that a page should carry; `None` where its length is none of a page.
///
/// `block` is its number within the relation's fork, over all segments.
#[must_use]
pub fn checksum(page: &[u8], block: u32) -> Option<u16> {
    if !page.len().is_power_of_two() || !(1024..=32_768).contains(&page.len()) {
        return None;
    }
    let mut sums = BASES;
    for (row, words) in page.chunks_exact(4 * SUMS).enumerate() {
        let (words, _) = words.as_chunks::<4>();
        for (column, (sum, word)) in sums.iter_mut().zip(words).enumerate() {
            let mut word = u32::from_le_bytes(*word);
            if row == 0 && column == CHECKSUM_AT / 4 {
                word &= 0xFFFF_0000; // the checksum itself counts as zero
            }
            *sum = mixed(*sum, word);
        }
    }
    let folded = sums.iter().fold(0, |all, sum| all ^ mixed(mixed(*sum, 0), 0));
    u16::try_from((folded ^ block) % 65_535 + 1).ok()
}

fn mixed(sum: u32, word: u32) -> u32 {
    let both = sum ^ word;
    both.wrapping_mul(FNV_PRIME) ^ (both >> 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_depends_on_every_byte_but_its_own_and_on_the_block() {
        let mut page: Vec<u8> = (0..=250).cycle().take(8192).collect();
        let before = checksum(&page, 7).expect("a page");
        assert_ne!(checksum(&page, 8), Some(before));
        (page[8], page[9]) = (1, 2);
        assert_eq!(checksum(&page, 7), Some(before));
        for at in [0, 7, 10, 127, 128, 4096, 8191] {
            page[at] ^= 1;
            assert_ne!(checksum(&page, 7), Some(before), "{at}");
            page[at] ^= 1;
        }
    }

    #[test]
    fn what_is_no_page_has_no_checksum() {
        for bytes in [0, 24, 1000, 8191, 65_536] {
            assert_eq!(checksum(&vec![0; bytes], 0), None);
        }
        assert_eq!(PageHeader::read(&[0; 23]), None);
    }

    #[test]
    fn a_header_is_read_field_by_field() {
        let mut page = vec![0; 8192];
        page[..24].copy_from_slice(&[
            0x16, 0, 0, 0, 0x48, 0xD8, 0x74, 0xB3, 0x34, 0x12, 4, 0, 40, 0, 0, 0x1F, 0xF0, 0x1F, 4,
            0x20, 9, 0, 0, 0,
        ]);
        let header = PageHeader::read(&page).expect("a header");
        assert_eq!(header.lsn.to_string(), "16/B374D848");
        assert_eq!((header.checksum, header.flags, header.prune_xid), (0x1234, 4, 9));
        assert_eq!((header.lower, header.upper, header.special), (40, 0x1F00, 0x1FF0));
        assert_eq!((header.page_bytes, header.layout), (8192, 4));
        assert!(header.is_plausible(8192) && !header.is_plausible(4096));
        assert!(!is_new(&page) && is_new(&page[24..]));
    }
}
