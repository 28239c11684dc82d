//! Authentication: passwords in clear text and by MD5, SCRAM with and without channel binding.

use bytes::BytesMut;
use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256},
    },
    message::frontend,
};

use crate::{
    error::Error,
    host::Host,
    target::{ChannelBinding, Target},
    transport::Transport,
};

const OK: i32 = 0;
const CLEARTEXT: i32 = 3;
const MD5: i32 = 5;
const SASL: i32 = 10;
const SASL_CONTINUE: i32 = 11;
const SASL_FINAL: i32 = 12;

/// The login of one session.
pub(crate) struct Login<'a> {
    target: &'a Target,
    host: &'a Host,
    transport: Transport,
    scram: Option<ScramSha256>,
    bound: bool,
    authenticated: bool,
}

impl<'a> Login<'a> {
    pub(crate) fn new(target: &'a Target, host: &'a Host, transport: Transport) -> Self {
        Self { target, host, transport, scram: None, bound: false, authenticated: false }
    }

    /// Whether the server let us in.
    pub(crate) fn is_done(&self) -> bool {
        self.authenticated
    }

    /// Answers an authentication request.
    pub(crate) fn answer(&mut self, body: &[u8], out: &mut BytesMut) -> Result<(), Error> {
        let (code, rest) = body
            .split_first_chunk::<4>()
            .ok_or_else(|| Error::protocol("authentication request is cut short"))?;
        let code = i32::from_be_bytes(*code);
        let broken = |e| Error::io("authenticate", e);
        let binds = matches!(code, SASL | SASL_CONTINUE | SASL_FINAL) || code == OK && self.bound;
        if self.target.channel_binding == ChannelBinding::Require && !binds {
            return Err(self.unbound("the server asks for no SCRAM"));
        }
        match code {
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
                let (mechanism, binding) = self.mechanism(rest)?;
                let scram = ScramSha256::new(self.password()?, binding);
                frontend::sasl_initial_response(mechanism, scram.message(), out).map_err(broken)?;
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

    /// Chooses among what the server offers, and says how SCRAM is tied to TLS.
    fn mechanism(&mut self, offer: &[u8]) -> Result<(&'static str, sasl::ChannelBinding), Error> {
        let offered = || offer.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        let offers = |wanted: &str| offered().any(|name| name == wanted.as_bytes());
        let end_point = match (&self.transport, self.target.channel_binding) {
            (Transport::Plain, _) if offers(SCRAM_SHA_256_PLUS) => {
                return Err(Error::protocol(format!(
                    "server offers {SCRAM_SHA_256_PLUS} without TLS, someone may be in between"
                )));
            }
            (Transport::Plain, _) | (_, ChannelBinding::Disable) => None,
            (Transport::Tls { end_point }, _) => end_point.clone(),
        };
        let required = self.target.channel_binding == ChannelBinding::Require;
        match end_point {
            Some(end_point) if offers(SCRAM_SHA_256_PLUS) => {
                self.bound = true;
                let binding = sasl::ChannelBinding::tls_server_end_point(end_point);
                Ok((SCRAM_SHA_256_PLUS, binding))
            }
            _ if required && self.transport == Transport::Plain => {
                Err(self.unbound("the session has no TLS"))
            }
            None if required => Err(self.unbound("the server's certificate has no usable hash")),
            _ if required => Err(self.unbound("the server does not offer it")),
            end_point if offers(SCRAM_SHA_256) => {
                // The flag tells a server that could have bound that somebody hid its offer.
                let binding = match end_point {
                    Some(_) => sasl::ChannelBinding::unrequested(),
                    None => sasl::ChannelBinding::unsupported(),
                };
                Ok((SCRAM_SHA_256, binding))
            }
            _ => {
                let names: Vec<_> = offered().map(String::from_utf8_lossy).collect();
                let names = names.join(", ");
                Err(Error::protocol(format!("server offers {names}, {SCRAM_SHA_256} needed")))
            }
        }
    }

    fn unbound(&self, why: &str) -> Error {
        Error::refused(
            format!("channel_binding is require for {}, {why}", self.host),
            "It needs sslmode=require or stricter and hostssl … scram-sha-256 in pg_hba.conf; or \
             use channel_binding=prefer.",
        )
    }

    fn password(&self) -> Result<&[u8], Error> {
        let Some(password) = &self.host.password else {
            return Err(Error::refused(
                format!(
                    "{} asks for a password of role {:?}, none was given",
                    self.host, self.target.user
                ),
                "Set PGPASSWORD, or add a line to ~/.pgpass.",
            ));
        };
        Ok(password.expose())
    }
}

fn out_of_turn() -> Error {
    Error::protocol("SASL message came out of turn")
}
