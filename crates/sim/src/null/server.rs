//! Threads of a null server: each has a runtime and its own connections; the first also accepts.

use std::{
    fs, io,
    net::TcpListener as StdTcpListener,
    os::unix::net::UnixListener as StdUnixListener,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    runtime,
    sync::{mpsc, watch},
    task::{LocalSet, spawn_local},
    time::sleep,
};

use super::{
    account::{Counters, Workers},
    connection::serve,
    spec::{NullError, NullSpec},
    statements::Known,
};

/// Before the next attempt to accept, e.g. when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A null server that runs; dropped, it closes all its connections and removes its socket.
#[derive(Debug)]
pub struct NullServer {
    port: u16,
    socket: Option<PathBuf>,
    counters: Vec<Arc<Counters>>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// What it has done so far.
#[derive(Clone, Debug, Serialize, JsonSchema, PartialEq, Eq)]
pub struct NullStatus {
    /// Port on which it listens.
    pub port: u16,
    /// Sessions begun.
    pub connections: u64,
    /// Executions answered.
    pub executions: u64,
    /// Batches answered, each one round trip.
    pub batches: u64,
    /// Numbers of its threads at the kernel.
    pub threads: Vec<u64>,
}

enum Listener {
    Unix(StdUnixListener),
    Tcp(StdTcpListener),
}

enum Accepted {
    Unix(std::os::unix::net::UnixStream),
    Tcp(std::net::TcpStream),
}

impl NullServer {
    /// Listens and serves in threads of its own.
    ///
    /// # Errors
    ///
    /// The address is taken, or no thread can be started.
    pub fn start(spec: &NullSpec, known: &Known) -> Result<Self, NullError> {
        let (listener, port, socket) = listen(spec)?;
        let (stop, stopped) = watch::channel(false);
        let workers = spec.hold.map(Workers::new);
        let mut server = Self { port, socket, counters: Vec::new(), stop, threads: Vec::new() };
        let mut senders = Vec::new();
        let mut listener = Some(listener);
        // The thread that accepts is started last: it needs the others' queues.
        for number in (0..spec.threads).rev() {
            let (sender, accepted) = mpsc::unbounded_channel();
            senders.push(sender);
            let counters = Arc::<Counters>::default();
            server.counters.push(Arc::clone(&counters));
            let share = Share {
                known: known.clone(),
                counters,
                workers: workers.clone(),
                accepted,
                stopped: stopped.clone(),
            };
            let accept =
                (number == 0).then(|| listener.take().zip(Some(senders.clone()))).flatten();
            server.threads.push(thread(share, accept)?);
        }
        Ok(server)
    }

    /// What it has done so far.
    #[must_use]
    pub fn status(&self) -> NullStatus {
        let sum = |of: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|counters| of(counters).load(Relaxed)).sum()
        };
        NullStatus {
            port: self.port,
            connections: sum(|counters| &counters.connections),
            executions: sum(|counters| &counters.executions),
            batches: sum(|counters| &counters.batches),
            threads: self.counters.iter().map(|c| c.thread.load(Relaxed)).collect(),
        }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        let _nobody_listens = self.stop.send(true);
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
        if let Some(socket) = &self.socket {
            let _gone_already = fs::remove_file(socket);
        }
    }
}

fn listen(spec: &NullSpec) -> Result<(Listener, u16, Option<PathBuf>), NullError> {
    let place = format!("listen on {}, port {}", spec.host, spec.port);
    let failed = |e: io::Error| NullError::io(&place, &e);
    if spec.is_socket() {
        let path = PathBuf::from(&spec.host).join(format!(".s.PGSQL.{}", spec.port));
        let listener = StdUnixListener::bind(&path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        return Ok((Listener::Unix(listener), spec.port, Some(path)));
    }
    let listener = StdTcpListener::bind((spec.host.as_str(), spec.port)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    Ok((Listener::Tcp(listener), port, None))
}

/// What one thread is given.
struct Share {
    known: Known,
    counters: Arc<Counters>,
    workers: Option<Workers>,
    accepted: mpsc::UnboundedReceiver<Accepted>,
    stopped: watch::Receiver<bool>,
}

type Accept = (Listener, Vec<mpsc::UnboundedSender<Accepted>>);

fn thread(share: Share, accept: Option<Accept>) -> Result<JoinHandle<()>, NullError> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| NullError::io("start a runtime", &e))?;
    let body = move || {
        share.counters.thread.store(own_number(), Relaxed);
        LocalSet::new().block_on(&runtime, async {
            let mut stopped = share.stopped.clone();
            if let Some((listener, senders)) = accept {
                spawn_local(deal(listener, senders));
            }
            tokio::select! {
                _sender_gone = stopped.wait_for(|stopped| *stopped) => {}
                () = receive(share) => {}
            }
        });
    };
    std::thread::Builder::new()
        .name("pgdyno-null".into())
        .spawn(body)
        .map_err(|e| NullError::io("start a thread", &e))
}

/// The kernel's number of this thread; 0 where /proc does not tell.
fn own_number() -> u64 {
    let link = fs::read_link("/proc/thread-self").ok();
    let name = link.as_deref().and_then(|path| path.file_name()?.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}

/// Accepts clients and deals them to the threads, round robin.
async fn deal(listener: Listener, senders: Vec<mpsc::UnboundedSender<Accepted>>) -> io::Result<()> {
    let turns = senders.iter().cycle();
    match listener {
        Listener::Unix(listener) => {
            let listener = UnixListener::from_std(listener)?;
            for thread in turns {
                let Ok((stream, _)) = listener.accept().await else {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let _thread_ended = thread.send(Accepted::Unix(stream.into_std()?));
            }
        }
        Listener::Tcp(listener) => {
            let listener = TcpListener::from_std(listener)?;
            for thread in turns {
                let Ok((stream, _)) = listener.accept().await else {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                stream.set_nodelay(true)?;
                let _thread_ended = thread.send(Accepted::Tcp(stream.into_std()?));
            }
        }
    }
    Ok(())
}

async fn receive(mut share: Share) {
    while let Some(accepted) = share.accepted.recv().await {
        share.counters.connections.fetch_add(1, Relaxed);
        let (known, counters) = (share.known.clone(), Arc::clone(&share.counters));
        let workers = share.workers.clone();
        match accepted {
            Accepted::Unix(stream) => {
                if let Ok(stream) = UnixStream::from_std(stream) {
                    spawn_local(serve(stream, known, counters, workers));
                }
            }
            Accepted::Tcp(stream) => {
                if let Ok(stream) = TcpStream::from_std(stream) {
                    spawn_local(serve(stream, known, counters, workers));
                }
            }
        }
    }
}
