//! Several servers, databases or schemas driven at once. Each part has the connections, terminals
//! and the rate of the specification for itself; they share its threads, timeline and result.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{connection::spec::ConnectionSpec, error::RunError};

/// Most databases or schemas of a run.
pub const PARTS_MAX: usize = 1000;

/// One of several servers, databases or schemas.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartSpec {
    /// Its name in the result.
    pub name: String,
    /// Its server, with its database; absent: the connection's.
    #[serde(default)]
    pub connection: Option<ConnectionSpec>,
    /// Its database; absent: the connection's.
    #[serde(default)]
    pub database: Option<String>,
    /// Server settings of its sessions, e.g. `search_path`; they go before the connection's.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

impl PartSpec {
    /// Where the part's sessions go.
    #[must_use]
    pub fn connection(&self, common: &ConnectionSpec) -> ConnectionSpec {
        let mut connection = self.connection.as_ref().unwrap_or(common).clone();
        if let Some(database) = &self.database {
            connection.database.clone_from(database);
        }
        connection.options.extend(self.options.clone());
        connection
    }
}

/// Refuses parts that cannot be told apart.
///
/// # Errors
///
/// Too many, a name twice or empty, or two parts that are the same place.
pub fn check(parts: &[PartSpec]) -> Result<(), RunError> {
    if parts.len() > PARTS_MAX {
        let fact = format!("parts are {}, allowed are at most {PARTS_MAX}", parts.len());
        return Err(RunError::spec(fact, None));
    }
    let mut names = BTreeSet::new();
    let mut places = BTreeMap::new();
    for part in parts {
        let name = &part.name;
        if name.is_empty() || !names.insert(name) {
            let fact = format!("parts have the name {name:?} twice, or it is empty");
            return Err(RunError::spec(fact, Some("Give each part a name of its own.")));
        }
        let at = part.connection.as_ref().map(ConnectionSpec::place);
        if let Some(other) = places.insert((at, &part.database, &part.options), name) {
            return Err(RunError::spec(
                format!("parts {other} and {name} have the same database and options"),
                Some("Raise connections or terminals to drive one database harder."),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_changes_its_own_place_and_keeps_the_rest() {
        let common: ConnectionSpec = serde_json::from_str(
            r#"{"host": "/tmp", "port": 1, "user": "u", "database": "first",
                "options": {"work_mem": "4MB", "search_path": "a"}}"#,
        )
        .unwrap();
        let part = |json: &str| {
            let part: PartSpec = serde_json::from_str(json).unwrap();
            let ConnectionSpec { user, database, options, .. } = part.connection(&common);
            assert_eq!((user.as_str(), options["work_mem"].as_str()), ("u", "4MB"));
            (database, options["search_path"].clone())
        };
        let place = |database: &str, path: &str| (database.to_owned(), path.to_owned());
        assert_eq!(part(r#"{"name": "x"}"#), place("first", "a"));
        assert_eq!(part(r#"{"name": "x", "database": "second"}"#), place("second", "a"));
        let schema = r#"{"name": "x", "options": {"search_path": "b"}}"#;
        assert_eq!(part(schema), place("first", "b"));
    }

    #[test]
    fn parts_of_several_servers_are_told_apart_by_where_they_lead() {
        let at = |name: &str, port: u16| -> PartSpec {
            let json = serde_json::json!({
                "name": name, "connection": {"host": "/tmp", "port": port, "user": "u",
                "database": "d", "options": {"search_path": "a", "work_mem": "4MB"}},
            });
            serde_json::from_value(json).unwrap()
        };
        assert!(check(&[at("a", 1), at("b", 2)]).is_ok());
        let error = check(&[at("a", 1), at("b", 1)]).unwrap_err();
        assert!(error.fact.contains("parts a and b have the same"), "{}", error.fact);
        let common: ConnectionSpec = serde_json::from_str(
            r#"{"host": "/elsewhere", "port": 9, "user": "v", "database": "w"}"#,
        )
        .unwrap();
        let own = at("a", 1).connection(&common);
        assert_eq!(own.place(), (vec![("/tmp", 1)], "d"));
        assert_eq!(own.user, "u");
    }
}
