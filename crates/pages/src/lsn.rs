//! Places in the WAL.

use std::{fmt, str::FromStr};

use crate::error::Error;

/// A place in the WAL: bytes since its beginning. Written as PostgreSQL does: `16/B374D848`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// None: PostgreSQL's `InvalidXLogRecPtr`.
    pub const ZERO: Self = Self(0);

    /// So many bytes later; `None` beyond the last place.
    #[must_use]
    pub fn after(self, bytes: u64) -> Option<Self> {
        self.0.checked_add(bytes).map(Self)
    }

    /// The last multiple of a size at or before it; the size is not zero.
    #[must_use]
    pub(crate) fn floor(self, size: u64) -> Self {
        Self(self.0 - self.0 % size)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl FromStr for Lsn {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = || {
            Error::hinted(
                format!("{text:?} is no place in the WAL"),
                "Write it as PostgreSQL does, e.g. 16/B374D848.",
            )
        };
        let (high, low) = text.split_once('/').ok_or_else(refused)?;
        let half = |digits: &str| {
            let is_hex = !digits.is_empty() && digits.bytes().all(|one| one.is_ascii_hexdigit());
            let value = if is_hex { u32::from_str_radix(digits, 16).ok() } else { None };
            value.map(u64::from).ok_or_else(refused)
        };
        Ok(Self(half(high)? << 32 | half(low)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_as_postgres_does() {
        assert_eq!(Lsn(0x16_B374_D848).to_string(), "16/B374D848");
        assert_eq!("16/B374D848".parse(), Ok(Lsn(0x16_B374_D848)));
        assert_eq!("0/00000028".parse(), Ok(Lsn(0x28)));
        for wrong in
            ["", "/", "1", "1/", "/1", "+1/2", "1/-2", "1/100000000", "g/1", "1/2/3", " 1/2"]
        {
            let error = wrong.parse::<Lsn>().expect_err(wrong);
            assert!(error.fact.contains("is no place in the WAL"), "{error}");
        }
    }
}
