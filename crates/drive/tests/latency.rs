//! What is timed, and from when: on virtual time, exactly.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{io::Write as _, time::Duration};

use crate::kit::{MS, SECOND, Simple, Virtual, identity, is_update};
use drive::measure::{
    seconds::Seconds,
    times::{COLUMNS, edges_ns},
};
use sim::{Call, Scripted, Step};

/// A server that takes `ms` for every UPDATE.
fn slow(ms: u64) -> Scripted {
    Scripted::new(move |call: &Call| {
        if is_update(call) { vec![Step::Wait(Duration::from_millis(ms))] } else { Vec::new() }
    })
}

/// HDR buckets are a thousandth wide.
fn near(value_ns: u64, wanted_ns: u64) -> bool {
    value_ns.abs_diff(wanted_ns) <= wanted_ns / 500 + 2 * MS
}

#[test]
fn closed_loop_without_thinking_follows_the_server() {
    let outcome = Virtual::default().run(&slow(100));
    let counts = outcome.window(0);
    assert!((98..=100).contains(&counts.succeeded), "{counts:?}");
    let kind = &outcome.meter.kinds[0];
    assert!(near(kind.response.max(), 100 * MS) && near(kind.service.min(), 100 * MS));
    let committed: u64 = outcome.meter.committed[0].0.iter().sum();
    assert_eq!(committed, outcome.run(0).succeeded);
    assert_eq!(outcome.meter.work.executions, 3 * counts.succeeded);
    assert_eq!(outcome.meter.work.exchanges, 3 * counts.succeeded);
}

#[test]
fn thinking_and_keying_are_not_response_time() {
    let mut workload = Simple::new(1);
    (workload.keying_ns, workload.think_ns) = (300 * MS, 600 * MS);
    let outcome =
        Virtual { workload, window_ns: 10_500 * MS, ..Virtual::default() }.run(&slow(100));
    // One cycle is 300 + 100 + 600 ms, and the first begins with 600 ms of thinking.
    assert_eq!(outcome.window(0).succeeded, 10, "{:?}", outcome.window(0));
    assert!(near(outcome.meter.kinds[0].response.max(), 100 * MS));
}

/// Each second's times are a part of the window's, to half an octave, and nothing is lost: with
/// a begin and an end on whole seconds, and none carried out, the sums are those of its histogram.
#[test]
fn times_over_time_add_up_to_those_of_the_window() {
    let by_turns = Scripted::new(|call: &Call| {
        if !is_update(call) {
            return Vec::new();
        }
        let ms = [3, 40, 3, 900][usize::try_from(identity(call).1 % 4).unwrap()];
        vec![Step::Wait(Duration::from_millis(ms))]
    });
    let mut workload = Simple::new(1);
    workload.rollback_every = 5;
    let outcome = Virtual {
        workload,
        terminals: 7,
        connections: 3,
        window_ns: 9 * SECOND,
        ..Virtual::default()
    }
    .run(&by_turns);
    let meter = &outcome.meter;
    let (edges, kind) = (edges_ns(), &meter.kinds[0]);
    assert_eq!(meter.times.step_s(), 1);
    for (number, pair) in edges.windows(2).enumerate() {
        let counted: u64 = meter.times.column(number).iter().sum();
        // Buckets of a thousandth begin where columns do, so both hold the same requests.
        let wanted = kind.response.count_between(pair[0].max(1), pair[1] - 1);
        assert_eq!(counted, wanted, "{} to {} ns", pair[0], pair[1]);
    }
    let counts = outcome.run(0);
    assert!(counts.rolled_back > 0 && counts.succeeded > 0, "{counts:?}");
    assert_eq!(meter.times.total(), counts.rolled_back + counts.succeeded);
    let ended =
        |second: usize| (0..COLUMNS).map(|number| meter.times.column(number)[second]).sum::<u64>();
    let of = |seconds: &Seconds, second: usize| seconds.0.get(second).copied().unwrap_or(0);
    for second in 0..meter.times.rows() {
        let wanted = of(&meter.committed[0], second) + of(&meter.rolled_back, second);
        assert_eq!(ended(second), wanted, "second {second}");
    }
}

/// Coordinated omission: a server that stalls delays the requests that became due meanwhile, and
/// each of them must show it, not only the one that was under way.
#[test]
fn stall_is_seen_by_every_request_that_was_due_meanwhile() {
    let mut stalled = false;
    let scripted = Scripted::new(move |call: &Call| {
        if !is_update(call) {
            return Vec::new();
        }
        let pause_ms = if !stalled && identity(call).1 == 5 { 1000 } else { 1 };
        stalled |= pause_ms == 1000;
        vec![Step::Wait(Duration::from_millis(pause_ms))]
    });
    // 50 terminals asking every 100 ms over one connection: 500 requests a second.
    let mut workload = Simple::new(1);
    workload.think_ns = 100 * MS;
    let outcome = Virtual { workload, terminals: 50, window_ns: 5 * SECOND, ..Virtual::default() }
        .run(&scripted);
    let kind = &outcome.meter.kinds[0];
    let slow =
        |histogram: &hdrhistogram::Histogram<u64>| histogram.count_between(500 * MS, 2 * SECOND);
    // All 50 terminals ran into the stall and became due within its first 100 ms.
    assert_eq!(slow(&kind.service), 1, "one request was under way");
    assert_eq!(slow(&kind.response), 50, "all terminals waited");
    assert!(near(kind.response.max(), 1000 * MS) || kind.response.max() > 1000 * MS);
    // And where it was: they all ended in the second in which it did, and none of them before.
    let slow_in = |second: usize| {
        let columns = edges_ns().iter().position(|&edge| edge >= 400 * MS).unwrap()..COLUMNS;
        columns.map(|number| outcome.meter.times.column(number)[second]).sum::<u64>()
    };
    let seconds: Vec<u64> = (0..outcome.meter.times.rows()).map(slow_in).collect();
    let stalled_in = seconds.iter().position(|&slow| slow > 0).unwrap();
    assert!(seconds[stalled_in] >= 50, "{seconds:?}");
    assert_eq!(seconds[..stalled_in].iter().sum::<u64>(), 0);
}

#[test]
fn many_terminals_share_few_connections_in_the_order_of_their_due_times() {
    let outcome = Virtual { terminals: 20, connections: 2, ..Virtual::default() }.run(&slow(100));
    let kind = &outcome.meter.kinds[0];
    // 20 requests are always due, two are performed: each waits for ten rounds.
    assert!(near(kind.response.value_at_quantile(0.5), SECOND), "{}", kind.response.max());
    assert!(near(kind.response.max(), SECOND), "the longest due goes first");
    assert!(near(kind.service.max(), 100 * MS));
    // Nobody starves: requests of each terminal are performed in turn.
    let mut numbers = vec![Vec::new(); 20];
    for &(terminal, number) in &outcome.meter.audit.requests {
        numbers[usize::try_from(terminal).unwrap()].push(number);
    }
    for of_one in numbers {
        assert!((8..=10).contains(&of_one.len()), "{of_one:?}");
        assert!(of_one.windows(2).all(|pair| pair[1] == pair[0] + 1), "{of_one:?}");
    }
}

#[test]
fn deferred_requests_do_not_hold_up_their_terminal() {
    let mut workload = Simple::new(1);
    workload.deferred_every = 2;
    workload.think_ns = SECOND;
    // Deferred ones take a second: would the terminal wait, a cycle of two were 3 s long.
    let scripted = Scripted::new(|call: &Call| {
        let slow = is_update(call) && identity(call).1 % 2 == 1;
        if slow { vec![Step::Wait(Duration::from_secs(1))] } else { Vec::new() }
    });
    let outcome =
        Virtual { workload, connections: 2, window_ns: 20 * SECOND, ..Virtual::default() }
            .run(&scripted);
    let (work, background) = (outcome.window(0), outcome.window(1));
    assert!((9..=10).contains(&work.succeeded), "{work:?}");
    assert!((9..=10).contains(&background.due), "{background:?}");
    let deferred = &outcome.meter.kinds[1];
    assert!(near(deferred.response.max(), SECOND), "from its own due time");
    assert!(outcome.meter.kinds[0].response.max() < 2 * MS);
}

#[test]
fn closed_loop_cannot_run_away_from_its_deferred_requests() {
    let mut workload = Simple::new(1);
    workload.deferred_every = 1; // nothing else
    let outcome = Virtual {
        workload,
        terminals: 7,
        deferred_max: 3,
        window_ns: SECOND,
        ..Virtual::default()
    }
    .run(&slow(10));
    let counts = outcome.window(1);
    // Queued: three, and one more of each waiting terminal; one is in flight.
    let carried = counts.unfinished;
    assert!(carried <= 3 + 7 + 1, "{counts:?}");
    assert!((95..=100).contains(&counts.succeeded), "{counts:?}");
}

#[test]
fn ten_thousand_terminals_share_four_connections() {
    let mut workload = Simple::new(1);
    workload.think_ns = 10 * SECOND;
    workload.keying_ns = 10 * SECOND;
    let scripted = Scripted::new(|_: &Call| Vec::new());
    let outcome = Virtual {
        workload,
        terminals: 10_000,
        connections: 4,
        window_ns: 30 * SECOND,
        ..Virtual::default()
    }
    .run(&scripted);
    assert_eq!(outcome.window(0).succeeded, 10_000, "each asked once, at 20 s");
}

#[test]
fn window_counts_what_ended_in_it_and_times_what_was_waited_for() {
    // Each request takes 400 ms: one runs across the window's begin and one across its end.
    let outcome =
        Virtual { warmup_ns: SECOND, window_ns: SECOND, ..Virtual::default() }.run(&slow(400));
    let counts = outcome.window(0);
    assert_eq!((counts.due, counts.succeeded, counts.unfinished), (3, 2, 1), "{counts:?}");
    let run = outcome.run(0);
    assert_eq!((run.due, run.succeeded, run.unfinished), (5, 5, 0), "the drain ends it: {run:?}");
    assert_eq!((counts.drained, counts.unanswered), (1, 0));
    assert_eq!(outcome.meter.kinds[0].response.len(), 3, "the drained one, too");
}

#[test]
fn early_stop_shortens_the_window() {
    let outcome =
        Virtual { stop_after_ns: Some(3 * SECOND + MS), ..Virtual::default() }.run(&slow(100));
    let counts = outcome.window(0);
    assert!((28..=30).contains(&counts.succeeded), "{counts:?}");
    assert!(outcome.shared.is_stopped() && outcome.lasted_ns < 4 * SECOND);

    let outcome =
        Virtual { warmup_ns: 5 * SECOND, stop_after_ns: Some(SECOND), ..Virtual::default() }
            .run(&slow(100));
    assert_eq!(outcome.window(0), drive::measure::counts::Counts::default(), "there was no window");
    assert!(outcome.run(0).succeeded > 0);
}

#[test]
fn drain_ends_and_what_is_still_in_flight_is_unfinished() {
    let outcome = Virtual {
        window_ns: SECOND,
        drain_ns: 2 * SECOND,
        connections: 2,
        terminals: 3,
        ..Virtual::default()
    }
    .run(&slow(60_000));
    let counts = outcome.run(0);
    assert_eq!((counts.due, counts.succeeded, counts.unfinished), (3, 0, 3), "{counts:?}");
    assert_eq!(outcome.lasted_ns / SECOND, 3);
}

/// The text of a histogram that says it has so many bytes of counts, and has these.
fn told(counts_bytes: u32, counts: &[u8]) -> String {
    let mut plain = 0x1c84_9313_u32.to_be_bytes().to_vec();
    for word in [counts_bytes, 0, 3] {
        plain.extend(word.to_be_bytes());
    }
    plain.extend([1_u64.to_be_bytes(), 3_600_000_000_000_u64.to_be_bytes()].as_flattened());
    plain.extend(1.0_f64.to_be_bytes());
    plain.extend(counts);
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&plain).unwrap();
    let packed = packed.finish().unwrap();
    let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(packed.len()).unwrap().to_be_bytes());
    bytes.extend(packed);
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes)
}

#[test]
fn a_histogram_takes_no_more_memory_than_one_can_need() {
    let decode = drive::measure::histogram::decode;
    assert_eq!(decode(&told(1, &[4])).unwrap().len(), 2);
    let megabytes = vec![0; 64 << 20];
    for text in [told(u32::MAX, &[4]), told(64 << 20, &megabytes)] {
        let error = decode(&text).unwrap_err().to_string();
        assert!(error.contains("as many bytes as it says, or too many"), "{error}");
    }
}
