//! The `connection` of a driver's or loader's specification, as JSON.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer};
use wire::{Password, SslMode, Target};

use crate::error::RunError;

/// A server and a database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// Folder of the Unix socket, or a host.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, if the server asks for one.
    #[serde(default, deserialize_with = "secret")]
    pub password: Option<Password>,
    /// Server settings of the sessions.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// As libpq's.
    #[serde(default)]
    pub sslmode: SslModeSpec,
}

/// TLS or not, in libpq's words.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslModeSpec {
    /// Plain text.
    #[default]
    Disable,
    /// Plain text if the server allows it.
    Allow,
    /// TLS if the server has it; plain text as long as the driver has none.
    Prefer,
    /// TLS: refused as long as the driver has none.
    Require,
    /// As `Require`.
    VerifyCa,
    /// As `Require`.
    VerifyFull,
}

/// Never shows up in an error of the parser, which quotes what it does not like.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Password>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)
        .map_err(|_| serde::de::Error::custom("password is neither a string nor null"))?;
    Ok(text.map(Password::new))
}

impl ConnectionSpec {
    /// What a session needs.
    ///
    /// # Errors
    ///
    /// TLS is asked for.
    pub fn target(&self, application_name: &str) -> Result<Target, RunError> {
        let ssl_mode = match self.sslmode {
            SslModeSpec::Disable | SslModeSpec::Allow => SslMode::Disable,
            SslModeSpec::Prefer => SslMode::Prefer,
            SslModeSpec::Require | SslModeSpec::VerifyCa | SslModeSpec::VerifyFull => {
                return Err(RunError::spec(
                    "connection.sslmode asks for TLS, sessions of this version have none".into(),
                    Some("Use a Unix socket, or sslmode=prefer over a network that you trust."),
                ));
            }
        };
        let mut target = Target::new(&self.host, self.port, &self.user, &self.database);
        target.password.clone_from(&self.password);
        target.ssl_mode = ssl_mode;
        application_name.clone_into(&mut target.application_name);
        target.options = self.options.clone().into_iter().collect();
        Ok(target)
    }
}

impl fmt::Display for ConnectionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}, port {}", self.host, self.port)
    }
}
