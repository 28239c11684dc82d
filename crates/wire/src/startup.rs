//! The start of a session: startup packet, authentication, the server's parameters.

use bytes::BytesMut;
use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
    },
    message::frontend,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::{
    Error, Stream, Target,
    inbox::{Inbox, server_error, unexpected},
};

const OK: i32 = 0;
const CLEARTEXT: i32 = 3;
const MD5: i32 = 5;
const SASL: i32 = 10;
const SASL_CONTINUE: i32 = 11;
const SASL_FINAL: i32 = 12;

/// What the server told about itself and this session.
#[derive(Debug, Default)]
pub(crate) struct Greeting {
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) key: Option<CancelKey>,
}

/// Lets another connection cancel what this one is doing.
#[derive(Clone, Copy, Debug)]
pub struct CancelKey {
    process: i32,
    secret: i32,
}

impl CancelKey {
    /// Process id of the server's backend.
    #[must_use]
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Asks the server to cancel what the session with this key is doing; there is no answer.
    ///
    /// # Errors
    ///
    /// The server cannot be reached.
    pub async fn cancel(self, target: &Target) -> Result<(), Error> {
        let mut stream = Stream::connect(target).await?;
        let mut out = BytesMut::new();
        frontend::cancel_request(self.process, self.secret, &mut out);
        stream.write_all(&out).await.map_err(|e| Error::io("send the cancel request", e))?;
        stream.shutdown().await.map_err(|e| Error::io("send the cancel request", e))
    }
}

/// Sends the startup packet, authenticates, and reads until the server is ready.
pub(crate) async fn greet<S>(
    stream: &mut S,
    inbox: &mut Inbox,
    target: &Target,
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
    let options = target.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    frontend::startup_message(settings.into_iter().chain(options), &mut out)
        .map_err(|e| Error::io("write the startup packet", e))?;
    let mut greeting = Greeting::default();
    let mut login = Login { target, scram: None, authenticated: false };
    loop {
        send(stream, &mut out).await?;
        while let Some(message) = inbox.next()? {
            match message.tag {
                b'R' => login.answer(message.body, &mut out)?,
                b'S' => greeting.parameters.extend(parameter(message.body)),
                b'K' => greeting.key = key(message.body),
                b'E' => return Err(server_error(message.body)),
                b'N' => {}
                b'Z' if login.authenticated => return Ok(greeting),
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
        stream.write_all(out).await.map_err(|e| Error::io("write to the server", e))?;
        out.clear();
    }
    Ok(())
}

struct Login<'a> {
    target: &'a Target,
    scram: Option<ScramSha256>,
    authenticated: bool,
}

impl Login<'_> {
    /// Answers an authentication request.
    fn answer(&mut self, body: &[u8], out: &mut BytesMut) -> Result<(), Error> {
        let (code, rest) = body
            .split_first_chunk::<4>()
            .ok_or_else(|| Error::protocol("authentication request is cut short"))?;
        let broken = |e| Error::io("authenticate", e);
        match i32::from_be_bytes(*code) {
            OK => {
                if self.scram.is_some() {
                    return Err(Error::protocol("server did not prove that it knows the password"));
                }
                self.authenticated = true;
            }
            CLEARTEXT => frontend::password_message(self.password()?, out).map_err(broken)?,
            MD5 => {
                let salt = <[u8; 4]>::try_from(rest)
                    .map_err(|_| Error::protocol("md5 salt is not of 4 bytes"))?;
                let hash = md5_hash(self.target.user.as_bytes(), self.password()?, salt);
                frontend::password_message(hash.as_bytes(), out).map_err(broken)?;
            }
            SASL => {
                let offered = || rest.split(|&byte| byte == 0).filter(|name| !name.is_empty());
                if !offered().any(|name| name == SCRAM_SHA_256.as_bytes()) {
                    let names: Vec<_> = offered().map(String::from_utf8_lossy).collect();
                    return Err(Error::protocol(format!(
                        "server offers {}, {SCRAM_SHA_256} needed",
                        names.join(", ")
                    )));
                }
                let scram = ScramSha256::new(self.password()?, ChannelBinding::unsupported());
                frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out)
                    .map_err(broken)?;
                self.scram = Some(scram);
            }
            SASL_CONTINUE => {
                let scram = self.scram.as_mut().ok_or_else(out_of_turn)?;
                scram.update(rest).map_err(broken)?;
                frontend::sasl_response(scram.message(), out).map_err(broken)?;
            }
            SASL_FINAL => {
                let mut scram = self.scram.take().ok_or_else(out_of_turn)?;
                scram.finish(rest).map_err(broken)?;
            }
            code => {
                return Err(Error::protocol(format!("authentication method {code} is unknown")));
            }
        }
        Ok(())
    }

    fn password(&self) -> Result<&[u8], Error> {
        let Some(password) = &self.target.password else {
            return Err(Error::protocol(format!(
                "server asks for a password of role {:?}, none was given",
                self.target.user
            )));
        };
        Ok(password.expose())
    }
}

fn out_of_turn() -> Error {
    Error::protocol("SASL message came out of turn")
}

/// `ParameterStatus`: name and value, each ended by a zero.
pub(crate) fn parameter(body: &[u8]) -> Option<(String, String)> {
    let mut parts = body.split(|&byte| byte == 0);
    let name = parts.next()?;
    let value = parts.next()?;
    Some((String::from_utf8_lossy(name).into_owned(), String::from_utf8_lossy(value).into_owned()))
}

fn key(body: &[u8]) -> Option<CancelKey> {
    let [p0, p1, p2, p3, s0, s1, s2, s3] = *<&[u8; 8]>::try_from(body).ok()?;
    Some(CancelKey {
        process: i32::from_be_bytes([p0, p1, p2, p3]),
        secret: i32::from_be_bytes([s0, s1, s2, s3]),
    })
}
