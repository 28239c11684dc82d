//! Two of the 28 known ways in which drivers depart from TPC-C lie in the driver, not in the
//! workload. The others are tested in `crates/workload/tests/tpcc`.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::time::Duration;

use crate::kit::{MS, SECOND, Simple, Virtual, identity, is_update};
use sim::{Call, Scripted, Step};

#[test]
fn trap_20_response_time_begins_when_the_request_is_due_not_when_it_is_sent() {
    let scripted = Scripted::new(|call: &Call| {
        if is_update(call) { vec![Step::Wait(Duration::from_millis(100))] } else { Vec::new() }
    });
    let mut workload = Simple::new(1);
    workload.keying_ns = 300 * MS;
    // Ten terminals come to one connection at the same time after each keying.
    let run = Virtual { workload, terminals: 10, ..Virtual::default() };
    let outcome = run.run(&scripted);
    let kind = &outcome.meter.kinds[0];
    assert!(kind.service.max() < 120 * MS, "the server takes 100 ms: {}", kind.service.max());
    // Nine wait for the connection before the last one: 1000 ms, less the 300 ms of its keying.
    let median = kind.response.value_at_quantile(0.5);
    assert!((650 * MS..750 * MS).contains(&median), "waiting is response time: {median}");
}

#[test]
fn trap_21_only_what_was_committed_counts_as_throughput() {
    // Every third request fails for good, every fourth of a terminal is repeated once.
    let mut repeated = std::collections::HashSet::new();
    let scripted = Scripted::new(move |call: &Call| {
        if !is_update(call) {
            return Vec::new();
        }
        let (_, number, _) = identity(call);
        let pause = Step::Wait(Duration::from_millis(100));
        if number % 3 == 1 {
            vec![pause, Step::error("23514", "scripted")]
        } else if number % 4 == 0 && repeated.insert(number) {
            vec![pause, Step::error("40001", "scripted")]
        } else {
            vec![pause]
        }
    });
    let mut workload = Simple::new(1);
    workload.rollback_every = 5;
    let run = Virtual { workload, window_ns: 30 * SECOND, ..Virtual::default() };
    let outcome = run.run(&scripted);
    let counts = outcome.run(0);
    assert!(counts.failed > 50 && counts.rolled_back > 20 && counts.retries_40001 > 20);
    let ended = counts.succeeded + counts.rolled_back + counts.failed;
    assert_eq!(counts.due, ended + counts.skipped + counts.unfinished, "{counts:?}");
    // Neither errors, nor rollbacks, nor repetitions.
    let committed: u64 = outcome.meter.committed[0].0.iter().sum();
    assert_eq!(committed, counts.succeeded);
    let sent = scripted.log().calls();
    let commits = sent.iter().filter(|call| call.sql == "COMMIT").count() as u64;
    assert_eq!(commits, counts.succeeded);
}
