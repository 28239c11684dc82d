//! A recording file system from its mount to its end.

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
use serde::Serialize;

use crate::below::Below;
use crate::fault::{FaultSpec, Faults};
use crate::log::Log;
use crate::recorder::{Recorder, Switch};
pub use crate::stock::RecordSpec;
use crate::stock::{Failed, begun, opened, tell};

/// The name that `mount` shows; what a killed run left is known by it.
pub const SOURCE: &str = "pgdyno-disk";
const END_POLLS: u32 = 100;
const END_POLL: Duration = Duration::from_millis(20);

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
        let (folder, data) = opened(spec)?;
        Self::begin_in(folder.as_fd(), data, spec)
            .map_err(|(what, error)| tell(what, &spec.folder, &error))
    }

    fn begin_in(folder: BorrowedFd, data: OwnedFd, spec: &RecordSpec) -> Result<Self, Failed> {
        // Held since before the mount, it leads below it.
        let covered = rustix::io::dup(&data).map_err(|error| ("record", error.into()))?;
        let below = Below::new(data).map_err(|error| ("read", error))?;
        let (below, log) = begun(folder, below, spec, None)?;
        let log = Arc::new(log);
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
    /// It cannot be unmounted, the record could not be written, or calls failed that the disk would
    /// have carried out.
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
        if self.switch.is_starved() {
            let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
            return Err(format!(
                "calls failed since the recorder has no more than {} files open",
                most.unwrap_or(u64::MAX)
            ));
        }
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
