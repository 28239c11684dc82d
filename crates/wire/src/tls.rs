//! TLS as libpq has it: what is asked for, made into one configuration for all sessions, and the
//! handshake. Certificates are judged in [`verify`], SCRAM's binding to them is in [`binding`].

mod binding;
mod files;
mod verify;

use std::{io, net::IpAddr, path::PathBuf, sync::Arc};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, Error as TlsError,
        client::{Resumption, danger::ServerCertVerifier},
        crypto::{CryptoProvider, ring},
        pki_types::ServerName,
        version::{TLS12, TLS13},
    },
};

use crate::{error::Error, host::Host, socket::Socket, tls_hint::hint};
use verify::Verifier;

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const ALPN: &[u8] = b"postgresql";

/// `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Plain text.
    #[default]
    Disable,
    /// TLS if the server does not let in without.
    Allow,
    /// TLS if the server has it.
    Prefer,
    /// TLS or nothing; the certificate is checked only if there is a root certificate.
    Require,
    /// And the certificate is signed by an authority that we trust.
    VerifyCa,
    /// And it carries the name of the host.
    VerifyFull,
}

impl SslMode {
    /// As libpq spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// `sslrootcert`: which authorities are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// None is named: certificates are not checked.
    #[default]
    None,
    /// Those of the operating system.
    System,
    /// Those of a PEM file.
    File(PathBuf),
}

/// A TLS version, `ssl_min_protocol_version` and `ssl_max_protocol_version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// What the user asks of the transport.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// TLS or not, and what of the certificate is checked.
    pub mode: SslMode,
    /// Who may have signed the server's certificate.
    pub roots: Roots,
    /// PEM files of the client's certificate and its key, if it has one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// `sslnegotiation=direct`: TLS from the first byte, without asking (PostgreSQL 17).
    pub direct: bool,
    /// Whether the server is told the host's name before the handshake.
    pub sni: bool,
    /// The oldest and the newest version allowed.
    pub versions: (TlsVersion, TlsVersion),
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            mode: SslMode::Disable,
            roots: Roots::None,
            certificate: None,
            direct: false,
            sni: true,
            versions: (TlsVersion::V1_2, TlsVersion::V1_3),
        }
    }
}

/// TLS as the sessions of a target use it.
#[derive(Clone, Debug)]
pub struct Tls {
    mode: SslMode,
    direct: bool,
    config: Option<Arc<ClientConfig>>,
}

impl Tls {
    /// Plain text.
    #[must_use]
    pub const fn disabled() -> Self {
        Self { mode: SslMode::Disable, direct: false, config: None }
    }

    /// Reads the files that the options name.
    ///
    /// # Errors
    ///
    /// A file is missing or is not what it should be, or the options contradict each other.
    pub fn new(options: &TlsOptions) -> Result<Self, Error> {
        let mode = options.mode;
        let weak = mode < SslMode::Require;
        if options.direct && weak {
            return Err(refused(
                format!("sslnegotiation is direct, sslmode is {}", mode.name()),
                "TLS without asking first needs sslmode=require, verify-ca or verify-full.",
            ));
        }
        if options.roots == Roots::System && mode != SslMode::VerifyFull {
            return Err(refused(
                format!("sslrootcert is system, sslmode is {}", mode.name()),
                "Anybody can have a certificate of a public authority; use sslmode=verify-full.",
            ));
        }
        if mode == SslMode::Disable {
            return Ok(Self::disabled());
        }
        let config = configure(options)?;
        Ok(Self { mode, direct: options.direct, config: Some(Arc::new(config)) })
    }

    /// What was asked for.
    #[must_use]
    pub fn mode(&self) -> SslMode {
        self.mode
    }
}

fn refused(fact: impl Into<String>, hint: &str) -> Error {
    Error::refused(fact, hint)
}

fn configure(options: &TlsOptions) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(verifier(options, &provider)?);
    let known = [(TlsVersion::V1_2, &TLS12), (TlsVersion::V1_3, &TLS13)];
    let (low, high) = options.versions;
    let versions: Vec<_> =
        known.iter().filter(|(v, _)| (low..=high).contains(v)).map(|(_, v)| *v).collect();
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|e| refused(format!("TLS versions: {e}"), "Allow TLSv1.2 or TLSv1.3."))?
        .dangerous() // rustls's word for a verifier that is not its own; ours wraps it
        .with_custom_certificate_verifier(verifier as Arc<dyn ServerCertVerifier>);
    let mut config = match &options.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = files::certificates("sslcert", certificate)?;
            let secret = files::private_key(key)?;
            builder.with_client_auth_cert(chain, secret).map_err(|e| {
                let (certificate, key) = (certificate.display(), key.display());
                refused(
                    format!("sslcert {certificate} with sslkey {key} is refused: {e}"),
                    "The key must be that of the first certificate in the file.",
                )
            })?
        }
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_sni = options.sni;
    config.resumption = Resumption::disabled(); // PostgreSQL has none
    Ok(config)
}

/// As libpq: with a root certificate the chain is checked, whatever the mode; without one only the
/// verify modes complain.
fn verifier(options: &TlsOptions, provider: &CryptoProvider) -> Result<Verifier, Error> {
    let algorithms = provider.signature_verification_algorithms;
    let mode = options.mode;
    let roots = match &options.roots {
        Roots::None if mode >= SslMode::VerifyCa => {
            return Err(refused(
                format!("sslmode is {} and there is no root certificate", mode.name()),
                "Name the authority's certificate with sslrootcert, or put it into \
                 ~/.postgresql/root.crt.",
            ));
        }
        Roots::None => return Ok(Verifier::of_nothing(algorithms)),
        Roots::System => files::system_certificates()?,
        Roots::File(path) => files::certificates("sslrootcert", path)?,
    };
    Verifier::new(roots, mode == SslMode::VerifyFull, algorithms)
}

/// A TLS connection, and what SCRAM can tie itself to.
#[derive(Debug)]
pub(crate) struct Secured {
    pub(crate) stream: TlsStream<Socket>,
    /// Hash of the server's certificate; `None` where its signature has no hash.
    pub(crate) end_point: Option<Vec<u8>>,
}

impl Tls {
    /// Asks for TLS and makes the handshake; gives the stream back if the server has no TLS and
    /// `or_plain` allows that.
    pub(crate) async fn secure(
        &self,
        mut stream: Socket,
        host: &Host,
        address: IpAddr,
        or_plain: bool,
    ) -> Result<Result<Secured, Socket>, Error> {
        let Some(config) = &self.config else { return Ok(Err(stream)) };
        if !self.direct && !ask(&mut stream).await? {
            if or_plain {
                return Ok(Err(stream));
            }
            return Err(refused(
                format!("{host} has no TLS, sslmode is {}", self.mode.name()),
                "Set ssl = on there, or use sslmode=prefer over a network that you trust.",
            ));
        }
        let name = self.server_name(host, address)?;
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, stream).await.map_err(|e| self.explain(host, e))?;
        let session = stream.get_ref().1;
        if self.direct && session.alpn_protocol() != Some(ALPN) {
            return Err(refused(
                format!("{host} did not agree to sslnegotiation=direct"),
                "PostgreSQL 17 and newer can do it; use sslnegotiation=postgres.",
            ));
        }
        let leaf = session.peer_certificates().and_then(<[_]>::first);
        let end_point = leaf.and_then(|leaf| binding::end_point(leaf));
        Ok(Ok(Secured { stream, end_point }))
    }

    fn server_name(&self, host: &Host, address: IpAddr) -> Result<ServerName<'static>, Error> {
        match ServerName::try_from(host.host.clone()) {
            Ok(name) => Ok(name),
            Err(_) if self.mode == SslMode::VerifyFull => Err(refused(
                format!("host is {:?}, which no certificate can carry", host.host),
                "sslmode=verify-full needs a host name or an address.",
            )),
            Err(_) => Ok(ServerName::from(address)),
        }
    }

    fn explain(&self, host: &Host, error: io::Error) -> Error {
        let mode = self.mode.name();
        let what = format!("TLS with {host} (sslmode={mode})");
        match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
            Some(tls) => refused(format!("{what}: {tls}"), hint(tls)),
            None => Error::io(what, error),
        }
    }
}

/// Reads the single byte of the answer and nothing more: what came with it in plain text would
/// otherwise pass for something that was sent over TLS.
async fn ask(stream: &mut Socket) -> Result<bool, Error> {
    stream.write_all(&SSL_REQUEST).await.map_err(|e| Error::io("ask for TLS", e))?;
    match stream.read_u8().await.map_err(|e| Error::io("ask for TLS", e))? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        b'E' => Err(Error::protocol("the server answered the request for TLS with an error")),
        byte => Err(Error::protocol(format!("answer to the request for TLS is {byte:#04x}"))),
    }
}
