//! The binary format of `numeric`: a sign, digits of base 10000 with the weight of the first, and
//! the number of decimal digits to show. Pure functions; the contents of PostgreSQL's
//! `numeric_send` and `numeric_recv`.

use crate::value::Decimal;

/// Decimal digits in one digit of base 10000.
const GROUP_DIGITS: u32 = 4;
const GROUP_BASE: u64 = 10_000;
const HEADER_BYTES: usize = 8;
/// An `i64` has at most 19 decimal digits: five groups, and one more where the point splits one.
const GROUPS_MAX: usize = 6;
const SIGN_POSITIVE: u16 = 0x0000;
const SIGN_NEGATIVE: u16 = 0x4000;

impl Decimal {
    /// Reads the binary format of `numeric`; `None` where an `i64` of its display scale cannot hold
    /// it (too large, `NaN`, infinite) or where the bytes are not of that format.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, groups) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [n0, n1, w0, w1, s0, s1, d0, d1] = *header;
        let count = u16::from_be_bytes([n0, n1]);
        let weight = i32::from(i16::from_be_bytes([w0, w1]));
        let negative = match u16::from_be_bytes([s0, s1]) {
            SIGN_POSITIVE => false,
            SIGN_NEGATIVE => true,
            _ => return None, // NaN and the infinities
        };
        let scale = u8::try_from(u16::from_be_bytes([d0, d1])).ok()?;
        if groups.len() != usize::from(count) * 2 {
            return None;
        }
        let mut digits: u128 = 0;
        for group in groups.chunks_exact(2) {
            let group = u16::from_be_bytes([group[0], group[1]]);
            if u64::from(group) >= GROUP_BASE {
                return None;
            }
            digits = digits.checked_mul(u128::from(GROUP_BASE))?.checked_add(u128::from(group))?;
        }
        // The last group counts 10000^(weight - count + 1); in units of 10^-scale that is a power
        // of ten, negative where the last group has digits beyond the scale (they must be zero).
        let power = 4 * (weight - i32::from(count) + 1) + i32::from(scale);
        let unscaled = shift(digits, power)?;
        let unscaled = if negative { unscaled.checked_neg()? } else { unscaled };
        Some(Self { unscaled: i64::try_from(unscaled).ok()?, scale })
    }

    /// Appends the binary format of `numeric`, without the length that precedes it in a message.
    pub fn encode(self, out: &mut Vec<u8>) {
        let (groups, count, exponent) = self.groups();
        let digits = &groups[..count];
        let low = digits.iter().take_while(|&&group| group == 0).count();
        let high = count - digits[low..].iter().rev().take_while(|&&group| group == 0).count();
        let shown = &digits[low..high];
        let weight = if shown.is_empty() { 0 } else { exponent + index(high) - 1 };
        let sign = if self.unscaled < 0 { SIGN_NEGATIVE } else { SIGN_POSITIVE };
        out.extend_from_slice(&index(shown.len()).to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&u16::from(self.scale).to_be_bytes());
        for group in shown.iter().rev() {
            out.extend_from_slice(&group.to_be_bytes());
        }
    }

    /// Digits of base 10000, lowest first, how many there are, and the lowest one's power of 10000.
    fn groups(self) -> ([u16; GROUPS_MAX], usize, i16) {
        let mut groups = [0; GROUPS_MAX];
        let mut count = 0;
        let mut rest = self.unscaled.unsigned_abs();
        // The point may fall inside a group: the lowest group is then padded with zeros.
        let split = u32::from(self.scale) % GROUP_DIGITS;
        if split > 0 {
            let padding = 10_u64.pow(GROUP_DIGITS - split);
            groups[0] = group((rest % 10_u64.pow(split)) * padding);
            rest /= 10_u64.pow(split);
            count = 1;
        }
        while rest > 0 {
            groups[count] = group(rest % GROUP_BASE);
            rest /= GROUP_BASE;
            count += 1;
        }
        let fraction = i16::from(self.scale.div_ceil(4));
        (groups, count, -fraction)
    }
}

/// `digits * 10^power`, exactly or not at all.
fn shift(digits: u128, power: i32) -> Option<i128> {
    if digits == 0 {
        return Some(0);
    }
    let factor = 10_u128.checked_pow(power.unsigned_abs());
    let shifted = if power >= 0 {
        digits.checked_mul(factor?)?
    } else {
        let factor = factor?;
        if !digits.is_multiple_of(factor) {
            return None;
        }
        digits / factor
    };
    i128::try_from(shifted).ok()
}

fn group(value: u64) -> u16 {
    debug_assert!(value < GROUP_BASE, "{value} is a digit of base {GROUP_BASE}");
    u16::try_from(value).unwrap_or(0)
}

/// At most [`GROUPS_MAX`], or a scale: always fits.
fn index(value: usize) -> i16 {
    i16::try_from(value).unwrap_or(i16::MAX)
}
