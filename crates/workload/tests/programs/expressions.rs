//! Expressions: values that pgbench 15 gave (`\set a debug(…)`), and what must be refused.

use super::session::{Fake, run};

/// The value of an expression, as it is sent.
fn value(expression: &str) -> Result<String, String> {
    let mut session = Fake::default();
    run(&format!("\\set x {expression}\nSELECT :x"), &mut session)?;
    Ok(session.sent[0].strip_prefix("SELECT ").unwrap().trim_matches('\'').to_owned())
}

#[test]
fn values_are_those_of_pgbench() {
    for (expression, want) in [
        ("2 + 3 * 4 - 10 / 3 % 2", "13"),
        ("1 << 3 + 1 | 5 # 3 & 6", "6"),
        ("not 1 = 2 and 3 < 4 or false", "true"),
        ("~5 + -3 - - 4", "-7"),
        ("2 * ~3 + 1", "-10"),
        ("~1 | 2", "-2"),
        ("- ~3", "4"),
        ("2 = 3 is not null", "true"),
        ("1 is null or null", "NULL"),
        ("null and false", "NULL"),
        ("false and null", "false"),
        ("not true is false", "true"),
        ("7.0 / 2 + 1e2", "103.5"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("mod(-7, -3)", "-1"),
        ("int(2.5)", "2"),
        ("int(-3.5)", "-4"),
        ("greatest(3, 2.5, 1)", "3"),
        ("least(5, 4, 7)", "4"),
        ("pow(2, -1)", "0.5"),
        ("case when 0 then 1 when 2 then 3 else 4 end", "3"),
        ("CASE WHEN null THEN 1 END", "NULL"),
        ("abs(-17) + abs(-1.5)", "18.5"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("10 - 3 - 2", "5"),
        ("2 * 3 % 4", "2"),
        ("1 < 2 is true", "true"),
        ("double(3) / 2", "1.5"),
        ("5 isnull or 6 notnull", "true"),
        (".5 + 1.", "1.5"),
        ("true is not false", "true"),
        ("1 + null", "NULL"),
        ("(1 > 2) = 0", "error"),
        (":scale * :client_id", "15"),
    ] {
        let got = value(expression).unwrap_or("error".into());
        assert_eq!(got, want, "{expression}");
    }
    let real: f64 = value("sqrt(2.0) * exp(1) + ln(10) - pi()").unwrap().parse().unwrap();
    assert!((real - 3.005_223_467_563_37).abs() < 1e-12, "{real}");
}

#[test]
fn hashes_and_permutations_are_pgbenchs_bit_for_bit() {
    for (expression, want) in [
        ("hash_murmur2(123456, 5432)", "-3785135601261941806"),
        ("hash_fnv1a(123456, 5432)", "5573745207988582318"),
        ("hash(-7, 0)", "-2376560325806870531"),
        ("hash_fnv1a(0, -1)", "4052466453699787802"),
        ("permute(0, 10, 5432)", "6"),
        ("permute(7, 1000003, 42)", "744102"),
        ("permute(-1, 9223372036854775807, 0)", "1409427443184838618"),
        ("permute(5, 6, 9)", "4"),
        ("permute(1, 2, 9)", "0"),
    ] {
        assert_eq!(value(expression).unwrap(), want, "{expression}");
    }
}

#[test]
fn a_permutation_takes_every_place_once() {
    let text = "\\set x permute(:n, 17, 3)\nSELECT :x";
    let mut places: Vec<String> = (0..17)
        .map(|n| {
            let mut session = Fake::default();
            run(&text.replace(":n", &n.to_string()), &mut session).unwrap();
            session.sent[0].clone()
        })
        .collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 17);
}

#[test]
fn what_has_no_value_is_an_error_with_its_place() {
    for (expression, part) in [
        ("1 / 0", "a.sql, line 1: division by zero"),
        ("1 % 0", "division by zero"),
        ("9223372036854775807 + 1", "sum is out of the range of bigint"),
        ("-9223372036854775808 / -1", "quotient is out of the range"),
        ("abs(-9223372036854775808)", "abs is out of the range"),
        ("1 << 64", "shift by 64 bits, allowed are 0 to 63"),
        ("int(1e30)", "does not fit into an integer"),
        ("true + 1", "boolean cannot be used as int"),
        ("1 and true", "int cannot be used as boolean"),
        ("random(2, 1)", "no number lies between 2 and 1"),
        ("random_gaussian(1, 9, 1.0)", "normal parameter is 1, allowed is 2"),
        ("permute(1, 0)", "permute size is 0"),
    ] {
        let error = value(expression).unwrap_err();
        assert!(error.contains(part), "{expression}: {error}");
    }
}

#[test]
fn what_pgbench_does_not_know_is_refused_before_anything_runs() {
    for (expression, part) in [
        ("1 <> 2 = true", "= is not expected"),
        ("1 +", "ends where a value is expected"),
        ("(1", ") is expected, the end was found"),
        ("1 2", "2 is not expected"),
        ("9223372036854775808", "9223372036854775808 is out of range"),
        ("99999999999999999999", "out of range"),
        ("1 ^ 2", "character '^' is not expected"),
        ("random(1)", "function random has 1 arguments, allowed are 2"),
        ("hash()", "function hash has 0 arguments, allowed are 1 or 2"),
        ("greatest()", "allowed are at least 1"),
        ("gaussian(1, 2)", "function gaussian is unknown, known are abs, double"),
        ("debug(1)", "debug() prints"),
        ("scale", "scale is not expected where a value is; variables begin with :"),
        (":scael", "variable :scael is never set, did you mean scale"),
        ("case else 1 end", "WHEN is expected, else was found"),
        ("1 is 2", "NULL, TRUE or FALSE is expected, 2 was found"),
    ] {
        let error = value(expression).unwrap_err();
        assert!(error.starts_with("a.sql, line 1: ") && error.contains(part), "{error}");
    }
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(value(&deep).unwrap_err().contains("nested more than"));
    assert!(value(&format!("{}1", "- ".repeat(10_000))).unwrap_err().contains("nested more than"));
}
