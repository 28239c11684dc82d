//! Whatever is asked for: what was synced is there, and nothing is that never was.
//!
//! The ledger here knows files as plain bytes, and nothing of sectors, names and orders.

use std::collections::{BTreeMap, BTreeSet};

use disk::event::{Ino, ROOT};
use disk::names::Survival;
use disk::settle::{Device, Medium};
use proptest::prelude::*;

use crate::scribe::{Files, Scribe, disk, files};

/// What somebody asks for; files are chosen among those that are there.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Create,
    Write { file: usize, at: u64, bytes: usize },
    Cut { file: usize, size: u64 },
    Sync { file: usize },
    SyncFolder,
    Rename { file: usize },
    Unlink { file: usize },
}

pub(crate) fn asked() -> impl Strategy<Value = Vec<Asked>> {
    let file = 0..4usize;
    let whole = (file.clone(), 0..20u64, 1..20usize).prop_map(|(file, at, count)| Asked::Write {
        file,
        at: at * 512,
        bytes: count * 512,
    });
    let part = (file.clone(), 0..9000u64, 1..3000usize)
        .prop_map(|(file, at, bytes)| Asked::Write { file, at, bytes });
    let one = prop_oneof![
        2 => Just(Asked::Create),
        6 => whole,
        3 => part,
        1 => (file.clone(), 0..10_000u64).prop_map(|(file, size)| Asked::Cut { file, size }),
        4 => file.clone().prop_map(|file| Asked::Sync { file }),
        1 => Just(Asked::SyncFolder),
        1 => file.clone().prop_map(|file| Asked::Rename { file }),
        1 => file.prop_map(|file| Asked::Unlink { file }),
    ];
    prop::collection::vec(one, 1..40)
}

/// What is promised of one file.
#[derive(Default)]
struct Promised {
    name: String,
    now: Vec<u8>,
    /// Its name is settled.
    named: bool,
    /// Its bytes at the last sync, and the sectors that were asked for since.
    synced: Option<(Vec<u8>, BTreeSet<usize>)>,
    resized: bool,
    /// All that each sector ever was.
    ever: BTreeMap<usize, BTreeSet<Vec<u8>>>,
}

impl Promised {
    fn note(&mut self) {
        for (sector, bytes) in self.now.chunks(512).enumerate() {
            let mut whole = bytes.to_vec();
            whole.resize(512, 0);
            self.ever.entry(sector).or_default().insert(whole);
        }
    }
}

/// Carries out what is asked for, and keeps the books.
pub(crate) struct Books {
    pub(crate) scribe: Scribe,
    files: BTreeMap<Ino, Promised>,
    names: u64,
    writes: u8,
    /// Whether the record knows of syncs: one without is the work of a recorder that forgets them.
    pub(crate) syncs_are_written_down: bool,
}

impl Books {
    pub(crate) fn new() -> Self {
        let (scribe, files) = (Scribe::new(), BTreeMap::new());
        Self { scribe, files, names: 0, writes: 0, syncs_are_written_down: true }
    }

    fn file(&self, number: usize) -> Option<Ino> {
        self.files.keys().nth(number % self.files.len().max(1)).copied()
    }

    pub(crate) fn carry_out(&mut self, asked: &Asked) {
        match *asked {
            Asked::Create => {
                self.names += 1;
                let name = format!("f{}", self.names);
                let ino = self.scribe.create(&name);
                self.files.insert(ino, Promised { name, ..Promised::default() });
            }
            Asked::Write { file, at, bytes } => self.write(file, at, bytes),
            Asked::Cut { file, size } => self.cut(file, size),
            Asked::Sync { file } => self.sync(file),
            Asked::SyncFolder => {
                self.scribe.sync(ROOT);
                self.files.values_mut().for_each(|file| file.named = true);
            }
            Asked::Rename { file } => {
                let Some(ino) = self.file(file) else { return };
                self.names += 1;
                let name = format!("f{}", self.names);
                let of = self.files.get_mut(&ino).unwrap();
                self.scribe.rename(ino, &of.name, &name);
                (of.name, of.named) = (name, false);
            }
            Asked::Unlink { file } => {
                let Some(ino) = self.file(file) else { return };
                let gone = self.files.remove(&ino).unwrap();
                self.scribe.unlink(ino, &gone.name);
            }
        }
    }

    fn write(&mut self, file: usize, at: u64, bytes: usize) {
        let Some(ino) = self.file(file) else { return };
        self.writes = self.writes % 250 + 1;
        let data = vec![self.writes; bytes];
        self.scribe.write(ino, at, &data);
        let of = self.files.get_mut(&ino).unwrap();
        let at = usize::try_from(at).unwrap();
        if of.now.len() < at + bytes {
            of.now.resize(at + bytes, 0);
        }
        of.now[at..at + bytes].copy_from_slice(&data);
        if let Some((_, touched)) = &mut of.synced {
            touched.extend(at / 512..(at + bytes).div_ceil(512));
        }
        of.note();
    }

    fn cut(&mut self, file: usize, size: u64) {
        let Some(ino) = self.file(file) else { return };
        let of = self.files.get_mut(&ino).unwrap();
        let wanted = usize::try_from(size).unwrap();
        if wanted < of.now.len() {
            self.scribe.cut(ino, size);
            of.now.truncate(wanted);
            of.resized = true;
            of.note();
        }
    }

    fn sync(&mut self, file: usize) {
        let Some(ino) = self.file(file) else { return };
        if self.syncs_are_written_down {
            self.scribe.sync(ino);
        }
        let of = self.files.get_mut(&ino).unwrap();
        of.named = true;
        of.resized = false;
        of.synced = Some((of.now.clone(), BTreeSet::new()));
    }

    /// What is wrong with a disk; None: nothing.
    pub(crate) fn objection(&self, found: &Files) -> Option<String> {
        self.files.values().find_map(|promised| {
            let name = &promised.name;
            let Some(bytes) = found.get(name) else {
                return promised.named.then(|| format!("{name} is not there"));
            };
            lost(promised, bytes).or_else(|| never(promised, bytes))
        })
    }
}

fn lost(promised: &Promised, found: &[u8]) -> Option<String> {
    let (synced, touched) = promised.synced.as_ref().filter(|_| !promised.resized)?;
    let name = &promised.name;
    if found.len() < synced.len() {
        return Some(format!("{name} has {} of {} bytes", found.len(), synced.len()));
    }
    synced.chunks(512).enumerate().find_map(|(sector, bytes)| {
        let same = touched.contains(&sector) || found[sector * 512..].starts_with(bytes);
        (!same).then(|| format!("{name} lost sector {sector}"))
    })
}

fn never(promised: &Promised, found: &[u8]) -> Option<String> {
    found.chunks(512).enumerate().find_map(|(sector, bytes)| {
        let zero = bytes.iter().all(|byte| *byte == 0);
        let once = promised.ever.get(&sector);
        // A file may end within a sector that was written to its end.
        let known = once.is_some_and(|all| all.iter().any(|one| one.starts_with(bytes)));
        (!zero && !known).then(|| format!("{} never had this sector {sector}", promised.name))
    })
}

/// What is wrong with some disks of a record.
pub(crate) fn objection(
    asked: &[Asked],
    device: Device,
    syncs_are_written_down: bool,
) -> Option<String> {
    let mut books = Books { syncs_are_written_down, ..Books::new() };
    for one in asked {
        books.carry_out(one);
    }
    let now_ns = books.scribe.now_ns;
    let scribe = std::mem::replace(&mut books.scribe, Scribe::new());
    let record = scribe.record();
    let medium = Medium::at(&record, now_ns, device).unwrap();
    (0..24).find_map(|seed| books.objection(&files(&record, &medium, seed)))
}

proptest! {
    #[test]
    fn what_was_synced_is_there_and_nothing_that_never_was(
        asked in asked(), sector_bytes in prop_oneof![Just(512), Just(4096)], alone: bool,
    ) {
        let names = if alone { Survival::Alone } else { Survival::Ordered };
        let device = Device { sector_bytes, names, ..Device::HONEST };
        prop_assert_eq!(objection(&asked, device, true), None);
    }

    #[test]
    fn a_seed_gives_one_disk(asked in asked(), seed: u64) {
        let mut books = Books::new();
        for one in &asked {
        books.carry_out(one);
    }
        let now_ns = books.scribe.now_ns;
        let record = books.scribe.record();
        let twice = [0; 2].map(|_| disk(&record, now_ns, seed, Device::HONEST));
        prop_assert_eq!(&twice[0], &twice[1]);
    }
}
