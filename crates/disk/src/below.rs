//! The folder that a recording file system passes through to: its files by number, held open.
//!
//! Each is opened once, by a name relative to its folder and without following a link, and then
//! used by that descriptor. So no link that is put below leads anywhere else, whoever puts it.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use crate::event::{Ino, Kind, ROOT, Rights};

/// What is below, as far as the kernel asked for it.
pub(crate) struct Below {
    nodes: HashMap<Ino, Node>,
    numbers: HashMap<u64, Ino>,
    next: Ino,
    device: u64,
    by_inode: bool,
    starved: AtomicBool,
}

struct Node {
    handle: OwnedFd,
    lookups: u64,
    top: Arc<OsStr>,
}

/// One entry of a folder.
pub(crate) struct Listed {
    /// Its number.
    pub(crate) ino: Ino,
    /// What it is.
    pub(crate) kind: Kind,
    /// Its name.
    pub(crate) name: OsString,
}

impl Below {
    /// Begin with a folder.
    ///
    /// # Errors
    /// Its facts cannot be read.
    pub(crate) fn new(folder: OwnedFd) -> io::Result<Self> {
        let facts = rustix::fs::fstat(&folder)?;
        let root = Node { handle: folder, lookups: 1, top: OsStr::new("").into() };
        Ok(Self {
            nodes: HashMap::from([(ROOT, root)]),
            numbers: HashMap::from([(facts.st_ino, ROOT)]),
            next: ROOT + 1,
            device: facts.st_dev,
            by_inode: false,
            starved: AtomicBool::new(false),
        })
    }

    /// The same, where all but the folder itself is called by its inode.
    ///
    /// # Errors
    /// Its facts cannot be read.
    pub(crate) fn by_inode(folder: OwnedFd) -> io::Result<Self> {
        Ok(Self { by_inode: true, ..Self::new(folder)? })
    }

    /// Its descriptor.
    ///
    /// # Errors
    /// The kernel does not know it.
    pub(crate) fn handle(&self, ino: Ino) -> io::Result<BorrowedFd<'_>> {
        let node = self.nodes.get(&ino).ok_or(io::ErrorKind::NotFound)?;
        Ok(node.handle.as_fd())
    }

    /// The first name of the path by which it was looked for last.
    ///
    /// # Errors
    /// The kernel does not know it.
    pub(crate) fn top(&self, ino: Ino) -> io::Result<Arc<OsStr>> {
        Ok(self.nodes.get(&ino).ok_or(io::ErrorKind::NotFound)?.top.clone())
    }

    /// Its facts.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn facts(&self, ino: Ino) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(self.handle(ino)?)?)
    }

    /// Look for a name, and hold what has it; the number is new where it was just made.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn look(&mut self, folder: Ino, name: &OsStr) -> io::Result<(Ino, Stat)> {
        let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle =
            self.opened(rustix::fs::openat(self.handle(folder)?, name, how, Mode::empty()))?;
        let facts = rustix::fs::fstat(&handle)?;
        if facts.st_dev != self.device {
            return Err(io::ErrorKind::CrossesDevices.into()); // inodes may have the same numbers
        }
        let ino = self.number(facts.st_ino);
        let top = if folder == ROOT { name.into() } else { self.top(folder)? };
        let node = self.nodes.entry(ino).or_insert(Node { handle, lookups: 0, top: top.clone() });
        node.lookups += 1;
        node.top = top;
        Ok((ino, facts))
    }

    /// The number of a file that lies there.
    fn number(&mut self, inode: u64) -> Ino {
        if self.by_inode {
            return inode;
        }
        let next = &mut self.next;
        *self.numbers.entry(inode).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    /// The kernel has forgotten it so many times.
    pub(crate) fn forget(&mut self, ino: Ino, lookups: u64) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.lookups = node.lookups.saturating_sub(lookups);
            if node.lookups == 0 && ino != ROOT {
                self.nodes.remove(&ino);
            }
        }
    }

    /// Its last name is gone: the next file with its place on the disk is another one. Call it
    /// while what it was is still held.
    pub(crate) fn gone(&mut self, inode: u64) {
        self.numbers.remove(&inode);
    }

    /// What the system says to whoever opens something. Where it lets this process open no more,
    /// that is kept: the server hears of an error that no disk has.
    ///
    /// # Errors
    /// It says no.
    pub(crate) fn opened<T>(&self, said: rustix::io::Result<T>) -> io::Result<T> {
        if matches!(said, Err(Errno::MFILE | Errno::NFILE)) {
            self.starved.store(true, Ordering::Relaxed);
        }
        Ok(said?)
    }

    /// Whether a call failed since no more could be opened.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved.load(Ordering::Relaxed)
    }

    /// Open a file, as the descriptor that is held of it.
    ///
    /// # Errors
    /// The system says no.
    pub(crate) fn open(&self, ino: Ino, how: OFlags) -> io::Result<File> {
        let path = through(self.handle(ino)?);
        let how = how | OFlags::CLOEXEC;
        Ok(File::from(self.opened(rustix::fs::open(path, how, Mode::empty()))?))
    }

    /// Change rights.
    ///
    /// # Errors
    /// The system says no.
    pub(crate) fn own(
        &self,
        ino: Ino,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> io::Result<()> {
        let handle = self.handle(ino)?;
        if uid.is_some() || gid.is_some() {
            let (user, group) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            rustix::fs::chownat(handle, c"", user, group, AtFlags::EMPTY_PATH)?;
        }
        if let Some(mode) = mode {
            rustix::fs::chmod(through(handle), Mode::from_raw_mode(mode & 0o7777))?;
        }
        Ok(())
    }

    /// Change times.
    ///
    /// # Errors
    /// The system says no.
    pub(crate) fn touch(&self, ino: Ino, times: &rustix::fs::Timestamps) -> io::Result<()> {
        let path = through(self.handle(ino)?);
        Ok(rustix::fs::utimensat(rustix::fs::CWD, path, times, AtFlags::empty())?)
    }

    /// Where a link leads.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn target(&self, ino: Ino) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(self.handle(ino)?, c"", Vec::new())?.into_bytes())
    }

    /// What is in a folder, but itself and the one above; what is no file, folder or link is left
    /// out.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn list(&mut self, ino: Ino) -> io::Result<Vec<Listed>> {
        let handle = self.open(ino, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut found = Vec::new();
        for entry in self.opened(rustix::fs::Dir::read_from(&handle))? {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let facts = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if let Some(kind) = kind_of(&facts) {
                let name = OsString::from_vec(name.to_bytes().to_vec());
                found.push(Listed { ino: self.number(facts.st_ino), kind, name });
            }
        }
        Ok(found)
    }
}

/// A path that names what a descriptor holds, whatever names lead there.
fn through(handle: BorrowedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

/// What something is; None for what no data directory holds.
#[must_use]
pub(crate) fn kind_of(facts: &Stat) -> Option<Kind> {
    match FileType::from_raw_mode(facts.st_mode) {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => Some(Kind::Folder),
        FileType::Symlink => Some(Kind::Link),
        _ => None,
    }
}

/// Whose something is.
#[must_use]
pub(crate) fn rights_of(facts: &Stat) -> Rights {
    Rights { mode: facts.st_mode & 0o7777, uid: facts.st_uid, gid: facts.st_gid }
}

/// A name as bytes.
#[must_use]
pub(crate) fn bytes(name: &OsStr) -> &[u8] {
    name.as_bytes()
}
