//! Relations by their files: which one a path belongs to, and the path of one.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// `pg_default`.
pub const DEFAULT_TABLESPACE: u32 = 1663;
/// `pg_global`: relations that all databases share.
pub const GLOBAL_TABLESPACE: u32 = 1664;

/// A relation by its files' names, as WAL names it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema,
)]
#[schemars(rename = "RelationPlace")]
pub struct Locator {
    /// OID of the tablespace.
    pub tablespace: u32,
    /// OID of the database; 0: shared by all.
    pub database: u32,
    /// `pg_class.relfilenode`, or what the map of the database says.
    pub relfilenode: u32,
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tablespace, self.database, self.relfilenode)
    }
}

/// A fork of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fork {
    /// Its rows.
    Main,
    /// Its map of free space.
    FreeSpace,
    /// Its visibility map.
    Visibility,
    /// What an unlogged one is reset to.
    Init,
}

impl Fork {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Main, "main"),
        (Self::FreeSpace, "fsm"),
        (Self::Visibility, "vm"),
        (Self::Init, "init"),
    ];

    /// That of a number, as WAL has it.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).map(|(fork, _)| *fork)
    }

    /// That of a name, as files have it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(fork, _)| *fork)
    }

    /// As PostgreSQL calls it: `main`, `fsm`, `vm`, `init`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(fork, _)| *fork == self).map_or("main", |(_, name)| *name)
    }
}

/// A file of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RelationFile {
    /// The relation.
    pub locator: Locator,
    /// Which of its forks.
    pub fork: Fork,
    /// Which part of the fork; of 1 GiB unless PostgreSQL was built otherwise.
    pub segment: u32,
}

impl RelationFile {
    /// What a path below the data directory is a file of; `None` of anything else, temporary
    /// relations too.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let (tablespace, database, file) = match parts[..] {
            ["global", file] => (GLOBAL_TABLESPACE, 0, file),
            ["base", database, file] => (DEFAULT_TABLESPACE, number(database)?, file),
            ["pg_tblspc", tablespace, folder, database, file] => {
                folder.strip_prefix("PG_")?;
                (number(tablespace)?, number(database)?, file)
            }
            _ => return None,
        };
        let (name, segment) = match file.split_once('.') {
            // The first part has no number, and no other has that of zero.
            Some((name, segment)) => (name, number(segment).filter(|segment| *segment > 0)?),
            None => (file, 0),
        };
        let (relfilenode, fork) = match name.split_once('_') {
            Some((_, "main")) => return None,
            Some((relfilenode, fork)) => (relfilenode, Fork::named(fork)?),
            None => (name, Fork::Main),
        };
        let relfilenode = number(relfilenode)?;
        Some(Self { locator: Locator { tablespace, database, relfilenode }, fork, segment })
    }

    /// Its path below the data directory. `version` is the folder's name in other tablespaces,
    /// e.g. `PG_18_202506291`.
    #[must_use]
    pub fn path(&self, version: &str) -> String {
        let Locator { tablespace, database, relfilenode } = self.locator;
        let folder = match tablespace {
            GLOBAL_TABLESPACE => "global".to_owned(),
            DEFAULT_TABLESPACE => format!("base/{database}"),
            _ => format!("pg_tblspc/{tablespace}/{version}/{database}"),
        };
        let fork = match self.fork {
            Fork::Main => String::new(),
            fork => format!("_{}", fork.name()),
        };
        let segment = if self.segment == 0 { String::new() } else { format!(".{}", self.segment) };
        format!("{folder}/{relfilenode}{fork}{segment}")
    }
}

/// A number as PostgreSQL writes it: without sign and leading zeroes.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|one| one.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_relations_are_read_and_written() {
        let cases = [
            ("base/5/16384", (1663, 5, 16384), Fork::Main, 0),
            ("base/5/16384_vm", (1663, 5, 16384), Fork::Visibility, 0),
            ("base/5/16384_fsm.2", (1663, 5, 16384), Fork::FreeSpace, 2),
            ("global/1262", (1664, 0, 1262), Fork::Main, 0),
            (
                "pg_tblspc/16390/PG_18_202506291/5/4294967295_init.1",
                (16390, 5, u32::MAX),
                Fork::Init,
                1,
            ),
        ];
        for (path, (tablespace, database, relfilenode), fork, segment) in cases {
            let file = RelationFile::of_path(path).expect(path);
            let locator = Locator { tablespace, database, relfilenode };
            assert_eq!(file, RelationFile { locator, fork, segment });
            assert_eq!(file.path("PG_18_202506291"), path);
        }
    }

    #[test]
    fn other_files_are_none_of_a_relation() {
        for path in [
            "",
            "base",
            "base/5",
            "base/5/",
            "base/5/PG_VERSION",
            "base/5/t3_16384",
            "base/5/16384.0",
            "base/5/16384.",
            "base/5/016384",
            "base/5/16384_main",
            "base/5/4294967296",
            "base/x/1",
            "global/pg_control",
            "global/pg_filenode.map",
            "/base/5/1",
            "base/5/1/2",
            "pg_wal/000000010000000000000001",
            "pg_tblspc/16390/other/5/1",
            "base/5/16384_vm_vm",
            "base/5/+1",
        ] {
            assert_eq!(RelationFile::of_path(path), None, "{path}");
        }
    }
}
