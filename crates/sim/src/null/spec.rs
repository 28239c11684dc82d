//! What a null server is told, as JSON: unknown keys and impossible values are refused.

use std::io;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

const THREADS_MAX: usize = 1_000;
const WORKERS_MAX: usize = 100_000;
const SERVICE_MS_MAX: f64 = 60_000.0;

/// Where it listens, what it knows, how fast it is.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NullSpec {
    /// Folder of a Unix socket (absolute), or an address to listen on.
    pub host: String,
    /// Port; over TCP 0 takes a free one.
    pub port: u16,
    /// Threads, each with a runtime of its own; connections are dealt round robin.
    #[schemars(range(min = 1, max = THREADS_MAX))]
    pub threads: usize,
    /// The workload's own specification, as the driver gets it: for who makes the answers.
    pub workload: Value,
    /// Time that each batch takes; absent: none.
    #[serde(default)]
    pub hold: Option<Hold>,
}

/// Each batch holds one of the server's workers for a while; others wait for a free one in the
/// order of their arrival. Times are those of tokio's timer: rounded up to whole milliseconds.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// How many batches are served at the same time.
    #[schemars(range(min = 1, max = WORKERS_MAX))]
    pub workers: usize,
    /// Mean time of a batch in ms.
    #[schemars(range(min = 1.0, max = SERVICE_MS_MAX))]
    pub service_ms: f64,
    /// Its distribution.
    #[serde(default)]
    pub spread: Spread,
}

/// Distribution of service times.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// All the same.
    #[default]
    Constant,
    /// Negative exponential.
    Exponential,
}

/// Why a null server does not run: a fact, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NullError {
    /// In lower case, without full stop.
    pub fact: String,
    /// A sentence, where there is something to do.
    pub hint: Option<String>,
    /// The caller's mistake, not the operating system's refusal.
    pub is_spec: bool,
}

impl NullError {
    pub(crate) fn spec(fact: String) -> Self {
        Self { fact, hint: None, is_spec: true }
    }

    pub(crate) fn io(what: &str, source: &io::Error) -> Self {
        Self { fact: format!("{what}: {source}"), hint: None, is_spec: false }
    }
}

impl NullSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// Unknown or missing keys, values out of range.
    pub fn parse(json: &str) -> Result<Self, NullError> {
        let spec: Self = serde_json::from_str(json)
            .map_err(|e| NullError::spec(format!("specification of the null server: {e}")))?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), NullError> {
        if !(1..=THREADS_MAX).contains(&self.threads) {
            let fact = format!("threads is {}, allowed are 1 to {THREADS_MAX}", self.threads);
            return Err(NullError::spec(fact));
        }
        if self.is_socket() && self.port == 0 {
            return Err(NullError::spec("port is 0, a Unix socket needs one above".to_owned()));
        }
        let Some(Hold { workers, service_ms, .. }) = self.hold else { return Ok(()) };
        if !(1..=WORKERS_MAX).contains(&workers) {
            let fact = format!("hold.workers is {workers}, allowed are 1 to {WORKERS_MAX}");
            return Err(NullError::spec(fact));
        }
        if !(1.0..=SERVICE_MS_MAX).contains(&service_ms) {
            let fact =
                format!("hold.service_ms is {service_ms}, allowed are 1 to {SERVICE_MS_MAX}");
            return Err(NullError::spec(fact));
        }
        Ok(())
    }

    /// Whether `host` is a folder.
    #[must_use]
    pub fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_is_refused_with_its_value() {
        let base = r#""host": "/tmp", "port": 1, "workload": {"kind": "tpcc"}"#;
        for (more, part) in [
            (r#""threads": 0"#, "threads is 0, allowed are 1 to"),
            (r#""threads": 1, "thread": 1"#, "unknown field `thread`"),
            (r#""threads": 1, "hold": {"workers": 0, "service_ms": 1}"#, "hold.workers is 0"),
            (r#""threads": 1, "hold": {"workers": 1, "service_ms": 0.5}"#, "service_ms is 0.5"),
        ] {
            let error = NullSpec::parse(&format!("{{{base}, {more}}}")).expect_err("refused");
            assert!(error.is_spec && error.fact.contains(part), "{}", error.fact);
        }
    }
}
