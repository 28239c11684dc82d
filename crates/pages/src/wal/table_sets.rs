//! Sets of tables, by numbers: what transactions of one kind change is found step by step.

use foldhash::{HashMap, HashMapExt as _};

/// Sets that are told apart, those on the way to others among them; those of DDL have no end.
const SETS_MAX: usize = 16_384;

/// A set's number.
pub(super) type Set = usize;
/// That of no table.
pub(super) const NONE: Set = 0;
/// That of all that are not told apart: whatever is added to it, it stays the same.
pub(super) const FURTHER: Set = 1;

/// A set, and the step that was taken from it last: mostly the next one, too.
#[derive(Debug)]
struct Known {
    tables: Vec<usize>,
    latest: (usize, Set),
}

/// All that were met.
#[derive(Debug)]
pub(super) struct TableSets {
    known: Vec<Known>,
    numbers: HashMap<Vec<usize>, Set>,
}

impl TableSets {
    pub(super) fn new() -> Self {
        let empty = || Known { tables: Vec::new(), latest: (usize::MAX, NONE) };
        let mut numbers = HashMap::new();
        numbers.insert(Vec::new(), NONE);
        Self { known: vec![empty(), empty()], numbers }
    }

    /// A set and one more table.
    pub(super) fn with(&mut self, set: Set, table: usize) -> Set {
        let known = &self.known[set];
        if known.latest.0 == table {
            return known.latest.1;
        }
        if set == FURTHER || known.tables.contains(&table) {
            return set;
        }
        let mut tables = known.tables.clone();
        tables.insert(tables.partition_point(|one| *one < table), table);
        let next = self.number(tables);
        self.known[set].latest = (table, next);
        next
    }

    /// All tables of two sets.
    pub(super) fn union(&mut self, set: Set, other: Set) -> Set {
        if other == FURTHER {
            return FURTHER;
        }
        let tables = self.known[other].tables.clone();
        tables.into_iter().fold(set, |whole, table| self.with(whole, table))
    }

    /// Its tables, ascending.
    pub(super) fn tables(&self, set: Set) -> &[usize] {
        &self.known[set].tables
    }

    fn number(&mut self, tables: Vec<usize>) -> Set {
        if let Some(number) = self.numbers.get(&tables) {
            return *number;
        }
        if self.known.len() >= SETS_MAX {
            return FURTHER;
        }
        let number = self.known.len();
        self.known.push(Known { tables: tables.clone(), latest: (usize::MAX, NONE) });
        self.numbers.insert(tables, number);
        number
    }
}
