//! Names in folders: what is settled, and the operations since, each with what it stands on.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Ino;
use crate::file_data::Order;

/// A name in a folder.
pub type Entry = (Ino, Vec<u8>);

/// Which operations may survive without others: see `docs/concepts/power-cuts.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Never a later one without all earlier ones.
    Ordered,
    /// Any, with what it stands on.
    Alone,
}

/// One operation that goes through a file system's journal.
#[derive(Clone, Debug)]
pub struct Operation {
    /// When.
    pub order: Order,
    /// On what.
    pub ino: Ino,
    /// What names are after it: None, if gone. Empty, if a file was cut.
    pub entries: Vec<(Entry, Option<Ino>)>,
    /// Earlier operations that this one needs.
    stands_on: Vec<Order>,
}

/// All names below the data directory.
#[derive(Clone, Debug)]
pub struct Names {
    survival: Survival,
    settled: BTreeMap<Entry, Ino>,
    now: BTreeMap<Entry, Ino>,
    open: BTreeMap<Order, Operation>,
    last_on: BTreeMap<Ino, Order>,
    last_at: BTreeMap<Entry, Order>,
}

impl Names {
    /// An empty folder.
    #[must_use]
    pub fn new(survival: Survival) -> Self {
        Self {
            survival,
            settled: BTreeMap::new(),
            now: BTreeMap::new(),
            open: BTreeMap::new(),
            last_on: BTreeMap::new(),
            last_at: BTreeMap::new(),
        }
    }

    /// How operations survive.
    #[must_use]
    pub fn survival(&self) -> Survival {
        self.survival
    }

    /// An operation was asked for.
    pub fn put(&mut self, order: Order, ino: Ino, entries: Vec<(Entry, Option<Ino>)>) {
        let mut stands_on: BTreeSet<Order> = self.last_on.get(&ino).copied().into_iter().collect();
        for (entry, becomes) in &entries {
            stands_on.extend(self.last_on.get(&entry.0));
            stands_on.extend(self.last_at.get(entry));
            // What is replaced goes on its own way from here.
            if becomes.is_some()
                && let Some(replaced) = self.now.get(entry).filter(|replaced| **replaced != ino)
            {
                stands_on.extend(self.last_on.get(replaced));
                self.last_on.insert(*replaced, order);
            }
        }
        self.last_on.insert(ino, order);
        for (entry, becomes) in &entries {
            self.last_at.insert(entry.clone(), order);
            assign(&mut self.now, entry, *becomes);
        }
        let stands_on = stands_on.into_iter().filter(|one| self.open.contains_key(one)).collect();
        self.open.insert(order, Operation { order, ino, entries, stands_on });
    }

    /// Operations that may be lost, oldest first.
    #[must_use]
    pub fn open(&self) -> impl DoubleEndedIterator<Item = &Operation> {
        self.open.values()
    }

    /// Whether an operation may survive beside these.
    #[must_use]
    pub fn may_survive(&self, operation: &Operation, survivors: &BTreeSet<Order>) -> bool {
        let there = |one: &Order| !self.open.contains_key(one) || survivors.contains(one);
        match self.survival {
            Survival::Alone => operation.stands_on.iter().all(there),
            Survival::Ordered => self
                .open
                .range(..operation.order)
                .next_back()
                .is_none_or(|(before, _)| survivors.contains(before)),
        }
    }

    /// What the names are if these survive.
    #[must_use]
    pub fn with(&self, survivors: &BTreeSet<Order>) -> BTreeMap<Entry, Ino> {
        let mut names = self.settled.clone();
        for operation in self.open.values().filter(|one| survivors.contains(&one.order)) {
            for (entry, becomes) in &operation.entries {
                assign(&mut names, entry, *becomes);
            }
        }
        names
    }

    /// Settle operations, with all that they stand on; returns those that were open, oldest first.
    pub fn settle(&mut self, wanted: impl Fn(&Operation) -> bool) -> Vec<Operation> {
        let mut due: BTreeSet<Order> =
            self.open.values().filter(|one| wanted(one)).map(|one| one.order).collect();
        match self.survival {
            Survival::Ordered => {
                if let Some(last) = due.last().copied() {
                    due.extend(self.open.range(..last).map(|(order, _)| *order));
                }
            }
            Survival::Alone => {
                let mut look: Vec<Order> = due.iter().copied().collect();
                while let Some(order) = look.pop() {
                    let Some(operation) = self.open.get(&order) else { continue };
                    look.extend(operation.stands_on.iter().filter(|one| due.insert(**one)));
                }
            }
        }
        let settled: Vec<_> = due.iter().filter_map(|order| self.open.remove(order)).collect();
        for operation in &settled {
            for (entry, becomes) in &operation.entries {
                assign(&mut self.settled, entry, *becomes);
            }
        }
        settled
    }
}

fn assign(names: &mut BTreeMap<Entry, Ino>, entry: &Entry, becomes: Option<Ino>) {
    match becomes {
        Some(ino) => names.insert(entry.clone(), ino),
        None => names.remove(entry),
    };
}
