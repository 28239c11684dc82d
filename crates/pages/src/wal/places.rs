//! Numbers of relations' forks, asked for again and again: a few have most of the records.

use foldhash::HashMap;

use crate::relation::{Fork, Locator};

/// Files that are made one after the other have names that differ in their last bits.
const SLOTS: u32 = 64;

type Key = (Locator, Fork);

/// Each fork's number, from 0 on in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Places {
    numbers: HashMap<Key, usize>,
    /// Those that were asked for last, by the last bits of their files' name.
    recent: Vec<Option<(Key, usize)>>,
}

impl Default for Places {
    fn default() -> Self {
        Self { numbers: HashMap::default(), recent: (0..SLOTS).map(|_| None).collect() }
    }
}

impl Places {
    /// That of a fork, a new one where it was never asked for.
    pub(super) fn of(&mut self, locator: Locator, fork: Fork) -> usize {
        let key = (locator, fork);
        let slot = usize::try_from(locator.relfilenode % SLOTS).unwrap_or(0);
        if let Some((known, number)) = self.recent[slot]
            && known == key
        {
            return number;
        }
        let next = self.numbers.len();
        let number = *self.numbers.entry(key).or_insert(next);
        self.recent[slot] = Some((key, number));
        number
    }

    /// That of a fork; `None`: it was never asked for.
    pub(super) fn known(&self, locator: Locator, fork: Fork) -> Option<usize> {
        self.numbers.get(&(locator, fork)).copied()
    }
}
