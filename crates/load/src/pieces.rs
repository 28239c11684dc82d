//! The relations that rows go into: whole tables, or partitions of them, each with its units.

use std::sync::Arc;

use workload::{
    dataset::{Dataset, PartitionBy, Partitions, Table, Units},
    made,
    tpcc::schema::LOAD_TABLE,
};

use super::ledger;

/// Storage parameter while a table is filled: autovacuum would compete with the COPY, and be
/// cancelled by the index builds.
const NO_AUTOVACUUM: &str = "autovacuum_enabled = off";

/// A table without partitions, or a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    /// Index into the tables of the dataset.
    pub(super) table: usize,
    /// Its own name.
    pub(super) name: String,
    /// Number of the partition, from 1.
    pub(super) partition: Option<u32>,
    /// Whose rows it has.
    pub(super) units: Units,
}

/// Which units are in which partition, by the server's hash: one list for each partition.
pub(super) type Routing = Vec<Vec<u32>>;

/// How a table is partitioned: by which column, and how.
pub(super) fn partitioned(dataset: &dyn Dataset, table: usize) -> Option<(&str, Partitions)> {
    let column = dataset.growth(table)?.column?;
    Some((column, dataset.partitions()?))
}

/// A partition's name.
pub(super) fn partition_name(table: &str, number: u32) -> String {
    format!("{table}_p{number}")
}

/// Everything that is created, in order.
pub(super) fn creation(dataset: &dyn Dataset) -> Vec<String> {
    let mut sql: Vec<String> =
        dataset.sequences().iter().map(|name| format!("CREATE SEQUENCE {name}")).collect();
    for (at, table) in dataset.tables().iter().enumerate() {
        match partitioned(dataset, at) {
            None => sql.push(table.ddl(&[NO_AUTOVACUUM])),
            Some((column, partitions)) => {
                sql.extend(partitioned_creation(table, column, partitions, dataset.units()));
            }
        }
    }
    sql.extend(dataset.extras());
    sql
}

fn partitioned_creation(
    table: &Table,
    column: &str,
    Partitions { by, count }: Partitions,
    units: u32,
) -> Vec<String> {
    let Table { name, columns, storage, .. } = table;
    let word = match by {
        PartitionBy::Hash => "HASH",
        PartitionBy::Range => "RANGE",
    };
    let mut sql = vec![format!("CREATE TABLE {name} ({columns}) PARTITION BY {word} ({column})")];
    let storage: Vec<&str> = storage.iter().map(String::as_str).chain([NO_AUTOVACUUM]).collect();
    for at in 0..count {
        let values = match by {
            PartitionBy::Hash => format!("WITH (MODULUS {count}, REMAINDER {at})"),
            // Open at both ends: units may be added later.
            PartitionBy::Range => {
                let range = range_of(at, count, units);
                let from = if at == 0 { "MINVALUE".into() } else { (range.start + 1).to_string() };
                let last = at + 1 == count;
                let to = if last { "MAXVALUE".into() } else { (range.end + 1).to_string() };
                format!("FROM ({from}) TO ({to})")
            }
        };
        sql.push(format!(
            "CREATE TABLE {} PARTITION OF {name} FOR VALUES {values} WITH ({})",
            partition_name(name, at + 1),
            storage.join(", ")
        ));
    }
    sql
}

/// Units of a range partition: as even as whole units allow.
fn range_of(at: u32, count: u32, units: u32) -> std::ops::Range<u32> {
    let bound = |at: u32| {
        let bound = u64::from(at) * u64::from(units) / u64::from(count);
        u32::try_from(bound).unwrap_or(units)
    };
    bound(at)..bound(at + 1)
}

/// All relations of a table that is filled for the first time.
///
/// `routing` is needed for hash partitions only.
pub(super) fn relations(
    dataset: &dyn Dataset,
    table: usize,
    routing: Option<&Routing>,
) -> Vec<Relation> {
    let name = &dataset.tables()[table].name;
    let all = Units::Range(0..dataset.units());
    match partitioned(dataset, table) {
        None => vec![Relation { table, name: name.clone(), partition: None, units: all }],
        Some((_, Partitions { by, count })) => (0..count)
            .map(|at| Relation {
                table,
                name: partition_name(name, at + 1),
                partition: Some(at + 1),
                units: match (by, routing) {
                    (PartitionBy::Hash, Some(lists)) => {
                        Units::List(Arc::from(lists[at as usize].as_slice()))
                    }
                    _ => Units::Range(range_of(at, count, dataset.units())),
                },
            })
            .collect(),
    }
}

/// The relations of all tables, as [`relations`].
pub(super) fn all(dataset: &dyn Dataset, routing: Option<&Routing>) -> Vec<Relation> {
    (0..dataset.tables().len()).flat_map(|at| relations(dataset, at, routing)).collect()
}

/// Names of everything that [`creation`] and the records of a load create.
pub(super) fn names(dataset: &dyn Dataset) -> Vec<String> {
    let parts = all(dataset, None).into_iter().filter(|one| one.partition.is_some());
    let mut names = made::parts(dataset);
    names.extend(parts.map(|one| one.name));
    names.extend([LOAD_TABLE, ledger::TABLE, made::TABLE].map(str::to_owned));
    names
}

/// Names of the indexes that a load builds, with those of partitions.
pub(super) fn index_names(dataset: &dyn Dataset) -> Vec<String> {
    let mut names = Vec::new();
    for (at, table) in dataset.tables().iter().enumerate() {
        let count = partitioned(dataset, at).map_or(0, |(_, partitions)| partitions.count);
        for index in dataset.indexes().into_iter().filter(|index| index.table == table.name) {
            names.extend((1..=count).map(|number| partition_name(&index.name, number)));
            names.push(index.name);
        }
    }
    names
}

/// The query that tells which unit is in which hash partition: rows of remainder and unit from 0.
pub(super) fn routing_query(dataset: &dyn Dataset) -> Option<String> {
    let partitions = dataset.partitions().filter(|one| one.by == PartitionBy::Hash)?;
    let tables = dataset.tables();
    // The hash of a number is the same whatever the table.
    let table = (0..tables.len()).find(|at| partitioned(dataset, *at).is_some())?;
    let (name, count, units) = (&tables[table].name, partitions.count, dataset.units());
    Some(format!(
        "SELECT r, u FROM generate_series(0, {}) u, generate_series(0, {}) r \
         WHERE satisfies_hash_partition('{name}'::regclass, {count}, r, u + 1) ORDER BY u",
        units - 1,
        count - 1,
    ))
}

/// Reads the answer to [`routing_query`]; `None` if it is none.
pub(super) fn routing(rows: &[Vec<Option<String>>], count: u32, units: u32) -> Option<Routing> {
    let mut lists: Routing = vec![Vec::new(); usize::try_from(count).ok()?];
    for row in rows {
        let [remainder, unit] = row.as_slice() else { return None };
        let remainder: usize = remainder.as_ref()?.parse().ok()?;
        lists.get_mut(remainder)?.push(unit.as_ref()?.parse().ok()?);
    }
    let routed: usize = lists.iter().map(Vec::len).sum();
    (routed == usize::try_from(units).ok()?).then_some(lists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wire::Timestamp;
    use workload::catalogue;

    fn dataset(warehouses: u32, partitions: &serde_json::Value) -> Box<dyn Dataset> {
        let spec = json!({"kind": "tpcc", "warehouses": warehouses, "partitions": partitions});
        catalogue::dataset(&spec, Timestamp(0)).expect("a specification")
    }

    #[test]
    fn ranges_hold_every_unit_once_and_are_open_at_both_ends() {
        let dataset = dataset(10, &json!({"by": "range", "count": 4}));
        let stock = dataset.tables().iter().position(|one| one.name == "stock").expect("a table");
        let parts = relations(&*dataset, stock, None);
        let units: Vec<Units> = parts.iter().map(|part| part.units.clone()).collect();
        assert_eq!(
            units,
            [Units::Range(0..2), Units::Range(2..5), Units::Range(5..7), Units::Range(7..10)]
        );
        let sql = creation(&*dataset);
        for part in [
            "CREATE TABLE stock_p1 PARTITION OF stock FOR VALUES FROM (MINVALUE) TO (3) WITH",
            "CREATE TABLE stock_p2 PARTITION OF stock FOR VALUES FROM (3) TO (6) WITH",
            "CREATE TABLE stock_p4 PARTITION OF stock FOR VALUES FROM (8) TO (MAXVALUE) WITH",
        ] {
            assert!(sql.iter().any(|one| one.starts_with(part)), "{part}");
        }
    }

    #[test]
    fn only_tables_with_a_warehouse_are_partitioned() {
        let dataset = dataset(2, &json!({"by": "hash", "count": 3}));
        for (at, table) in dataset.tables().iter().enumerate() {
            assert_eq!(partitioned(&*dataset, at).is_some(), table.name != "item");
        }
        let history = dataset.tables().iter().position(|one| one.name == "history");
        let column = partitioned(&*dataset, history.expect("a table")).map(|(column, _)| column);
        assert_eq!(column, Some("h_w_id"));
        let sql = creation(&*dataset);
        let hashed = "stock_p3 PARTITION OF stock FOR VALUES WITH (MODULUS 3, REMAINDER 2)";
        assert!(sql.iter().any(|one| one.contains(hashed)));
        assert!(sql.iter().any(|one| one.starts_with("CREATE TABLE item") && one.contains("off")));
    }

    #[test]
    fn a_routing_that_misses_a_unit_is_none() {
        let row = |remainder: &str, unit: &str| vec![Some(remainder.into()), Some(unit.into())];
        let rows = [row("1", "0"), row("0", "1"), row("1", "2")];
        assert_eq!(routing(&rows, 2, 3), Some(vec![vec![1], vec![0, 2]]));
        assert_eq!(routing(&rows, 2, 4), None);
        assert_eq!(routing(&rows, 1, 3), None);
    }
}
