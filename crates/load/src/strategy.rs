//! What is open and decided here: how rows are cut into COPYs, memory for sorting. Decisions are
//! told in the report, with their reasons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::Choice;

/// The first version whose COPY FREEZE sets the visibility map.
const VISIBLE_SINCE: u32 = 140_000;
/// What a VACUUM that freezes costs beyond its ANALYZE, in percent of the COPY: measured on rows
/// of TPC-C.
pub(super) const FREEZE_PERCENT: u64 = 30;
/// What writing WAL costs, in percent of the COPY: measured likewise.
const WAL_PERCENT: u64 = 10;
const MIB: u64 = 1 << 20;
/// Bounds of `maintenance_work_mem` as chosen here: the server's default, and a size beyond which
/// sorts were no faster.
const MEMORY_MIN: u64 = 64 * MIB;
const MEMORY_MAX: u64 = 1024 * MIB;
/// Sorts of all sessions take this part of the server's memory at most.
const MEMORY_SHARE: u64 = 8;

/// How rows are cut into COPYs.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Copies {
    /// One COPY FREEZE for a whole table or partition, in the transaction that empties it: rows
    /// need no second visit, and no WAL where `wal_level` is minimal.
    Tables,
    /// A COPY for some batches: many sessions fill one table.
    Batches,
}

/// What is known of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// For people.
    pub(super) name: String,
    /// For comparison, e.g. 180006.
    pub(super) version: u32,
    /// `minimal`, `replica` or `logical`.
    pub(super) wal_level: String,
    /// Its `maintenance_work_mem`.
    pub(super) memory_bytes: u64,
}

/// What loading one relation costs, in any unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Copying its rows.
    pub(super) copy: u64,
    /// What comes after it.
    pub(super) rest: u64,
}

/// Chooses how rows are cut: whatever ends first on so many sessions.
pub(super) fn copies(costs: &[Cost], sessions: usize, server: &Server) -> (Copies, Choice) {
    let (frozen, minimal) = (server.version >= VISIBLE_SINCE, server.wal_level == "minimal");
    let sum = |part: fn(&Cost) -> u64| costs.iter().map(part).sum::<u64>();
    let (copy, rest) = (sum(|cost| cost.copy), sum(|cost| cost.rest));
    let sessions = u64::try_from(sessions).unwrap_or(1).max(1);
    let freeze = copy * FREEZE_PERCENT / 100;
    let wal = if minimal { copy * WAL_PERCENT / 100 } else { 0 };
    let batches = (copy + rest + freeze + wal) / sessions;
    let longest = costs.iter().map(|cost| cost.copy + cost.rest).max().unwrap_or(0);
    let tables = ((copy + rest + if frozen { 0 } else { freeze }) / sessions).max(longest);
    let (value, why) = if tables < batches {
        let gain = match (frozen, minimal) {
            (true, true) => "rows are frozen at once, and wal_level minimal spares their WAL",
            (true, false) => "rows are frozen at once, so that the vacuum finds nothing to do",
            _ => "wal_level minimal spares the rows' WAL",
        };
        (Copies::Tables, format!("{gain}; {sessions} sessions are busy with one table each"))
    } else if frozen || minimal {
        let why = format!("{sessions} sessions would wait for the largest table's one");
        (Copies::Batches, why)
    } else {
        let why = "before version 14 a COPY that freezes spares no vacuum".to_owned();
        (Copies::Batches, why)
    };
    (value, Choice { name: "copies", value: told(value).to_owned(), why })
}

/// How rows are cut where several hosts copy them, and tables have no partitions to share out.
pub(super) fn shared_out() -> (Copies, Choice) {
    let why = "each of the hosts has a part of every table".to_owned();
    (Copies::Batches, Choice { name: "copies", value: told(Copies::Batches).to_owned(), why })
}

/// A way to cut, for people.
fn told(copies: Copies) -> &'static str {
    match copies {
        Copies::Tables => "one COPY FREEZE for each table or partition",
        Copies::Batches => "many COPYs for each table",
    }
}

/// Chooses `maintenance_work_mem`; `None`: the server's own setting is left as it is.
pub(super) fn memory(
    asked: Option<u64>,
    machine: Option<u64>,
    sessions: usize,
    server: &Server,
) -> (Option<u64>, Option<Choice>) {
    let name = "maintenance_work_mem";
    if asked.is_some() {
        return (asked, None);
    }
    let Some(machine) = machine else {
        let why = "a server that is not ours gives what it has set;\
            \x20options='-c maintenance_work_mem=1GB' in the conninfo allows more";
        let (why, value) = (why.to_owned(), format!("{} MiB", server.memory_bytes / MIB));
        return (None, Some(Choice { name, value, why }));
    };
    let sessions_count = u64::try_from(sessions).unwrap_or(1).max(1);
    let share = machine / MEMORY_SHARE / sessions_count;
    let bytes = share.clamp(MEMORY_MIN, MEMORY_MAX);
    if bytes <= server.memory_bytes {
        let why = format!("it is {} MiB already", server.memory_bytes / MIB);
        let value = "the server's own setting".to_owned();
        return (None, Some(Choice { name, value, why }));
    }
    let why = format!(
        "an eighth of the {} MiB that the server has, for {sessions} sessions, at most {} MiB",
        machine / MIB,
        MEMORY_MAX / MIB
    );
    (Some(bytes), Some(Choice { name, value: format!("{} MiB", bytes / MIB), why }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: u32, wal_level: &str) -> Server {
        let (name, wal_level) = (version.to_string(), wal_level.to_owned());
        Server { name, version, wal_level, memory_bytes: MEMORY_MIN }
    }

    /// Three large tables and some small ones, as in TPC-C.
    fn costs() -> Vec<Cost> {
        let all = [(38, 15), (35, 30), (21, 12), (13, 2), (3, 1), (4, 3)];
        all.map(|(copy, rest)| Cost { copy, rest }).to_vec()
    }

    #[test]
    fn whole_tables_are_copied_while_no_session_waits_for_the_largest() {
        let chosen = |sessions, version, level| copies(&costs(), sessions, &server(version, level));
        assert_eq!(chosen(2, 180_000, "replica").0, Copies::Tables);
        assert_eq!(chosen(16, 180_000, "replica").0, Copies::Batches);
        assert_eq!(chosen(2, 130_000, "replica").0, Copies::Batches);
        assert_eq!(chosen(2, 130_000, "minimal").0, Copies::Tables);
        let (_, choice) = chosen(2, 180_000, "minimal");
        assert!(choice.why.contains("spares their WAL"), "{}", choice.why);
    }

    #[test]
    fn partitions_keep_more_sessions_busy() {
        let parts: Vec<Cost> = (0..32).map(|_| Cost { copy: 4, rest: 2 }).collect();
        assert_eq!(copies(&parts, 16, &server(180_000, "replica")).0, Copies::Tables);
    }

    #[test]
    fn memory_is_a_part_of_the_machines_and_never_assumed() {
        let own = server(180_000, "replica");
        let chosen = |asked, machine| memory(asked, machine, 2, &own);
        assert_eq!(chosen(None, None).0, None);
        assert_eq!(chosen(None, Some(4096 * MIB)).0, Some(256 * MIB));
        assert_eq!(chosen(None, Some(1 << 40)).0, Some(MEMORY_MAX));
        assert_eq!(chosen(None, Some(512 * MIB)).0, None, "no less than the server has");
        assert_eq!(chosen(Some(5), Some(1 << 40)), (Some(5), None));
        assert!(chosen(None, None).1.is_some_and(|choice| choice.why.contains("allows more")));
    }
}
