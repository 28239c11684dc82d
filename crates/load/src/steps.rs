//! The steps of a load and which must be done before which. Only this file knows the order.
//!
//! ```text
//! copies of a relation -> its indexes -> its key -> vacuum -+-> references -> checks -> finish
//!                       (a partitioned table: attach, analyse) ^
//! ```
//!
//! Relations do not wait for each other: while one is copied, another's indexes are built. Only
//! where rows are not frozen by their COPY, vacuum waits until no copy and no build is under way.

use std::ops::Range;

use workload::dataset::{Dataset, Index, Table, Units, batches_of};

use super::{
    ledger::Begun,
    pieces::{Relation, partition_name, partitioned},
    progress::Phase,
    strategy::{Copies, Cost, FREEZE_PERCENT},
};

/// Costs of a step, for the order of work, the time left and the estimate; measured on TPC-C, in
/// the time of copying a byte of table and index.
const INDEX_PER_ROW: u64 = 90;
const ANALYSE_PER_VALUE: u64 = 130;
/// Rows that ANALYZE reads: 300 for each of 100 steps of a histogram.
const SAMPLE_ROWS: u64 = 30_000;
/// A COPY beside others is to be so large: a server extends a table by up to 64 pages at a time for
/// each of them, and does not give back those in the middle that were not needed.
const COPY_BYTES: u64 = 16 << 20;
/// The first version whose VACUUM can be told not to use a small ring of buffers.
const BUFFER_USAGE_LIMIT_SINCE: u32 = 160_000;
/// The first version that can add an unchecked reference to a partitioned table.
const UNCHECKED_SINCE: u32 = 180_000;

/// A step of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// In the infinitive, for progress, errors and the ledger: `build stock_pkey`.
    pub(super) name: String,
    /// Which part of the load it belongs to.
    pub(super) phase: Phase,
    /// How much work it is.
    pub(super) cost: u64,
    /// Steps that must be done before, by their place in the list.
    pub(super) after: Vec<usize>,
    /// What is done.
    pub(super) action: Action,
}

impl Step {
    /// Rows that it sends: exactly for a whole table, else as if all batches had as many.
    pub(super) fn rows(&self, dataset: &dyn Dataset) -> u64 {
        let Action::Copy { table, batches, .. } = &self.action else { return 0 };
        let table = &dataset.tables()[*table];
        let count = batches.end - batches.start;
        part(table.rows, count.into(), table.batches.into())
    }

    /// Bytes that its rows will have on disk, with those of their indexes.
    pub(super) fn disk_bytes(&self) -> u64 {
        match self.action {
            Action::Copy { .. } => self.cost,
            Action::Sql { .. } => 0,
        }
    }
}

/// This part of a count: `some` of `all`.
pub(super) fn part(count: u64, some: u64, all: u64) -> u64 {
    let part = u128::from(count) * u128::from(some) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(count)
}

/// What is done in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Streams rows.
    Copy {
        /// Index into the tables of the dataset.
        table: usize,
        /// The table or partition.
        relation: String,
        /// SQL before the COPY, in its transaction: it locks the relation.
        before: String,
        /// `COPY … FROM STDIN`.
        sql: String,
        /// Whose rows.
        units: Units,
        /// Which of their batches.
        batches: Range<u32>,
    },
    /// SQL.
    Sql {
        /// One or more statements.
        sql: String,
        /// Whether it runs in a transaction, with its row in the ledger.
        atomic: bool,
    },
}

/// Everything that the steps follow from.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    /// What is loaded.
    pub(super) dataset: &'a dyn Dataset,
    /// How.
    pub(super) begun: &'a Begun,
    /// Relations that rows are copied into.
    pub(super) filled: &'a [Relation],
    /// Relations that have pages: tables without partitions, and partitions.
    pub(super) stored: &'a [Relation],
    /// The server's version.
    pub(super) version: u32,
}

impl Terms<'_> {
    /// This part of a count of the whole table.
    fn share(&self, count: u64, relation: &Relation) -> u64 {
        if self.dataset.growth(relation.table).is_none() {
            return count;
        }
        part(count, relation.units.count().into(), self.dataset.units().into())
    }

    fn indexes(&self, table: usize) -> Vec<Index> {
        let name = &self.dataset.tables()[table].name;
        self.dataset.indexes().into_iter().filter(|index| index.table == *name).collect()
    }

    fn copy_cost(&self, relation: &Relation) -> u64 {
        self.share(self.dataset.tables()[relation.table].disk_bytes, relation).max(1)
    }

    fn index_cost(&self, relation: &Relation) -> u64 {
        self.share(self.dataset.tables()[relation.table].rows, relation) * INDEX_PER_ROW
    }

    fn vacuum_cost(&self, relation: &Relation) -> u64 {
        let table = &self.dataset.tables()[relation.table];
        let columns = table.copied.split(',').count() as u64;
        let sample = self.share(table.rows, relation).min(SAMPLE_ROWS);
        let freeze = match self.begun.copies {
            Copies::Tables => 0,
            Copies::Batches => self.copy_cost(relation) * FREEZE_PERCENT / 100,
        };
        sample * columns * ANALYSE_PER_VALUE + freeze
    }

    /// What each relation costs, to choose how rows are cut.
    pub(super) fn costs(&self) -> Vec<Cost> {
        let cost = |relation: &Relation| {
            let builds = self.indexes(relation.table).len() as u64 * self.index_cost(relation);
            Cost { copy: self.copy_cost(relation), rest: builds + self.vacuum_cost(relation) }
        };
        self.filled.iter().filter(|one| self.batches(one) > 0).map(cost).collect()
    }

    fn batches(&self, relation: &Relation) -> u32 {
        // An empty table has none, nor has a partition that no unit is in.
        let Relation { table, units, .. } = relation;
        if self.dataset.tables()[*table].batches == 0 {
            return 0;
        }
        batches_of(self.dataset, *table, units)
    }

    /// All steps, in no particular order.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut list = List::default();
        let copies: Vec<Vec<usize>> =
            self.filled.iter().map(|relation| self.copies(relation, &mut list)).collect();
        let built: Vec<Vec<usize>> = self
            .stored
            .iter()
            .map(|relation| self.builds(relation, &self.fills(relation, &copies), &mut list))
            .collect();
        let built = self.settled(built, &mut list);
        let mut ends = Vec::new();
        for (table, described) in self.dataset.tables().iter().enumerate() {
            if described.batches > 0 {
                ends.extend(self.vacuums(table, &built, &mut list));
            }
        }
        let checked = self.references(&ends, &mut list);
        let finish = self.dataset.finish();
        if !finish.is_empty() {
            let tails = if checked.is_empty() { ends } else { checked };
            list.sql("finish the tables".into(), Phase::Finish, 1, tails, finish.join("; "));
        }
        list.0
    }

    /// The steps that copy rows: those of each relation, which wait for nothing.
    pub(super) fn copies_by_relation(&self) -> Vec<Vec<Step>> {
        let copies = |relation: &Relation| {
            let mut list = List::default();
            self.copies(relation, &mut list);
            list.0
        };
        self.filled.iter().map(copies).collect()
    }

    fn copies(&self, relation: &Relation, list: &mut List) -> Vec<usize> {
        let Relation { table, name, units, .. } = relation;
        let (described, all) = (&self.dataset.tables()[*table], self.batches(relation));
        let (size, whole) = match self.begun.copies {
            Copies::Tables => (all.max(1), true),
            Copies::Batches => (batches_per_copy(described), false),
        };
        let options = if whole { "FORMAT binary, FREEZE" } else { "FORMAT binary" };
        let sql = format!("COPY {name} ({}) FROM STDIN ({options})", described.copied);
        let before = if whole {
            format!("TRUNCATE {name}")
        } else {
            format!("LOCK TABLE {name} IN ROW EXCLUSIVE MODE")
        };
        let cost = self.copy_cost(relation);
        let mut places = Vec::new();
        for start in (0..all).step_by(size as usize) {
            let batches = start..all.min(start.saturating_add(size));
            let count = u64::from(batches.end - batches.start);
            let step = if whole {
                format!("copy {name}")
            } else {
                format!("copy {name}, batches {} to {} of {all}", start + 1, batches.end)
            };
            places.push(list.push(Step {
                name: step,
                phase: Phase::Copy,
                cost: part(cost, count, all.into()).max(1),
                after: Vec::new(),
                action: Action::Copy {
                    table: *table,
                    relation: name.clone(),
                    before: before.clone(),
                    sql: sql.clone(),
                    units: units.clone(),
                    batches,
                },
            }));
        }
        places
    }

    /// The copies that fill a relation: its own, or its table's.
    fn fills(&self, relation: &Relation, copies: &[Vec<usize>]) -> Vec<usize> {
        let table = &self.dataset.tables()[relation.table].name;
        let own = self.filled.iter().zip(copies).filter(|(filled, _)| {
            filled.table == relation.table && [table, &relation.name].contains(&&filled.name)
        });
        own.flat_map(|(_, places)| places.clone()).collect()
    }

    /// What the vacuum of each relation waits for. A row that was not frozen when it was copied is
    /// only frozen, and its page only visible to all, when no transaction is left that began before
    /// its own ended (of this load: all copies and builds), and its commit is on disk.
    fn settled(&self, built: Vec<Vec<usize>>, list: &mut List) -> Vec<Vec<usize>> {
        if self.begun.copies == Copies::Tables {
            return built;
        }
        let (all, step) = (built.concat(), "put all commits on disk".to_owned());
        let sql = "SET LOCAL synchronous_commit = on".to_owned();
        let wait = list.sql(step, Phase::Vacuum, 1, all, sql);
        vec![vec![wait]; built.len()]
    }

    /// Everything after the indexes of a table; returns the last steps.
    fn vacuums(&self, table: usize, built: &[Vec<usize>], list: &mut List) -> Vec<usize> {
        let name = &self.dataset.tables()[table].name;
        let split = partitioned(self.dataset, table).is_some();
        let mut tails = Vec::new();
        for (relation, after) in self.stored.iter().zip(built) {
            if relation.table != table {
                continue;
            }
            let (step, sql) = self.vacuum(relation, split);
            let cost = self.vacuum_cost(relation);
            tails.push(list.push(Step {
                name: step,
                phase: Phase::Vacuum,
                cost,
                after: after.clone(),
                action: Action::Sql { sql, atomic: false },
            }));
        }
        if split {
            if self.begun.builds {
                let sql = self.attach(table).join("; ");
                let step = format!("attach indexes to {name}");
                tails = vec![list.sql(step, Phase::Index, 1, tails, sql)];
            }
            let cost = SAMPLE_ROWS * ANALYSE_PER_VALUE;
            let sql = format!("ANALYZE {name}");
            tails = vec![list.sql(format!("analyse {name}"), Phase::Vacuum, cost, tails, sql)];
        }
        tails
    }

    /// Indexes of a relation and its key; what comes next waits for the last of them.
    fn builds(&self, relation: &Relation, filled: &[usize], list: &mut List) -> Vec<usize> {
        if !self.begun.builds {
            return filled.to_vec();
        }
        let indexes = self.indexes(relation.table);
        let own = |index: &Index| Index {
            name: relation.partition.map_or(index.name.clone(), |n| partition_name(&index.name, n)),
            table: relation.name.clone(),
            ..index.clone()
        };
        let cost = self.index_cost(relation);
        let mut tails = Vec::new();
        for index in indexes.iter().map(own) {
            let step = format!("build {}", index.name);
            tails.push(list.sql(step, Phase::Index, cost, filled.to_vec(), index.ddl()));
        }
        if let Some(key) = indexes.iter().map(own).find(|index| index.primary) {
            // An instant, since its columns are NOT NULL; but nobody else may use the table.
            let sql = format!(
                "ALTER TABLE {} ADD CONSTRAINT {n} PRIMARY KEY USING INDEX {n}",
                relation.name,
                n = key.name
            );
            let step = format!("declare the key of {}", relation.name);
            tails = vec![list.sql(step, Phase::Index, 1, tails, sql)];
        }
        if tails.is_empty() { filled.to_vec() } else { tails }
    }

    /// Indexes of a partitioned table: the partitions' are found by their columns, none is built.
    fn attach(&self, table: usize) -> Vec<String> {
        let attach = |index: Index| {
            let Index { name, table, columns, .. } = &index;
            if index.primary {
                format!("ALTER TABLE {table} ADD CONSTRAINT {name} PRIMARY KEY ({columns})")
            } else {
                index.ddl()
            }
        };
        self.indexes(table).into_iter().map(attach).collect()
    }

    fn vacuum(&self, relation: &Relation, split: bool) -> (String, String) {
        let Relation { name, .. } = relation;
        // The statistics of partitions are gathered with those of their table.
        let mut options = vec!["FREEZE"];
        if !split {
            options.push("ANALYZE");
        }
        if self.version >= BUFFER_USAGE_LIMIT_SINCE {
            options.push("BUFFER_USAGE_LIMIT 0");
        }
        (format!("vacuum {name}"), format!("VACUUM ({}) {name}", options.join(", ")))
    }

    /// References: added without a look at the rows, then checked, each table by one session, since
    /// a check keeps others off its table. Returns the last steps.
    fn references(&self, ends: &[usize], list: &mut List) -> Vec<usize> {
        let mut tables: Vec<(String, Vec<String>)> = Vec::new();
        for sql in self.dataset.foreign_keys() {
            let table = sql.split_whitespace().nth(2).unwrap_or_default().to_owned();
            match tables.iter_mut().find(|(known, _)| *known == table) {
                Some((_, keys)) => keys.push(sql),
                None => tables.push((table, vec![sql])),
            }
        }
        let (unchecked, checked): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|(table, _)| self.takes_unchecked(table));
        let mut tails = Vec::new();
        let cost = |table: &str| {
            let found = self.dataset.tables().iter().find(|one| one.name == table);
            found.map_or(1, |one| one.rows * INDEX_PER_ROW)
        };
        for (table, keys) in checked {
            let step = format!("add references of {table}");
            let after = ends.to_vec();
            tails.push(list.sql(step, Phase::ForeignKeys, cost(&table), after, keys.join("; ")));
        }
        if !unchecked.is_empty() {
            let keys = unchecked.iter().flat_map(|(_, keys)| keys);
            let sql: Vec<String> = keys.map(|sql| format!("{sql} NOT VALID")).collect();
            let after = if tails.is_empty() { ends.to_vec() } else { tails.clone() };
            let step = "add references, unchecked".to_owned();
            let added = list.sql(step, Phase::ForeignKeys, 1, after, sql.join("; "));
            tails = Vec::new();
            for (table, _) in unchecked {
                let step = format!("check references of {table}");
                let sql = validation(&table);
                tails.push(list.sql(step, Phase::ForeignKeys, cost(&table), vec![added], sql));
            }
        }
        tails
    }

    /// Whether a reference can be added to a table without a look at its rows.
    fn takes_unchecked(&self, table: &str) -> bool {
        let at = self.dataset.tables().iter().position(|one| one.name == table);
        let split = at.is_some_and(|at| partitioned(self.dataset, at).is_some());
        self.version >= UNCHECKED_SINCE || !split
    }
}

/// Batches of one COPY beside others.
fn batches_per_copy(table: &Table) -> u32 {
    let batch_bytes = (table.disk_bytes / u64::from(table.batches.max(1))).max(1);
    let enough = u32::try_from(COPY_BYTES.div_ceil(batch_bytes)).unwrap_or(u32::MAX);
    enough.max(table.batches_per_copy).max(1)
}

/// Checks all references of a table that were not checked yet. Those that the server derived, one
/// for each partition of what is referenced, are none of their own: 15 would look for all rows in
/// that one partition.
fn validation(table: &str) -> String {
    format!(
        "DO $$ DECLARE key name; BEGIN FOR key IN SELECT conname FROM pg_constraint \
         WHERE conrelid = '{table}'::regclass AND contype = 'f' AND NOT convalidated \
         AND conparentid = 0 \
         LOOP EXECUTE format('ALTER TABLE {table} VALIDATE CONSTRAINT %I', key); \
         END LOOP; END $$"
    )
}

/// Steps as they are thought of.
#[derive(Default)]
struct List(Vec<Step>);

impl List {
    fn push(&mut self, step: Step) -> usize {
        self.0.push(step);
        self.0.len() - 1
    }

    /// A step of SQL in a transaction.
    fn sql(
        &mut self,
        name: String,
        phase: Phase,
        cost: u64,
        after: Vec<usize>,
        sql: String,
    ) -> usize {
        let action = Action::Sql { sql, atomic: true };
        self.push(Step { name, phase, cost, after, action })
    }
}

#[cfg(test)]
mod tests;
