//! Threads that wait for syncs, so that other calls need not.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use fuser::ReplyEmpty;

use crate::event::{Event, Ino};
use crate::fault::{Asked, Calls, Faults};
use crate::log::Log;

/// Backends that commit at once wait for one sync; beside it, checkpoints have theirs.
const THREADS: usize = 4;

struct Wanted {
    ino: Ino,
    top: Arc<OsStr>,
    sync: u64,
    file: Arc<File>,
    data_only: bool,
    reply: ReplyEmpty,
}

/// Syncs that are under way.
pub(crate) struct Syncing {
    log: Arc<Log>,
    wanted: Mutex<Sender<Wanted>>,
    next: AtomicU64,
}

impl Syncing {
    /// Start the threads; they end with it.
    pub(crate) fn new(log: Arc<Log>, faults: &Arc<Faults>) -> Self {
        let (send, receive) = channel();
        let receive = Arc::new(Mutex::new(receive));
        for _ in 0..THREADS {
            let (receive, log, faults) = (receive.clone(), log.clone(), faults.clone());
            thread::spawn(move || serve(&receive, &log, &faults));
        }
        Self { log, wanted: Mutex::new(send), next: AtomicU64::new(0) }
    }

    /// Write down that a sync begins, and let it be answered when it is done.
    pub(crate) fn begin(
        &self,
        ino: Ino,
        top: Arc<OsStr>,
        file: Arc<File>,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let sync = self.next.fetch_add(1, Ordering::Relaxed);
        self.log.put(&Event::SyncBegun { ino, sync });
        let wanted = Wanted { ino, top, sync, file, data_only, reply };
        let send = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(back) = send.send(wanted) {
            back.0.reply.error(fuser::Errno::EIO);
        }
    }
}

fn serve(wanted: &Mutex<Receiver<Wanted>>, log: &Log, faults: &Faults) {
    loop {
        let next = wanted.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Wanted { ino, top, sync, file, data_only, reply }) = next else { return };
        let synced = || if data_only { file.sync_data() } else { file.sync_all() };
        let asked = Asked { calls: Calls::Sync, top: &top };
        let done: io::Result<()> = faults.meet(asked).and_then(|()| synced());
        match done {
            // Before the answer: who hears of it may tell somebody that it is done.
            Ok(()) if log.put(&Event::SyncEnded { ino, sync, data_only }) => reply.ok(),
            Ok(()) => reply.error(fuser::Errno::EIO), // the power went meanwhile
            Err(error) => reply.error(error.into()),
        }
    }
}
