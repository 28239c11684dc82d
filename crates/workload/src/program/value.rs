//! Values of variables in scripts and mixes, with pgbench's rules for what turns into what.

use std::fmt::Write as _;

/// What a variable holds. Text comes from answers and random strings; where a number is needed it
/// is read as one.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// A real number.
    Double(f64),
    /// Truth.
    Bool(bool),
    /// Any text.
    Text(Box<str>),
}

/// Numbers from here on are written with an exponent.
const PLAIN_MAX: f64 = 1e15;
const PLAIN_MIN: f64 = 1e-5;

impl Value {
    /// In errors, as pgbench names its types.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
            Self::Bool(_) => "boolean",
            Self::Text(_) => "text",
        }
    }

    /// The value that a text stands for in an expression.
    ///
    /// # Errors
    ///
    /// The text is none of null, true, false, yes, no, on, off (or a beginning of them that is
    /// clear), a whole or a real number.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
        if lower == "null" {
            return Ok(Self::Null);
        }
        if begins("true", 1) || begins("yes", 1) || lower == "on" {
            return Ok(Self::Bool(true));
        }
        if begins("false", 1) || begins("no", 1) || begins("off", 2) {
            return Ok(Self::Bool(false));
        }
        if let Ok(int) = text.parse() {
            return Ok(Self::Int(int));
        }
        match text.parse::<f64>() {
            Ok(double) => Ok(Self::Double(double)),
            Err(_) => Err(format!("text {text:?} is neither a number nor true, false or null")),
        }
    }

    /// Its meaning in an expression: text is read.
    ///
    /// # Errors
    ///
    /// As [`Value::from_text`].
    pub fn read(&self) -> Result<Self, String> {
        match self {
            Self::Text(text) => Self::from_text(text),
            other => Ok(other.clone()),
        }
    }

    /// As a whole number; a real one is rounded, halves to even.
    ///
    /// # Errors
    ///
    /// Truth values, NULL, and what no `i64` holds.
    pub fn int(&self) -> Result<i64, String> {
        match self {
            Self::Int(value) => Ok(*value),
            Self::Double(value) => {
                let whole = value.round_ties_even();
                // 2^63 itself is the first that does not fit.
                if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
                    return Err(format!("{value} does not fit into an integer"));
                }
                #[expect(clippy::cast_possible_truncation, reason = "checked to fit")]
                let int = whole as i64;
                Ok(int)
            }
            Self::Text(text) => Self::from_text(text)?.int(),
            Self::Null | Self::Bool(_) => Err(self.no("int")),
        }
    }

    /// As a real number.
    ///
    /// # Errors
    ///
    /// Truth values and NULL.
    pub fn double(&self) -> Result<f64, String> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "what pgbench does as well")]
            Self::Int(value) => Ok(*value as f64),
            Self::Double(value) => Ok(*value),
            Self::Text(text) => Self::from_text(text)?.double(),
            Self::Null | Self::Bool(_) => Err(self.no("double")),
        }
    }

    /// As truth, where only truth will do.
    ///
    /// # Errors
    ///
    /// Anything but a truth value.
    pub fn bool(&self) -> Result<bool, String> {
        match self {
            Self::Bool(value) => Ok(*value),
            Self::Text(text) => Self::from_text(text)?.bool(),
            _ => Err(self.no("boolean")),
        }
    }

    /// As a condition: NULL and 0 are false, other numbers true.
    ///
    /// # Errors
    ///
    /// A text that cannot be read.
    pub fn is_true(&self) -> Result<bool, String> {
        Ok(match self {
            Self::Null => false,
            Self::Int(value) => *value != 0,
            Self::Double(value) => *value != 0.0,
            Self::Bool(value) => *value,
            Self::Text(text) => return Self::from_text(text)?.is_true(),
        })
    }

    fn no(&self, wanted: &str) -> String {
        format!("{} cannot be used as {wanted}", self.type_name())
    }

    /// Appends the text that is sent to the server; false for NULL, which has none.
    pub fn write(&self, out: &mut String) -> bool {
        // Writing into a String does not fail.
        let _never_fails = match self {
            Self::Null => return false,
            Self::Int(value) => write!(out, "{value}"),
            Self::Double(value) => {
                let size = value.abs();
                if size == 0.0 || !size.is_finite() || (PLAIN_MIN..PLAIN_MAX).contains(&size) {
                    write!(out, "{value}")
                } else {
                    write!(out, "{value:e}")
                }
            }
            Self::Bool(value) => write!(out, "{value}"),
            Self::Text(value) => write!(out, "{value}"),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_pgbench_reads_variables() {
        let read = |text: &str| Value::from_text(text).expect("a value");
        assert_eq!(read("42"), Value::Int(42));
        assert_eq!(read("-7"), Value::Int(-7));
        assert_eq!(read("2.5"), Value::Double(2.5));
        assert_eq!(read("1e3"), Value::Double(1000.0));
        assert_eq!(read("NULL"), Value::Null);
        for yes in ["t", "true", "TR", "y", "yes", "on"] {
            assert_eq!(read(yes), Value::Bool(true), "{yes}");
        }
        for no in ["f", "false", "n", "no", "off", "of"] {
            assert_eq!(read(no), Value::Bool(false), "{no}");
        }
        assert!(Value::from_text("o").is_err() && Value::from_text("").is_err());
        assert!(Value::from_text("12 monkeys").is_err());
    }

    #[test]
    fn reals_round_halves_to_even_and_must_fit() {
        assert_eq!(Value::Double(2.5).int(), Ok(2));
        assert_eq!(Value::Double(3.5).int(), Ok(4));
        assert_eq!(Value::Double(-9_223_372_036_854_775_808.0).int(), Ok(i64::MIN));
        assert!(Value::Double(9_223_372_036_854_775_808.0).int().is_err());
        assert!(Value::Double(f64::NAN).int().is_err());
        assert!(Value::Bool(true).int().expect_err("no number").contains("boolean"));
    }

    #[test]
    fn what_is_sent_is_what_postgresql_reads() {
        let sent = |value: Value| {
            let mut out = String::new();
            value.write(&mut out).then_some(out)
        };
        assert_eq!(sent(Value::Null), None);
        assert_eq!(sent(Value::Double(0.1)).as_deref(), Some("0.1"));
        assert_eq!(sent(Value::Double(2.0)).as_deref(), Some("2"));
        assert_eq!(sent(Value::Double(1e300)).as_deref(), Some("1e300"));
        assert_eq!(sent(Value::Double(1.5e-9)).as_deref(), Some("1.5e-9"));
        assert_eq!(sent(Value::Double(f64::INFINITY)).as_deref(), Some("inf"));
        assert_eq!(sent(Value::Bool(false)).as_deref(), Some("false"));
    }
}
