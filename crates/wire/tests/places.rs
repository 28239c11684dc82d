//! Several servers, addresses and poolers: which one a session ends up with, and what it says when
//! there is none.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use sim::{Call, Listener, Script, Scripted, Step};
use wire::{
    ChannelBinding, Exchange, Host, Kind, Param, Prepare, Results, Roots, Session, SessionAttrs,
    SslMode, Statement, StatementId, Target, Tls, TlsOptions,
};

/// A server that says of itself what it is asked by `SHOW` or `SELECT`.
fn server(read_only: bool) -> Listener {
    let scripted = Scripted::new(move |call: &Call| {
        let (yes, no) = if call.sql.starts_with("SHOW") { ("on", "off") } else { ("t", "f") };
        let says = if read_only { yes } else { no };
        vec![Step::Row(vec![Some(says.as_bytes().to_vec())])]
    });
    Listener::start(scripted).unwrap()
}

/// A server that answers the start of a session with an error.
struct Refusing(&'static str, &'static str, Arc<Mutex<usize>>);

impl Script for Refusing {
    fn greet(&mut self, _: usize) -> Vec<Step> {
        *self.2.lock().unwrap() += 1;
        vec![Step::fatal(self.0, self.1)]
    }
    fn call(&mut self, _: &Call) -> Vec<Step> {
        Vec::new()
    }
}

fn at(listener: &Listener) -> Host {
    let host = listener.host().to_str().unwrap().to_owned();
    Host { host, hostaddr: None, port: listener.port(), password: None }
}

fn nobody() -> Host {
    Host { host: "/nowhere".to_owned(), hostaddr: None, port: 1, password: None }
}

fn target(hosts: Vec<Host>, session_attrs: SessionAttrs) -> Target {
    Target { hosts, session_attrs, ..Target::new("", 0, "tester", "db") }
}

async fn chosen(target: &Target) -> Result<bool, wire::Error> {
    let mut session = Session::connect(target, &[]).await?;
    let rows = session.simple("SHOW transaction_read_only").await?;
    Ok(rows[0][0].as_deref() == Some("on"))
}

#[tokio::test]
async fn the_first_server_that_will_do_is_taken() {
    let (standby, primary) = (server(true), server(false));
    let hosts = || vec![nobody(), at(&standby), at(&primary)];
    let cases = [
        (SessionAttrs::Any, true),
        (SessionAttrs::ReadWrite, false),
        (SessionAttrs::ReadOnly, true),
        (SessionAttrs::Primary, false),
        (SessionAttrs::Standby, true),
        (SessionAttrs::PreferStandby, true),
    ];
    for (attrs, read_only) in cases {
        assert_eq!(chosen(&target(hosts(), attrs)).await.unwrap(), read_only, "{attrs:?}");
    }
    let only_primary = target(vec![at(&primary)], SessionAttrs::PreferStandby);
    assert!(!chosen(&only_primary).await.unwrap());
    let shuffled = Target { load_balance: true, ..target(hosts(), SessionAttrs::Primary) };
    assert!(!chosen(&shuffled).await.unwrap());
}

#[tokio::test]
async fn the_error_names_every_server_and_why_it_would_not_do() {
    let standby = server(true);
    let target = target(vec![nobody(), at(&standby)], SessionAttrs::ReadWrite);
    let error = chosen(&target).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/nowhere/.s.PGSQL.1: No such file or directory; "), "{text}");
    assert!(text.contains("is read-only, target_session_attrs is read-write"), "{text}");
    assert!(error.hint().unwrap().contains("host=a,b,c"));
}

#[tokio::test]
async fn a_server_that_is_not_ready_is_passed_over_and_one_that_refuses_is_not() {
    let primary = server(false);
    for (sqlstate, goes_on) in [("57P03", true), ("57P01", true), ("28P01", false)] {
        let visits = Arc::default();
        let script = Refusing(sqlstate, "not you", Arc::clone(&visits));
        let refusing = Listener::start(Scripted::new(script)).unwrap();
        let both = target(vec![at(&refusing), at(&primary)], SessionAttrs::Any);
        let result = Session::connect(&both, &[]).await;
        assert_eq!(*visits.lock().unwrap(), 1);
        match result {
            Ok(_) => assert!(goes_on, "{sqlstate}"),
            Err(error) => {
                assert!(!goes_on, "{sqlstate}");
                assert_eq!(error.sqlstate(), Some(sqlstate));
            }
        }
    }
}

#[tokio::test]
async fn waiting_cures_a_list_of_which_one_server_is_starting() {
    let script = Refusing("57P03", "the database system is starting up", Arc::default());
    let starting = Listener::start(Scripted::new(script)).unwrap();
    let both = target(vec![at(&starting), nobody()], SessionAttrs::Any);
    let error = Session::connect(&both, &[]).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("57P03"));
}

#[tokio::test]
async fn each_address_of_a_name_is_tried_and_addresses_need_no_name() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let scripted = Scripted::new(|_: &Call| Vec::new());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(sim::serve(stream, scripted.clone()));
        }
    });
    // Where the name also stands for ::1, nobody listens there.
    let host = |host: &str, hostaddr: Option<&str>| Host {
        host: host.to_owned(),
        hostaddr: hostaddr.map(str::to_owned),
        port,
        password: None,
    };
    for host in [host("localhost", None), host("no.such.host.invalid", Some("127.0.0.1"))] {
        Session::connect(&target(vec![host], SessionAttrs::Any), &[]).await.unwrap();
    }
    let unknown = target(vec![host("no.such.host.invalid", None)], SessionAttrs::Any);
    let error = Session::connect(&unknown, &[]).await.unwrap_err();
    assert!(error.to_string().contains("no.such.host.invalid"), "{error}");
}

#[tokio::test]
async fn tls_is_asked_for_in_one_byte_and_its_absence_is_named() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 8];
            stream.read_exact(&mut request).await.unwrap();
            assert_eq!(request, [0, 0, 0, 8, 4, 210, 22, 47]);
            stream.write_all(b"N").await.unwrap();
            let scripted = Scripted::new(|_: &Call| Vec::new());
            tokio::spawn(sim::serve(stream, scripted));
        }
    });
    let mut target = Target::new("127.0.0.1", port, "tester", "db");
    let mode = |mode| Tls::new(&TlsOptions { mode, ..TlsOptions::default() }).unwrap();
    target.tls = mode(SslMode::Prefer);
    Session::connect(&target, &[]).await.unwrap();
    target.tls = mode(SslMode::Require);
    let error = Session::connect(&target, &[]).await.unwrap_err();
    let fact = format!("127.0.0.1:{port} has no TLS, sslmode is require");
    assert_eq!(error.to_string(), fact);
    assert!(error.hint().unwrap().contains("ssl = on"));
}

#[test]
fn contradictions_are_refused_with_both_values() {
    let refused = |options: &TlsOptions| Tls::new(options).unwrap_err().to_string();
    let default = TlsOptions::default;
    let direct = TlsOptions { direct: true, mode: SslMode::Prefer, ..default() };
    assert_eq!(refused(&direct), "sslnegotiation is direct, sslmode is prefer");
    let system = TlsOptions { roots: Roots::System, mode: SslMode::Require, ..default() };
    assert_eq!(refused(&system), "sslrootcert is system, sslmode is require");
    let unnamed = TlsOptions { mode: SslMode::VerifyFull, ..default() };
    assert_eq!(refused(&unnamed), "sslmode is verify-full and there is no root certificate");
    let missing = Roots::File("/nowhere/root.crt".into());
    let missing = TlsOptions { roots: missing, mode: SslMode::Require, ..default() };
    assert!(refused(&missing).starts_with("sslrootcert /nowhere/root.crt cannot be read: No such"));
}

#[tokio::test]
async fn channel_binding_is_not_satisfied_without_tls() {
    let trusting = server(false);
    let mut target = target(vec![at(&trusting)], SessionAttrs::Any);
    target.channel_binding = ChannelBinding::Require;
    let error = Session::connect(&target, &[]).await.unwrap_err();
    assert!(error.to_string().contains("asks for no SCRAM"), "{error}");
}

#[tokio::test]
async fn unnamed_statements_are_parsed_with_every_execution_in_the_same_round_trip() {
    let parsed = Arc::new(Mutex::new(Vec::new()));
    let listener = Listener::start(Scripted::new(Parsing(Arc::clone(&parsed)))).unwrap();
    let mut target = target(vec![at(&listener)], SessionAttrs::Any);
    target.prepare = Prepare::Unnamed;
    let statement = |name: &str| Statement {
        name: name.to_owned(),
        sql: format!("SELECT {name}"),
        params: vec![Kind::I32],
        results: Results::Binary,
    };
    let statements = [statement("a"), statement("b")];
    let mut session = Session::connect(&target, &statements).await.unwrap();
    for id in [0, 1, 0] {
        session.queue(StatementId(id), &[Param::I32(7)]);
    }
    assert_eq!(session.exchange().await.unwrap().len(), 3);
    assert_eq!(session.work().exchanges, 1);
    let expected = ["SELECT a", "SELECT b", "SELECT a", "SELECT b", "SELECT a"];
    assert_eq!(*parsed.lock().unwrap(), expected);
}

/// Writes down what is parsed.
struct Parsing(Arc<Mutex<Vec<String>>>);

impl Script for Parsing {
    fn parse(&mut self, sql: &str) -> Vec<Step> {
        self.0.lock().unwrap().push(sql.to_owned());
        Vec::new()
    }
    fn call(&mut self, _: &Call) -> Vec<Step> {
        Vec::new()
    }
}

#[tokio::test]
async fn what_a_pooler_refuses_comes_with_a_hint() {
    for (sqlstate, says, hint) in [
        ("08P01", "unsupported startup parameter: options", "ignore_startup_parameters"),
        ("42P05", "prepared statement \"pgdyno_0\" already exists", "unnamed"),
        ("26000", "prepared statement \"pgdyno_0\" does not exist", "unnamed"),
    ] {
        let refusing = Scripted::new(Refusing(sqlstate, says, Arc::default()));
        let refusing = Listener::start(refusing).unwrap();
        let target = target(vec![at(&refusing)], SessionAttrs::Any);
        let error = Session::connect(&target, &[]).await.unwrap_err();
        assert!(error.hint().unwrap().contains(hint), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_one_timeout_and_the_next_is_tried() {
    let folder = std::env::temp_dir().join(format!("pgdyno-wire-silent-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    // Bound, its queue accepts; nobody ever answers.
    let _silent = std::os::unix::net::UnixListener::bind(folder.join(".s.PGSQL.5")).unwrap();
    let host = folder.to_str().unwrap().to_owned();
    let silent = Host { host, hostaddr: None, port: 5, password: None };
    let mut target = target(vec![silent, nobody()], SessionAttrs::Any);
    target.connect_timeout = Duration::from_secs(3);
    let patience = Duration::from_millis(3_100); // of the paused clock
    let tried = tokio::time::timeout(patience, Session::connect(&target, &[])).await;
    std::fs::remove_dir_all(&folder).unwrap();
    let error = tried.unwrap().unwrap_err();
    assert!(error.to_string().contains("no session within 3s"), "{error}");
    assert!(error.to_string().contains("/nowhere"), "{error}");
}
