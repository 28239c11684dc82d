//! The grammar of pgbench's expressions: from text to an [`Expression`] with variables resolved by
//! the caller.

use super::{
    expression::Expression,
    functions::{Function, named},
    value::Value,
};

/// Deeper nesting is a mistake, and would end on the stack.
const DEPTH_MAX: u32 = 100;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// Digits alone; what no `i64` holds is 2^63 and more.
    Int(u64),
    Double(f64),
    Variable(String),
    Word(String),
    Sign(&'static str),
}

/// Longest first.
const SIGNS: [&str; 20] = [
    "<<", ">>", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "<", ">", "=", "&", "|", "#", "~",
    "(", ")",
];

/// Parses all of a text.
///
/// # Errors
///
/// What is wrong, without its place; also whatever `variable` says of a name.
pub fn expression(
    text: &str,
    variable: &mut dyn FnMut(&str) -> Result<usize, String>,
) -> Result<Expression, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, variable };
    let parsed = parser.or()?;
    match parser.peek() {
        None => Ok(parsed),
        Some(token) => Err(format!("{} is not expected in {text:?}", shown(token))),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() || is_fraction(rest) {
            let length = number_length(rest);
            tokens.push(number(&rest[..length])?);
            length
        } else if is_name_start(first) {
            let length = name_length(rest);
            tokens.push(Token::Word(rest[..length].to_owned()));
            length
        } else if first == ':' && rest[1..].starts_with(is_name) {
            let length = 1 + name_length(&rest[1..]);
            tokens.push(Token::Variable(rest[1..length].to_owned()));
            length
        } else if first == ',' {
            tokens.push(Token::Sign(","));
            1
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(if *sign == "!=" { "<>" } else { sign }));
            sign.len()
        } else {
            return Err(format!("character {first:?} is not expected in {text:?}"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn is_fraction(text: &str) -> bool {
    text.starts_with('.') && text[1..].starts_with(|c: char| c.is_ascii_digit())
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

/// Whether a character may stand in a name of a variable.
#[must_use]
pub fn is_name(c: char) -> bool {
    is_name_start(c) || c.is_ascii_digit()
}

/// Bytes of the name that a text begins with.
#[must_use]
pub fn name_length(text: &str) -> usize {
    text.find(|c| !is_name(c)).unwrap_or(text.len())
}

/// Digits, perhaps with a fraction, perhaps with an exponent.
fn number_length(text: &str) -> usize {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut length = digits(text);
    if text[length..].starts_with('.') {
        length += 1 + digits(&text[length + 1..]);
    }
    let exponent = &text[length..];
    if exponent.starts_with(['e', 'E']) {
        let sign = usize::from(exponent[1..].starts_with(['+', '-']));
        let count = digits(&exponent[1 + sign..]);
        if count > 0 {
            length += 1 + sign + count;
        }
    }
    length
}

fn number(text: &str) -> Result<Token, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Token::Int).map_err(|_| format!("{text} is out of range"));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Token::Double(value)),
        _ => Err(format!("{text} is out of range")),
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Int(value) => value.to_string(),
        Token::Double(value) => value.to_string(),
        Token::Variable(name) => format!(":{name}"),
        Token::Word(word) => word.clone(),
        Token::Sign(sign) => (*sign).to_owned(),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
    variable: &'a mut dyn FnMut(&str) -> Result<usize, String>,
}

type Parsed = Result<Expression, String>;

/// Operators of one precedence, left to right.
type Level = &'static [(&'static str, Function)];
const SUMS: Level = &[("+", Function::Add), ("-", Function::Subtract)];
const PRODUCTS: Level =
    &[("*", Function::Multiply), ("/", Function::Divide), ("%", Function::Modulo)];
const BITS: Level = &[
    ("|", Function::BitOr),
    ("#", Function::BitXor),
    ("&", Function::BitAnd),
    ("<<", Function::ShiftLeft),
    (">>", Function::ShiftRight),
];

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(known)) if *known == sign);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found =
            matches!(self.peek(), Some(Token::Word(known)) if known.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, found: bool, wanted: &str) -> Result<(), String> {
        if found {
            return Ok(());
        }
        let instead = self.peek().map_or("the end".to_owned(), shown);
        Err(format!("{wanted} is expected, {instead} was found"))
    }

    fn or(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("expression is nested more than {DEPTH_MAX} deep"));
        }
        let mut left = self.and()?;
        while self.word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.not()?;
        while self.word("and") {
            left = Expression::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Parsed {
        let mut times = 0;
        while self.word("not") {
            times += 1;
        }
        let mut inner = self.is()?;
        for _ in 0..times {
            inner = Expression::Call(Function::Not, vec![inner]);
        }
        Ok(inner)
    }

    fn is(&mut self) -> Parsed {
        let left = self.comparison()?;
        let is = |left, value| Expression::Is(Box::new(left), value);
        if self.word("isnull") {
            return Ok(is(left, Value::Null));
        }
        if self.word("notnull") {
            return Ok(Expression::Call(Function::Not, vec![is(left, Value::Null)]));
        }
        if !self.word("is") {
            return Ok(left);
        }
        let not = self.word("not");
        let value = if self.word("null") {
            Value::Null
        } else if self.word("true") {
            Value::Bool(true)
        } else {
            let found = self.word("false");
            self.expect(found, "NULL, TRUE or FALSE")?;
            Value::Bool(false)
        };
        let is = is(left, value);
        Ok(if not { Expression::Call(Function::Not, vec![is]) } else { is })
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.level(BITS)?;
        for (sign, function, swapped) in [
            ("=", Function::Equal, false),
            ("<>", Function::NotEqual, false),
            ("<=", Function::LessEqual, false),
            ("<", Function::Less, false),
            (">=", Function::LessEqual, true),
            (">", Function::Less, true),
        ] {
            if self.sign(sign) {
                let right = self.level(BITS)?;
                let sides = if swapped { vec![right, left] } else { vec![left, right] };
                return Ok(Expression::Call(function, sides));
            }
        }
        Ok(left)
    }

    /// Operators of this level and of those that bind closer.
    fn level(&mut self, level: Level) -> Parsed {
        let closer = |parser: &mut Self| match level[0].0 {
            "|" => parser.level(SUMS),
            "+" => parser.level(PRODUCTS),
            _ => parser.unary(),
        };
        let mut left = closer(self)?;
        'more: loop {
            for (sign, function) in level {
                if self.sign(sign) {
                    left = Expression::Call(*function, vec![left, closer(self)?]);
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn unary(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("expression is nested more than {DEPTH_MAX} deep"));
        }
        let zero = || Expression::Constant(Value::Int(0));
        let parsed = if self.sign("+") {
            self.unary()?
        } else if self.sign("~") {
            // pgbench's grammar gives it the precedence of | : ~1 + 2 is ~(1 + 2).
            let ones = Expression::Constant(Value::Int(-1));
            Expression::Call(Function::BitXor, vec![ones, self.level(SUMS)?])
        } else if self.sign("-") {
            // The smallest number has no positive counterpart.
            if self.peek() == Some(&Token::Int(i64::MIN.unsigned_abs())) {
                self.at += 1;
                Expression::Constant(Value::Int(i64::MIN))
            } else {
                Expression::Call(Function::Subtract, vec![zero(), self.unary()?])
            }
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(parsed)
    }

    fn primary(&mut self) -> Parsed {
        let Some(token) = self.peek().cloned() else {
            return Err("expression ends where a value is expected".into());
        };
        self.at += 1;
        match token {
            Token::Int(value) => match i64::try_from(value) {
                Ok(value) => Ok(Expression::Constant(Value::Int(value))),
                Err(_) => Err(format!("{value} is out of range")),
            },
            Token::Double(value) => Ok(Expression::Constant(Value::Double(value))),
            Token::Variable(name) => (self.variable)(&name).map(Expression::Variable),
            Token::Sign("(") => {
                let inner = self.or()?;
                let closed = self.sign(")");
                self.expect(closed, ")")?;
                Ok(inner)
            }
            Token::Word(word) => self.word_primary(&word),
            Token::Sign(sign) => Err(format!("{sign} is not expected where a value is")),
        }
    }

    fn word_primary(&mut self, word: &str) -> Parsed {
        match word.to_ascii_lowercase().as_str() {
            "null" => return Ok(Expression::Constant(Value::Null)),
            "true" => return Ok(Expression::Constant(Value::Bool(true))),
            "false" => return Ok(Expression::Constant(Value::Bool(false))),
            "case" => return self.case(),
            _ => {}
        }
        let opened = self.sign("(");
        if !opened {
            return Err(format!("{word} is not expected where a value is; variables begin with :"));
        }
        let mut arguments = Vec::new();
        if !self.sign(")") {
            loop {
                arguments.push(self.or()?);
                if self.sign(")") {
                    break;
                }
                let comma = self.sign(",");
                self.expect(comma, ", or )")?;
            }
        }
        Ok(Expression::Call(named(word, arguments.len())?, arguments))
    }

    fn case(&mut self) -> Parsed {
        let mut branches = Vec::new();
        while self.word("when") {
            let condition = self.or()?;
            let then = self.word("then");
            self.expect(then, "THEN")?;
            branches.push((condition, self.or()?));
        }
        self.expect(!branches.is_empty(), "WHEN")?;
        let otherwise =
            if self.word("else") { self.or()? } else { Expression::Constant(Value::Null) };
        let end = self.word("end");
        self.expect(end, "END")?;
        Ok(Expression::Case(branches, Box::new(otherwise)))
    }
}
