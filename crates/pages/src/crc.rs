//! CRC-32C (Castagnoli), as PostgreSQL computes it over records and `pg_control`.
//!
//! With SSE 4.2 by the processor, 8 bytes an instruction; elsewhere by eight tables.

/// Reflected polynomial.
const POLYNOMIAL: u32 = 0x82F6_3B78;
const TABLES: [[u32; 256]; 8] = tables();

/// CRC-32C of bytes.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_of(&[bytes])
}

/// CRC-32C of parts, one after the other.
#[must_use]
pub(crate) fn crc32c_of(parts: &[&[u8]]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the one feature that the function asks for; it is otherwise
        // safe code. A feature of the processor cannot be called for in any other way, and the
        // tables are several times slower than the rest of reading WAL.
        #[allow(unsafe_code, reason = "an instruction of the processor")]
        return !parts.iter().fold(!0, |crc, part| unsafe { by_processor(crc, part) });
    }
    !parts.iter().fold(!0, |crc, part| by_tables(crc, part))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn by_processor(crc: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

    let (words, rest) = bytes.as_chunks::<8>();
    let wide = words
        .iter()
        .fold(u64::from(crc), |crc, word| _mm_crc32_u64(crc, u64::from_le_bytes(*word)));
    #[allow(clippy::cast_possible_truncation, reason = "the upper half is zero")]
    let crc = wide as u32;
    rest.iter().fold(crc, |crc, byte| _mm_crc32_u8(crc, *byte))
}

fn by_tables(crc: u32, bytes: &[u8]) -> u32 {
    let entry = |table: usize, word: u32, shift: u32| {
        TABLES[table][usize::from(word.wrapping_shr(shift).to_le_bytes()[0])]
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(crc, |crc, [a, b, c, d, e, f, g, h]| {
        let low = crc ^ u32::from_le_bytes([*a, *b, *c, *d]);
        let high = u32::from_le_bytes([*e, *f, *g, *h]);
        entry(7, low, 0)
            ^ entry(6, low, 8)
            ^ entry(5, low, 16)
            ^ entry(4, low, 24)
            ^ entry(3, high, 0)
            ^ entry(2, high, 8)
            ^ entry(1, high, 16)
            ^ entry(0, high, 24)
    });
    rest.iter().fold(crc, |crc, byte| (crc >> 8) ^ entry(0, crc ^ u32::from(*byte), 0))
}

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation, reason = "below 256")]
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, B.4.
    #[test]
    fn crc_is_castagnoli() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn parts_and_ways_agree() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1003).collect();
        for cut in 0..40 {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(crc32c_of(&[a, b]), crc32c(&bytes));
            assert_eq!(!by_tables(!0, b), crc32c(b));
        }
    }
}
