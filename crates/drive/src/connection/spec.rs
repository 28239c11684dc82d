//! The `connection` of a driver's or loader's specification, as JSON: libpq's parameters under
//! libpq's names, already resolved (no service, no password file, no environment).

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use wire::{
    ChannelBinding, Host, Keepalive, Password, Prepare, Roots, SessionAttrs, SslMode, Target, Tls,
    TlsOptions, TlsVersion,
};

use crate::error::RunError;

/// One server of a list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Folder of the Unix socket, or a host name or address.
    pub host: String,
    /// Address to use instead of looking up the name.
    #[serde(default)]
    pub hostaddr: Option<String>,
    /// Port.
    pub port: u16,
    /// Password, if the server asks for one.
    #[serde(default, deserialize_with = "secret")]
    #[schemars(with = "Option<String>")]
    pub password: Option<Password>,
}

/// A database, and the servers that may have it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// The servers in the order in which they are tried; or `host`, `port` and `password` of one.
    #[serde(default)]
    pub hosts: Vec<HostSpec>,
    #[serde(default)]
    host: Option<String>,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default, deserialize_with = "secret")]
    #[schemars(with = "Option<String>")]
    password: Option<Password>,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Server settings of the sessions.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Command-line options of the server process: libpq's `options`.
    #[serde(default)]
    pub command_line: Option<String>,
    /// Which servers will do.
    #[serde(default)]
    pub target_session_attrs: SessionAttrsSpec,
    /// Whether they are tried in random order.
    #[serde(default)]
    pub load_balance_hosts: LoadBalanceSpec,
    /// Time for one address of one server.
    #[serde(default)]
    pub connect_timeout_s: Option<f64>,
    /// How the server learns the statements.
    #[serde(default)]
    pub prepare: PrepareSpec,
    /// TLS or not.
    #[serde(default)]
    pub tls: TlsSpec,
    /// Of TCP connections.
    #[serde(default)]
    pub keepalive: KeepaliveSpec,
}

/// TLS in libpq's words.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSpec {
    /// Whether, and what of the certificate is checked.
    pub sslmode: SslModeSpec,
    /// A PEM file, or `system`.
    pub sslrootcert: Option<String>,
    /// The client's certificate, in PEM.
    pub sslcert: Option<PathBuf>,
    /// Its key.
    pub sslkey: Option<PathBuf>,
    /// Whether TLS begins without asking.
    pub sslnegotiation: SslNegotiationSpec,
    /// Whether the server is not told the host's name.
    pub no_sni: bool,
    /// Oldest version.
    pub ssl_min_protocol_version: Option<TlsVersionSpec>,
    /// Newest version.
    pub ssl_max_protocol_version: Option<TlsVersionSpec>,
    /// Whether SCRAM is tied to TLS.
    pub channel_binding: ChannelBindingSpec,
}

/// Keepalive of TCP connections; what is absent is the system's.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeepaliveSpec {
    /// Whether it is off.
    pub off: bool,
    /// Silence before the first probe.
    pub idle_s: Option<u32>,
    /// Between probes.
    pub interval_s: Option<u32>,
    /// Unanswered probes.
    pub count: Option<u32>,
    /// How long sent data may stay unacknowledged.
    pub user_timeout_ms: Option<u32>,
}

/// An enumeration of `wire` as JSON spells it.
macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident of $what:ty { $($(#[$default:ident])? $word:ident => $value:path),+ $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs, reason = "the words are libpq's")]
        pub enum $name { $($(#[$default])? $word),+ }

        impl From<$name> for $what {
            fn from(word: $name) -> Self {
                match word { $($name::$word => $value),+ }
            }
        }
    };
}

words! {
    /// `sslmode`.
    SslModeSpec of SslMode {
        #[default] Disable => SslMode::Disable,
        Allow => SslMode::Allow,
        Prefer => SslMode::Prefer,
        Require => SslMode::Require,
        VerifyCa => SslMode::VerifyCa,
        VerifyFull => SslMode::VerifyFull,
    }
}

words! {
    /// `target_session_attrs`.
    SessionAttrsSpec of SessionAttrs {
        #[default] Any => SessionAttrs::Any,
        ReadWrite => SessionAttrs::ReadWrite,
        ReadOnly => SessionAttrs::ReadOnly,
        Primary => SessionAttrs::Primary,
        Standby => SessionAttrs::Standby,
        PreferStandby => SessionAttrs::PreferStandby,
    }
}

words! {
    /// `channel_binding`.
    ChannelBindingSpec of ChannelBinding {
        Disable => ChannelBinding::Disable,
        #[default] Prefer => ChannelBinding::Prefer,
        Require => ChannelBinding::Require,
    }
}

words! {
    /// How the server learns the statements.
    PrepareSpec of Prepare {
        #[default] Named => Prepare::Named,
        Unnamed => Prepare::Unnamed,
    }
}

/// `sslnegotiation`.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SslNegotiationSpec {
    /// The server is asked first.
    #[default]
    Postgres,
    /// It is not.
    Direct,
}

/// `load_balance_hosts`.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBalanceSpec {
    /// In the order of the list.
    #[default]
    Disable,
    /// In random order.
    Random,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
pub enum TlsVersionSpec {
    /// Not spoken here; as a lower limit it allows 1.2.
    #[serde(rename = "TLSv1")]
    V1,
    /// Likewise.
    #[serde(rename = "TLSv1.1")]
    V1_1,
    /// TLS 1.2.
    #[serde(rename = "TLSv1.2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "TLSv1.3")]
    V1_3,
}

/// Never shows up in an error of the parser, which quotes what it does not like.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Password>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)
        .map_err(|_| serde::de::Error::custom("password is neither a string nor null"))?;
    Ok(text.map(Password::new))
}

fn refused(error: &wire::Error) -> RunError {
    RunError::spec(format!("connection: {error}"), error.hint())
}

impl ConnectionSpec {
    /// Where it leads, so far as names tell: hosts and ports in their order, and the database.
    #[must_use]
    pub fn place(&self) -> (Vec<(&str, u16)>, &str) {
        let first = self.host.as_deref().zip(self.port);
        let named = self.hosts.iter().map(|one| (one.host.as_str(), one.port));
        (first.into_iter().chain(named).collect(), &self.database)
    }

    /// What a session needs; certificates and keys are read here.
    ///
    /// # Errors
    ///
    /// No server is named, or a certificate or key cannot be used.
    pub fn target(&self, application_name: &str) -> Result<Target, RunError> {
        let mut target = Target::new("", 0, &self.user, &self.database);
        target.hosts = self.hosts()?;
        application_name.clone_into(&mut target.application_name);
        target.session_attrs = self.target_session_attrs.into();
        target.load_balance = self.load_balance_hosts == LoadBalanceSpec::Random;
        target.options = self.options.clone().into_iter().collect();
        target.command_line.clone_from(&self.command_line);
        target.prepare = self.prepare.into();
        target.channel_binding = self.tls.channel_binding.into();
        target.tls = Tls::new(&self.tls.options()?).map_err(|e| refused(&e))?;
        target.keepalive = self.keepalive.keepalive();
        if let Some(seconds) = self.connect_timeout_s {
            target.connect_timeout = Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| {
                    let fact = format!("connection.connect_timeout_s is {seconds}");
                    RunError::spec(fact, Some("It must be positive."))
                })?;
        }
        Ok(target)
    }

    fn hosts(&self) -> Result<Vec<Host>, RunError> {
        let fact = |what: &str| RunError::spec(format!("connection names {what}"), None);
        let one = match (&self.host, self.port) {
            (Some(host), Some(port)) => Some(Host {
                host: host.clone(),
                hostaddr: None,
                port,
                password: self.password.clone(),
            }),
            (None, None) if self.password.is_none() => None,
            _ => return Err(fact("only one of host and port")),
        };
        match (one, self.hosts.as_slice()) {
            (Some(_), [_, ..]) => Err(fact("host and hosts")),
            (None, []) => Err(fact("no host")),
            (Some(one), []) => Ok(vec![one]),
            (None, several) => Ok(several.iter().map(HostSpec::host).collect()),
        }
    }
}

impl HostSpec {
    fn host(&self) -> Host {
        Host {
            host: self.host.clone(),
            hostaddr: self.hostaddr.clone(),
            port: self.port,
            password: self.password.clone(),
        }
    }
}

impl KeepaliveSpec {
    fn keepalive(&self) -> Keepalive {
        let seconds = |value: Option<u32>| value.map(|value| Duration::from_secs(value.into()));
        Keepalive {
            on: !self.off,
            idle: seconds(self.idle_s),
            interval: seconds(self.interval_s),
            count: self.count,
            user_timeout: self.user_timeout_ms.map(|ms| Duration::from_millis(ms.into())),
        }
    }
}

impl TlsSpec {
    fn options(&self) -> Result<TlsOptions, RunError> {
        let certificate = match (&self.sslcert, &self.sslkey) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => {
                let fact = "connection.tls names only one of sslcert and sslkey".to_owned();
                return Err(RunError::spec(fact, None));
            }
        };
        let version = |version: TlsVersionSpec| match version {
            TlsVersionSpec::V1 | TlsVersionSpec::V1_1 | TlsVersionSpec::V1_2 => TlsVersion::V1_2,
            TlsVersionSpec::V1_3 => TlsVersion::V1_3,
        };
        let low = self.ssl_min_protocol_version.unwrap_or(TlsVersionSpec::V1_2);
        let high = self.ssl_max_protocol_version.unwrap_or(TlsVersionSpec::V1_3);
        if matches!(high, TlsVersionSpec::V1 | TlsVersionSpec::V1_1) {
            let fact = "connection.tls.ssl_max_protocol_version is below TLSv1.2".to_owned();
            return Err(RunError::spec(fact, Some("Older versions of TLS are not spoken here.")));
        }
        Ok(TlsOptions {
            mode: self.sslmode.into(),
            roots: match self.sslrootcert.as_deref() {
                None => Roots::None,
                Some("system") => Roots::System,
                Some(path) => Roots::File(path.into()),
            },
            certificate,
            direct: self.sslnegotiation == SslNegotiationSpec::Direct,
            sni: !self.no_sni,
            versions: (version(low), version(high)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(change: &str) -> Result<Target, RunError> {
        let mut spec = serde_json::json!({"user": "u", "database": "d"});
        let change: serde_json::Value = serde_json::from_str(change).unwrap();
        for (key, value) in change.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let spec: ConnectionSpec =
            serde_json::from_value(spec).map_err(|e| RunError::spec(e.to_string(), None))?;
        spec.target("test")
    }

    #[test]
    fn one_host_or_several_with_passwords_of_their_own() {
        let one = target(r#"{"host": "h", "port": 1, "password": "p"}"#).unwrap();
        assert_eq!(one.to_string(), "h:1");
        assert!(one.hosts[0].password.is_some() && !format!("{one:?}").contains("\"p\""));
        let several = target(
            r#"{"hosts": [{"host": "a", "port": 1, "hostaddr": "::1", "password": "p"},
                          {"host": "/run", "port": 2}, {"host": "@x", "port": 3}],
                "target_session_attrs": "prefer-standby", "load_balance_hosts": "random",
                "connect_timeout_s": 2.5, "prepare": "unnamed", "command_line": "-c x.y=z"}"#,
        );
        let several = several.unwrap();
        assert_eq!(several.to_string(), "a:1 (::1), /run/.s.PGSQL.2, @x/.s.PGSQL.3");
        assert_eq!(several.session_attrs, SessionAttrs::PreferStandby);
        assert!(several.load_balance && several.prepare == Prepare::Unnamed);
        assert_eq!(several.connect_timeout, Duration::from_millis(2500));
        assert_eq!(several.command_line.as_deref(), Some("-c x.y=z"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let host = r#""host": "h", "port": 1"#;
        let cases = [
            ("{}".to_owned(), "names no host"),
            (format!(r#"{{{host}, "hosts": [{{{host}}}]}}"#), "names host and hosts"),
            (r#"{"host": "h"}"#.to_owned(), "only one of host and port"),
            (format!(r#"{{{host}, "connect_timeout_s": 0}}"#), "connect_timeout_s is 0"),
            (format!(r#"{{{host}, "sslmode": "require"}}"#), "unknown field `sslmode`"),
            (format!(r#"{{{host}, "tls": {{"sslmode": "strict"}}}}"#), "unknown variant `strict`"),
            (
                format!(r#"{{{host}, "tls": {{"sslmode": "require", "sslcert": "c"}}}}"#),
                "only one of sslcert and sslkey",
            ),
            (
                format!(r#"{{{host}, "tls": {{"ssl_max_protocol_version": "TLSv1.1"}}}}"#),
                "below TLSv1.2",
            ),
            (
                format!(r#"{{{host}, "tls": {{"sslmode": "verify-full"}}}}"#),
                "sslmode is verify-full and there is no root certificate",
            ),
        ];
        for (change, fact) in cases {
            let error = target(&change).unwrap_err();
            assert!(error.fact.contains(fact), "{}", error.fact);
        }
    }
}
