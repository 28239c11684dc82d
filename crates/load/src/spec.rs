//! The specification of a load, as JSON: unknown keys and impossible values are refused.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use workload::catalogue::WorkloadSpec;

use super::strategy::Copies;
use drive::{connection::spec::ConnectionSpec, error::RunError, hosts::HostShare};

const VERSION: u32 = 1;
const CONNECTIONS_MAX: usize = 256;
/// PostgreSQL's own limits of `maintenance_work_mem`, in kB.
const MEMORY_KB: std::ops::RangeInclusive<u64> = 1024..=2_147_483_647;
/// 2000-01-01 to 2100-01-01: a time outside is not in seconds.
const LOADED_AT_S: std::ops::RangeInclusive<i64> = 946_684_800..=4_102_444_800;

/// What to load, into what, how.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Of this format: 1.
    pub version: u32,
    /// The workload's own specification; `kind` names it.
    #[schemars(with = "WorkloadSpec")]
    pub workload: Value,
    /// An existing database.
    pub connection: ConnectionSpec,
    /// Sessions that stream rows, build indexes and vacuum; absent: one for each core of this
    /// machine, at most 16.
    #[serde(default)]
    #[schemars(range(min = 1, max = CONNECTIONS_MAX))]
    pub connections: Option<usize>,
    /// `maintenance_work_mem` of these sessions; absent: chosen from the server's memory, if that
    /// is known, else the server's own setting.
    #[serde(default)]
    pub maintenance_work_mem_bytes: Option<u64>,
    /// Memory of a server that is ours to fill; absent: it gives what it has set.
    #[serde(default)]
    pub server_memory_bytes: Option<u64>,
    /// How rows are cut into COPYs; absent: chosen.
    #[serde(default)]
    pub copies: Option<Copies>,
    /// The time that loaded rows carry, seconds since 1970.
    pub loaded_at_unix_s: i64,
    /// Drops first what the record of an earlier load names, see [`workload::made`].
    #[serde(default)]
    pub drop_ours: bool,
    /// Goes on with a load that did not end.
    #[serde(default)]
    pub resume: bool,
    /// Adds to a complete load what is asked for and not there yet: more warehouses.
    #[serde(default)]
    pub top_up: bool,
    /// Which part of a load that several hosts do together; absent: it is all done here.
    #[serde(default)]
    pub part: Option<Part>,
    /// A sentence that every error ends with once it leaves tables behind: what becomes of them.
    /// Absent: others know that.
    #[serde(default)]
    pub remains: Option<String>,
}

/// Which part of a load that several hosts do together. Its end is the head's, by `resume`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Looks whether the server can be reached, and changes nothing.
    Reach,
    /// Creates the tables, or finds the load that is to go on or to be added to.
    Begin,
    /// Copies what one of the hosts has of the rows, and nothing else.
    Copy(HostShare),
}

impl Part {
    /// Refuses a share that there is not.
    pub(super) fn check(self) -> Result<(), RunError> {
        // Whether each host has a connection is known where they are dealt.
        let Self::Copy(share) = self else { return Ok(()) };
        share.check(CONNECTIONS_MAX.max(share.hosts as usize), u32::MAX)
    }

    /// Whether what comes before the head's end is done by others at the same time.
    pub(super) fn joins(self) -> bool {
        matches!(self, Self::Copy(_))
    }
}

impl LoadSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// Unknown or missing keys, values out of range.
    pub fn parse(json: &str) -> Result<Self, RunError> {
        let spec: Self = serde_json::from_str(json)
            .map_err(|e| RunError::spec(format!("specification of the load: {e}"), None))?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), RunError> {
        if self.version != VERSION {
            let fact = format!("version is {}, this loader knows {VERSION}", self.version);
            return Err(RunError::spec(fact, None));
        }
        if let Some(count) = self.connections
            && !(1..=CONNECTIONS_MAX).contains(&count)
        {
            let fact = format!("connections is {count}, allowed are 1 to {CONNECTIONS_MAX}");
            return Err(RunError::spec(fact, None));
        }
        self.check_intent()?;
        self.part.map_or(Ok(()), Part::check)?;
        if let Some(bytes) = self.maintenance_work_mem_bytes
            && !MEMORY_KB.contains(&(bytes / 1024))
        {
            let fact = format!(
                "maintenance_work_mem_bytes is {bytes}, allowed are {} to {}",
                MEMORY_KB.start() * 1024,
                MEMORY_KB.end() * 1024
            );
            return Err(RunError::spec(fact, None));
        }
        if !LOADED_AT_S.contains(&self.loaded_at_unix_s) {
            let fact = format!(
                "loaded_at_unix_s is {}, allowed are {} to {}",
                self.loaded_at_unix_s,
                LOADED_AT_S.start(),
                LOADED_AT_S.end()
            );
            return Err(RunError::spec(fact, Some("It counts seconds since 1970.")));
        }
        Ok(())
    }

    /// A load begins, goes on, or adds: one of them.
    fn check_intent(&self) -> Result<(), RunError> {
        let asked =
            [("drop_ours", self.drop_ours), ("resume", self.resume), ("top_up", self.top_up)];
        let asked: Vec<&str> =
            asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name).collect();
        if let [one, other, ..] = asked.as_slice() {
            let fact = format!("{one} and {other} are both asked for");
            let hint = "An earlier load is dropped, resumed, or added to.";
            return Err(RunError::spec(fact, Some(hint)));
        }
        if let Some(name) = asked.first()
            && self.part.is_some_and(Part::joins)
        {
            let fact = format!("part copy and {name} are both asked for");
            let hint = "What becomes of an earlier load is the head's, which begins.";
            return Err(RunError::spec(fact, Some(hint)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(change: &str) -> String {
        let mut spec = serde_json::json!({
            "version": 1, "workload": {"kind": "tpcc"}, "loaded_at_unix_s": 1_700_000_000,
            "connection": {"host": "/tmp", "port": 1, "user": "u", "database": "d",
                           "password": null, "options": {}},
        });
        let change: Value = serde_json::from_str(change).expect("JSON");
        for (key, value) in change.as_object().expect("an object") {
            spec[key] = value.clone();
        }
        spec.to_string()
    }

    #[test]
    fn only_what_has_no_default_is_needed() {
        let spec = LoadSpec::parse(&json("{}")).expect("a specification");
        assert!(spec.connections.is_none() && !spec.drop_ours);
        let nulls = r#"{"connections": null, "maintenance_work_mem_bytes": null}"#;
        assert!(LoadSpec::parse(&json(nulls)).is_ok());
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_its_value() {
        for (change, part) in [
            (r#"{"version": 2}"#, "version is 2, this loader knows 1"),
            (r#"{"connections": 0}"#, "connections is 0, allowed are 1 to 256"),
            (r#"{"copies": "rows"}"#, "unknown variant `rows`"),
            (r#"{"resume": true, "top_up": true}"#, "resume and top_up are both asked for"),
            (r#"{"part": "all"}"#, "unknown variant `all`"),
            (r#"{"part": {"copy": {"host": 2, "hosts": 2}}}"#, "share.host is 2, allowed are 0 to"),
            (
                r#"{"part": {"copy": {"host": 0, "hosts": 2}}, "resume": true}"#,
                "part copy and resume are both asked for",
            ),
            (r#"{"maintenance_work_mem_bytes": 64}"#, "maintenance_work_mem_bytes is 64, allowed"),
            (r#"{"loaded_at_unix_s": 1700000000000}"#, "loaded_at_unix_s is 1700000000000"),
            (r#"{"drop_others": true}"#, "unknown field `drop_others`"),
        ] {
            let error = LoadSpec::parse(&json(change)).expect_err("must be refused");
            assert!(error.fact.contains(part), "{}", error.fact);
        }
    }
}
