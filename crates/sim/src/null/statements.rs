//! What a null server knows of a statement: its answer, and what it does to the transaction.

use std::{fmt, sync::Arc};

/// Appends the answer to an execution: complete messages, rows in binary format and the command
/// tag. The parameters are as Bind carries them: for each an `i32` length (-1 for NULL), the bytes.
pub type Respond = Arc<dyn Fn(&[u8], &mut Vec<u8>) + Send + Sync>;

type Find = dyn Fn(&str) -> Option<Respond> + Send + Sync;

/// The statements of a workload by their text.
#[derive(Clone)]
pub struct Known(Arc<Find>);

impl Known {
    /// `find` tells the answer of a statement; `None`: the statement is refused.
    #[must_use]
    pub fn new(find: impl Fn(&str) -> Option<Respond> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    pub(super) fn find(&self, sql: &str) -> Option<Prepared> {
        let respond = self.0(sql)?;
        Some(Prepared { respond, effect: Effect::of(sql) })
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// A statement of a session.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) respond: Respond,
    pub(super) effect: Effect,
}

/// What a statement does to the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Begins,
    Ends,
    None,
}

impl Effect {
    pub(super) fn of(sql: &str) -> Self {
        match first_word(sql).as_str() {
            "BEGIN" | "START" => Self::Begins,
            "COMMIT" | "END" | "ROLLBACK" => Self::Ends,
            _ => Self::None,
        }
    }
}

/// In upper case; comments before it are skipped.
pub(super) fn first_word(sql: &str) -> String {
    let line = sql.lines().find(|line| !line.trim_start().starts_with("--")).unwrap_or_default();
    let word = line.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty());
    word.unwrap_or_default().to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_tells_what_a_statement_does() {
        assert_eq!(Effect::of("begin isolation level serializable"), Effect::Begins);
        assert_eq!(Effect::of(" END;"), Effect::Ends);
        assert_eq!(Effect::of("-- BEGIN\nUPDATE t SET a = 1"), Effect::None);
        assert_eq!(first_word("-- a comment\nCREATE OR REPLACE FUNCTION f()"), "CREATE");
        assert_eq!(first_word(""), "");
    }
}
