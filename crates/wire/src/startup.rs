//! The start of a session: startup packet, authentication, the server's parameters.

use std::net::SocketAddr;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::{
    error::Error,
    inbox::{Inbox, server_error, unexpected},
    login::Login,
    target::Target,
    transport::Transport,
};

/// Where a session ended up: another connection must go to the same place to cancel its work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Position in the target's list.
    pub(crate) host: usize,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) tls: bool,
}

/// What the server told about itself and this session.
#[derive(Debug, Default)]
pub(crate) struct Greeting {
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) key: Option<CancelKey>,
}

/// Far more than any server reports.
const PARAMETERS_MAX: usize = 1000;

impl Greeting {
    /// Takes a `ParameterStatus`, in place of what was said of the same parameter before.
    pub(crate) fn take_parameter(&mut self, body: &[u8]) -> Result<(), Error> {
        let Some((name, value)) = parameter(body) else { return Ok(()) };
        self.parameters.retain(|(known, _)| *known != name);
        if self.parameters.len() == PARAMETERS_MAX {
            return Err(Error::protocol(format!(
                "server reports more than {PARAMETERS_MAX} parameters"
            )));
        }
        self.parameters.push((name, value));
        Ok(())
    }
}

/// Lets another connection cancel what this one is doing.
#[derive(Clone, Copy, Debug)]
pub struct CancelKey {
    process: i32,
    secret: i32,
    place: Place,
}

impl CancelKey {
    /// Process id of the server's backend.
    #[must_use]
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Where the session is.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// What another connection sends there instead of a startup packet.
    pub(crate) fn request(&self) -> BytesMut {
        let mut out = BytesMut::new();
        frontend::cancel_request(self.process, self.secret, &mut out);
        out
    }
}

/// Sends the startup packet, authenticates, and reads until the server is ready.
pub(crate) async fn greet<S>(
    stream: &mut S,
    inbox: &mut Inbox,
    target: &Target,
    place: Place,
    transport: Transport,
) -> Result<Greeting, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut out = BytesMut::new();
    let settings = [
        ("user", target.user.as_str()),
        ("database", target.database.as_str()),
        ("application_name", target.application_name.as_str()),
        ("client_encoding", "UTF8"),
    ];
    let command_line = target.command_line.as_deref().map(|text| ("options", text));
    let options = target.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all = settings.into_iter().chain(command_line).chain(options);
    frontend::startup_message(all, &mut out)
        .map_err(|e| Error::io("write the startup packet", e))?;
    let mut greeting = Greeting::default();
    let mut login = Login::new(target, &target.hosts[place.host], transport);
    loop {
        send(stream, &mut out).await?;
        while let Some(message) = inbox.next()? {
            match message.tag {
                b'R' => login.answer(message.body, &mut out)?,
                b'S' => greeting.take_parameter(message.body)?,
                b'K' => greeting.key = key(message.body, place),
                b'E' => return Err(server_error(message.body)),
                b'N' => {}
                b'Z' if login.is_done() => return Ok(greeting),
                _ => return Err(unexpected(message, "the start of the session")),
            }
        }
        if out.is_empty() {
            inbox.fill(stream).await?;
        }
    }
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, out: &mut BytesMut) -> Result<(), Error> {
    if !out.is_empty() {
        let failed = |e| Error::io("write to the server", e);
        stream.write_all(out).await.map_err(failed)?;
        stream.flush().await.map_err(failed)?;
        out.clear();
    }
    Ok(())
}

/// `ParameterStatus`: name and value, each ended by a zero.
fn parameter(body: &[u8]) -> Option<(String, String)> {
    let mut parts = body.split(|&byte| byte == 0);
    let name = parts.next()?;
    let value = parts.next()?;
    Some((String::from_utf8_lossy(name).into_owned(), String::from_utf8_lossy(value).into_owned()))
}

fn key(body: &[u8], place: Place) -> Option<CancelKey> {
    let [p0, p1, p2, p3, s0, s1, s2, s3] = *<&[u8; 8]>::try_from(body).ok()?;
    Some(CancelKey {
        process: i32::from_be_bytes([p0, p1, p2, p3]),
        secret: i32::from_be_bytes([s0, s1, s2, s3]),
        place,
    })
}
