//! The tables whose rows a kind of transaction changes: by them WAL tells kinds apart.

use schemars::JsonSchema;
use serde::Serialize;

/// What a kind of transaction changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WrittenTables {
    /// The kind of transaction.
    pub kind: String,
    /// Tables whose rows it changes whenever all of it is carried out, without schema, ascending.
    pub tables: Vec<String>,
}

impl WrittenTables {
    /// Of a kind; `None`: it only reads.
    #[must_use]
    pub fn of(kind: &str, tables: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut tables: Vec<String> = tables.into_iter().collect();
        tables.sort_unstable();
        tables.dedup();
        (!tables.is_empty()).then(|| Self { kind: kind.to_owned(), tables })
    }
}

/// Tables that a statement names as those it changes: what a trigger or a function does is not
/// seen, and a name in quotes that holds a blank is none.
#[must_use]
pub fn tables_written(sql: &str) -> Vec<String> {
    let is_mark = |one: char| one.is_whitespace() || "(),;".contains(one);
    let words: Vec<&str> = sql.split(is_mark).filter(|word| !word.is_empty()).collect();
    let is = |at: usize, word: &str| words.get(at).is_some_and(|w| w.eq_ignore_ascii_case(word));
    let mut found = Vec::new();
    for at in 0..words.len() {
        let into = (is(at, "insert") || is(at, "merge")) && is(at + 1, "into");
        let from = is(at, "delete") && is(at + 1, "from");
        // Not the locks of `FOR UPDATE`, nor what a conflict does to the table named before.
        let is_lock = at > 0 && (is(at - 1, "for") || is(at - 1, "key") || is(at - 1, "do"));
        let update = is(at, "update") && !is_lock;
        let mut name = if into || from { at + 2 } else { at + 1 };
        name += usize::from(is(name, "only"));
        if let (true, Some(word)) = (into || from || update, words.get(name)) {
            found.push(word.rsplit('.').next().unwrap_or(word).replace('"', ""));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_names_what_it_changes() {
        for (sql, tables) in [
            ("SELECT 1 FROM a FOR NO KEY UPDATE", vec![]),
            ("SELECT 1 FROM a FOR UPDATE SKIP LOCKED", vec![]),
            ("insert into public.\"A\"(x) VALUES (1)", vec!["A"]),
            ("INSERT INTO a VALUES (1) ON CONFLICT (x) DO UPDATE SET x = 2", vec!["a"]),
            ("UPDATE ONLY s.a SET x = 1", vec!["a"]),
            ("WITH x AS (DELETE FROM a RETURNING *) INSERT INTO b SELECT * FROM x", vec!["a", "b"]),
            ("MERGE INTO a USING b ON true WHEN MATCHED THEN DELETE", vec!["a"]),
        ] {
            assert_eq!(tables_written(sql), tables, "{sql}");
        }
    }

    #[test]
    fn a_kind_names_each_once_in_order() {
        let names = ["b", "a", "b"].map(str::to_owned);
        let found = WrittenTables::of("k", names).expect("tables");
        assert_eq!(found.tables, ["a", "b"]);
        assert_eq!(WrittenTables::of("k", []), None);
    }
}
