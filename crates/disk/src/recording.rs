//! A recording file system from its mount to its end.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{Config, Session, SessionACL};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::below::Below;
use crate::fault::{FaultSpec, Faults};
use crate::log::Log;
use crate::make::require_name;
use crate::recorder::{Recorder, Switch};
use crate::stock::take_stock;

/// The name that `mount` shows; what a killed run left is known by it.
pub const SOURCE: &str = "pgdyno-disk";
const END_POLLS: u32 = 100;
const END_POLL: Duration = Duration::from_millis(20);

/// A file system that is wanted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// A folder that nobody else can change.
    pub folder: PathBuf,
    /// Name of the data directory in it. The file system covers it, so that it is reached through
    /// it alone.
    pub data: String,
    /// Name of the record, which is made in it.
    pub record: String,
    /// Most that the record may take, in bytes.
    pub bytes_max: u64,
}

/// What became of a record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Recorded {
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether there was no room for all: then it ends earlier.
    pub full: bool,
    /// Calls that met a fault.
    pub met: u64,
}

/// A file system that is mounted.
pub struct Recording {
    thread: Option<JoinHandle<io::Result<()>>>,
    log: Arc<Log>,
    faults: Arc<Faults>,
    switch: Switch,
    mount: PathBuf,
    mounted: bool,
}

impl Recording {
    /// Write down what lies below, and mount the file system.
    ///
    /// # Errors
    /// Something is missing, or in the way; nothing is mounted then.
    pub fn begin(spec: &RecordSpec) -> Result<Self, String> {
        for name in [&spec.data, &spec.record] {
            require_name(name)?;
        }
        let opened =
            rustix::fs::open(&spec.folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let folder = opened.map_err(|error| tell("open folder", &spec.folder, &error.into()))?;
        Self::begin_in(&folder, spec).map_err(|(what, error)| tell(what, &spec.folder, &error))
    }

    fn begin_in(folder: &OwnedFd, spec: &RecordSpec) -> Result<Self, (&'static str, io::Error)> {
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Held since before the mount, it leads below it.
        let below = rustix::fs::openat(folder, &spec.data, how, Mode::empty())
            .map_err(|error| ("open what is recorded in", error.into()))?;
        let covered = rustix::io::dup(&below).map_err(|error| ("record", error.into()))?;
        let log = Arc::new(
            begin_log(folder.as_fd(), spec).map_err(|error| ("begin the record in", error))?,
        );
        let mut below = Below::new(below).map_err(|error| ("read", error))?;
        take_stock(&mut below, &log).map_err(|error| ("write down what lies in", error))?;
        if log.is_full() {
            let bytes = spec.bytes_max;
            let fact = format!("what lies there takes more than the record's {bytes} bytes");
            return Err(("record", io::Error::other(fact)));
        }
        let path = spec.folder.join(&spec.data);
        let device =
            mount_at(covered.as_fd()).map_err(|error| ("mount a file system in", error))?;
        drop(covered);
        let faults = Arc::new(Faults::default());
        let recorder = Recorder::new(below, log.clone(), faults.clone());
        let switch = recorder.switch();
        let session = session(recorder, device);
        let started = session.and_then(|session| {
            std::thread::Builder::new().name("recorder".into()).spawn(move || session.run())
        });
        match started {
            Ok(thread) => {
                Ok(Self { thread: Some(thread), log, faults, switch, mount: path, mounted: true })
            }
            Err(error) => {
                unmount(&path).ok();
                Err(("serve a file system in", error))
            }
        }
    }

    /// From now on, for a while, calls fail or get no answer.
    ///
    /// # Errors
    /// Its time is none.
    pub fn fail(&self, fault: FaultSpec) -> Result<(), String> {
        self.faults.begin(fault)
    }

    /// The power goes, now: every call fails, and the record ends with this instant.
    pub fn cut(&self) {
        self.switch.cut();
    }

    /// Unmount it, and end the record. Who still has files open there gets errors from now on.
    ///
    /// # Errors
    /// It cannot be unmounted, or the record could not be written.
    pub fn end(mut self) -> Result<Recorded, String> {
        self.leave().map_err(|error| tell("unmount", &self.mount, &error))?;
        if let Some(thread) = self.thread.take() {
            // It ends once nobody has a file open; who does not close any is not waited for.
            for _ in 0..END_POLLS {
                if thread.is_finished() {
                    break;
                }
                std::thread::sleep(END_POLL);
            }
        }
        let closed = self
            .log
            .close()
            .map_err(|error| format!("the record could not be written: {error}"))?;
        let met = self.faults.met();
        Ok(Recorded { bytes: closed.bytes, full: closed.full, met })
    }

    fn leave(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.mounted) { unmount(&self.mount) } else { Ok(()) }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.leave(); // `end` tells of errors
    }
}

pub(crate) fn tell(what: &str, folder: &std::path::Path, error: &io::Error) -> String {
    format!("{what} {}: {error}", folder.display())
}

pub(crate) fn begin_log(folder: BorrowedFd, spec: &RecordSpec) -> io::Result<Log> {
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

/// Mount a file system that this process serves: without a helper, so that nobody else is asked.
fn mount_at(place: BorrowedFd) -> io::Result<OwnedFd> {
    let how = OFlags::RDWR | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/fuse", how, Mode::empty())?;
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
        device.as_raw_fd()
    );
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NOATIME;
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    rustix::mount::mount(SOURCE, path, c"fuse.pgdyno", flags, options.as_c_str())?;
    Ok(device)
}

fn session(recorder: Recorder, device: OwnedFd) -> io::Result<Session<Recorder>> {
    Session::from_fd(recorder, device, SessionACL::All, Config::default())
}

/// The mount goes at once; what is open in it stays until it is closed.
fn unmount(path: &std::path::Path) -> io::Result<()> {
    Ok(rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}
