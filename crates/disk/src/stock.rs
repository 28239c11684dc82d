//! How a record begins: with what lies in the folder then.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::below::{Below, Listed, bytes, kind_of, rights_of};
use crate::event::{Event, Ino, Kind, Place, ROOT};
use crate::log::Log;
use crate::make::require_name;
use crate::owner::{Owner, with_rights_of};

/// A record that is wanted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// A folder that nobody else can change.
    pub folder: PathBuf,
    /// Name of the data directory in it. A file system covers it, so that it is reached through it
    /// alone; a library leaves it as it is.
    pub data: String,
    /// Name of the record, which is made in it.
    pub record: String,
    /// Most that the record may take, in bytes.
    pub bytes_max: u64,
}

/// What could not be done to the folder, and why.
pub(crate) type Failed = (&'static str, io::Error);

/// The folder, and the data directory in it.
///
/// # Errors
/// A name is none, or one of them cannot be opened.
pub(crate) fn opened(spec: &RecordSpec) -> Result<(OwnedFd, OwnedFd), String> {
    for name in [&spec.data, &spec.record] {
        require_name(name)?;
    }
    let failed = |what: &str, error: Errno| tell(what, &spec.folder, &error.into());
    let how = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&spec.folder, how, Mode::empty())
        .map_err(|error| failed("open folder", error))?;
    let how = how | OFlags::PATH | OFlags::NOFOLLOW;
    let data = rustix::fs::openat(&folder, &spec.data, how, Mode::empty())
        .map_err(|error| failed("open what is recorded in", error))?;
    Ok((folder, data))
}

/// Begin the record: all that lies below, as settled.
///
/// What is to be a user's (`owner`) holds no more than that user can read.
///
/// # Errors
/// It cannot be written or read, or takes more than the record may.
pub(crate) fn begun(
    folder: BorrowedFd,
    mut below: Below,
    spec: &RecordSpec,
    owner: Option<Owner>,
) -> Result<(Below, Log), Failed> {
    let log = begin_log(folder, spec).map_err(|error| ("begin the record in", error))?;
    with_rights_of(owner, || take_stock(&mut below, &log))
        .map_err(|error| ("write down what lies in", error))?;
    if log.is_full() {
        let bytes = spec.bytes_max;
        let fact = format!("what lies there takes more than the record's {bytes} bytes");
        return Err(("record", io::Error::other(fact)));
    }
    Ok((below, log))
}

/// All that lies below at the beginning, written down as settled.
///
/// # Errors
/// It cannot be read, or holds what no data directory does.
fn take_stock(below: &mut Below, log: &Log) -> io::Result<()> {
    let facts = below.facts(ROOT)?;
    log.put(&Event::Owned { ino: ROOT, rights: rights_of(&facts) });
    stock_of(below, log, ROOT)?;
    log.put(&Event::Begun);
    Ok(())
}

fn stock_of(below: &mut Below, log: &Log, folder: Ino) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    for Listed { name, .. } in below.list(folder)? {
        let (ino, facts) = below.look(folder, &name)?;
        let kind = kind_of(&facts).ok_or(io::ErrorKind::Unsupported)?;
        let target = if kind == Kind::Link { below.target(ino)? } else { Vec::new() };
        let place = Place { folder, name: bytes(&name) };
        if log.is_new(ino) {
            log.put(&Event::Made { ino, kind, rights: rights_of(&facts), target: &target });
            if kind == Kind::File {
                let file = below.open(ino, OFlags::RDONLY)?;
                let mut at = 0;
                loop {
                    let read = file.read_at(&mut buffer, at)?;
                    if read == 0 {
                        break;
                    }
                    log.put(&Event::Written { ino, at, data: &buffer[..read] });
                    at += read as u64;
                }
            }
        }
        log.put(&Event::Added { ino, place });
        if kind == Kind::Folder {
            stock_of(below, log, ino)?;
        }
        below.forget(ino, 1);
    }
    Ok(())
}

fn begin_log(folder: BorrowedFd, spec: &RecordSpec) -> io::Result<Log> {
    let room = rustix::fs::fstatvfs(folder)?;
    let free = room.f_bavail * room.f_frsize;
    if free < spec.bytes_max {
        let wanted = spec.bytes_max;
        return Err(io::Error::other(format!(
            "{free} bytes are free, the record may take {wanted}"
        )));
    }
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, &spec.record, how, Mode::RUSR | Mode::WUSR)?;
    Log::new(File::from(file), spec.bytes_max)
}

pub(crate) fn tell(what: &str, folder: &std::path::Path, error: &io::Error) -> String {
    format!("{what} {}: {error}", folder.display())
}
