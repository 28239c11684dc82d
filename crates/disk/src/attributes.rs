//! Facts of files, as the kernel's file system in user space wants them and gives them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use crate::below::kind_of;
use crate::event::{Ino, Kind};

const BLOCK_BYTES: u32 = 4096;

/// What the kernel is told of a file.
#[must_use]
pub(crate) fn attributes(ino: Ino, facts: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: facts.st_size.cast_unsigned(),
        blocks: facts.st_blocks.cast_unsigned(),
        atime: time(facts.st_atime, facts.st_atime_nsec),
        mtime: time(facts.st_mtime, facts.st_mtime_nsec),
        ctime: time(facts.st_ctime, facts.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: file_type(kind_of(facts).unwrap_or(Kind::File)),
        perm: u16::try_from(facts.st_mode & 0o7777).unwrap_or(0),
        nlink: u32::try_from(facts.st_nlink).unwrap_or(u32::MAX),
        uid: facts.st_uid,
        gid: facts.st_gid,
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// A kind in the kernel's words.
#[must_use]
pub(crate) fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Folder => FileType::Directory,
        Kind::Link => FileType::Symlink,
    }
}

/// Times that are to be set; what is None stays.
#[must_use]
pub(crate) fn times(access: Option<TimeOrNow>, modification: Option<TimeOrNow>) -> Timestamps {
    Timestamps { last_access: wanted(access), last_modification: wanted(modification) }
}

fn wanted(time: Option<TimeOrNow>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match time {
        None => special(UTIME_OMIT),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            Timespec {
                tv_sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: since.subsec_nanos().into(),
            }
        }
    }
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let nanoseconds = u32::try_from(nanoseconds).unwrap_or(0);
    UNIX_EPOCH + Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds)
}
