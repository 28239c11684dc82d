//! What mixes send, and what is refused.

use serde_json::{Value, json};
use wire::{Kind, Results, Timestamp};
use workload::{Outcome, Workload, catalogue, mix as mixed};

use super::session::{Fake, Reply, mixes, perform};

/// A mix of one transaction.
fn mix(transaction: &Value) -> Value {
    json!({"kind": "mix", "seed": 3, "scale": 2, "variables": {"rows": ":scale * 1000", "top": 9},
           "transactions": [transaction]})
}

fn sent(spec: &Value) -> Vec<String> {
    let mut session = Fake::default();
    perform(&mixes(spec).unwrap(), &mut session, (1, 4)).unwrap();
    session.sent
}

fn look() -> Value {
    json!({
        "name": "look",
        "statements": ["SELECT v FROM t WHERE k = :id", "UPDATE t SET n = n + 1 WHERE k = :id"],
        "params": {"id": {"type": "int", "uniform": [7, 7]}},
    })
}

#[test]
fn a_transaction_stands_between_begin_and_commit() {
    let want = [
        "BEGIN",
        "",
        "SELECT v FROM t WHERE k = 7::int",
        "",
        "UPDATE t SET n = n + 1 WHERE k = 7::int",
        "",
        "COMMIT",
        "",
    ];
    assert_eq!(sent(&mix(&look())), want);
    let mut spec = mix(&look());
    spec["face"] = json!("pipeline");
    let piped: Vec<String> =
        want.iter().filter(|line| !line.is_empty()).map(|&s| s.into()).collect();
    assert_eq!(sent(&spec), [piped, vec![String::new()]].concat(), "one round trip");
    let mut alone = look();
    alone["begin"] = json!(false);
    assert_eq!(sent(&mix(&alone)), want[2..6]);
}

#[test]
fn isolation_is_the_transactions_or_the_mixes() {
    let mut transaction = look();
    transaction["read_only"] = json!(true);
    assert_eq!(sent(&mix(&transaction))[0], "BEGIN READ ONLY");
    transaction["isolation"] = json!("repeatable read");
    assert_eq!(sent(&mix(&transaction))[0], "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    let mut spec = mix(&look());
    spec["isolation"] = json!("serializable");
    assert_eq!(sent(&spec)[0], "BEGIN ISOLATION LEVEL SERIALIZABLE");
}

/// A transaction with one parameter `p`.
fn one(parameter: &Value) -> Value {
    json!({"name": "t", "begin": false, "statements": ["SELECT :p"], "params": {"p": parameter}})
}

/// Values of the parameter in so many requests, as they are sent.
fn values(parameter: &Value, count: u64) -> Vec<String> {
    let programs = mixes(&mix(&one(parameter))).unwrap();
    let mut session = Fake::default();
    for number in 0..count {
        perform(&programs, &mut session, (1, number)).unwrap();
    }
    let selects =
        session.sent.into_iter().filter_map(|sql| sql.strip_prefix("SELECT ").map(str::to_owned));
    selects.collect()
}

#[test]
fn parameters_have_their_types_and_bounds() {
    let numbers = |parameter: Value, suffix: &str| -> Vec<i64> {
        let values = values(&parameter, 300);
        values.iter().map(|value| value.strip_suffix(suffix).unwrap().parse().unwrap()).collect()
    };
    for parameter in [
        json!({"type": "int", "uniform": [1, ":rows"]}),
        json!({"type": "int", "zipf": [1, ":rows", 0.99]}),
        json!({"type": "int", "nurand": [255, 1, ":rows", 17]}),
        json!({"type": "int", "normal": [1, ":rows", 2.5]}),
        json!({"type": "int", "exponential": [1, ":rows", 5]}),
    ] {
        let drawn = numbers(parameter.clone(), "::int");
        assert!(drawn.iter().all(|value| (1..=2000).contains(value)), "{parameter}");
        let mut different = drawn.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 50, "{parameter}: {drawn:?}");
    }
    let cents = numbers(json!({"type": "numeric", "places": 2, "uniform": [1, 5]}), "e-2");
    assert!(
        cents.iter().all(|value| (100..=500).contains(value)) && cents.iter().any(|c| c % 100 > 0)
    );
    let sequence = numbers(json!({"type": "bigint", "sequence": 10}), "::bigint");
    assert_eq!(sequence[..3], [11, 11 + (1 << 24), 11 + (2 << 24)], "terminal 1, numbers 0 to 2");
    let texts = values(&json!({"type": "text", "string": [3, 5]}), 100);
    assert!(texts.iter().all(|text| (5..=7).contains(&text.len()) && text.starts_with('"')));
    assert_eq!(
        values(&json!({"type": "bigint", "value": ":rows / 2 + :top"}), 1),
        ["1009::bigint"]
    );
}

#[test]
fn computed_parameters_follow_drawn_ones() {
    let transaction = json!({
        "name": "t", "statements": ["SELECT :a, :b, :a, :top"], "begin": false,
        "params": {
            "a": {"type": "int", "value": ":b % 10"},
            "b": {"type": "bigint", "uniform": [25, 25]},
        },
    });
    let programs = mixes(&mix(&transaction)).unwrap();
    let statement = &programs.statements()[0];
    assert_eq!(statement.sql, "SELECT $1, $2, $1, $3");
    assert_eq!(statement.params, [Kind::I32, Kind::I64, Kind::Inferred]);
    assert_eq!((statement.name.as_str(), statement.results), ("t.1", Results::Binary));
    let mut session = Fake::default();
    perform(&programs, &mut session, (0, 0)).unwrap();
    assert_eq!(session.sent[0], "SELECT 5::int, 25::bigint, 5::int, '9'");
}

#[test]
fn a_statement_that_misses_its_rows_fails_the_transaction() {
    let mut transaction = look();
    transaction["statements"] =
        json!(["SELECT 1", {"sql": "SELECT v FROM t WHERE k = :id", "rows": 1}]);
    let programs = mixes(&mix(&transaction)).unwrap();
    let fails = |affected| {
        let replies = [Reply::Affected(0), Reply::Affected(5), Reply::Affected(affected)];
        let mut session = Fake { replies: replies.into(), ..Fake::default() };
        perform(&programs, &mut session, (0, 0))
    };
    assert_eq!(fails(1).unwrap(), Outcome::Committed);
    let error = fails(0).unwrap_err().to_string();
    assert_eq!(error, "transaction look, statement 2: statement has 0 rows, wanted are 1");
}

#[test]
fn transactions_share_begin_and_commit_but_no_parameters() {
    let mut other = look();
    other["name"] = json!("other");
    other["params"]["id"] = json!({"type": "bigint", "uniform": [8, 8]});
    let mut spec = mix(&look());
    spec["transactions"].as_array_mut().unwrap().push(other);
    let programs = mixes(&spec).unwrap();
    let names: Vec<&str> = programs.statements().iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["begin", "look.1", "look.2", "commit", "other.1", "other.2"]);
    let mut session = Fake::default();
    for number in 0..50 {
        perform(&programs, &mut session, (0, number)).unwrap();
    }
    assert!(session.sent.contains(&"SELECT v FROM t WHERE k = 8::bigint".to_owned()));
}

#[test]
fn mistakes_are_told_with_transaction_and_statement() {
    let param = |parameter: Value| json!({"params": {"id": parameter}});
    for (change, part) in [
        (
            json!({"statements": ["SELECT :idd"]}),
            "look, statement 1: parameter :idd is unknown, params has id",
        ),
        (
            json!({"statements": ["SELECT :id", "SELECT 'x"]}),
            "look, statement 2: line 1: a quote ' is not",
        ),
        (json!({"statements": ["SELECT :id; SELECT 2"]}), "statement 1: it has several statements"),
        (json!({"statements": [";"]}), "statement 1: it is empty"),
        (json!({"statements": ["COMMIT"]}), "begins or ends a transaction"),
        (json!({"statements": ["SELECT 1 \\gset"]}), "\\gset is a command of scripts"),
        (json!({"statements": ["SELECT 1"]}), "look, parameter id: no statement uses it"),
        (json!({"statements": []}), "transaction look has no statement"),
        (
            json!({"statement": []}),
            "transaction look: unknown key statement, did you mean statements",
        ),
        (json!({"begin": false, "read_only": true}), "has begin = false, but an isolation"),
        (json!({"isolation": "snapshot"}), "transaction look: unknown variant `snapshot`"),
        (param(json!({"type": "integer"})), "look, parameter id: unknown variant `integer`"),
        (
            param(json!({"type": "int", "unifrom": [1, 2]})),
            "parameter id: unknown key unifrom, did you mean uniform",
        ),
        (
            param(json!({"type": "int"})),
            "source of its values is nothing, wanted is one of uniform",
        ),
        (param(json!({"type": "int", "sequence": 1, "uniform": [1, 2]})), "is uniform, sequence"),
        (param(json!({"type": "int", "sequence": 1})), "sequence is for type bigint"),
        (param(json!({"type": "int", "uniform": [2, 1]})), "no number lies between 2 and 1"),
        (param(json!({"type": "int", "uniform": [1, 3_000_000_000_u32]})), "does not fit into int"),
        (param(json!({"type": "int", "uniform": [1, ":row"]})), "variable :row is not known here"),
        (param(json!({"type": "int", "uniform": [1, "random(1, 2)"]})), "a constant is wanted"),
        (param(json!({"type": "int", "uniform": [1, "x"]})), "x is not expected"),
        (param(json!({"type": "int", "zipf": [1, 9, 0]})), "shape is 0, which"),
        (param(json!({"type": "int", "normal": [1, 9, 1]})), "shape is 1, which"),
        (param(json!({"type": "int", "nurand": [10, 1, 9, 0]})), "nurand's A is 10, it must be"),
        (
            param(json!({"type": "int", "nurand": [7, 1, 9, 8]})),
            "nurand's C is 8, allowed is 0 to 7",
        ),
        (param(json!({"type": "int", "places": 2, "uniform": [1, 2]})), "which only numeric has"),
        (param(json!({"type": "text", "uniform": [1, 2]})), "type text takes string or value"),
        (param(json!({"type": "int", "string": [1, 2]})), "string is for type text"),
        (param(json!({"type": "text", "string": [2, 1]})), "string is 2 to 1 long"),
        (param(json!({"type": "int", "value": ":id + 1"})), "parameter :id is computed itself"),
        (param(json!({"type": "int", "value": "1 +"})), "ends where a value is expected"),
    ] {
        let mut transaction = look();
        for (key, value) in change.as_object().unwrap() {
            transaction[key] = value.clone();
        }
        let fact = mixes(&mix(&transaction)).unwrap_err().fact;
        assert!(fact.contains(part), "{change}: {fact}");
    }
}

#[test]
fn specifications_are_strict() {
    let refused = |change: Value| {
        let mut spec = mix(&look());
        for (key, value) in change.as_object().unwrap() {
            spec[key] = value.clone();
        }
        mixes(&spec).unwrap_err().fact
    };
    for (change, part) in [
        (json!({"face": "procedure"}), "face is procedure, a mix allows statement and pipeline"),
        (json!({"transactions": []}), "mix has no transaction"),
        (json!({"transactions": [look(), look()]}), "name look stands twice"),
        (json!({"variables": {"a": ":b", "b": 1}}), "variable a: variable :b is not known here"),
        (json!({"invariants": [{"title": "t", "query": "q"}]}), "unknown key query"),
        (json!({"weights": {}}), "unknown key weights"),
    ] {
        let fact = refused(change);
        assert!(fact.contains(part), "{fact}");
    }
}

#[test]
fn invariants_are_conditions() {
    let mut spec = mix(&look());
    spec["invariants"] = json!([{"title": "no debts", "sql": "SELECT 1 WHERE false"}]);
    let described = catalogue::describe(&spec).unwrap().description;
    let want = json!([{"number": 1, "title": "no debts", "sql": "SELECT 1 WHERE false"}]);
    assert_eq!(json!(described.conditions), want);
    assert_eq!(json!(described.mix), json!({"look": 1.0}));
}

/// A mix whose transaction notes its number.
fn noted() -> Value {
    json!({
        "name": "note",
        "statements": ["INSERT INTO done VALUES (:request_id)"],
        "witness": "SELECT id FROM done;",
    })
}

#[test]
fn a_request_has_a_number_of_its_own_by_which_its_commit_is_found_again() {
    let spec = mix(&noted());
    let programs = mixes(&spec).unwrap();
    let mut session = Fake::default();
    let (request, _) = programs.request(3, 5);
    perform(&programs, &mut session, (3, 5)).unwrap();
    let number = (5 << 24) + 3;
    assert!(session.sent[2].ends_with(&format!("({number}::bigint)")), "{:?}", session.sent);
    let now = Timestamp(0);
    assert_eq!(programs.witness(&request, now).unwrap().key, [number, 0, 0, 0]);

    let described = mixed::describe(&mixed::MixSpec::from_json(&spec).unwrap()).unwrap();
    assert_eq!(described.witnesses.len(), 1);
    assert!(described.witnesses[0].sql.contains("(\nSELECT id FROM done\n)"));
}

#[test]
fn a_transaction_without_a_witness_leaves_nothing() {
    let programs = mixes(&mix(&look())).unwrap();
    let now = Timestamp(0);
    assert!(programs.witness(&programs.request(1, 1).0, now).is_none());
}

#[test]
fn a_witness_of_what_cannot_be_told_apart_is_refused() {
    let mut transaction = look();
    transaction["witness"] = json!("SELECT k FROM t");
    let error = mixes(&mix(&transaction)).unwrap_err();
    assert_eq!(error.fact, "look has a witness, but no statement of it uses :request_id");
    assert!(error.hint.is_some());
    let mut empty = noted();
    empty["witness"] = json!(" ; ");
    assert_eq!(mixes(&mix(&empty)).unwrap_err().fact, "witness of note is empty");
}

#[test]
fn the_number_of_a_request_is_nobody_elses_variable() {
    let mut spec = mix(&look());
    spec["variables"]["request_id"] = json!(4);
    let fact = mixes(&spec).unwrap_err().fact;
    assert_eq!(fact, "variable request_id is the number of each request, and cannot be set");
}

#[test]
fn what_failed_after_a_part_was_committed_says_so() {
    let mut alone = look();
    alone["begin"] = json!(false);
    let programs = mixes(&mix(&alone)).unwrap();
    let first = [Reply::Affected(1), Reply::Error("40001")];
    let mut session = Fake { replies: first.into(), ..Fake::default() };
    assert!(perform(&programs, &mut session, (1, 4)).unwrap_err().is_partly_committed());
    let mut session = Fake { replies: [Reply::Error("40001")].into(), ..Fake::default() };
    assert!(!perform(&programs, &mut session, (1, 4)).unwrap_err().is_partly_committed());

    // A pipeline has committed by the time that its rows are counted.
    let counted = json!({"name": "c", "statements": [{"sql": "UPDATE t SET v = 1", "rows": 2}]});
    for (face, partly) in [("statement", false), ("pipeline", true)] {
        let mut spec = mix(&counted);
        spec["face"] = json!(face);
        let mut session = Fake::default();
        let error = perform(&mixes(&spec).unwrap(), &mut session, (1, 4)).unwrap_err();
        assert_eq!(error.is_partly_committed(), partly, "{face}");
    }
}
