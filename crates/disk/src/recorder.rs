//! The file system that records: each call is passed to a folder below and written down.
//!
//! One thread takes all calls, so that the order in which they are written down is the order in
//! which they came about; only syncs wait in threads of their own, and are written down twice.
//! Nothing but this process changes the folder, so the kernel may keep what it has read.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{FileHandle, RenameFlags, Request};
use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, Stat};

use crate::below::{Below, Listed, bytes, rights_of};
use crate::event::{Event, Ino, Kind, Place, ROOT};
use crate::fault::{Asked, Calls, Faults};
use crate::log::Log;
use crate::syncing::Syncing;

/// Calls that are passed on and written down.
pub(crate) struct Recorder {
    pub(crate) log: Arc<Log>,
    state: Arc<Mutex<State>>,
    pub(crate) syncing: Syncing,
    faults: Arc<Faults>,
}

/// What is open, and what is known of it.
pub(crate) struct State {
    pub(crate) below: Below,
    pub(crate) files: HashMap<u64, Arc<File>>,
    pub(crate) lists: HashMap<u64, Vec<Listed>>,
    pub(crate) next: u64,
}

impl State {
    pub(crate) fn keep(&mut self, file: File) -> FileHandle {
        self.next += 1;
        self.files.insert(self.next, Arc::new(file));
        FileHandle(self.next)
    }

    pub(crate) fn file(&self, handle: FileHandle) -> io::Result<&Arc<File>> {
        self.files.get(&handle.0).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What was just made becomes the caller's.
    fn take_over(&mut self, place: Place, asked: &Maker) -> io::Result<(Ino, Stat)> {
        let (ino, _) = self.below.look(place.folder, OsStr::from_bytes(place.name))?;
        self.below.own(ino, asked.mode, Some(asked.uid), Some(asked.gid))?;
        Ok((ino, self.below.facts(ino)?))
    }
}

/// Who makes something, and with which permissions; None: those of a link, which has none.
struct Maker {
    uid: u32,
    gid: u32,
    mode: Option<u32>,
}

impl Maker {
    fn new(req: &Request, mode: Option<u32>, umask: u32) -> Self {
        Self { uid: req.uid(), gid: req.gid(), mode: mode.map(|mode| mode & 0o7777 & !umask) }
    }
}

/// Cuts the power of a disk that is in use, and tells how it fared.
pub(crate) struct Switch {
    state: Arc<Mutex<State>>,
    log: Arc<Log>,
}

impl Switch {
    /// Now: between two calls, and every later one fails.
    pub(crate) fn cut(&self) {
        let _between = held(&self.state);
        self.log.cut();
    }

    /// Whether calls failed for a reason of ours: no more could be opened.
    pub(crate) fn is_starved(&self) -> bool {
        held(&self.state).below.is_starved()
    }
}

fn held(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Record what happens in a folder.
    pub(crate) fn new(below: Below, log: Arc<Log>, faults: Arc<Faults>) -> Self {
        let (files, lists) = (HashMap::new(), HashMap::new());
        let syncing = Syncing::new(log.clone(), &faults);
        let state = Arc::new(Mutex::new(State { below, files, lists, next: 0 }));
        Self { log, state, syncing, faults }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        held(&self.state)
    }

    /// The same for a call that needs the disk; it fails once the power is gone.
    pub(crate) fn disk(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state();
        if self.log.is_gone() { Err(rustix::io::Errno::IO.into()) } else { Ok(state) }
    }

    /// What cuts the power.
    pub(crate) fn switch(&self) -> Switch {
        Switch { state: self.state.clone(), log: self.log.clone() }
    }

    fn made(&self, ino: Ino, kind: Kind, facts: &Stat, target: &[u8], place: Place) {
        let rights = rights_of(facts);
        self.log.put(&Event::Made { ino, kind, rights, target });
        self.log.put(&Event::Added { ino, place });
    }

    pub(crate) fn make_file(
        &self,
        req: &Request,
        place: Place,
        mode: u32,
        umask: u32,
        how: OFlags,
    ) -> io::Result<(Ino, Stat, File)> {
        let mut state = self.disk()?;
        let name = OsStr::from_bytes(place.name);
        let above = state.below.top(place.folder)?;
        let top = if place.folder == ROOT { name } else { &*above };
        self.faults.meet(Asked { calls: Calls::Grow, top })?;
        let how = how | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = state.below.handle(place.folder)?;
        let said = rustix::fs::openat(folder, name, how, Mode::RUSR | Mode::WUSR);
        let file = File::from(state.below.opened(said)?);
        let asked = Maker::new(req, Some(mode), umask);
        let (ino, facts) = state.take_over(place, &asked)?;
        self.made(ino, Kind::File, &facts, &[], place);
        Ok((ino, facts, file))
    }

    pub(crate) fn make_folder(
        &self,
        req: &Request,
        place: Place,
        mode: u32,
        umask: u32,
    ) -> io::Result<(Ino, Stat)> {
        let mut state = self.disk()?;
        let name = OsStr::from_bytes(place.name);
        rustix::fs::mkdirat(state.below.handle(place.folder)?, name, Mode::RWXU)?;
        let (ino, facts) = state.take_over(place, &Maker::new(req, Some(mode), umask))?;
        self.made(ino, Kind::Folder, &facts, &[], place);
        Ok((ino, facts))
    }

    pub(crate) fn make_link(
        &self,
        req: &Request,
        place: Place,
        target: &Path,
    ) -> io::Result<(Ino, Stat)> {
        let mut state = self.disk()?;
        let name = OsStr::from_bytes(place.name);
        rustix::fs::symlinkat(target, state.below.handle(place.folder)?, name)?;
        let (ino, facts) = state.take_over(place, &Maker::new(req, None, 0))?;
        self.made(ino, Kind::Link, &facts, bytes(target.as_os_str()), place);
        Ok((ino, facts))
    }

    pub(crate) fn remove(&self, place: Place, how: AtFlags) -> io::Result<()> {
        let mut state = self.disk()?;
        let name = OsStr::from_bytes(place.name);
        let (ino, facts) = state.below.look(place.folder, name)?;
        let done = rustix::fs::unlinkat(state.below.handle(place.folder)?, name, how);
        if done.is_ok() {
            let folder = how.contains(AtFlags::REMOVEDIR);
            if folder || state.below.facts(ino)?.st_nlink == 0 {
                state.below.gone(facts.st_ino);
            }
            self.log.put(&Event::Removed { ino, place });
        }
        state.below.forget(ino, 1);
        Ok(done?)
    }

    pub(crate) fn move_to(&self, from: Place, to: Place, flags: RenameFlags) -> io::Result<()> {
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return Err(rustix::io::Errno::INVAL.into());
        }
        let mut state = self.disk()?;
        let (old, new) = (OsStr::from_bytes(from.name), OsStr::from_bytes(to.name));
        let (ino, facts) = state.below.look(from.folder, old)?;
        let replaced = state.below.look(to.folder, new).ok();
        let (above, below) = (state.below.handle(from.folder)?, state.below.handle(to.folder)?);
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let done = rustix::fs::renameat_with(above, old, below, new, flags);
        if let Some((replaced, was)) = replaced {
            let folder = FileType::from_raw_mode(was.st_mode) == FileType::Directory;
            let gone = folder || state.below.facts(replaced)?.st_nlink == 0;
            if done.is_ok() && was.st_ino != facts.st_ino && gone {
                state.below.gone(was.st_ino);
            }
            state.below.forget(replaced, 1);
        }
        // Two names of one file stay as they are.
        if done.is_ok() && replaced.is_none_or(|(_, was)| was.st_ino != facts.st_ino) {
            self.log.put(&Event::Moved { ino, from, to });
            if state.below.look(to.folder, new).is_ok() {
                state.below.forget(ino, 1); // looked for where it lies now
            }
        }
        state.below.forget(ino, 1);
        Ok(done?)
    }

    pub(crate) fn add_name(&self, ino: Ino, place: Place) -> io::Result<Stat> {
        let mut state = self.disk()?;
        let name = OsStr::from_bytes(place.name);
        let (what, above) = (state.below.handle(ino)?, state.below.handle(place.folder)?);
        rustix::fs::linkat(what, c"", above, name, AtFlags::EMPTY_PATH)?;
        self.log.put(&Event::Added { ino, place });
        Ok(state.below.look(place.folder, name)?.1)
    }

    pub(crate) fn resize(
        &self,
        state: &State,
        ino: Ino,
        handle: Option<FileHandle>,
        size: u64,
    ) -> io::Result<()> {
        let before = u64::try_from(state.below.facts(ino)?.st_size).unwrap_or(0);
        let opened;
        let file = if let Some(file) = handle.and_then(|handle| state.file(handle).ok()) {
            file
        } else {
            opened = Arc::new(state.below.open(ino, OFlags::WRONLY)?);
            &opened
        };
        file.set_len(size)?;
        let event = match size.cmp(&before) {
            std::cmp::Ordering::Less => Event::Cut { ino, size },
            std::cmp::Ordering::Greater => Event::Grown { ino, size },
            std::cmp::Ordering::Equal => return Ok(()),
        };
        self.log.put(&event);
        Ok(())
    }

    /// What writes up to somewhere may meet a fault.
    fn meet(&self, state: &State, file: &File, ino: Ino, end: u64) -> io::Result<()> {
        if !self.faults.is_armed() {
            return Ok(());
        }
        let calls = if end > file.metadata()?.len() { Calls::Grow } else { Calls::Write };
        self.faults.meet(Asked { calls, top: &state.below.top(ino)? })
    }

    pub(crate) fn write_at(
        &self,
        ino: Ino,
        handle: FileHandle,
        at: u64,
        data: &[u8],
    ) -> io::Result<()> {
        let state = self.disk()?;
        let file = state.file(handle)?;
        self.meet(&state, file, ino, at + data.len() as u64)?;
        file.write_all_at(data, at)?;
        self.log.put(&Event::Written { ino, at, data });
        Ok(())
    }

    pub(crate) fn allocate(
        &self,
        ino: Ino,
        handle: FileHandle,
        end: u64,
        from: u64,
    ) -> io::Result<()> {
        let state = self.disk()?;
        let file = state.file(handle)?;
        self.meet(&state, file, ino, end)?;
        let before = file.metadata()?.len();
        rustix::fs::fallocate(file, FallocateFlags::empty(), from, end - from)?;
        if end > before {
            self.log.put(&Event::Grown { ino, size: end });
        }
        Ok(())
    }
}
