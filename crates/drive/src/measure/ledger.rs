//! The ledger of a run: which requests were begun and how each ended, kept outside of the server,
//! so that after a disaster nobody has to believe the server. Only where one is asked for.
//!
//! A file of lines of [`LINE_BYTES`], little endian, in no order: a line when a request that leaves
//! something behind is taken up, and one more when it ends. Who finds no second line knows that the
//! request was under way.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | when it was taken up, in ns of `CLOCK_MONOTONIC` |
//! | 8..16 | when it ended; 0: the line of its begin |
//! | 16..48 | the four numbers that its rows are found by |
//! | 48..50 | kind, an index |
//! | 50..52 | part, an index |
//! | 52 | 0: begun, 1: committed, 2: not committed, 3: nobody knows |
//! | 53 | rows that it leaves; where it is not known that it committed: at most |
//! | 54..56 | nothing |

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use workload::{Outcome, witness::Witness};

use crate::connection::retry::Ending;

/// Bytes of a line.
pub const LINE_BYTES: usize = 56;
/// So much is written at once.
const PAGE_BYTES: usize = LINE_BYTES * 1_024;

const BEGUN: u8 = 0;
const COMMITTED: u8 = 1;
const NOT_COMMITTED: u8 = 2;
const UNKNOWN: u8 = 3;

/// The file, which all threads write into.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: Mutex<File>,
}

impl Ledger {
    /// A new file, of which nobody else may read.
    ///
    /// # Errors
    ///
    /// There is one of this name, or it cannot be made.
    pub fn create(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(|e| format!("make the ledger {}: {e}", path.display()))?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Has it on the disk.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn sync(&self) -> Result<(), String> {
        self.held().sync_all().map_err(|e| self.unwritten(&e))
    }

    fn write(&self, lines: &[u8]) -> Result<(), String> {
        self.held().write_all(lines).map_err(|e| self.unwritten(&e))
    }

    fn held(&self) -> std::sync::MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unwritten(&self, error: &io::Error) -> String {
        format!("write the ledger {}: {error}", self.path.display())
    }
}

/// A request that was begun.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// When a connection took it up.
    pub taken_ns: u64,
    /// Index of its kind.
    pub kind: usize,
    /// What it leaves if it is committed.
    pub witness: Witness,
}

/// What one thread writes into the ledger.
#[derive(Debug)]
pub struct Pages {
    ledger: Arc<Ledger>,
    part: u64,
    lines: Vec<u8>,
}

impl Pages {
    /// Of a thread, for one part.
    #[must_use]
    pub fn new(ledger: Arc<Ledger>, part: u64) -> Self {
        Self { ledger, part, lines: Vec::with_capacity(PAGE_BYTES + LINE_BYTES) }
    }

    /// A request is begun.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn begun(&mut self, entry: Entry) -> Result<(), String> {
        self.line(entry, 0, BEGUN, entry.witness.rows)
    }

    /// It ended.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn ended(&mut self, entry: Entry, ended_ns: u64, ending: &Ending) -> Result<(), String> {
        let (state, rows) = match ending {
            Ending::Done(Outcome::Committed) => (COMMITTED, entry.witness.rows),
            Ending::Done(Outcome::CommittedInPart { skipped }) => {
                let skipped = u8::try_from(*skipped).unwrap_or(u8::MAX);
                (COMMITTED, entry.witness.rows.saturating_sub(skipped))
            }
            Ending::Failed(failure) if failure.unknown || failure.partly => {
                (UNKNOWN, entry.witness.rows)
            }
            Ending::Done(Outcome::RolledBack) | Ending::Failed(_) => (NOT_COMMITTED, 0),
        };
        self.line(entry, ended_ns, state, rows)
    }

    /// Writes what was kept back.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<(), String> {
        let written = self.ledger.write(&self.lines);
        self.lines.clear();
        written
    }

    fn line(&mut self, entry: Entry, ended_ns: u64, state: u8, rows: u8) -> Result<(), String> {
        let index = |number: u64| u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes();
        let lines = &mut self.lines;
        lines.extend(entry.taken_ns.to_le_bytes());
        lines.extend(ended_ns.to_le_bytes());
        for number in entry.witness.key {
            lines.extend(number.to_le_bytes());
        }
        lines.extend(index(entry.kind as u64));
        lines.extend(index(self.part));
        lines.extend([state, rows, 0, 0]);
        if lines.len() >= PAGE_BYTES { self.flush() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::connection::retry::Failure;

    fn entry(taken_ns: u64) -> Entry {
        let witness = Witness { key: [1, -2, 3, i64::MAX], rows: 10 };
        Entry { taken_ns, kind: 3, witness }
    }

    fn failed(unknown: bool, partly: bool) -> Ending {
        let (class, text) = ("40001".to_owned(), String::new());
        Ending::Failed(Box::new(Failure { class, text, unknown, partly, lost: unknown }))
    }

    #[test]
    fn each_line_says_how_a_request_ended() {
        let folder = std::env::temp_dir().join(format!("pgdyno-ledger-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("ledger");
        let ledger = Arc::new(Ledger::create(&path).unwrap());
        let mut pages = Pages::new(Arc::clone(&ledger), 2);
        let endings = [
            Ending::Done(Outcome::Committed),
            Ending::Done(Outcome::CommittedInPart { skipped: 3 }),
            Ending::Done(Outcome::RolledBack),
            failed(false, false),
            failed(true, false),
            failed(false, true),
        ];
        for (taken_ns, ending) in (7..).zip(&endings) {
            pages.begun(entry(taken_ns)).unwrap();
            pages.ended(entry(taken_ns), 99, ending).unwrap();
        }
        assert!(Ledger::create(&path).is_err(), "what is there is not written over");
        pages.flush().unwrap();
        ledger.sync().unwrap();

        let bytes = fs::read(&path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let lines: Vec<&[u8]> = bytes.chunks(LINE_BYTES).collect();
        assert_eq!(lines.len(), 12);
        let told: Vec<(u8, u8)> = lines.iter().map(|line| (line[52], line[53])).collect();
        let begun = (BEGUN, 10);
        let ended = [
            (COMMITTED, 10),
            (COMMITTED, 7),
            (NOT_COMMITTED, 0),
            (NOT_COMMITTED, 0),
            (UNKNOWN, 10),
            (UNKNOWN, 10),
        ];
        assert_eq!(told, ended.map(|one| [begun, one]).concat());
        assert_eq!(lines[0][..16], [7u64.to_le_bytes(), 0u64.to_le_bytes()].concat());
        assert_eq!(lines[1][8..16], 99u64.to_le_bytes());
        assert_eq!(lines[1][24..32], (-2i64).to_le_bytes());
        assert_eq!(lines[1][48..52], [3, 0, 2, 0]);
    }
}
