//! Transactions that have not ended, found by their number again and again.

use foldhash::{HashMap, HashMapExt as _};

use crate::wal::count::Count;

/// Numbers follow each other: those that are open at a time differ in their last bits.
const SLOTS: u32 = 4096;

/// What a transaction wrote so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    pub(super) wrote: Count,
    /// Tables whose rows it changed, each once.
    pub(super) tables: Vec<usize>,
}

impl Open {
    pub(super) fn change(&mut self, table: usize) {
        if !self.tables.contains(&table) {
            self.tables.push(table);
        }
    }

    /// Takes over what another one wrote, and leaves it empty: what it allocated is used again.
    fn take(&mut self, other: &mut Self) {
        self.wrote.add(other.wrote);
        other.tables.drain(..).for_each(|table| self.change(table));
        other.wrote = Count::default();
    }

    pub(super) fn clear(&mut self) {
        self.wrote = Count::default();
        self.tables.clear();
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
        let slots = (0..SLOTS).map(|_| (0, Open::default())).collect();
        Self { slots, others: HashMap::new() }
    }

    /// That of a number, which is not 0.
    pub(super) fn of(&mut self, xid: u32) -> &mut Open {
        let at = slot(xid);
        let owner = self.slots[at].0;
        let is_free = owner == 0 && !self.others.contains_key(&xid);
        if owner != xid && !is_free {
            return self.others.entry(xid).or_default();
        }
        self.slots[at].0 = xid;
        &mut self.slots[at].1
    }

    /// Ends one: `whole` takes over what it wrote, if anything.
    pub(super) fn end(&mut self, xid: u32, whole: &mut Open) {
        let (owner, open) = &mut self.slots[slot(xid)];
        if *owner == xid {
            *owner = 0;
            whole.take(open);
        } else if let Some(mut open) = self.others.remove(&xid) {
            whole.take(&mut open);
        }
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
