//! What scripts send, and what is refused.

use serde_json::{Value, json};
use wire::{Results, Timestamp};
use workload::{
    Outcome, Workload,
    script::{self, ScriptSpec},
};

use super::session::{Fake, Reply, now, perform, run, scripts};

fn sent(text: &str) -> Vec<String> {
    let mut session = Fake::default();
    run(text, &mut session).unwrap();
    session.sent
}

fn answered(
    text: &str,
    columns: &[&str],
    replies: &[Reply],
) -> (Vec<String>, Result<Outcome, String>) {
    let mut session = Fake {
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        replies: replies.iter().cloned().collect(),
        ..Fake::default()
    };
    let outcome = run(text, &mut session);
    (session.sent, outcome)
}

#[test]
fn each_statement_is_one_round_trip() {
    let text = "\\set a 1\nBEGIN;\nUPDATE t SET v = :a WHERE k = :client_id AND w = :a;\nEND;\n";
    assert_eq!(
        sent("/* a */ BEGIN; /* hint */ SELECT 1; /* b */ /* c */ END")[..3],
        ["BEGIN", "", "/* hint */ SELECT 1"]
    );
    let want = ["BEGIN", "", "UPDATE t SET v = '1' WHERE k = '5' AND w = '1'", "", "END", ""];
    assert_eq!(sent(text), want);
}

#[test]
fn pipelines_are_sent_at_their_end_and_at_syncs() {
    let text = "SELECT 0;\n\\startpipeline\nBEGIN;SELECT 1;\n\\syncpipeline\nSELECT 2;\nEND;\n\
                \\endpipeline\nSELECT 3;";
    let want = ["SELECT 0", "", "BEGIN", "SELECT 1", "", "SELECT 2", "END", "", "SELECT 3", ""];
    assert_eq!(sent(text), want);
}

#[test]
fn one_branch_of_a_condition_is_taken() {
    let text = |x: i32| {
        format!(
            "\\set x {x}\n\\if :x = 1\nSELECT 'one';\n\\if :x\nSELECT 'inner';\n\\endif\n\
             \\elif :x = 2\nSELECT 'two';\n\\elif :x / 0\nSELECT 'never';\n\\else\n\
             SELECT 'other';\n\\endif\nSELECT 'end';"
        )
    };
    let one = ["SELECT 'one'", "", "SELECT 'inner'", "", "SELECT 'end'", ""];
    assert_eq!(sent(&text(1)), one, "later conditions are not evaluated");
    assert_eq!(sent(&text(2)), ["SELECT 'two'", "", "SELECT 'end'", ""]);
    let error = run(&text(3), &mut Fake::default()).unwrap_err();
    assert_eq!(error, "a.sql, line 9: division by zero");
    let other = "\\if null\nSELECT 1;\n\\else\nSELECT 2;\n\\endif";
    assert_eq!(sent(other), ["SELECT 2", ""]);
}

#[test]
fn columns_become_variables() {
    let text = "SELECT a, b, n FROM t \\gset p_\n\\set next :p_a + 1\n\\if :p_b\n\
                SELECT :next, :p_b, :p_n;\n\\endif";
    let row = vec![Some("41"), Some("yes"), None];
    let (sent, outcome) = answered(text, &["a", "b", "n"], &[Reply::Rows(vec![row])]);
    assert_eq!(outcome, Ok(Outcome::Committed));
    assert_eq!(sent[2], "SELECT '42', 'yes', NULL");
}

#[test]
fn gset_wants_one_row_and_aset_takes_the_last() {
    let rows = || Reply::Rows(vec![vec![Some("1")], vec![Some("2")]]);
    let gset = "SELECT a FROM t \\gset\nSELECT :a;";
    let (_, outcome) = answered(gset, &["a"], &[rows()]);
    assert_eq!(outcome, Err("a.sql, line 1: \\gset expects one row, 2 came".into()));
    let (_, outcome) = answered(gset, &["a"], &[Reply::Rows(vec![])]);
    assert!(outcome.unwrap_err().contains("0 came"));
    let aset = gset.replace("gset", "aset");
    assert_eq!(answered(&aset, &["a"], &[rows()]).0[2], "SELECT '2'");
    let (_, outcome) = answered(&aset, &["a"], &[Reply::Rows(vec![])]);
    assert_eq!(outcome, Err("a.sql, line 2: variable :a is not set yet".into()));
    let (_, outcome) = answered(gset, &["b"], &[Reply::Rows(vec![vec![Some("1")]])]);
    assert!(outcome.unwrap_err().contains(":a is not set yet"), "the column has another name");
}

#[test]
fn sleeps_have_units() {
    let text = "SELECT 1;\n\\sleep 5 ms\n\\sleep 7us\n\\sleep :scale\n\\sleep 0 s\n";
    assert_eq!(sent(text)[2..], ["sleep 5ms", "sleep 7µs", "sleep 3s", "sleep 0ns"]);
    let error = run("SELECT 1;\\set t -1\n\\sleep :t ms", &mut Fake::default()).unwrap_err();
    assert!(error.contains("sleep of -1 times 1ms, allowed is 0 to an hour"), "{error}");
}

#[test]
fn the_end_of_a_script_is_the_end_of_its_transactions() {
    let outcome = |text: &str| run(text, &mut Fake::default());
    assert_eq!(outcome("BEGIN; SELECT 1; ROLLBACK;"), Ok(Outcome::RolledBack));
    assert_eq!(outcome("BEGIN; ROLLBACK; BEGIN; COMMIT;"), Ok(Outcome::Committed));
    assert_eq!(outcome("BEGIN; SAVEPOINT a; ROLLBACK TO a; END;"), Ok(Outcome::Committed));
    assert_eq!(outcome("BEGIN; SELECT 1;"), Err("a.sql ends within a transaction".into()));
    assert_eq!(outcome("\\startpipeline\nSELECT 1;"), Err("a.sql ends within a pipeline".into()));
    let error = outcome("\\startpipeline\n\\startpipeline\nSELECT 1;").unwrap_err();
    assert_eq!(error, "a.sql, line 2: a pipeline is open already");
    assert_eq!(
        outcome("SELECT 1;\n\\endpipeline").unwrap_err(),
        "a.sql, line 2: no pipeline is open"
    );
}

#[test]
fn what_committed_is_not_repeated() {
    let programs = |text: &str| {
        let script = json!({"name": "a", "text": text});
        scripts(&json!({"kind": "script", "scripts": [script]})).unwrap()
    };
    let repeats = |text: &str, before: usize| {
        let mut replies = vec![Reply::Affected(1); before];
        replies.push(Reply::Error("40001"));
        let mut session = Fake { replies: replies.into(), ..Fake::default() };
        perform(&programs(text), &mut session, (0, 0)).unwrap_err().is_retryable()
    };
    let block = "BEGIN; UPDATE a SET b = 1; END;";
    assert!(repeats(block, 1));
    assert!(repeats(block, 2), "at its END");
    assert!(repeats("UPDATE a SET b = 1; UPDATE a SET b = 1;", 0));
    assert!(!repeats("UPDATE a SET b = 1; UPDATE a SET b = 1;", 1), "the first one stands");
    assert!(!repeats(&format!("{block} {block}"), 4));
    assert!(repeats("BEGIN; ROLLBACK; UPDATE a SET b = 1;", 2), "nothing stands");
}

#[test]
fn a_request_is_a_function_of_seed_terminal_and_number() {
    let text = "\\set a random(1, 1000000)\n\\set b random_zipfian(1, 1000000, 1.1)\n\
                \\set c random_gaussian(1, 1000000, 2.5)\n\
                \\set d random_exponential(1, 1000000, 3)\nSELECT :a, :b, :c, :d;";
    let spec = |seed: u64| {
        let other = json!({"name": "other", "text": "SELECT 1;", "weight": 3});
        json!({"kind": "script", "seed": seed, "scripts": [{"name": "a", "text": text}, other]})
    };
    let stream = |seed: u64, terminal: u32| {
        let programs = scripts(&spec(seed)).unwrap();
        let mut session = Fake::default();
        for number in 0..200 {
            perform(&programs, &mut session, (terminal, number)).unwrap();
        }
        session.sent
    };
    let first = stream(1, 0);
    assert_eq!(first, stream(1, 0));
    assert_ne!(first, stream(1, 1));
    assert_ne!(first, stream(2, 0));
    let others = first.iter().filter(|sql| *sql == "SELECT 1").count();
    assert!((120..180).contains(&others), "{others} of 200 at a share of 3/4");
}

#[test]
fn weights_show_in_the_audit() {
    let script =
        |name: &str, weight: f64| json!({"name": name, "text": "SELECT 1", "weight": weight});
    let all = [script("a", 1.0), script("b", 0.0), script("c", 3.0)];
    let spec = json!({"kind": "script", "scripts": all});
    let programs = scripts(&spec).unwrap();
    let mut audit = workload::program::workload::ProgramAudit::default();
    let mut session = Fake { statements: programs.statements().to_vec(), ..Fake::default() };
    for number in 0..5_000 {
        let (request, timing) = programs.request(0, number);
        assert_eq!(timing.kind, request.program);
        let outcome = now(programs.perform(&mut session, &request, Timestamp(0))).unwrap();
        workload::Audit::add(&mut audit, &request, outcome);
    }
    let lines = programs.audit_lines(&audit);
    assert_eq!(lines.len(), 3);
    for line in &lines {
        assert!((line.low..=line.high).contains(&line.measured), "{line:?}");
    }
    assert!(lines[1].measured == 0.0 && (0.2..0.3).contains(&lines[0].measured));
}

#[test]
fn statements_travel_as_text_and_are_named_by_their_lines() {
    let spec = json!({"kind": "script", "variables": {"d": "12", "t": true, "f": 0.5},
                      "scripts": [{"name": "a.sql", "text": "\n\nSELECT :d, :t, :f"}]});
    let programs = scripts(&spec).unwrap();
    let statement = &programs.statements()[0];
    assert_eq!((statement.name.as_str(), statement.results), ("a.sql:3", Results::Text));
    let mut session = Fake::default();
    perform(&programs, &mut session, (0, 0)).unwrap();
    assert_eq!(session.sent[0], "SELECT '12', 'true', '0.5'");
}

#[test]
fn what_cannot_be_run_is_refused_with_file_and_line() {
    for (text, fact) in [
        ("SELECT 1;\n\\foo", "a.sql, line 2: meta command \\foo is unknown, known are \\set"),
        ("\\shell ls", "line 1: \\shell starts a program"),
        ("\\setshell x ls", "\\setshell starts a program"),
        ("\\setrandom x 1 10", "write \\set x random(1, 10)"),
        ("SELECT :nowhere;", "line 1: variable :nowhere is never set"),
        ("\\set 1x 1", "\\set needs a name and an expression"),
        ("\\set x", "\\set needs a name and an expression"),
        ("\\gset", "\\gset does not follow a statement"),
        ("SELECT 1 \\gset a b", "\\gset takes one prefix, not \"a b\""),
        ("SELECT 1 \\gset a\n\\gset b", "line 2: \\gset does not follow a statement"),
        ("\\if true\nSELECT 1;", "line 1: \\if without \\endif"),
        ("SELECT 1;\n\\endif", "line 2: \\endif without \\if"),
        ("\\if 1\n\\else\n\\else\n\\endif", "line 3: \\else after \\else"),
        ("\\if 1\n\\else\n\\elif 1\n\\endif", "line 3: \\elif after \\else"),
        ("\\if 1\n\\endif now", "\\endif takes no arguments, not \"now\""),
        ("\\sleep 1 hour", "unit of \\sleep is hour, known are us, ms, s"),
        ("\\sleep soon", "unit of \\sleep is soon"),
        ("\\sleep ms", "\\sleep needs a number or :variable, not \"ms\""),
        ("COPY t TO STDOUT;", "COPY FROM STDIN and TO STDOUT cannot be prepared"),
        ("-- nothing", "script has no SQL statement"),
    ] {
        let error = run(text, &mut Fake::default()).unwrap_err();
        assert!(error.starts_with("a.sql, line ") && error.contains(fact), "{text:?}: {error}");
    }
}

#[test]
fn specifications_are_strict() {
    let spec = |change: Value| {
        let script = json!({"name": "a", "text": "SELECT 1"});
        let mut spec = json!({"kind": "script", "scripts": [script]});
        for (key, value) in change.as_object().unwrap() {
            spec[key] = value.clone();
        }
        scripts(&spec).unwrap_err()
    };
    let twice = json!([{"name": "a", "text": "SELECT 1"}, {"name": "a", "text": "SELECT 2"}]);
    for (change, part) in [
        (json!({"face": "pipeline"}), "face is pipeline, a script allows statement"),
        (json!({"isolation": "serializable"}), "isolation is serializable, a script allows"),
        (json!({"scripts": []}), "scripts are 0, allowed are 1 to 128"),
        (json!({"scripts": twice}), "name a stands twice"),
        (json!({"scripts": [{"name": "a", "text": "", "weight": -1}]}), "weight of a is -1"),
        (json!({"scripts": [{"name": "a", "text": "", "weight": 0}]}), "every weight is 0"),
        (json!({"scripts": [{"name": "a", "txt": ""}]}), "unknown key txt, did you mean text"),
        (json!({"variables": {"x": [1]}}), "variable x is [1], allowed are text and numbers"),
        (json!({"clients": 3}), "unknown key clients"),
    ] {
        let refused = spec(change);
        assert!(refused.fact.contains(part), "{}", refused.fact);
    }
}

#[test]
fn a_script_with_a_witness_is_found_again_and_keeps_its_invariants() {
    let mut spec = json!({
        "kind": "script",
        "scripts": [
            {"name": "a.sql", "text": "\\set n :request_id + 1\nINSERT INTO t VALUES (:n);",
             "witness": "SELECT n - 1 FROM t"},
            {"name": "b.sql", "text": "SELECT 1;"},
        ],
        "invariants": [{"title": "nothing is odd", "sql": "SELECT 1 WHERE false"}],
    });
    let read = ScriptSpec::from_json(&spec).unwrap();
    let described = script::describe(&read).unwrap();
    assert_eq!(described.witnesses.len(), 1);
    assert_eq!(described.witnesses[0].kind, "a.sql");
    assert_eq!(described.conditions[0].title, "nothing is odd");

    spec["scripts"][1]["witness"] = json!("SELECT 1");
    let refused = script::describe(&ScriptSpec::from_json(&spec).unwrap()).unwrap_err();
    assert_eq!(refused.fact, "b.sql has a witness, but no statement of it uses :request_id");
}
