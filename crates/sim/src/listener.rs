//! A scripted server on a Unix socket, in a thread of its own: for tests of whole drivers.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    thread::JoinHandle,
};

use tokio::{net::UnixListener, runtime, sync::oneshot, task::LocalSet};

use crate::{Scripted, serve};

/// Port in the socket's name.
const PORT: u16 = 5432;
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A listening server; dropped, it closes all its connections and removes its folder.
#[derive(Debug)]
pub struct Listener {
    folder: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens in a new folder under the system's folder for temporary files.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn start(scripted: Scripted) -> io::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pgdyno-sim-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder)?;
        let socket = folder.join(format!(".s.PGSQL.{PORT}"));
        let listener = std::os::unix::net::UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        let (stop, stopped) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::spawn(move || {
            let local = LocalSet::new();
            local.block_on(&runtime, accept(listener, scripted, stopped));
        });
        Ok(Self { folder, stop: Some(stop), thread: Some(thread) })
    }

    /// Folder of the socket: the host of a connection.
    #[must_use]
    pub fn host(&self) -> &Path {
        &self.folder
    }

    /// Port in the socket's name.
    #[must_use]
    pub fn port(&self) -> u16 {
        PORT
    }
}

async fn accept(
    listener: std::os::unix::net::UnixListener,
    scripted: Scripted,
    mut stopped: oneshot::Receiver<()>,
) {
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    loop {
        tokio::select! {
            biased;
            _ = &mut stopped => return,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { return };
                tokio::task::spawn_local(serve(stream, scripted.clone()));
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        let _left_behind = std::fs::remove_dir_all(&self.folder);
    }
}
