//! A record that a library writes which is preloaded into the server: where no file system of ours
//! can be mounted. Its stock is taken here, and its end is put here; between them, the library
//! (`python/pgdyno/disk/library`) adds an event for each call.
//!
//! The library calls files by their inodes, which file systems use again. What is made with an
//! inode that was used before gets a number of its own at the end, in place: no event changes its
//! length.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::below::Below;
use crate::event::{Event, Ino, Place, ROOT, Unreadable};
use crate::log::now_ns;
use crate::make::require_name;
use crate::owner::Owner;
use crate::record::Reader;
use crate::recording::Recorded;
use crate::stock::{Failed, RecordSpec, begun, opened, tell};

/// Inodes lie below.
const NUMBERS_FROM: Ino = 1 << 63;
/// What is synced, and was put there by a process that has no library.
const NOT_RECORDED: Ino = Ino::MAX;

/// A record whose stock is taken.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Stocked {
    /// Bytes so far: the library adds what comes after.
    pub bytes: u64,
    /// Inode of the data directory.
    pub root: u64,
    /// Device that it lies on.
    pub device: u64,
}

/// How a record ends.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseSpec {
    /// A folder that nobody else can change, but for the record in it.
    pub folder: PathBuf,
    /// Name of the record.
    pub record: String,
    /// Bytes of it that are whole.
    pub bytes: u64,
    /// Since when nothing was recorded, in ns of the monotonic clock; None: all was.
    pub full_ns: Option<u64>,
    /// When the power went; None: now.
    pub gone_ns: Option<u64>,
    /// Calls that met a fault.
    pub met: u64,
}

/// Write down what lies below, in a record that its owner may add to.
///
/// # Errors
/// Something is missing, or in the way, or there is no room.
pub fn begin(spec: &RecordSpec) -> Result<Stocked, String> {
    let (folder, data) = opened(spec)?;
    begin_in(folder.as_fd(), data, spec).map_err(|(what, error)| tell(what, &spec.folder, &error))
}

fn begin_in(folder: BorrowedFd, data: OwnedFd, spec: &RecordSpec) -> Result<Stocked, Failed> {
    let facts = rustix::fs::fstat(&data).map_err(|error| ("read", error.into()))?;
    let owner = Owner::other(data.as_fd()).map_err(|error| ("read", error))?;
    let below = Below::by_inode(data).map_err(|error| ("read", error))?;
    let (_, log) = begun(folder, below, spec, owner)?;
    let bytes = log.flush().map_err(|error| ("write the record in", error))?;
    log.give_to(facts.st_uid, facts.st_gid).map_err(|error| ("hand over the record in", error))?;
    Ok(Stocked { bytes, root: facts.st_ino, device: facts.st_dev })
}

/// Number its files, and end the record.
///
/// # Errors
/// It cannot be read or written, or tells of a file that nobody made: then somebody changed the
/// folder who did not have the library.
pub fn close(spec: &CloseSpec) -> Result<Recorded, String> {
    require_name(&spec.record)?;
    let record = whole(spec).map_err(|error| tell("open the record in", &spec.folder, &error))?;
    let last_ns = number(&record).map_err(|error| {
        format!("the record of {} cannot be read: {error}", spec.folder.display())
    })?;
    let mut end = Vec::new();
    if let Some(full_ns) = spec.full_ns {
        Event::Full.encode(full_ns.max(last_ns), &mut end);
    }
    Event::Ended.encode(spec.gone_ns.unwrap_or_else(now_ns).max(last_ns), &mut end);
    let ended = record.write_all_at(&end, spec.bytes).and_then(|()| record.sync_all());
    ended.map_err(|error| format!("the record could not be written: {error}"))?;
    let bytes = spec.bytes + end.len() as u64;
    Ok(Recorded { bytes, full: spec.full_ns.is_some(), met: spec.met })
}

/// The record without what is not whole.
fn whole(spec: &CloseSpec) -> io::Result<File> {
    let how = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder: OwnedFd = rustix::fs::open(&spec.folder, how, Mode::empty())?;
    let how = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let record = File::from(rustix::fs::openat(&folder, &spec.record, how, Mode::empty())?);
    if record.metadata()?.len() < spec.bytes {
        return Err(io::Error::other(format!("it has less than {} bytes", spec.bytes)));
    }
    record.set_len(spec.bytes)?;
    Ok(record)
}

/// Give what is made with an inode that was used before another number; returns the last time.
fn number(record: &File) -> Result<u64, Unreadable> {
    let mut numbers = Numbers { of: HashMap::from([(ROOT, ROOT)]), used: HashSet::new() };
    let mut reader = Reader::new(record)?;
    let (mut last_ns, mut before, mut after) = (0, Vec::new(), Vec::new());
    while let Some(entry) = reader.next_entry()? {
        last_ns = entry.time_ns;
        let numbered = numbers.numbered(entry.event)?;
        if numbered == entry.event {
            continue;
        }
        before.clear();
        after.clear();
        entry.event.encode(entry.time_ns, &mut before);
        numbered.encode(entry.time_ns, &mut after);
        debug_assert_eq!(before.len(), after.len());
        record
            .write_all_at(&after, entry.at)
            .map_err(|error| Unreadable(format!("it cannot be changed: {error}")))?;
    }
    Ok(last_ns)
}

/// What inodes stand for.
struct Numbers {
    of: HashMap<Ino, Ino>,
    used: HashSet<Ino>,
}

impl Numbers {
    fn numbered<'a>(&mut self, event: Event<'a>) -> Result<Event<'a>, Unreadable> {
        Ok(match event {
            Event::Made { ino, kind, rights, target } => {
                Event::Made { ino: self.made(ino), kind, rights, target }
            }
            Event::Added { ino, place } => {
                Event::Added { ino: self.get(ino)?, place: self.place(place)? }
            }
            Event::Removed { ino, place } => {
                Event::Removed { ino: self.get(ino)?, place: self.place(place)? }
            }
            Event::Moved { ino, from, to } => {
                let (from, to) = (self.place(from)?, self.place(to)?);
                Event::Moved { ino: self.get(ino)?, from, to }
            }
            Event::Owned { ino, rights } => Event::Owned { ino: self.get(ino)?, rights },
            Event::Cut { ino, size } => Event::Cut { ino: self.get(ino)?, size },
            Event::Grown { ino, size } => Event::Grown { ino: self.get(ino)?, size },
            Event::Written { ino, at, data } => Event::Written { ino: self.get(ino)?, at, data },
            // Recovery syncs all that lies there, also what somebody else put there since.
            Event::SyncBegun { ino, sync } => {
                Event::SyncBegun { ino: self.get(ino).unwrap_or(NOT_RECORDED), sync }
            }
            Event::SyncEnded { ino, sync, data_only } => {
                let ino = self.get(ino).unwrap_or(NOT_RECORDED);
                Event::SyncEnded { ino, sync, data_only }
            }
            Event::Begun | Event::Full | Event::Ended => event,
        })
    }

    fn made(&mut self, inode: Ino) -> Ino {
        let number =
            if self.used.insert(inode) { inode } else { NUMBERS_FROM + self.used.len() as u64 };
        self.used.insert(number);
        self.of.insert(inode, number);
        number
    }

    fn get(&self, inode: Ino) -> Result<Ino, Unreadable> {
        self.of.get(&inode).copied().ok_or_else(|| {
            Unreadable(format!("inode {inode} was made by a process that has no library"))
        })
    }

    fn place<'a>(&self, of: Place<'a>) -> Result<Place<'a>, Unreadable> {
        Ok(Place { folder: self.get(of.folder)?, name: of.name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Kind, Rights};
    use crate::record::Writer;

    fn record_of(events: &[Event]) -> File {
        let path = std::env::temp_dir().join(format!("pgdyno-record-{}", now_ns()));
        let how = std::fs::File::options().read(true).write(true).create_new(true).clone();
        let file = how.open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let mut writer = Writer::new(file, 1 << 20).unwrap();
        for (time_ns, event) in (1..).zip(events) {
            writer.put(time_ns, event).unwrap();
        }
        writer.close(99, &Event::Ended).unwrap();
        writer.into_inner()
    }

    fn made<'a>(ino: Ino) -> Event<'a> {
        let rights = Rights { mode: 0o600, uid: 1, gid: 1 };
        Event::Made { ino, kind: Kind::File, rights, target: &[] }
    }

    #[test]
    fn an_inode_that_is_used_again_is_another_file() {
        let place = Place { folder: 7, name: b"a" };
        let record = record_of(&[
            made(7),
            Event::Added { ino: 7, place: Place { folder: ROOT, name: b"base" } },
            made(8),
            Event::Added { ino: 8, place },
            Event::Written { ino: 8, at: 3, data: b"first" },
            Event::Removed { ino: 8, place },
            made(8),
            Event::Moved { ino: 8, from: place, to: place },
            Event::Written { ino: 8, at: 3, data: b"other" },
        ]);

        assert_eq!(number(&record).unwrap(), 99);
        assert_eq!(number(&record).unwrap(), 99, "a second time changes nothing");

        let mut reader = Reader::new(&record).unwrap();
        let mut written = Vec::new();
        while let Some(entry) = reader.next_entry().unwrap() {
            if let Event::Written { ino, at, data } = entry.event {
                written.push((ino, at, data.to_vec()));
            }
        }
        assert_eq!(written[0], (8, 3, b"first".to_vec()));
        assert_eq!((written[1].1, &written[1].2[..]), (3, &b"other"[..]));
        assert!(written[1].0 >= NUMBERS_FROM);
    }

    #[test]
    fn a_file_that_nobody_made_is_told() {
        let record = record_of(&[Event::Written { ino: 8, at: 0, data: b"a" }]);
        assert!(number(&record).unwrap_err().0.contains("inode 8"));

        let record = record_of(&[
            Event::SyncBegun { ino: 8, sync: 1 },
            Event::SyncEnded { ino: 8, sync: 1, data_only: false },
        ]);
        assert!(number(&record).is_ok(), "it was changed by nobody");
    }
}
