//! `pg_control`: what a cluster says of itself, 12 to 18.
//!
//! Up to the checksums' version all of these majors lay it out alike; 18 adds a flag before the
//! nonce, which moves the CRC at the end.

use crate::{
    bytes::{u32_at, u64_at},
    crc::crc32c,
    error::Error,
    lsn::Lsn,
    version::Major,
};

/// What each format is called, and where its CRC lies.
const FORMATS: [(u32, usize); 3] = [(1201, 288), (1300, 288), (1800, 292)];
const FLOAT: f64 = 1_234_567.0;

/// State of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// `DB_STARTUP`.
    Startup,
    /// Shut down cleanly.
    ShutDown,
    /// Stopped as a standby. Where no checkpoint was replayed since its last restartpoint, nothing
    /// was flushed for that.
    ShutDownInRecovery,
    /// The shutdown's checkpoint was under way.
    ShuttingDown,
    /// Recovering from a crash.
    CrashRecovery,
    /// A standby, or recovering from an archive.
    ArchiveRecovery,
    /// Running, or crashed while it ran.
    Production,
}

impl State {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Startup, "starting up"),
        (Self::ShutDown, "shut down"),
        (Self::ShutDownInRecovery, "shut down in recovery"),
        (Self::ShuttingDown, "shutting down"),
        (Self::CrashRecovery, "in crash recovery"),
        (Self::ArchiveRecovery, "in archive recovery"),
        (Self::Production, "in production"),
    ];

    /// As `pg_controldata` says it.
    #[must_use]
    pub fn text(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, text)| *text)
    }

    /// Whether it was stopped in good order: everything is on the disk.
    #[must_use]
    pub fn is_shut_down(self) -> bool {
        self == Self::ShutDown
    }

    /// Whether it follows another cluster, or an archive.
    #[must_use]
    pub fn is_standby(self) -> bool {
        matches!(self, Self::ShutDownInRecovery | Self::ArchiveRecovery)
    }
}

/// The latest checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its record.
    pub record: Lsn,
    /// Redo begins here.
    pub redo: Lsn,
    /// Timeline on which it was made.
    pub timeline: u32,
    /// The one before, where the checkpoint begins a timeline; otherwise the same.
    pub previous_timeline: u32,
    /// `full_page_writes` at that time.
    pub full_page_writes: bool,
    /// Next transaction, with its epoch in the upper half.
    pub next_xid: u64,
    /// Seconds since 1970.
    pub unix_s: i64,
}

/// What settings the WAL was written with that a standby must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "settings that are on or off")]
pub struct WalSettings {
    /// 0: minimal, 1: replica, 2: logical.
    pub level: u32,
    /// `wal_log_hints`.
    pub log_hints: bool,
    /// `max_connections`.
    pub max_connections: u32,
    /// `max_worker_processes`.
    pub max_worker_processes: u32,
    /// `max_wal_senders`.
    pub max_wal_senders: u32,
    /// `max_prepared_transactions`.
    pub max_prepared_transactions: u32,
    /// `max_locks_per_transaction`.
    pub max_locks_per_transaction: u32,
    /// `track_commit_timestamp`.
    pub track_commit_timestamp: bool,
}

/// `pg_control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Differs between any two clusters that are not copies.
    pub system_identifier: u64,
    /// `PG_CONTROL_VERSION`.
    pub format: u32,
    /// `CATALOG_VERSION_NO`.
    pub catalogue: u32,
    /// PostgreSQL's major; `None`: the catalogue's number is of no release that is known here.
    pub major: Option<Major>,
    /// What it last did.
    pub state: State,
    /// Last change of the file, seconds since 1970.
    pub unix_s: i64,
    /// The latest checkpoint.
    pub checkpoint: Checkpoint,
    /// Recovery has to reach this before the cluster is consistent; zero outside of recovery.
    pub min_recovery: Lsn,
    /// Timeline of `min_recovery`.
    pub min_recovery_timeline: u32,
    /// Begin of the backup that is being recovered; zero: none.
    pub backup_start: Lsn,
    /// End of a standby's backup; zero: none.
    pub backup_end: Lsn,
    /// The backup's end has to be met.
    pub backup_end_required: bool,
    /// Settings that the WAL depends on.
    pub settings: WalSettings,
    /// Bytes of a page of a relation.
    pub block_bytes: u32,
    /// Pages of a relation's segment.
    pub segment_blocks: u32,
    /// Bytes of a page of WAL.
    pub wal_block_bytes: u32,
    /// Bytes of a segment of WAL.
    pub wal_segment_bytes: u32,
    /// Version of data checksums; 0: off.
    pub data_checksums: u32,
}

impl Control {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// It is too short, of another format or byte order, its CRC differs, or it says what cannot
    /// be.
    pub fn read(file: &[u8]) -> Result<Self, Error> {
        let format = u32_at(file, 8).ok_or_else(|| too_short(file, 12))?;
        let (_, crc_at) =
            FORMATS.into_iter().find(|(known, _)| *known == format).ok_or_else(|| {
                let swapped = FORMATS.iter().any(|(known, _)| known.swap_bytes() == format);
                let hint = if swapped {
                    "It is of a machine with the other byte order, which is not read."
                } else {
                    "PostgreSQL 12 to 18 are read: formats 1201, 1300 and 1800."
                };
                Error::hinted(
                    format!("pg_control has the format {format}, which is not known"),
                    hint,
                )
            })?;
        let crc = u32_at(file, crc_at).ok_or_else(|| too_short(file, crc_at + 4))?;
        let computed = file.get(..crc_at).map_or(0, crc32c);
        if computed != crc {
            return Err(Error::hinted(
                format!("pg_control has the CRC {crc:08x}, its bytes have {computed:08x}"),
                "It is damaged, or was read while it was written.",
            ));
        }
        Self::fields(file, format).unwrap_or_else(|| Err(too_short(file, crc_at + 4)))
    }

    /// `None` where it is too short, which its CRC has ruled out.
    fn fields(file: &[u8], format: u32) -> Option<Result<Self, Error>> {
        let word = |at| u32_at(file, at);
        let lsn = |at| u64_at(file, at).map(Lsn);
        let time = |at| u64_at(file, at).map(u64::cast_signed);
        let flag = |at: usize| file.get(at).map(|byte| *byte != 0);
        let state = word(16)?;
        let Some((state, _)) = usize::try_from(state).ok().and_then(|at| State::ALL.get(at)) else {
            let fact = format!("pg_control has the state {state}, states are 0 to 6");
            return Some(Err(Error::new(fact)));
        };
        if f64::from_bits(u64_at(file, 208)?).to_bits() != FLOAT.to_bits() || word(204)? != 8 {
            return Some(Err(Error::hinted(
                format!(
                    "pg_control is of a machine that aligns to {} bytes",
                    word(204).unwrap_or(0)
                ),
                "Machines with 8-byte alignment and IEEE floating point are read.",
            )));
        }
        let catalogue = word(12)?;
        Some(Ok(Self {
            system_identifier: u64_at(file, 0)?,
            format,
            catalogue,
            major: Major::of_catalogue(catalogue),
            state: *state,
            unix_s: time(24)?,
            checkpoint: Checkpoint {
                record: lsn(32)?,
                redo: lsn(40)?,
                timeline: word(48)?,
                previous_timeline: word(52)?,
                full_page_writes: flag(56)?,
                next_xid: u64_at(file, 64)?,
                unix_s: time(104)?,
            },
            min_recovery: lsn(136)?,
            min_recovery_timeline: word(144)?,
            backup_start: lsn(152)?,
            backup_end: lsn(160)?,
            backup_end_required: flag(168)?,
            settings: WalSettings {
                level: word(172)?,
                log_hints: flag(176)?,
                max_connections: word(180)?,
                max_worker_processes: word(184)?,
                max_wal_senders: word(188)?,
                max_prepared_transactions: word(192)?,
                max_locks_per_transaction: word(196)?,
                track_commit_timestamp: flag(200)?,
            },
            block_bytes: word(216)?,
            segment_blocks: word(220)?,
            wal_block_bytes: word(224)?,
            wal_segment_bytes: word(228)?,
            data_checksums: word(252)?,
        }))
    }
}

fn too_short(file: &[u8], expected: usize) -> Error {
    Error::new(format!("pg_control has {} bytes, expected at least {expected}", file.len()))
}
