//! Names of resource managers, and of what their records do, by version: as `pg_waldump` of the
//! same major calls them.

use crate::version::Major;

/// What a record does: upper half of its info, name, first and last major that call it so.
type Kind = (u8, &'static str, u16, u16);
/// In all majors.
const fn always(info: u8, name: &'static str) -> Kind {
    (info, name, 12, u16::MAX)
}
const fn since(info: u8, name: &'static str, first: u16) -> Kind {
    (info, name, first, u16::MAX)
}
const fn until(info: u8, name: &'static str, last: u16) -> Kind {
    (info, name, 12, last)
}

const INIT: u8 = 0x80;
/// Managers from here on are of extensions, 15 and later.
const CUSTOM: u8 = 128;
pub(super) const TRANSACTION: u8 = 1;
pub(super) const HEAP2: u8 = 9;
pub(super) const HEAP: u8 = 10;

/// Whether records of a resource manager can be.
pub(super) fn is_manager(major: Major, manager: u8) -> bool {
    usize::from(manager) < MANAGERS.len() || (is_custom(manager) && major.number() >= 15)
}

/// Whether a resource manager is an extension's.
pub(super) fn is_custom(manager: u8) -> bool {
    manager >= CUSTOM
}

/// What a resource manager is called: those of extensions `custom128` and so on.
#[must_use]
pub fn manager_name(manager: u8) -> String {
    match MANAGERS.get(usize::from(manager)) {
        Some((name, _)) => (*name).to_owned(),
        None => format!("custom{manager:03}"),
    }
}

/// What a record does, by its info; `UNKNOWN (f0)` where that major has no such record.
#[must_use]
pub fn kind_name(major: Major, manager: u8, info: u8) -> String {
    match known_kind(major, manager, info) {
        Some(name) => name.to_owned(),
        None => format!("UNKNOWN ({:x})", info & 0xF0),
    }
}

fn known_kind(major: Major, manager: u8, info: u8) -> Option<&'static str> {
    let mask = if manager == TRANSACTION { 0x70 } else { 0xF0 };
    let (_, kinds) = MANAGERS.get(usize::from(manager))?;
    let is = |(known, _, first, last): &&Kind| {
        *known == info & mask && (*first..=*last).contains(&major.number())
    };
    kinds.iter().find(is).map(|(_, name, ..)| *name)
}

/// By number.
const MANAGERS: [(&str, &[Kind]); 22] = [
    (
        "XLOG",
        &[
            always(0x00, "CHECKPOINT_SHUTDOWN"),
            always(0x10, "CHECKPOINT_ONLINE"),
            always(0x20, "NOOP"),
            always(0x30, "NEXTOID"),
            always(0x40, "SWITCH"),
            always(0x50, "BACKUP_END"),
            always(0x60, "PARAMETER_CHANGE"),
            always(0x70, "RESTORE_POINT"),
            always(0x80, "FPW_CHANGE"),
            always(0x90, "END_OF_RECOVERY"),
            always(0xA0, "FPI_FOR_HINT"),
            always(0xB0, "FPI"),
            always(0xD0, "OVERWRITE_CONTRECORD"),
            since(0xE0, "CHECKPOINT_REDO", 17),
        ],
    ),
    (
        "Transaction",
        &[
            always(0x00, "COMMIT"),
            always(0x10, "PREPARE"),
            always(0x20, "ABORT"),
            always(0x30, "COMMIT_PREPARED"),
            always(0x40, "ABORT_PREPARED"),
            always(0x50, "ASSIGNMENT"),
            since(0x60, "INVALIDATION", 14),
        ],
    ),
    ("Storage", &[always(0x10, "CREATE"), always(0x20, "TRUNCATE")]),
    ("CLOG", &[always(0x00, "ZEROPAGE"), always(0x10, "TRUNCATE")]),
    (
        "Database",
        &[
            until(0x00, "CREATE", 14),
            until(0x10, "DROP", 14),
            since(0x00, "CREATE_FILE_COPY", 15),
            since(0x10, "CREATE_WAL_LOG", 15),
            since(0x20, "DROP", 15),
        ],
    ),
    ("Tablespace", &[always(0x00, "CREATE"), always(0x10, "DROP")]),
    (
        "MultiXact",
        &[
            always(0x00, "ZERO_OFF_PAGE"),
            always(0x10, "ZERO_MEM_PAGE"),
            always(0x20, "CREATE_ID"),
            always(0x30, "TRUNCATE_ID"),
        ],
    ),
    ("RelMap", &[always(0x00, "UPDATE")]),
    (
        "Standby",
        &[always(0x00, "LOCK"), always(0x10, "RUNNING_XACTS"), always(0x20, "INVALIDATIONS")],
    ),
    (
        "Heap2",
        &[
            always(0x00, "REWRITE"),
            until(0x10, "CLEAN", 13),
            until(0x20, "FREEZE_PAGE", 13),
            until(0x30, "CLEANUP_INFO", 13),
            (0x10, "PRUNE", 14, 16),
            (0x20, "VACUUM", 14, 16),
            (0x30, "FREEZE_PAGE", 14, 16),
            since(0x10, "PRUNE_ON_ACCESS", 17),
            since(0x20, "PRUNE_VACUUM_SCAN", 17),
            since(0x30, "PRUNE_VACUUM_CLEANUP", 17),
            always(0x40, "VISIBLE"),
            always(0x50, "MULTI_INSERT"),
            always(0x50 | INIT, "MULTI_INSERT+INIT"),
            always(0x60, "LOCK_UPDATED"),
            always(0x70, "NEW_CID"),
        ],
    ),
    (
        "Heap",
        &[
            always(0x00, "INSERT"),
            always(INIT, "INSERT+INIT"),
            always(0x10, "DELETE"),
            always(0x20, "UPDATE"),
            always(0x20 | INIT, "UPDATE+INIT"),
            always(0x30, "TRUNCATE"),
            always(0x40, "HOT_UPDATE"),
            always(0x40 | INIT, "HOT_UPDATE+INIT"),
            always(0x50, "HEAP_CONFIRM"),
            always(0x60, "LOCK"),
            always(0x70, "INPLACE"),
        ],
    ),
    (
        "Btree",
        &[
            always(0x00, "INSERT_LEAF"),
            always(0x10, "INSERT_UPPER"),
            always(0x20, "INSERT_META"),
            always(0x30, "SPLIT_L"),
            always(0x40, "SPLIT_R"),
            since(0x50, "INSERT_POST", 13),
            since(0x60, "DEDUP", 13),
            always(0x70, "DELETE"),
            always(0x80, "UNLINK_PAGE"),
            always(0x90, "UNLINK_PAGE_META"),
            always(0xA0, "NEWROOT"),
            always(0xB0, "MARK_PAGE_HALFDEAD"),
            always(0xC0, "VACUUM"),
            always(0xD0, "REUSE_PAGE"),
            always(0xE0, "META_CLEANUP"),
        ],
    ),
    (
        "Hash",
        &[
            always(0x00, "INIT_META_PAGE"),
            always(0x10, "INIT_BITMAP_PAGE"),
            always(0x20, "INSERT"),
            always(0x30, "ADD_OVFL_PAGE"),
            always(0x40, "SPLIT_ALLOCATE_PAGE"),
            always(0x50, "SPLIT_PAGE"),
            always(0x60, "SPLIT_COMPLETE"),
            always(0x70, "MOVE_PAGE_CONTENTS"),
            always(0x80, "SQUEEZE_PAGE"),
            always(0x90, "DELETE"),
            always(0xA0, "SPLIT_CLEANUP"),
            always(0xB0, "UPDATE_META_PAGE"),
            always(0xC0, "VACUUM_ONE_PAGE"),
        ],
    ),
    (
        "Gin",
        &[
            always(0x10, "CREATE_PTREE"),
            always(0x20, "INSERT"),
            always(0x30, "SPLIT"),
            always(0x40, "VACUUM_PAGE"),
            always(0x50, "DELETE_PAGE"),
            always(0x60, "UPDATE_META_PAGE"),
            always(0x70, "INSERT_LISTPAGE"),
            always(0x80, "DELETE_LISTPAGE"),
            always(0x90, "VACUUM_DATA_LEAF_PAGE"),
        ],
    ),
    (
        "Gist",
        &[
            always(0x00, "PAGE_UPDATE"),
            always(0x10, "DELETE"),
            always(0x20, "PAGE_REUSE"),
            always(0x30, "PAGE_SPLIT"),
            always(0x60, "PAGE_DELETE"),
            since(0x70, "ASSIGN_LSN", 13),
        ],
    ),
    ("Sequence", &[always(0x00, "LOG")]),
    (
        "SPGist",
        &[
            always(0x10, "ADD_LEAF"),
            always(0x20, "MOVE_LEAFS"),
            always(0x30, "ADD_NODE"),
            always(0x40, "SPLIT_TUPLE"),
            always(0x50, "PICKSPLIT"),
            always(0x60, "VACUUM_LEAF"),
            always(0x70, "VACUUM_ROOT"),
            always(0x80, "VACUUM_REDIRECT"),
        ],
    ),
    (
        "BRIN",
        &[
            always(0x00, "CREATE_INDEX"),
            always(0x10, "INSERT"),
            always(0x10 | INIT, "INSERT+INIT"),
            always(0x20, "UPDATE"),
            always(0x20 | INIT, "UPDATE+INIT"),
            always(0x30, "SAMEPAGE_UPDATE"),
            always(0x40, "REVMAP_EXTEND"),
            always(0x50, "DESUMMARIZE"),
        ],
    ),
    ("CommitTs", &[always(0x00, "ZEROPAGE"), always(0x10, "TRUNCATE"), until(0x20, "SETTS", 13)]),
    ("ReplicationOrigin", &[always(0x00, "SET"), always(0x10, "DROP")]),
    (
        "Generic",
        // Its records have no kinds.
        &[always(0x00, "Generic")],
    ),
    ("LogicalMessage", &[always(0x00, "MESSAGE")]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_major() {
        let name = |major, manager, info| {
            known_kind(Major::of(major).expect("a major"), manager, info).unwrap_or("?")
        };
        assert_eq!(
            [12, 13, 14, 16, 17, 18].map(|major| name(major, 9, 0x10)),
            ["CLEAN", "CLEAN", "PRUNE", "PRUNE", "PRUNE_ON_ACCESS", "PRUNE_ON_ACCESS"]
        );
        assert_eq!(
            [13, 14, 17].map(|major| name(major, 9, 0x30)),
            ["CLEANUP_INFO", "FREEZE_PAGE", "PRUNE_VACUUM_CLEANUP"]
        );
        assert_eq!([14, 15].map(|major| name(major, 4, 0x10)), ["DROP", "CREATE_WAL_LOG"]);
        assert_eq!([12, 13].map(|major| name(major, 11, 0x60)), ["?", "DEDUP"]);
        assert_eq!([16, 17].map(|major| name(major, 0, 0xE0)), ["?", "CHECKPOINT_REDO"]);
        assert_eq!([13, 14].map(|major| name(major, 1, 0x60)), ["?", "INVALIDATION"]);
        // The uppermost bit of a transaction's info is a flag, that of a heap's a page made anew.
        assert_eq!((name(18, 1, 0x80), name(18, 10, 0x80)), ("COMMIT", "INSERT+INIT"));
        assert_eq!(kind_name(Major::of(12).expect("a major"), 0, 0xEF), "UNKNOWN (e0)");
        assert_eq!(manager_name(21), "LogicalMessage");
        assert_eq!(manager_name(128), "custom128");
        let [old, new] = [14, 15].map(|major| Major::of(major).expect("a major"));
        assert!(!is_manager(old, 128) && is_manager(new, 128) && !is_manager(new, 22));
    }
}
