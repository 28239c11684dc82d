//! Statements whose parameters the server infers and whose results come as text, against the
//! scripted server.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::time::Duration;

use sim::{Call, Script, Scripted, Step, serve};
use tokio::{io::DuplexStream, time::timeout};
use wire::{Error, Exchange, Kind, Param, Results, Session, Statement, StatementId, Target};

struct Columns;

impl Script for Columns {
    fn columns(&mut self, sql: &str) -> Vec<String> {
        if sql.starts_with("SELECT") { vec!["k".into(), "größe".into()] } else { Vec::new() }
    }

    fn call(&mut self, call: &Call) -> Vec<Step> {
        vec![Step::Row(vec![call.params[0].clone(), None])]
    }
}

fn statement(sql: &str, params: &[Kind], results: Results) -> Statement {
    Statement { name: sql.to_owned(), sql: sql.to_owned(), params: params.to_vec(), results }
}

async fn session() -> (Session<DuplexStream>, Scripted) {
    let scripted = Scripted::new(Columns);
    let (client, server) = tokio::io::duplex(1 << 16);
    let theirs = scripted.clone();
    tokio::spawn(async move { serve(server, theirs).await.unwrap() });
    let statements = [
        statement("UPDATE t SET v = $1 WHERE k = $2", &[Kind::Inferred, Kind::I32], Results::Text),
        statement("SELECT k, v FROM t WHERE k = $1", &[Kind::Inferred], Results::Text),
        statement("SELECT 1", &[Kind::Text], Results::Binary),
    ];
    let target = Target::new("/nowhere", 1, "tester", "db");
    (Session::start(client, &target, &statements).await.unwrap(), scripted)
}

#[tokio::test]
async fn columns_are_known_from_the_beginning() {
    let (session, _) = session().await;
    assert!(session.columns(StatementId(0)).is_empty(), "an UPDATE has none");
    assert_eq!(session.columns(StatementId(1)), ["k", "größe"]);
    assert!(session.columns(StatementId(2)).is_empty(), "nobody asked");
}

#[tokio::test]
async fn inferred_parameters_travel_as_text_beside_binary_ones() {
    let (mut session, scripted) = session().await;
    session.queue(StatementId(0), &[Param::Inferred("12.5"), Param::I32(7)]);
    session.queue(StatementId(1), &[Param::Null]);
    let answers = session.exchange().await.unwrap();
    assert_eq!(answers.get(0).row(0).unwrap().text(0).unwrap(), "12.5");
    assert_eq!(answers.get(1).row(0).unwrap().bytes(0).unwrap(), None);
    let calls = scripted.log().calls();
    let want = vec![Some(b"12.5".to_vec()), Some(vec![0, 0, 0, 7])];
    assert_eq!(calls[0].params, want);
}

#[tokio::test]
#[should_panic(expected = "takes [Inferred]")]
async fn a_typed_value_is_no_inferred_one() {
    let (mut session, _) = session().await;
    session.queue(StatementId(1), &[Param::Text("12.5")]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_lets_time_pass() {
    let (mut session, _) = session().await;
    let ms = Duration::from_millis;
    assert!(timeout(ms(249), session.pause(ms(250))).await.is_err());
    timeout(ms(251), session.pause(ms(250))).await.unwrap().unwrap();
    assert!(session.is_usable());
}

#[test]
fn what_is_partly_committed_is_not_repeated() {
    let error = |sqlstate: &str| {
        Error::server("ERROR".into(), sqlstate.into(), "as told".into(), None, None)
    };
    assert!(error("40001").is_retryable() && error("40P01").is_retryable());
    let kept = error("40001").partly_committed();
    assert!(!kept.is_retryable());
    assert_eq!(kept.sqlstate(), Some("40001"), "it is still the same error");
    assert!(!error("23505").is_retryable());
}
