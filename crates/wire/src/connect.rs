//! From a target to a session: its servers in order, the addresses of each, TLS or not, and
//! whether the server is of the kind that was asked for. As libpq does it, except that a server
//! which breaks off while a session begins does not keep the next one from being tried.

use std::{collections::hash_map::RandomState, hash::BuildHasher, io, net::SocketAddr};

use tokio::{io::AsyncWriteExt, net::lookup_host, time::timeout};

use crate::{
    error::Error,
    host::Host,
    session::Session,
    socket::Socket,
    startup::{CancelKey, Place},
    statement::Statement,
    stream::{Stream, tcp},
    target::{SessionAttrs, Target},
    tls::SslMode,
    transport::Transport,
};

/// A server that is starting, stopping or recovering: another one may do.
const NOT_NOW: &str = "57P0";
/// What `pg_hba.conf` answers to a connection without (or with) TLS.
const NOT_LIKE_THIS: &str = "28000";

impl Session<Stream> {
    /// Connects to the first server of the target that will do, authenticates and prepares the
    /// statements.
    ///
    /// # Errors
    ///
    /// No server can be reached in time, one refuses, or does not accept a statement.
    pub async fn connect(target: &Target, statements: &[Statement]) -> Result<Self, Error> {
        connect(target, statements).await
    }
}

impl CancelKey {
    /// Asks the server to cancel what the session with this key is doing; there is no answer. Goes
    /// over TLS if the session does.
    ///
    /// # Errors
    ///
    /// The server cannot be reached.
    pub async fn cancel(self, target: &Target) -> Result<(), Error> {
        let mut stream = reopen(target, self.place()).await?;
        let failed = |e| Error::io("send the cancel request", e);
        stream.write_all(&self.request()).await.map_err(failed)?;
        stream.flush().await.map_err(failed)?;
        stream.shutdown().await.map_err(failed)
    }
}

async fn connect(target: &Target, statements: &[Statement]) -> Result<Session, Error> {
    target.check()?;
    let wanted = target.session_attrs;
    let passes: &[SessionAttrs] = match wanted {
        SessionAttrs::PreferStandby => &[SessionAttrs::Standby, SessionAttrs::Any],
        _ => &[wanted],
    };
    let mut order: Vec<usize> = (0..target.hosts.len()).collect();
    if target.load_balance {
        let random = RandomState::new();
        order.sort_by_cached_key(|at| random.hash_one(at));
    }
    let mut refusals = Vec::new();
    for &wanted in passes {
        refusals.clear();
        for &at in &order {
            if let Some(mut session) = try_host(target, at, wanted, &mut refusals).await? {
                within(target, &target.hosts[at], session.prepare(statements)).await?;
                return Ok(session);
            }
        }
    }
    Err(Error::several(refusals))
}

/// Tries the addresses of one server; `None`, with the reasons, when another server may do.
async fn try_host(
    target: &Target,
    at: usize,
    wanted: SessionAttrs,
    refusals: &mut Vec<Error>,
) -> Result<Option<Session>, Error> {
    let host = &target.hosts[at];
    let addresses = match within(target, host, addresses(target, host)).await {
        Ok(addresses) => addresses,
        Err(error) => {
            refusals.push(error);
            return Ok(None);
        }
    };
    for address in addresses {
        let visit = async {
            let mut session = visit(target, at, address).await?;
            let unfit = unfit(&mut session, wanted).await?;
            Ok((session, unfit))
        };
        match within(target, host, visit).await {
            Ok((session, None)) => return Ok(Some(session)),
            Ok((session, Some(is))) => {
                refusals.push(Error::refused(
                    format!("{host} is {is}, target_session_attrs is {}", wanted.name()),
                    "Name all servers of the cluster as host=a,b,c, or ask for any.",
                ));
                let _goodbye = session.close().await;
                return Ok(None);
            }
            Err(error) => {
                let not_now = error.sqlstate().is_some_and(|state| state.starts_with(NOT_NOW));
                if !not_now && !error.is_broken() {
                    return Err(error);
                }
                refusals.push(error);
                if not_now {
                    return Ok(None);
                }
            }
        }
    }
    Ok(None)
}

/// Every address gets the whole timeout, as in libpq.
async fn within<T>(
    target: &Target,
    host: &Host,
    doing: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(target.connect_timeout, doing).await.unwrap_or_else(|_| {
        let fact = format!("no session within {:?}", target.connect_timeout);
        let source = io::Error::new(io::ErrorKind::TimedOut, fact);
        Err(Error::io(format!("connect to {host}"), source))
    })
}

/// Where a server may be; `None` is its Unix socket.
async fn addresses(target: &Target, host: &Host) -> Result<Vec<Option<SocketAddr>>, Error> {
    if host.socket_path().is_some() {
        return Ok(vec![None]);
    }
    let name = host.hostaddr.as_ref().unwrap_or(&host.host);
    let found = lookup_host((name.as_str(), host.port))
        .await
        .map_err(|e| Error::io(format!("look up host {name}"), e))?;
    let mut addresses: Vec<SocketAddr> = found.collect();
    if target.load_balance {
        let random = RandomState::new();
        addresses.sort_by_cached_key(|address| random.hash_one(address));
    }
    Ok(addresses.into_iter().map(Some).collect())
}

/// How much TLS one attempt wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Plain,
    IfOffered,
    Tls,
}

/// Where an attempt failed.
enum Failed {
    Before(Error),
    InHandshake(Error),
}

/// One address: TLS first or plain text first, and then perhaps the other.
async fn visit(target: &Target, at: usize, address: Option<SocketAddr>) -> Result<Session, Error> {
    let mode = if address.is_some() { target.tls.mode() } else { SslMode::Disable };
    let (first, second) = match mode {
        SslMode::Disable => (Want::Plain, None),
        SslMode::Allow => (Want::Plain, Some(Want::Tls)),
        SslMode::Prefer => (Want::IfOffered, Some(Want::Plain)),
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => (Want::Tls, None),
    };
    let (error, otherwise) = match open(target, at, address, first).await {
        Ok((stream, transport)) => {
            // Where TLS was not offered, plain text has had its turn already.
            let turns = first == Want::Plain || transport != Transport::Plain;
            match begin(target, at, address, stream, transport).await {
                Ok(session) => return Ok(session),
                Err(error) => {
                    let otherwise = turns && error.sqlstate() == Some(NOT_LIKE_THIS);
                    (error, otherwise)
                }
            }
        }
        Err(Failed::InHandshake(error)) => (error, true),
        Err(Failed::Before(error)) => (error, false),
    };
    let Some(second) = second.filter(|_| otherwise) else { return Err(error) };
    let again = match open(target, at, address, second).await {
        Ok((stream, transport)) => begin(target, at, address, stream, transport).await,
        Err(Failed::InHandshake(error) | Failed::Before(error)) => Err(error),
    };
    again.map_err(|again| Error::several(vec![error, again]))
}

async fn open(
    target: &Target,
    at: usize,
    address: Option<SocketAddr>,
    want: Want,
) -> Result<(Stream, Transport), Failed> {
    let host = &target.hosts[at];
    let failed = |source| Failed::Before(Error::io(format!("connect to {host}"), source));
    let (Some(address), None) = (address, host.socket_path()) else {
        let path = host.socket_path().unwrap_or_default();
        let stream = Socket::unix(path).await.map_err(failed)?;
        return Ok((Stream::Plain(stream), Transport::Plain));
    };
    let stream = tcp(address, &target.keepalive).await.map_err(failed)?;
    if want == Want::Plain {
        return Ok((Stream::Plain(stream), Transport::Plain));
    }
    let or_plain = want == Want::IfOffered;
    let secured = target.tls.secure(stream, host, address.ip(), or_plain).await;
    Ok(match secured.map_err(Failed::InHandshake)? {
        Ok(secured) => {
            let transport = Transport::Tls { end_point: secured.end_point };
            (Stream::Tls(Box::new(secured.stream)), transport)
        }
        Err(plain) => (Stream::Plain(plain), Transport::Plain),
    })
}

async fn begin(
    target: &Target,
    at: usize,
    address: Option<SocketAddr>,
    stream: Stream,
    transport: Transport,
) -> Result<Session, Error> {
    let place = Place { host: at, address, tls: transport != Transport::Plain };
    Session::greeted(stream, target, place, transport).await
}

/// The same place again, for a cancel request.
async fn reopen(target: &Target, place: Place) -> Result<Stream, Error> {
    let want = if place.tls { Want::Tls } else { Want::Plain };
    match open(target, place.host, place.address, want).await {
        Ok((stream, _)) => Ok(stream),
        Err(Failed::InHandshake(error) | Failed::Before(error)) => Err(error),
    }
}

/// What the server is, if that is not what is wanted. Servers from 14 on say it when a session
/// begins, older ones and poolers are asked.
async fn unfit(session: &mut Session, wanted: SessionAttrs) -> Result<Option<&'static str>, Error> {
    let on = |name: &str| session.parameter(name).map(|value| value == "on");
    let (standby, read_only) = (on("in_hot_standby"), on("default_transaction_read_only"));
    match wanted {
        SessionAttrs::Any | SessionAttrs::PreferStandby => Ok(None),
        SessionAttrs::ReadWrite | SessionAttrs::ReadOnly => {
            let is_read_only = match (standby, read_only) {
                (Some(standby), Some(read_only)) => standby || read_only,
                _ => says(session, "SHOW transaction_read_only", "on").await?,
            };
            let is = if is_read_only { "read-only" } else { "read-write" };
            Ok(Some(is).filter(|_| is_read_only != (wanted == SessionAttrs::ReadOnly)))
        }
        SessionAttrs::Primary | SessionAttrs::Standby => {
            let is_standby = match standby {
                Some(standby) => standby,
                None => says(session, "SELECT pg_catalog.pg_is_in_recovery()", "t").await?,
            };
            let is = if is_standby { "a standby" } else { "a primary" };
            Ok(Some(is).filter(|_| is_standby != (wanted == SessionAttrs::Standby)))
        }
    }
}

async fn says(session: &mut Session, question: &str, yes: &str) -> Result<bool, Error> {
    let rows = session.simple(question).await?;
    let answer = rows.first().and_then(|row| row.first()).and_then(Option::as_deref);
    Ok(answer == Some(yes))
}
