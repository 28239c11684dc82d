//! A script cut into SQL statements and meta commands, as pgbench cuts it: a statement ends with a
//! semicolon outside of quotes, comments and parentheses, or before a backslash; a meta command at
//! the end of its line. Variables in quotes are left alone, which pgbench does not do.

use super::parse::{is_name, name_length};

/// One part of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Line on which it begins, from 1.
    pub line: usize,
    /// What it is.
    pub what: What,
}

/// What stands in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A statement.
    Sql(Vec<Piece>),
    /// A meta command: its name, and the rest of its line.
    Meta(String, String),
}

/// A statement is text with variables in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// SQL as it is.
    Text(String),
    /// `:name`.
    Variable(String),
}

/// A fact and the line it is about.
pub type Fault = (usize, String);

/// Cuts a script.
///
/// # Errors
///
/// A quote or a comment without end, `\;`, or a parameter `$1` of the script's own.
pub fn scan(text: &str) -> Result<Vec<Item>, Fault> {
    let mut scanner = Scanner { text, at: 0, line: 1, items: Vec::new() };
    while scanner.statement()? {}
    Ok(scanner.items)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    items: Vec<Item>,
}

/// A statement under way.
#[derive(Default)]
struct Statement {
    pieces: Vec<Piece>,
    begun: Option<usize>,
    parentheses: i32,
    /// Comments before its first word: a hint to the planner may be among them.
    comments: String,
}

impl Statement {
    fn begin(&mut self, line: usize) {
        if self.begun.is_none() {
            self.begun = Some(line);
            if !self.comments.is_empty() {
                self.pieces.push(Piece::Text(std::mem::take(&mut self.comments)));
            }
        }
    }

    fn add(&mut self, text: &str, line: usize) {
        if self.begun.is_none() {
            if text.trim().is_empty() {
                return;
            }
            self.begin(line);
        }
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Goes on by so many bytes, which are returned.
    fn take(&mut self, length: usize) -> String {
        let taken = self.text[self.at..self.at + length].to_owned();
        self.at += length;
        self.line += taken.matches('\n').count();
        taken
    }

    /// Reads one statement or meta command; false at the end of the script.
    fn statement(&mut self) -> Result<bool, Fault> {
        let mut statement = Statement::default();
        while let Some(first) = self.rest().chars().next() {
            let line = self.line;
            if first == ';' && statement.parentheses <= 0 {
                self.take(1);
                self.finish(statement);
                return Ok(true);
            }
            if first == '\\' {
                if self.rest().starts_with("\\;") {
                    let fact = "\\; joins statements, which cannot be prepared; leave out the \\";
                    return Err((line, fact.into()));
                }
                self.finish(statement);
                self.meta()?;
                return Ok(true);
            }
            self.piece(first, &mut statement)?;
        }
        self.finish(statement);
        Ok(false)
    }

    fn finish(&mut self, mut statement: Statement) {
        let Some(line) = statement.begun else { return };
        if let Some(Piece::Text(last)) = statement.pieces.last_mut() {
            last.truncate(last.trim_end().len());
        }
        if let Some(Piece::Text(first)) = statement.pieces.first_mut() {
            *first = first.trim_start().to_owned();
        }
        self.items.push(Item { line, what: What::Sql(statement.pieces) });
    }

    /// Adds the next piece of a statement: a quote, a comment, a variable, a word or a character.
    fn piece(&mut self, first: char, statement: &mut Statement) -> Result<(), Fault> {
        let line = self.line;
        let rest = self.rest();
        if rest.starts_with("--") {
            let length = rest.find('\n').unwrap_or(rest.len());
            self.take(length);
            return Ok(());
        }
        if first == ':' && !rest.starts_with("::") {
            let length = name_length(&rest[1..]);
            if length > 0 && !rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
                statement.begin(line);
                let name = self.take(1 + length);
                statement.pieces.push(Piece::Variable(name[1..].to_owned()));
                return Ok(());
            }
        }
        let length = self.piece_length(first).map_err(|fact| (line, fact))?;
        let text = self.take(length);
        match first {
            '(' => statement.parentheses += 1,
            ')' => statement.parentheses -= 1,
            _ => {}
        }
        // A comment alone is no statement.
        if statement.begun.is_none() && text.starts_with("/*") {
            statement.comments.push_str(&text);
            statement.comments.push(' ');
        } else {
            statement.add(&text, line);
        }
        Ok(())
    }

    fn piece_length(&self, first: char) -> Result<usize, String> {
        let rest = self.rest();
        let escapes = |word: &str| matches!(word, "e" | "E");
        match first {
            '\'' | '"' => quoted(rest, first, false),
            '/' if rest.starts_with("/*") => comment(rest),
            ':' if rest.starts_with("::") => Ok(2),
            '$' => dollar(rest),
            c if is_name(c) => {
                let length = rest.find(|c| !is_name(c) && c != '$').unwrap_or(rest.len());
                if escapes(&rest[..length]) && rest[length..].starts_with('\'') {
                    return Ok(length + quoted(&rest[length..], '\'', true)?);
                }
                Ok(length)
            }
            c => Ok(c.len_utf8()),
        }
    }

    /// A backslash and what belongs to it, to the end of the line; a backslash at the end of a line
    /// continues it.
    fn meta(&mut self) -> Result<(), Fault> {
        let line = self.line;
        self.take(1);
        let name = self.rest().find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = self.take(name.unwrap_or(self.rest().len()));
        if name.is_empty() {
            return Err((line, "a \\ is not followed by the name of a meta command".into()));
        }
        let mut arguments = String::new();
        loop {
            let length = self.rest().find('\n').unwrap_or(self.rest().len());
            let part = self.take(length);
            let part = part.trim_end_matches('\r');
            let more = part.strip_suffix('\\');
            arguments.push_str(more.unwrap_or(part));
            if more.is_none() || self.rest().is_empty() {
                break;
            }
            self.take(1);
            arguments.push(' ');
        }
        let arguments = arguments.trim().to_owned();
        self.items.push(Item { line, what: What::Meta(name.to_ascii_lowercase(), arguments) });
        Ok(())
    }
}

/// Bytes of a quote; doubled quotes belong to it, and so does what a backslash escapes.
fn quoted(text: &str, quote: char, escapes: bool) -> Result<usize, String> {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if escapes && character == '\\' {
            characters.next();
        } else if character == quote {
            if characters.peek().is_some_and(|(_, next)| *next == quote) {
                characters.next();
            } else {
                return Ok(at + 1);
            }
        }
    }
    Err(format!("a quote {quote} is not closed"))
}

/// Bytes of a comment; comments nest.
fn comment(text: &str) -> Result<usize, String> {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Ok(at);
            }
        } else {
            at += 1;
        }
    }
    Err("a comment /* is not closed".into())
}

/// Bytes of a dollar quote, or of a single `$`.
fn dollar(text: &str) -> Result<usize, String> {
    let length = name_length(&text[1..]);
    if text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        let parameter = &text[..=length];
        return Err(format!(
            "statement has a parameter {parameter} of its own, write :name instead"
        ));
    }
    if !text[1 + length..].starts_with('$') {
        return Ok(1);
    }
    let tag = &text[..length + 2];
    match text[tag.len()..].find(tag) {
        Some(end) => Ok(tag.len() + end + tag.len()),
        None => Err(format!("a quote {tag} is not closed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One line for each item: `3: sql` or `3: \name arguments`, variables in braces.
    fn shown(text: &str) -> Vec<String> {
        let sql = |pieces: &[Piece]| -> String {
            let piece = |piece: &Piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Variable(name) => format!("{{{name}}}"),
            };
            pieces.iter().map(piece).collect()
        };
        let items = scan(text).expect("a script");
        let line = |item: &Item| match &item.what {
            What::Sql(pieces) => format!("{}: {}", item.line, sql(pieces)),
            What::Meta(name, arguments) => format!("{}: \\{name} {arguments}", item.line),
        };
        items.iter().map(line).collect()
    }

    #[test]
    fn statements_end_at_semicolons_and_backslashes() {
        let text = "\\set aid random(1, 10) \n-- a comment; with a semicolon\nSELECT :aid;SELECT\n\
                    2 AS two \\gset p_\nEND";
        let want = [
            "1: \\set aid random(1, 10)",
            "3: SELECT {aid}",
            "3: SELECT\n2 AS two",
            "4: \\gset p_",
            "5: END",
        ];
        assert_eq!(shown(text), want);
    }

    #[test]
    fn quotes_comments_casts_and_parentheses_are_respected() {
        let text = "SELECT 'it''s :x;', \":y;\", $$:z;$$, $t$ $$;:w $t$, 1::int, a[1:2], '1:30:00' \
                    /* :c; /* nested; */ */ FROM t WHERE a$1 = :v;\nSELECT E'\\';:x' || (SELECT 1;)\
                    ;;  ;";
        let want = [
            "1: SELECT 'it''s :x;', \":y;\", $$:z;$$, $t$ $$;:w $t$, 1::int, a[1:2], '1:30:00' \
             /* :c; /* nested; */ */ FROM t WHERE a$1 = {v}",
            "2: SELECT E'\\';:x' || (SELECT 1;)",
        ];
        assert_eq!(shown(text), want);
    }

    #[test]
    fn lines_of_meta_commands_continue_after_a_backslash() {
        assert_eq!(
            shown("\\SET x \\\n  1 + \\\r\n 2\r\n\\if :x\n\\endif"),
            ["1: \\set x    1 +   2", "4: \\if :x", "5: \\endif "]
        );
        assert!(shown("/* nothing */ ; -- here\n").is_empty());
    }

    #[test]
    fn what_has_no_end_is_an_error_with_its_line() {
        for (text, line, part) in [
            ("SELECT 1;\nSELECT 'x", 2, "quote ' is not closed"),
            ("\n\nSELECT $a$ $b$", 3, "quote $a$ is not closed"),
            ("/* x", 1, "comment /* is not closed"),
            ("SELECT 1 \\; SELECT 2;", 1, "\\; joins statements"),
            ("SELECT $1", 1, "parameter $1 of its own"),
            ("\\ set x 1", 1, "not followed by the name"),
        ] {
            let (at, fact) = scan(text).expect_err(text);
            assert!(at == line && fact.contains(part), "{text:?}: line {at}: {fact}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_scanner_panic(text in "[-/*'\"$a1:;()\\\\ \\n é]{0,40}") {
            let _either = scan(&text);
        }
    }
}
