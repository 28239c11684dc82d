//! Functions and operators of pgbench's expressions.

use super::{
    hash,
    random::{exponential, normal, uniform, zipf},
    value::Value,
};
use crate::draw::Draw;

/// A function or operator that evaluates all its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as what they compute")]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Abs,
    Int,
    Double,
    Greatest,
    Least,
    Pi,
    Sqrt,
    Ln,
    Exp,
    Power,
    Random,
    RandomGaussian,
    RandomExponential,
    RandomZipfian,
    HashMurmur2,
    HashFnv1a,
    Permute,
}

/// Name, function, and how many arguments it takes at least and at most.
const NAMED: [(&str, Function, usize, usize); 20] = [
    ("abs", Function::Abs, 1, 1),
    ("double", Function::Double, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("hash", Function::HashMurmur2, 1, 2),
    ("hash_fnv1a", Function::HashFnv1a, 1, 2),
    ("hash_murmur2", Function::HashMurmur2, 1, 2),
    ("int", Function::Int, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Modulo, 2, 2),
    ("permute", Function::Permute, 2, 3),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Power, 2, 2),
    ("power", Function::Power, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

/// The function of this name, for so many arguments.
///
/// # Errors
///
/// No such function, or another number of arguments.
pub fn named(name: &str, count: usize) -> Result<Function, String> {
    let lower = name.to_ascii_lowercase();
    if lower == "debug" {
        return Err("function debug() prints while it is measured; it is not supported".into());
    }
    let found = NAMED.iter().find(|(known, ..)| *known == lower);
    let Some((_, function, least, most)) = found else {
        let known: Vec<&str> = NAMED.iter().map(|(name, ..)| *name).collect();
        return Err(format!("function {name} is unknown, known are {}", known.join(", ")));
    };
    if (*least..=*most).contains(&count) {
        return Ok(*function);
    }
    let allowed = match (*least, *most) {
        (least, usize::MAX) => format!("at least {least}"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} or {most}"),
    };
    Err(format!("function {name} has {count} arguments, allowed are {allowed}"))
}

/// The value of a function.
///
/// # Errors
///
/// A fact such as `division by zero`.
pub fn call(
    function: Function,
    arguments: &[Value],
    draw: &mut Draw,
    default_seed: i64,
) -> Result<Value, String> {
    if arguments.contains(&Value::Null) {
        return Ok(Value::Null);
    }
    match (function, arguments) {
        (Function::Not, [value]) => Ok(Value::Bool(!value.bool()?)),
        (Function::Int, [value]) => value.int().map(Value::Int),
        (Function::Abs, [Value::Double(value)]) => Ok(Value::Double(value.abs())),
        (Function::Abs, [value]) => checked(value.int()?.checked_abs(), "abs"),
        (Function::Greatest | Function::Least, values) => extreme(function, values),
        (
            Function::Modulo
            | Function::BitAnd
            | Function::BitOr
            | Function::BitXor
            | Function::ShiftLeft
            | Function::ShiftRight,
            [a, b],
        ) => whole(function, a.int()?, b.int()?),
        (
            Function::Add
            | Function::Subtract
            | Function::Multiply
            | Function::Divide
            | Function::Equal
            | Function::NotEqual
            | Function::Less
            | Function::LessEqual,
            [a, b],
        ) => binary(function, a, b),
        (Function::Pi, []) => Ok(Value::Double(std::f64::consts::PI)),
        (Function::Double, [value]) => value.double().map(Value::Double),
        (Function::Sqrt, [value]) => Ok(Value::Double(value.double()?.sqrt())),
        (Function::Ln, [value]) => Ok(Value::Double(value.double()?.ln())),
        (Function::Exp, [value]) => Ok(Value::Double(value.double()?.exp())),
        (Function::Power, [base, power]) => Ok(Value::Double(base.double()?.powf(power.double()?))),
        (_, [first, rest @ ..]) => mixing(function, first, rest, draw, default_seed),
        _ => Err(format!("{function:?} has no value of {} arguments", arguments.len())),
    }
}

/// Random numbers, hashes and permutations.
fn mixing(
    function: Function,
    first: &Value,
    rest: &[Value],
    draw: &mut Draw,
    default_seed: i64,
) -> Result<Value, String> {
    let first = first.int()?;
    let seed = |value: Option<&Value>| value.map_or(Ok(default_seed), Value::int);
    let value = match (function, rest) {
        (Function::Random, [high]) => uniform(draw, first, high.int()?)?,
        (Function::RandomGaussian, [high, parameter]) => {
            normal(draw, first, high.int()?, parameter.double()?)?
        }
        (Function::RandomExponential, [high, parameter]) => {
            exponential(draw, first, high.int()?, parameter.double()?)?
        }
        (Function::RandomZipfian, [high, s]) => zipf(draw, first, high.int()?, s.double()?)?,
        (Function::HashMurmur2, rest) => hash::murmur2(first, seed(rest.first())?),
        (Function::HashFnv1a, rest) => hash::fnv1a(first, seed(rest.first())?),
        (Function::Permute, [size, rest @ ..]) => {
            let size = size.int()?;
            if size <= 0 {
                return Err(format!("permute size is {size}, allowed is above 0"));
            }
            hash::permute(first, size, seed(rest.first())?)
        }
        _ => return Err(format!("{function:?} has no value of these arguments")),
    };
    Ok(Value::Int(value))
}

fn is_double(values: &[&Value]) -> bool {
    values.iter().any(|value| matches!(value, Value::Double(_)))
}

fn checked(value: Option<i64>, name: &str) -> Result<Value, String> {
    value.map(Value::Int).ok_or_else(|| format!("{name} is out of the range of bigint"))
}

/// Arithmetic and comparison: of real numbers where one of them is, else of whole ones.
fn binary(function: Function, left: &Value, right: &Value) -> Result<Value, String> {
    if is_double(&[left, right]) {
        let (a, b) = (left.double()?, right.double()?);
        #[expect(clippy::float_cmp, reason = "what the script asks for")]
        return Ok(match function {
            Function::Add => Value::Double(a + b),
            Function::Subtract => Value::Double(a - b),
            Function::Multiply => Value::Double(a * b),
            Function::Divide => Value::Double(a / b),
            Function::Equal => Value::Bool(a == b),
            Function::NotEqual => Value::Bool(a != b),
            Function::Less => Value::Bool(a < b),
            _ => Value::Bool(a <= b),
        });
    }
    let (a, b) = (left.int()?, right.int()?);
    match function {
        Function::Add => checked(a.checked_add(b), "sum"),
        Function::Subtract => checked(a.checked_sub(b), "difference"),
        Function::Multiply => checked(a.checked_mul(b), "product"),
        Function::Divide if b == 0 => Err("division by zero".into()),
        Function::Divide => checked(a.checked_div(b), "quotient"),
        Function::Equal => Ok(Value::Bool(a == b)),
        Function::NotEqual => Ok(Value::Bool(a != b)),
        Function::Less => Ok(Value::Bool(a < b)),
        _ => Ok(Value::Bool(a <= b)),
    }
}

/// Operators that know whole numbers only.
fn whole(function: Function, a: i64, b: i64) -> Result<Value, String> {
    let bits = || {
        let bits = u32::try_from(b).ok().filter(|bits| *bits < i64::BITS);
        bits.ok_or_else(|| format!("shift by {b} bits, allowed are 0 to 63"))
    };
    Ok(Value::Int(match function {
        Function::Modulo if b == 0 => return Err("division by zero".into()),
        Function::Modulo => a.wrapping_rem(b), // the smallest number modulo -1 is 0
        Function::BitAnd => a & b,
        Function::BitOr => a | b,
        Function::BitXor => a ^ b,
        Function::ShiftLeft => a << bits()?,
        _ => a >> bits()?,
    }))
}

/// The largest or the smallest; real where one of them is.
fn extreme(function: Function, values: &[Value]) -> Result<Value, String> {
    let all: Vec<&Value> = values.iter().collect();
    if is_double(&all) {
        let pick = if function == Function::Greatest { f64::max } else { f64::min };
        let doubles: Result<Vec<f64>, String> = values.iter().map(Value::double).collect();
        let found = doubles?.into_iter().reduce(pick);
        return Ok(found.map_or(Value::Null, Value::Double));
    }
    let ints: Result<Vec<i64>, String> = values.iter().map(Value::int).collect();
    let ints = ints?;
    let found = if function == Function::Greatest { ints.iter().max() } else { ints.iter().min() };
    Ok(found.map_or(Value::Null, |value| Value::Int(*value)))
}
