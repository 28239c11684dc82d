//! PostgreSQL's majors, by the numbers that their files carry.

use std::fmt;

/// Magic of WAL pages, and number of the catalogue, of each major.
const KNOWN: [(u16, u16, u32); 7] = [
    (12, 0xD101, 201_909_212),
    (13, 0xD106, 202_007_201),
    (14, 0xD10D, 202_107_181),
    (15, 0xD110, 202_209_061),
    (16, 0xD113, 202_307_071),
    (17, 0xD116, 202_406_281),
    (18, 0xD118, 202_506_291),
];

/// A major version that is known here: 12 to 18.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Major(u16);

impl Major {
    /// All of them, oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        KNOWN.iter().map(|(number, ..)| Self(*number))
    }

    /// That of a number, e.g. 18.
    #[must_use]
    pub fn of(number: u16) -> Option<Self> {
        Self::all().find(|one| one.0 == number)
    }

    /// That whose WAL pages begin with this.
    #[must_use]
    pub fn of_magic(magic: u16) -> Option<Self> {
        KNOWN.iter().find(|(_, known, _)| *known == magic).map(|(number, ..)| Self(*number))
    }

    /// That whose clusters have a catalogue of this number (`CATALOG_VERSION_NO`).
    #[must_use]
    pub fn of_catalogue(version: u32) -> Option<Self> {
        KNOWN.iter().find(|(_, _, known)| *known == version).map(|(number, ..)| Self(*number))
    }

    /// What its WAL pages begin with.
    #[must_use]
    pub fn magic(self) -> u16 {
        KNOWN.iter().find(|(number, ..)| *number == self.0).map_or(0, |(_, magic, _)| *magic)
    }

    /// As people say it, e.g. 18.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Major {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
