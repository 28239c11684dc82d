//! Latency honesty: a server that stands still delays all requests that become due meanwhile, and
//! response times must say so, each of them exactly. On virtual time, against a model of the queue.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::time::Duration;

use crate::kit::{MS, SECOND, Virtual, is_update};
use drive::{
    clock::{Clock, TokioClock},
    measure::histogram,
    schedule::arrivals::{ArrivalsSpec, Spacing},
};
use sim::{Call, Scripted, Step};

const STALL_NS: (u64, u64) = (3 * SECOND, 5 * SECOND);

/// When work that begins now is done by a server that stands still in between, as after SIGSTOP
/// and SIGCONT.
fn done_ns(begin_ns: u64, work_ns: u64) -> u64 {
    let (from_ns, until_ns) = STALL_NS;
    if begin_ns >= until_ns || begin_ns + work_ns <= from_ns {
        begin_ns + work_ns
    } else {
        let before_ns = from_ns.saturating_sub(begin_ns);
        until_ns + work_ns - before_ns
    }
}

/// A server that takes so long for every UPDATE, and stands still in the stall.
fn stalling(work_ns: u64) -> Scripted {
    // Begins with the first connection, as the run's does: connecting takes no virtual time.
    let mut clock = None;
    Scripted::new(move |call: &Call| {
        let now_ns = clock.get_or_insert_with(TokioClock::new).now_ns();
        if !is_update(call) {
            return Vec::new();
        }
        vec![Step::Wait(Duration::from_nanos(done_ns(now_ns, work_ns) - now_ns))]
    })
}

fn open(per_s: u32) -> ArrivalsSpec {
    ArrivalsSpec::Open { per_s: per_s.into(), spacing: Spacing::Even, waiting_max: 1_000_000 }
}

/// Response, queue and service times of requests that come every `gap_ns`, served in their order by
/// so many connections.
fn model(gap_ns: u64, connections: usize, work_ns: u64, until_ns: u64) -> [Vec<u64>; 3] {
    let mut free_ns = vec![0; connections];
    let (mut response, mut queue, mut service) = (Vec::new(), Vec::new(), Vec::new());
    for due_ns in (0..until_ns).step_by(usize::try_from(gap_ns).unwrap()) {
        let first = free_ns.iter_mut().min().unwrap();
        let begin_ns = due_ns.max(*first);
        *first = done_ns(begin_ns, work_ns);
        response.push(*first - due_ns);
        queue.push(begin_ns - due_ns);
        service.push(*first - begin_ns);
    }
    [response, queue, service]
}

#[test]
fn a_stall_delays_what_is_under_way_and_what_comes() {
    assert_eq!(done_ns(SECOND, 5), SECOND + 5);
    assert_eq!(done_ns(3 * SECOND - 2, 5), 5 * SECOND + 3);
    assert_eq!(done_ns(3 * SECOND, 5), 5 * SECOND + 5);
    assert_eq!(done_ns(4 * SECOND, 5), 5 * SECOND + 5);
    assert_eq!(done_ns(5 * SECOND, 5), 5 * SECOND + 5);
}

#[test]
fn open_loop_shows_a_stall_exactly_as_the_queue_has_it() {
    for (connections, per_s, work_ms) in [(1, 100, 1), (1, 200, 4), (3, 500, 5)] {
        let outcome =
            Virtual { connections, terminals: 10, arrivals: open(per_s), ..Virtual::default() }
                .run(&stalling(work_ms * MS));
        let kind = &outcome.meter.kinds[0];
        let gap_ns = SECOND / u64::from(per_s);
        let model = model(gap_ns, connections, work_ms * MS, 10 * SECOND);
        for (measured, times) in [&kind.response, &kind.queue, &kind.service].into_iter().zip(model)
        {
            let mut expected = histogram::empty();
            for ns in times {
                histogram::record(&mut expected, ns);
            }
            assert_eq!(measured, &expected, "{connections} connections, {per_s}/s");
        }
        assert_eq!(outcome.meter.late.max(), 0, "virtual time is noticed at once");
    }
}

#[test]
fn quantiles_after_a_stall_are_those_of_the_formula() {
    let outcome =
        Virtual { terminals: 10, arrivals: open(100), ..Virtual::default() }.run(&stalling(MS));
    let response = &outcome.meter.kinds[0].response;
    assert_eq!(response.len(), 1000);
    // The k-th request due in the stall of 2 s waits for its rest and for k others of 1 ms:
    // 2 s + 1 ms - k * (10 ms - 1 ms). Above the quantile q lie (1 - q) * 1000 requests.
    for (quantile, k) in [(0.999, 1), (0.99, 10), (0.95, 50), (0.9, 100), (0.85, 150)] {
        let expected_ns = 2 * SECOND + MS - k * 9 * MS;
        let measured_ns = response.value_at_quantile(quantile);
        let wide = expected_ns / 1000; // of a bucket
        assert!(measured_ns.abs_diff(expected_ns) <= wide, "{quantile}: {measured_ns}");
    }
    // Nobody else saw it: up to k = 222 that is more than the 1 ms which the others took.
    assert_eq!(response.count_between(0, MS + MS / 100), 1000 - 223);
}

/// What a closed loop makes of the same stall, and a driver that times from the sending makes of
/// any: one slow request for each connection. The response times must not look like that.
#[test]
fn stall_is_not_hidden_behind_the_requests_that_were_under_way() {
    let outcome =
        Virtual { connections: 4, terminals: 40, arrivals: open(100), ..Virtual::default() }
            .run(&stalling(MS));
    let kind = &outcome.meter.kinds[0];
    assert_eq!(kind.service.count_between(SECOND, 3 * SECOND), 4, "were under way");
    let waited = kind.response.count_between(SECOND, 3 * SECOND);
    // The k-th due in the stall is answered k / 4 ms after its end: 2001 + k / 4 - 10 k > 1000 ms.
    assert_eq!(waited, 103, "waited for more than a second");
    assert!(kind.service.value_at_quantile(0.99) < 2 * MS);
    assert!(kind.response.value_at_quantile(0.99) > 1800 * MS);
}
