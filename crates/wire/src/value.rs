//! Values as PostgreSQL's binary format carries them.

/// An exact decimal: `unscaled / 10^scale`. 12.34 is `Decimal::new(1234, 2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits, without the point.
    pub unscaled: i64,
    /// Digits after the point.
    pub scale: u8,
}

impl Decimal {
    /// `unscaled / 10^scale`.
    #[must_use]
    pub const fn new(unscaled: i64, scale: u8) -> Self {
        Self { unscaled, scale }
    }
}

/// Microseconds since 2000-01-01 00:00, the server's own epoch (type `timestamp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A bound parameter. The statement declares its type; the server must not have to guess.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    /// SQL NULL of any type.
    Null,
    /// `int4`.
    I32(i32),
    /// `int8`.
    I64(i64),
    /// `float8`.
    F64(f64),
    /// `numeric`.
    Decimal(Decimal),
    /// `text`, and what the server coerces from it.
    Text(&'a str),
    /// `timestamp`.
    Timestamp(Timestamp),
    /// `int4[]`.
    I32s(&'a [i32]),
    /// `numeric[]`.
    Decimals(&'a [Decimal]),
    /// `text[]`.
    Texts(&'a [&'a str]),
    /// `timestamp[]`.
    Timestamps(&'a [Timestamp]),
    /// A value of [`crate::exchange::Kind::Inferred`], as text.
    Inferred(&'a str),
}

/// Microseconds from the Unix epoch to PostgreSQL's.
const UNIX_TO_POSTGRES_MICROS: i64 = 946_684_800_000_000;

impl Timestamp {
    /// From microseconds since 1970-01-01 00:00.
    #[must_use]
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros - UNIX_TO_POSTGRES_MICROS)
    }

    /// Microseconds since 1970-01-01 00:00.
    #[must_use]
    pub const fn unix_micros(self) -> i64 {
        self.0 + UNIX_TO_POSTGRES_MICROS
    }
}
