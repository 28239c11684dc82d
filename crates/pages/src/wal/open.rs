//! Transactions that have not ended, found by their number again and again.

use foldhash::{HashMap, HashMapExt as _};

use crate::wal::{
    count::Count,
    table_sets::{NONE, Set},
};

/// Numbers follow each other: those that are open at a time differ in their last bits.
const SLOTS: u32 = 512;

/// What a transaction wrote so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) wrote: Count,
    /// Tables whose rows it changed.
    pub(super) tables: Set,
}

impl Open {
    fn new() -> Self {
        Self { wrote: Count::default(), tables: NONE }
    }
}

/// One place for each number's last bits; who finds its own taken goes to the others.
#[derive(Debug)]
pub(super) struct OpenTransactions {
    slots: Vec<(u32, Open)>,
    others: HashMap<u32, Open>,
}

impl OpenTransactions {
    pub(super) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| (0, Open::new())).collect(), others: HashMap::new() }
    }

    /// That of a number, which is not 0.
    pub(super) fn of(&mut self, xid: u32) -> &mut Open {
        let at = slot(xid);
        let owner = self.slots[at].0;
        if owner != xid {
            if owner != 0 || self.others.contains_key(&xid) {
                return self.others.entry(xid).or_insert_with(Open::new);
            }
            self.slots[at] = (xid, Open::new());
        }
        &mut self.slots[at].1
    }

    /// Ends one; `None`: it wrote nothing.
    pub(super) fn end(&mut self, xid: u32) -> Option<Open> {
        let (owner, open) = &mut self.slots[slot(xid)];
        if *owner != xid {
            return self.others.remove(&xid);
        }
        *owner = 0;
        Some(*open)
    }

    /// All that are open.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Open> {
        let slots = self.slots.iter().filter(|(owner, _)| *owner != 0).map(|(_, open)| open);
        slots.chain(self.others.values())
    }
}

fn slot(xid: u32) -> usize {
    usize::try_from(xid % SLOTS).unwrap_or(0)
}
