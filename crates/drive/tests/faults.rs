//! Errors, retries, lost connections: how they count, and what is sent again. On virtual time.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::kit::{MS, SECOND, Simple, Virtual, identity, is_update};
use proptest::prelude::*;
use sim::{Call, Script, Scripted, Step};

/// Fails the first `times` attempts of request `number` of every terminal.
fn failing(sqlstate: &'static str, number: i64, times: u32) -> Scripted {
    let mut seen: HashMap<(i32, i64), u32> = HashMap::new();
    Scripted::new(move |call: &Call| {
        if !is_update(call) {
            return Vec::new();
        }
        let (terminal, at, _) = identity(call);
        let attempts = seen.entry((terminal, at)).or_default();
        *attempts += 1;
        let pause = Step::Wait(Duration::from_millis(100));
        if at == number && *attempts <= times {
            vec![pause, Step::error(sqlstate, "scripted")]
        } else {
            vec![pause]
        }
    })
}

#[test]
fn retries_keep_the_slot_and_the_due_time_and_send_the_same() {
    for (sqlstate, serialization, deadlock) in [("40001", 3, 0), ("40P01", 0, 3)] {
        let scripted = failing(sqlstate, 4, 3);
        let outcome = Virtual::default().run(&scripted);
        let counts = outcome.window(0);
        assert_eq!(counts.failed, 0);
        assert_eq!((counts.retries_40001, counts.retries_40p01), (serialization, deadlock));
        assert_eq!(outcome.meter.retries.0.iter().sum::<u64>(), 3);
        // Four attempts of 100 ms count as one request of 400 ms.
        let slowest = outcome.meter.kinds[0].response.max();
        assert!((400 * MS..420 * MS).contains(&slowest), "{slowest}");
        assert_eq!(outcome.meter.kinds[0].response.count_between(150 * MS, SECOND), 1);
        let attempts: Vec<_> = scripted
            .log()
            .calls()
            .iter()
            .filter(|call| is_update(call) && identity(call).1 == 4)
            .map(identity)
            .collect();
        assert_eq!(attempts.len(), 4);
        assert!(attempts.iter().all(|attempt| *attempt == attempts[0]), "{attempts:?}");
        let rollbacks = scripted.log().calls().iter().filter(|c| c.sql == "ROLLBACK").count();
        assert_eq!(rollbacks, 3, "one between two attempts");
    }
}

#[test]
fn retries_end_at_their_limit() {
    let outcome = Virtual { retries_max: 2, ..Virtual::default() }.run(&failing("40001", 0, 99));
    let counts = outcome.window(0);
    assert_eq!((counts.failed, counts.retries_40001, counts.unknown), (1, 2, 0));
    assert_eq!(outcome.meter.errors["40001"].count, 1);
}

#[test]
fn other_errors_fail_the_request_once_and_the_terminal_goes_on() {
    let scripted = failing("23505", 2, 99);
    let outcome = Virtual { terminals: 3, ..Virtual::default() }.run(&scripted);
    let counts = outcome.window(0);
    assert_eq!((counts.failed, counts.unknown), (3, 0), "one of each terminal");
    assert!(counts.succeeded > 80);
    let failures = &outcome.meter.errors["23505"];
    assert_eq!(failures.count, 3);
    assert!(failures.example.contains("scripted"), "{}", failures.example);
    assert_eq!(outcome.meter.failed.0.iter().sum::<u64>(), 3);
    assert_eq!(outcome.shared.reconnects(), 0);
}

/// Closes the connection at the `nth` call whose statement begins so.
fn closing(word: &'static str, nth: u32) -> Scripted {
    let mut seen = 0;
    Scripted::new(move |call: &Call| {
        let pause = Step::Wait(Duration::from_millis(10));
        seen += u32::from(call.sql.starts_with(word));
        if call.sql.starts_with(word) && seen == nth {
            return vec![pause, Step::Close];
        }
        vec![pause]
    })
}

#[test]
fn lost_connections_are_counted_and_replaced() {
    for (word, unknown) in [("UPDATE", 0), ("COMMIT", 1)] {
        let scripted = closing(word, 7);
        let outcome = Virtual { connections: 2, terminals: 4, ..Virtual::default() }.run(&scripted);
        let counts = outcome.window(0);
        assert_eq!((counts.failed, counts.unknown), (1, unknown), "{word}");
        assert_eq!(outcome.meter.errors["connection lost"].count, 1);
        assert_eq!(outcome.shared.reconnects(), 1);
        let gaps = outcome.shared.gaps(&outcome.shared.follow().borrow().unwrap());
        let lasted_ms = (gaps[0].end_unix_ns.unwrap() - gaps[0].start_unix_ns) / 1_000_000;
        assert_eq!((gaps.len(), gaps[0].connections), (1, 1));
        assert!((25..60).contains(&lasted_ms), "the first pause of the back-off: {lasted_ms} ms");
        assert_eq!(scripted.connections(), 3);
        // Both connections were used to the end: 10 s of 30 ms on each.
        assert!(counts.succeeded > 600, "{counts:?}");
    }
}

/// Lets the first clients in, later ones after a while only.
struct Outage {
    connections: usize,
    refused: Arc<AtomicU64>,
    refusals: u64,
    calls: u32,
}

impl Script for Outage {
    fn greet(&mut self, connection: usize) -> Vec<Step> {
        if connection < self.connections || self.refused.load(Relaxed) >= self.refusals {
            return Vec::new();
        }
        self.refused.fetch_add(1, Relaxed);
        vec![Step::fatal("57P03", "the database system is starting up")]
    }

    fn call(&mut self, _: &Call) -> Vec<Step> {
        self.calls += 1;
        if self.calls > 100 && self.refused.load(Relaxed) == 0 {
            return vec![Step::fatal("57P01", "terminating connection")];
        }
        vec![Step::Wait(Duration::from_millis(10))]
    }
}

#[test]
fn outage_is_survived_and_its_wait_is_response_time() {
    let refused = Arc::new(AtomicU64::new(0));
    let script = Outage { connections: 2, refused: Arc::clone(&refused), refusals: 8, calls: 0 };
    let outcome =
        Virtual { connections: 2, terminals: 6, ..Virtual::default() }.run(&Scripted::new(script));
    let counts = outcome.window(0);
    assert_eq!(outcome.meter.errors["connection lost"].count, 2, "those in flight");
    assert!(outcome.meter.errors["connection lost"].example.contains("57P01"));
    assert_eq!((counts.failed, outcome.shared.reconnects()), (2, 2));
    // Four refusals each: pauses of about 50 + 100 + 200 + 400 + 800 ms, half of it at least.
    let waited = &outcome.meter.kinds[0].response;
    assert!(waited.count_between(700 * MS, 3 * SECOND) >= 4, "the others waited");
    assert!(outcome.shared.gave_up().is_none());
}

#[test]
fn run_is_given_up_when_no_server_answers_for_long() {
    let refused = Arc::new(AtomicU64::new(0));
    let script = Outage { connections: 2, refused, refusals: u64::MAX, calls: 0 };
    let outcome = Virtual {
        connections: 2,
        terminals: 6,
        window_ns: 600 * SECOND,
        give_up_ns: 30 * SECOND,
        ..Virtual::default()
    }
    .run(&Scripted::new(script));
    let why = outcome.shared.gave_up().unwrap();
    assert!(why.contains("the scripted server") && why.contains("57P03"), "{why}");
    assert!((30..36).contains(&(outcome.lasted_ns / SECOND)), "{}", outcome.lasted_ns);
    let counts = outcome.run(0);
    assert!(counts.succeeded > 0 && counts.unfinished == 6, "kept: {counts:?}");
}

#[test]
fn connection_lost_in_the_drain_ends_the_run_quietly() {
    let mut calls = 0;
    let scripted = Scripted::new(move |_: &Call| {
        calls += 1;
        // In flight when the window ends after a second.
        if calls == 2 { vec![Step::Wait(Duration::from_secs(2)), Step::Close] } else { vec![] }
    });
    let outcome = Virtual { window_ns: SECOND, ..Virtual::default() }.run(&scripted);
    assert_eq!(outcome.lasted_ns / SECOND, 2);
    let (run, window) = (outcome.run(0), outcome.window(0));
    assert_eq!((run.due, run.failed, run.unfinished), (1, 1, 0));
    assert_eq!((window.due, window.failed, window.unfinished), (1, 0, 1));
}

/// One choice for each call: what goes wrong, and how long it takes.
#[derive(Clone, Debug)]
enum Fate {
    Answer(u64),
    Fail(&'static str),
    Close(u64),
    Fatal,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        // Time must pass: without a pause the virtual clock stands still.
        12 => (1_u64..300).prop_map(Fate::Answer),
        1 => prop_oneof![Just("40001"), Just("40P01"), Just("23505")].prop_map(Fate::Fail),
        1 => (1_u64..100).prop_map(Fate::Close),
        1 => Just(Fate::Fatal),
    ];
    prop::collection::vec(fate, 1..60)
}

fn fateful(fates: Vec<Fate>) -> Scripted {
    let mut calls = 0;
    Scripted::new(move |_: &Call| {
        calls += 1;
        let wait = |ms: u64| Step::Wait(Duration::from_millis(ms));
        match fates[calls % fates.len()] {
            Fate::Answer(ms) => vec![wait(ms)],
            Fate::Fail(sqlstate) => vec![wait(1), Step::error(sqlstate, "fate")],
            Fate::Close(ms) => vec![wait(ms), Step::Close],
            Fate::Fatal => vec![wait(1), Step::fatal("57P01", "fate")],
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens, no request is lost or counted twice, in the run and in its window. The
    /// worker asserts it; here the sums are checked against what the server saw.
    #[test]
    fn requests_are_conserved(
        fates in fates(),
        connections in 1_usize..5,
        terminals in 1_u32..12,
        think_ms in prop_oneof![Just(0_u64), 1_u64..500],
        keying_ms in prop_oneof![Just(0_u64), 1_u64..300],
        deferred_every in 0_u64..4,
        rollback_every in 0_u64..5,
        warmup_ms in prop_oneof![Just(0_u64), 1_u64..2000],
        window_ms in 1_u64..4000,
        drain_ms in 0_u64..1000,
        stop_ms in prop::option::of(1_u64..5000),
    ) {
        let mut workload = Simple::new(3);
        (workload.think_ns, workload.keying_ns) = (think_ms * MS, keying_ms * MS);
        (workload.deferred_every, workload.rollback_every) = (deferred_every, rollback_every);
        let scripted = fateful(fates);
        let outcome = Virtual {
            workload,
            connections,
            terminals,
            warmup_ns: warmup_ms * MS,
            window_ns: window_ms * MS,
            drain_ns: drain_ms * MS,
            deferred_max: connections,
            stop_after_ns: stop_ms.map(|ms| ms * MS),
            ..Virtual::default()
        }
        .run(&scripted);
        let calls = scripted.log().calls();
        let mut ended = 0;
        for kind in 0..2 {
            let (run, window) = (outcome.run(kind), outcome.window(kind));
            run.assert_conserved("run");
            window.assert_conserved("window");
            prop_assert!(window.succeeded <= run.succeeded && window.failed <= run.failed);
            prop_assert!(window.due <= run.due && run.unknown <= run.failed);
            ended += run.succeeded;
        }
        let failed: u64 = outcome.meter.errors.values().map(|failures| failures.count).sum();
        prop_assert_eq!(failed, outcome.run(0).failed + outcome.run(1).failed);
        // Each success was a COMMIT that the server answered.
        let commits = calls.iter().filter(|call| call.sql == "COMMIT").count();
        prop_assert!(ended <= u64::try_from(commits).unwrap());
        // No request was performed twice to its end, and each terminal's were drawn in turn.
        let mut done = outcome.meter.audit.requests.clone();
        done.sort_unstable();
        let all = done.len();
        done.dedup();
        prop_assert_eq!(all, done.len());
    }
}
