//! The kernel's calls, each answered by what the recorder does.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{AtFlags, FileType, OFlags, Stat};

use crate::attributes::{attributes, file_type, times};
use crate::below::{bytes, rights_of};
use crate::event::{Event, Ino, Place, Rights};
use crate::recorder::Recorder;

/// All changes come through here, so what the kernel knows stays true.
const KNOWN: Duration = Duration::from_secs(3600);
const FIRST: Generation = Generation(0);

fn place(folder: INodeNo, name: &OsStr) -> Place<'_> {
    Place { folder: folder.0, name: bytes(name) }
}

/// How a file is opened below: what the kernel does itself (`O_APPEND`, `O_TRUNC`) is not repeated.
fn access(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags.cast_unsigned()) & (OFlags::WRONLY | OFlags::RDWR)
}

fn entry(reply: ReplyEntry, found: io::Result<(Ino, Stat)>) {
    match found {
        Ok((ino, facts)) => reply.entry(&KNOWN, &attributes(ino, &facts), FIRST),
        Err(error) => reply.error(error.into()),
    }
}

fn empty(reply: ReplyEmpty, done: io::Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

impl Filesystem for Recorder {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Answers of two calls may then be under way for one folder.
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.disk().and_then(|mut state| state.below.look(parent.0, name)));
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.state().below.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.disk().and_then(|state| state.below.facts(ino.0)) {
            Ok(facts) => reply.attr(&KNOWN, &attributes(ino.0, &facts)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let ino = ino.0;
        let done = self.disk().and_then(|state| {
            if mode.is_some() || uid.is_some() || gid.is_some() {
                state.below.own(ino, mode, uid, gid)?;
                let rights: Rights = rights_of(&state.below.facts(ino)?);
                self.log.put(&Event::Owned { ino, rights });
            }
            if let Some(size) = size {
                self.resize(&state, ino, fh, size)?;
            }
            if atime.is_some() || mtime.is_some() {
                state.below.touch(ino, &times(atime, mtime))?;
            }
            state.below.facts(ino)
        });
        match done {
            Ok(facts) => reply.attr(&KNOWN, &attributes(ino, &facts)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.disk().and_then(|state| state.below.target(ino.0)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error.into()),
        }
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        if FileType::from_raw_mode(mode) != FileType::RegularFile {
            return reply.error(Errno::EPERM); // no device, pipe or socket lies in a data directory
        }
        let file = self.make_file(req, place(parent, name), mode, umask, OFlags::WRONLY);
        entry(reply, file.map(|(ino, facts, _)| (ino, facts)));
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        entry(reply, self.make_folder(req, place(parent, name), mode, umask));
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        entry(reply, self.make_link(req, place(parent, link_name), target));
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.remove(place(parent, name), AtFlags::empty()));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.remove(place(parent, name), AtFlags::REMOVEDIR));
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.move_to(place(parent, name), place(newparent, newname), flags));
    }

    fn link(
        &self,
        _req: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let added = self.add_name(ino.0, place(newparent, newname));
        entry(reply, added.map(|facts| (ino.0, facts)));
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = self.disk().and_then(|mut state| {
            let file = state.below.open(ino.0, access(flags.0))?;
            Ok(state.keep(file))
        });
        match opened {
            Ok(handle) => reply.opened(handle, FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.make_file(req, place(parent, name), mode, umask, access(flags)) {
            Ok((ino, facts, file)) => {
                let handle = self.state().keep(file);
                let kept = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&KNOWN, &attributes(ino, &facts), FIRST, handle, kept);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut data = vec![0; size as usize];
        let read = self.disk().and_then(|state| state.file(fh).cloned()).and_then(|file| {
            let mut filled = 0;
            while filled < data.len() {
                match file.read_at(&mut data[filled..], offset + filled as u64)? {
                    0 => break,
                    more => filled += more,
                }
            }
            Ok(filled)
        });
        match read {
            Ok(filled) => reply.data(&data[..filled]),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.write_at(ino.0, fh, offset, data) {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fsync(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        let found =
            self.disk().and_then(|state| Ok((state.below.top(ino.0)?, state.file(fh).cloned()?)));
        match found {
            Ok((top, file)) => self.syncing.begin(ino.0, top, file, datasync, reply),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let found = self.disk().and_then(|state| {
            let folder = state.below.open(ino.0, OFlags::RDONLY | OFlags::DIRECTORY)?;
            Ok((state.below.top(ino.0)?, Arc::new(folder)))
        });
        match found {
            Ok((top, folder)) => self.syncing.begin(ino.0, top, folder, false, reply),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::ENOSYS); // the kernel asks no more
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.state().files.remove(&fh.0);
        reply.ok();
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let mut state = self.state();
        match state.below.list(ino.0) {
            Ok(list) => {
                state.next += 1;
                let handle = state.next;
                state.lists.insert(handle, list);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let state = self.state();
        let listed = state.lists.get(&fh.0).map(Vec::as_slice).unwrap_or_default();
        let folder = fuser::FileType::Directory;
        let own = [(ino, folder, OsStr::new(".")), (ino, folder, OsStr::new(".."))];
        let others =
            listed.iter().map(|one| (INodeNo(one.ino), file_type(one.kind), one.name.as_os_str()));
        for (next, (ino, kind, name)) in (1..).zip(own.into_iter().chain(others)) {
            if next > offset && reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.state().lists.remove(&fh.0);
        reply.ok();
    }

    fn statfs(&self, _req: &Request, ino: INodeNo, reply: ReplyStatfs) {
        let room =
            self.state().below.handle(ino.0).and_then(|handle| Ok(rustix::fs::fstatvfs(handle)?));
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        match room {
            Ok(of) => reply.statfs(
                of.f_blocks,
                of.f_bfree,
                of.f_bavail,
                of.f_files,
                of.f_ffree,
                narrow(of.f_bsize),
                narrow(of.f_namemax),
                narrow(of.f_frsize),
            ),
            Err(error) => reply.error(error.into()),
        }
    }

    fn getxattr(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _name: &OsStr,
        _size: u32,
        reply: ReplyXattr,
    ) {
        reply.error(Errno::ENOSYS); // the kernel asks no more
    }

    fn fallocate(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode != 0 {
            return reply.error(Errno::EOPNOTSUPP); // what else there is, the model does not know
        }
        empty(reply, self.allocate(ino.0, fh, offset + length, offset));
    }
}
