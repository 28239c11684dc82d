//! Sessions against the scripted server: answers, errors in pipelines, lost connections.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::time::Duration;

use proptest::prelude::*;
use sim::{Auth, Call, Script, Scripted, Step, data_row, error_message, serve};
use tokio::io::DuplexStream;
use wire::{
    Decimal, Error, Exchange, Kind, Param, Password, Session, Statement, StatementId, Target,
    TransactionStatus,
};

const BEGIN: StatementId = StatementId(0);
const COMMIT: StatementId = StatementId(1);
const GET: StatementId = StatementId(2);

fn statements() -> Vec<Statement> {
    let statement = |name: &str, sql: &str, params: &[Kind]| Statement {
        name: name.to_owned(),
        sql: sql.to_owned(),
        params: params.to_vec(),
        results: wire::Results::Binary,
    };
    vec![
        statement("begin", "BEGIN", &[]),
        statement("commit", "COMMIT", &[]),
        statement("get", "SELECT v FROM t WHERE k = $1", &[Kind::I32]),
    ]
}

fn target() -> Target {
    Target::new("/nowhere", 1, "tester", "db")
}

/// A stream to a server that follows the script; `buffer` cuts the bytes.
fn dial(scripted: &Scripted, buffer: usize) -> DuplexStream {
    let (client, server) = tokio::io::duplex(buffer);
    let scripted = scripted.clone();
    tokio::spawn(async move { serve(server, scripted).await.unwrap() });
    client
}

async fn session(scripted: &Scripted) -> Session<DuplexStream> {
    Session::start(dial(scripted, 1 << 16), &target(), &statements()).await.unwrap()
}

/// Answers the key with itself as text, and as many rows as the key says.
fn echo(call: &Call) -> Vec<Step> {
    let Some(Some(key)) = call.params.first() else { return Vec::new() };
    let count = i32::from_be_bytes(key.as_slice().try_into().unwrap());
    let row = |n: i32| Step::Row(vec![Some(format!("row {n}").into_bytes()), None]);
    let mut steps: Vec<Step> = (0..count).map(row).collect();
    steps.push(Step::Complete(format!("SELECT {count}")));
    steps
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_queue() {
    let scripted = Scripted::new(echo);
    let mut session = session(&scripted).await;
    session.queue(BEGIN, &[]);
    session.queue(GET, &[Param::I32(2)]);
    session.queue(GET, &[Param::I32(0)]);
    let answers = session.exchange().await.unwrap();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers.get(1).affected(), 2);
    assert_eq!(answers.get(1).row(1).unwrap().text(0).unwrap(), "row 1");
    assert_eq!(answers.get(1).row(1).unwrap().bytes(1).unwrap(), None);
    assert!(answers.get(1).row(2).is_none());
    assert!(answers.get(2).is_empty());
    assert_eq!(session.transaction_status(), TransactionStatus::Active);
    let work = session.work();
    assert_eq!((work.executions, work.exchanges), (3, 1));
    let first: Vec<bool> = scripted.log().calls().iter().map(|call| call.first_of_batch).collect();
    assert_eq!(first, [true, false, false], "one Sync for the batch");
}

#[tokio::test]
async fn error_in_a_pipeline_is_the_first_and_leaves_the_session_usable() {
    let mut failures = 0;
    let scripted = Scripted::new(move |call: &Call| {
        if call.params.first() == Some(&Some(7_i32.to_be_bytes().to_vec())) {
            failures += 1;
            return vec![Step::error("23505", &format!("duplicate {failures}"))];
        }
        echo(call)
    });
    let mut session = session(&scripted).await;
    session.queue(BEGIN, &[]);
    session.queue(GET, &[Param::I32(1)]);
    session.queue(GET, &[Param::I32(7)]);
    session.queue(GET, &[Param::I32(7)]);
    session.queue(COMMIT, &[]);
    let error = session.exchange().await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("23505"));
    assert!(error.to_string().contains("duplicate 1"), "{error}");
    assert!(!error.is_closed() && session.is_usable());
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    assert_eq!(scripted.log().calls().len(), 3, "the rest of the batch is not executed");

    session.rollback().await.unwrap();
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    session.queue(GET, &[Param::I32(3)]);
    assert_eq!(session.exchange().await.unwrap().get(0).len(), 3);
}

#[tokio::test]
async fn first_of_two_errors_is_the_one() {
    let mut both = sim::error_message("ERROR", "40001", "first");
    both.extend(sim::error_message("ERROR", "25P02", "second"));
    let scripted = Scripted::new(move |_: &Call| vec![Step::Raw(both.clone())]);
    let mut session = session(&scripted).await;
    session.queue(GET, &[Param::I32(1)]);
    let error = session.exchange().await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("40001"));
    assert!(error.is_retryable());
}

#[tokio::test]
#[should_panic(expected = "get takes [I32]")]
async fn parameters_of_another_type_are_a_bug() {
    let mut session = session(&Scripted::new(echo)).await;
    session.queue(GET, &[Param::I64(1)]);
}

#[tokio::test]
async fn rollback_forgets_what_was_queued() {
    let scripted = Scripted::new(echo);
    let mut session = session(&scripted).await;
    session.queue(GET, &[Param::I32(1)]);
    session.rollback().await.unwrap();
    assert!(session.exchange().await.unwrap().is_empty());
    assert!(scripted.log().calls().is_empty());
}

#[tokio::test]
async fn last_words_of_a_server_are_the_error() {
    let scripted = Scripted::new(|_: &Call| vec![Step::fatal("57P01", "terminated by the admin")]);
    let mut session = session(&scripted).await;
    session.queue(GET, &[Param::I32(1)]);
    let error = session.exchange().await.unwrap_err();
    assert!(error.is_closed() && !session.is_usable());
    assert_eq!(error.sqlstate(), Some("57P01"));
    session.queue(GET, &[Param::I32(1)]);
    let error = session.exchange().await.unwrap_err();
    assert!(error.to_string().contains("did not end"), "{error}");
}

/// Fate is unknown only where the batch that was cut off could have committed.
#[tokio::test]
async fn lost_commit_is_told_from_lost_work() {
    let cases: [(&[StatementId], bool); 4] = [
        (&[BEGIN, GET], false),
        (&[BEGIN, GET, COMMIT], true),
        (&[GET], true), // by itself
        (&[BEGIN], false),
    ];
    for (batch, unknown) in cases {
        let last = batch.len();
        let mut calls = 0;
        let scripted = Scripted::new(move |call: &Call| {
            calls += 1;
            if calls == last { vec![Step::Close] } else { echo(call) }
        });
        let mut session = session(&scripted).await;
        for &statement in batch {
            let params: &[Param<'_>] = if statement == GET { &[Param::I32(1)] } else { &[] };
            session.queue(statement, params);
        }
        let error = session.exchange().await.unwrap_err();
        assert!(error.is_closed(), "{error}");
        assert_eq!(session.may_have_committed(), unknown, "{batch:?}");
    }
}

/// An error before the COMMIT of a batch tells that there was none, also when nothing follows it.
#[tokio::test]
async fn an_error_before_the_commit_settles_its_fate() {
    let batch = [BEGIN, GET, COMMIT];
    for (severity, sqlstate, at, unknown) in [
        ("ERROR", "40001", 1, false),
        ("FATAL", "57P01", 1, false),
        // A COMMIT that fails did not happen; a session that ends in it may have committed.
        ("ERROR", "40001", 2, false),
        ("FATAL", "57P01", 2, true),
    ] {
        let said = error_message(severity, sqlstate, "said");
        let mut calls = 0;
        let scripted = Scripted::new(move |call: &Call| {
            calls += 1;
            if calls == at + 1 { vec![Step::Raw(said.clone()), Step::Close] } else { echo(call) }
        });
        let mut session = session(&scripted).await;
        for statement in batch {
            let params: &[Param<'_>] = if statement == GET { &[Param::I32(1)] } else { &[] };
            session.queue(statement, params);
        }
        let error = session.exchange().await.unwrap_err();
        assert!(error.is_closed() && !session.is_usable(), "{error}");
        assert_eq!(session.may_have_committed(), unknown, "{severity} at {at}");
    }
}

#[tokio::test]
async fn half_a_message_and_then_nothing_is_a_lost_connection() {
    let half = data_row(&[Some(vec![1; 100])])[..50].to_vec();
    let scripted = Scripted::new(move |_: &Call| vec![Step::Raw(half.clone()), Step::Close]);
    let mut session = session(&scripted).await;
    session.queue(GET, &[Param::I32(1)]);
    let error = session.exchange().await.unwrap_err();
    assert!(error.is_closed(), "{error}");
    assert!(error.to_string().contains("closed the connection"), "{error}");
}

#[tokio::test]
async fn wrong_messages_are_protocol_errors() {
    let wrong = [
        (vec![b'?', 0, 0, 0, 4], "'?'"),
        (vec![b'D', 0, 0, 0, 3], "length 3"),
        (vec![b'D', 0xff, 0xff, 0xff, 0xff], "length -1"),
        (vec![b'D', 0x7f, 0xff, 0xff, 0xff], "length 2147483647, taken are 4 to 67108868"),
        (vec![b'E', 4, 0, 0, 5], "message 'E' has length 67108869"),
        (vec![b'D', 0, 0, 0, 4], "cut short"),
        (vec![b'C', 0, 0, 0, 4, b'C', 0, 0, 0, 4], "2 answers to 1 executions"),
        (vec![b'1', 0, 0, 0, 4], "'1'"),
    ];
    for (bytes, fact) in wrong {
        let scripted = Scripted::new(move |_: &Call| vec![Step::Raw(bytes.clone())]);
        let mut session = session(&scripted).await;
        session.queue(GET, &[Param::I32(1)]);
        let error = session.exchange().await.unwrap_err();
        assert!(error.to_string().contains(fact), "{error}");
        assert!(!session.is_usable(), "{fact}");
    }
}

fn parameter_status(n: usize) -> Vec<u8> {
    let body = format!("p{n}\0on\0");
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [b"S".as_slice(), &length, body.as_bytes()].concat()
}

#[tokio::test]
async fn answers_without_end_are_refused() {
    let row = data_row(&[Some(vec![b'x'; 1 << 20])]);
    let rows = Scripted::new(move |_: &Call| vec![Step::Raw(row.clone()); 257]);
    let parameters =
        Scripted::new(|_: &Call| vec![Step::Raw((0..1001).flat_map(parameter_status).collect())]);
    let endless = [
        (rows, "answer has more than 268435456 bytes"),
        (parameters, "server reports more than 1000 parameters"),
    ];
    for (scripted, fact) in endless {
        let mut session = session(&scripted).await;
        session.queue(GET, &[Param::I32(1)]);
        let error = session.exchange().await.unwrap_err();
        assert!(error.to_string().contains(fact), "{error}");
        assert!(!session.is_usable(), "{fact}");
    }
}

#[tokio::test]
async fn a_greeting_is_short() {
    struct Long(Vec<u8>);
    impl Script for Long {
        fn greet(&mut self, _: usize) -> Vec<Step> {
            vec![Step::Raw(self.0.clone())]
        }
        fn call(&mut self, _: &Call) -> Vec<Step> {
            Vec::new()
        }
    }
    let greetings = [
        (vec![b'E', 0, 1, 0, 5], "message 'E' has length 65541, taken are 4 to 65540"),
        ((0..1001).flat_map(parameter_status).collect(), "more than 1000 parameters"),
    ];
    for (bytes, fact) in greetings {
        let scripted = Scripted::new(Long(bytes));
        let dialled = dial(&scripted, 1 << 16);
        let error = Session::start(dialled, &target(), &statements()).await.unwrap_err();
        assert!(error.to_string().contains(fact), "{error}");
    }
}

#[tokio::test]
async fn statement_that_the_server_refuses_is_named() {
    struct Refusing;
    impl Script for Refusing {
        fn parse(&mut self, sql: &str) -> Vec<Step> {
            if sql.starts_with("SELECT") { vec![Step::error("42P01", "no table")] } else { vec![] }
        }
        fn call(&mut self, _: &Call) -> Vec<Step> {
            Vec::new()
        }
    }
    let scripted = Scripted::new(Refusing);
    let error = Session::start(dial(&scripted, 4096), &target(), &statements()).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("42P01"));
    assert!(error.to_string().contains("prepare get"), "{error}");
}

struct Asking(Auth);

impl Script for Asking {
    fn auth(&self) -> Auth {
        self.0.clone()
    }
    fn call(&mut self, _: &Call) -> Vec<Step> {
        Vec::new()
    }
}

async fn log_in(auth: Auth, password: Option<&str>) -> Result<(), Error> {
    let mut target = target();
    target.hosts[0].password = password.map(Password::new);
    let scripted = Scripted::new(Asking(auth));
    Session::start(dial(&scripted, 4096), &target, &[]).await.map(drop)
}

#[tokio::test]
async fn passwords_are_asked_for_and_checked() {
    for auth in [Auth::Cleartext("secret".to_owned()), Auth::Md5("secret".to_owned())] {
        log_in(auth.clone(), Some("secret")).await.unwrap();
        let error = log_in(auth.clone(), Some("wrong")).await.unwrap_err();
        assert_eq!(error.sqlstate(), Some("28P01"));
        let error = log_in(auth, None).await.unwrap_err();
        assert!(error.to_string().contains("none was given"), "{error}");
    }
    let error = log_in(Auth::Unknown(7), Some("secret")).await.unwrap_err();
    assert!(error.to_string().contains("method 7"), "{error}");
}

#[test]
fn passwords_do_not_show() {
    let mut target = target();
    target.hosts[0].password = Some(Password::new("secret"));
    assert!(!format!("{target:?}").contains("secret"));
}

#[tokio::test]
async fn targets_that_mean_something_else_are_refused() {
    let option = ("user".to_owned(), "other".to_owned());
    let other = Target { options: vec![option], ..target() };
    let error = Session::connect(&other, &[]).await.unwrap_err();
    assert!(error.to_string().contains("not a server setting"), "{error}");
    let error = Session::connect(&target(), &[]).await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/.s.PGSQL.1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_given_up() {
    let folder = std::env::temp_dir().join(format!("pgdyno-wire-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    // Bound, its queue accepts; nobody ever answers.
    let _silent = std::os::unix::net::UnixListener::bind(folder.join(".s.PGSQL.5")).unwrap();
    let mut target = Target::new(folder.to_str().unwrap(), 5, "tester", "db");
    target.connect_timeout = Duration::from_secs(3);
    let error = Session::connect(&target, &[]).await.unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(error.to_string().contains("no session within 3s"), "{error}");
    assert!(error.is_closed());
}

#[tokio::test]
async fn simple_queries_return_text() {
    let scripted = Scripted::new(|_: &Call| vec![Step::Row(vec![Some(b"18".to_vec()), None])]);
    let mut session = session(&scripted).await;
    let rows = session.simple("SHOW server_version_num").await.unwrap();
    assert_eq!(rows, [[Some("18".to_owned()), None]]);
    assert_eq!(session.parameter("server_version"), Some("18.0 (scripted)"));
}

#[tokio::test]
async fn copied_bytes_arrive_as_they_were_sent() {
    let scripted = Scripted::new(|_: &Call| vec![Step::Complete("COPY 3".to_owned())]);
    let mut session = session(&scripted).await;
    let piece: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut copy = session.copy_in("COPY t FROM STDIN").await.unwrap();
    for _ in 0..3 {
        copy.send(&piece).await.unwrap();
    }
    assert_eq!(copy.finish().await.unwrap(), 3);
    assert!(session.is_usable());
    let calls = scripted.log().calls();
    assert_eq!(calls[0].params, [Some(piece.repeat(3))]);
}

/// Bytes that the server sends in answer to COPY: an invitation, then an error while data flows.
fn failing_copy() -> Vec<u8> {
    let mut bytes = vec![b'G', 0, 0, 0, 7, 0, 0, 0];
    bytes.extend(sim::error_message("ERROR", "22P02", "bad row"));
    bytes.extend([b'Z', 0, 0, 0, 5, b'I']);
    bytes
}

#[tokio::test]
async fn copy_notices_an_error_while_it_sends() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (client, mut server) = tokio::io::duplex(4096);
    tokio::spawn(async move {
        let mut bytes = vec![0; 4096];
        let _startup = server.read(&mut bytes).await.unwrap();
        server.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 0, b'Z', 0, 0, 0, 5, b'I']).await.unwrap();
        let _query = server.read(&mut bytes).await.unwrap();
        server.write_all(&failing_copy()).await.unwrap();
        // As the real server: reads on and throws away.
        while server.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    });
    let mut session = Session::start(client, &target(), &[]).await.unwrap();
    let mut copy = session.copy_in("COPY t FROM STDIN").await.unwrap();
    let piece = vec![0; 64 * 1024];
    let mut error = None;
    for _ in 0..1000 {
        if let Err(e) = copy.send(&piece).await {
            error = Some(e);
            break;
        }
    }
    assert_eq!(error.unwrap().sqlstate(), Some("22P02"));
    assert!(session.is_usable());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Decoding does not depend on how the bytes were cut on their way.
    #[test]
    fn answers_do_not_depend_on_cuts(
        buffer in 1_usize..300,
        counts in prop::collection::vec(0_i32..40, 1..6),
        amount: i64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut wanted = Vec::new();
            Decimal::new(amount, 2).encode(&mut wanted);
            let scripted = Scripted::new(move |call: &Call| {
                let mut steps = echo(call);
                for step in &mut steps {
                    if let Step::Row(fields) = step {
                        fields[1] = Some(wanted.clone());
                    }
                }
                steps
            });
            let stream = dial(&scripted, buffer);
            let mut session = Session::start(stream, &target(), &statements()).await.unwrap();
            for _round in 0..2 {
                for &count in &counts {
                    session.queue(GET, &[Param::I32(count)]);
                }
                let answers = session.exchange().await.unwrap();
                for (n, &count) in counts.iter().enumerate() {
                    let answer = answers.get(n);
                    assert_eq!(answer.len(), usize::try_from(count).unwrap());
                    for (at, row) in answer.rows().enumerate() {
                        assert_eq!(row.text(0).unwrap(), format!("row {at}"));
                        assert_eq!(row.decimal(1).unwrap(), Decimal::new(amount, 2));
                    }
                }
            }
        });
    }
}
