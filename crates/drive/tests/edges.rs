//! A stall of the server at the start, in the middle and at the end of the window shows the same:
//! in every request that somebody waited for meanwhile. Histograms, outcomes and lower bounds of
//! the driver on virtual time, against a model that knows every request.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{cmp::Reverse, collections::BinaryHeap, fmt::Write as _, path::Path, time::Duration};

use crate::kit::{MS, Outcomes, SECOND, Simple, Virtual, is_update};
use drive::{
    clock::{Clock, TokioClock},
    measure::{counts::Counts, histogram},
    schedule::{
        arrivals::{Arrivals, ArrivalsSpec, Spacing},
        ramps::Profile,
        timeline::{Timeline, Window},
    },
};
use hdrhistogram::Histogram;
use proptest::prelude::*;
use sim::{Call, Script, Scripted, Step};

/// A server that takes so long for every UPDATE, and stands still from one instant to another.
#[derive(Clone, Copy, Debug)]
struct Stalling {
    work_ns: u64,
    stall_ns: (u64, u64),
}

impl Stalling {
    /// When work that begins now is done.
    fn done_ns(&self, begin_ns: u64) -> u64 {
        let (from_ns, until_ns) = self.stall_ns;
        if begin_ns >= until_ns || begin_ns + self.work_ns <= from_ns {
            begin_ns + self.work_ns
        } else {
            until_ns + self.work_ns - from_ns.saturating_sub(begin_ns)
        }
    }
}

/// The server, with the clock of the run: it begins with the first connection, and connecting takes
/// no virtual time.
struct Served {
    server: Stalling,
    clock: Option<TokioClock>,
}

impl Script for Served {
    fn greet(&mut self, _: usize) -> Vec<Step> {
        self.clock.get_or_insert_with(TokioClock::new);
        Vec::new()
    }

    fn call(&mut self, call: &Call) -> Vec<Step> {
        if !is_update(call) {
            return Vec::new();
        }
        let now_ns = self.clock.as_ref().unwrap().now_ns();
        vec![Step::Wait(Duration::from_nanos(self.server.done_ns(now_ns) - now_ns))]
    }
}

/// A request as the model knows it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "units come last")]
struct Wait {
    due_ns: u64,
    taken_ns: u64,
    done_ns: u64,
}

/// All requests of a run that become due before its window ends, as if the drain never ended.
fn waits(run: &Virtual, server: &Stalling) -> Vec<Wait> {
    let timeline = run.timeline(0, 0);
    (0..run.workers).flat_map(|worker| waits_of_worker(run, server, &timeline, worker)).collect()
}

/// Requests are served in the order of their due times, each by the connection that is free first.
/// A terminal of a closed loop asks again when it has thought.
fn waits_of_worker(
    run: &Virtual,
    server: &Stalling,
    timeline: &Timeline,
    worker: usize,
) -> Vec<Wait> {
    let share = run.share(worker);
    let think_ns = run.workload.think_ns;
    let mut upcoming: BinaryHeap<Reverse<u64>> = match run.arrivals {
        ArrivalsSpec::Closed {} => vec![Reverse(think_ns); share.terminals.count()].into(),
        ArrivalsSpec::Open { per_s, spacing, .. } => {
            let profile = Profile::new(&[], timeline);
            let mut arrivals = Arrivals::new(1, 0, per_s, spacing, share.terminals);
            let next = || {
                arrivals.advance(&profile);
                arrivals.peek().map(|arrival| arrival.due_ns)
            };
            std::iter::from_fn(next)
                .take_while(|due_ns| *due_ns < timeline.window.until_ns)
                .map(Reverse)
                .collect()
        }
    };
    let is_closed = run.arrivals == ArrivalsSpec::default();
    let mut free_ns = vec![0; share.connections];
    let mut waits = Vec::new();
    while let Some(Reverse(due_ns)) = upcoming.pop() {
        if due_ns >= timeline.window.until_ns {
            continue;
        }
        let first = free_ns.iter_mut().min().unwrap();
        // The virtual clock wakes sleepers at whole milliseconds.
        let taken_ns = due_ns.next_multiple_of(MS).max(*first);
        let done_ns = server.done_ns(taken_ns);
        *first = done_ns;
        waits.push(Wait { due_ns, taken_ns, done_ns });
        if is_closed {
            upcoming.push(Reverse(done_ns + think_ns));
        }
    }
    waits
}

/// What the driver must say of these.
#[derive(Debug)]
struct Expected {
    counts: Counts,
    response: Histogram<u64>,
    service: Histogram<u64>,
    queue: Histogram<u64>,
    /// Of response, service and queue.
    exact_below: [Option<u64>; 3],
    /// What it said when times were those of the requests that ended in the window.
    before: Histogram<u64>,
}

fn expected(waits: &[Wait], window: Window, end_ns: u64) -> Expected {
    let mut counts = Counts::default();
    let [mut response, mut service, mut queue, mut before] =
        std::array::from_fn(|_| histogram::empty());
    let mut exact_below = [None; 3];
    let mut bound = |of: usize, ns: u64| {
        exact_below[of] = Some(exact_below[of].map_or(ns, |least: u64| least.min(ns)));
    };
    for wait in waits.iter().filter(|wait| wait.done_ns >= window.from_ns) {
        let &Wait { due_ns, taken_ns, done_ns } = wait;
        counts.due += 1;
        let until_ns = done_ns.min(end_ns);
        histogram::record(&mut response, until_ns - due_ns);
        histogram::record(&mut queue, taken_ns.min(end_ns) - due_ns);
        if taken_ns < end_ns {
            histogram::record(&mut service, until_ns - taken_ns);
        }
        if done_ns < window.until_ns {
            counts.succeeded += 1;
            histogram::record(&mut before, done_ns - due_ns);
            continue;
        }
        counts.unfinished += 1;
        if done_ns < end_ns {
            counts.drained += 1;
            continue;
        }
        counts.unanswered += 1;
        counts.stuck += u64::from(taken_ns < window.until_ns);
        bound(0, end_ns - due_ns);
        if taken_ns < end_ns {
            bound(1, end_ns - taken_ns);
        } else {
            bound(2, end_ns - due_ns);
        }
    }
    Expected { counts, response, service, queue, exact_below, before }
}

fn of_model(run: &Virtual, server: &Stalling) -> Expected {
    let window = run.timeline(0, 0).window;
    expected(&waits(run, server), window, window.until_ns + run.drain_ns)
}

/// Runs the driver and holds all it says against the model.
fn checked(run: Virtual, server: Stalling) -> (Outcomes, Expected) {
    let model = of_model(&run, &server);
    let told = format!(
        "{server:?}, {} workers, {} connections, {} terminals, {:?}, think {}, pipelined {}",
        run.workers,
        run.connections,
        run.terminals,
        run.arrivals,
        run.workload.think_ns,
        run.workload.pipelined
    );
    let until_ns = run.timeline(0, 0).window.until_ns;
    let outcome = run.run(&Scripted::new(Served { server, clock: None }));
    let kind = &outcome.meter.kinds[0];
    assert_eq!(kind.window, model.counts, "{told}");
    for (name, measured, wanted) in [
        ("response", &kind.response, &model.response),
        ("service", &kind.service, &model.service),
        ("queue", &kind.queue, &model.queue),
    ] {
        // Compared by parts: a histogram printed whole is many pages.
        assert_eq!(measured.len(), wanted.len(), "{name}: {told}");
        for share in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let value = (measured.value_at_quantile(share), wanted.value_at_quantile(share));
            assert_eq!(value.0, value.1, "{name} at {share}: {told}");
        }
        assert!(measured == wanted, "{name} differs elsewhere: {told}");
    }
    let below = kind.exact_below;
    assert_eq!(
        [below.response, below.service, below.queue].map(drive::measure::histogram::ExactBelow::ns),
        model.exact_below
    );
    let given_up_ns = outcome.meter.given_up_ns.map(|at_ns| at_ns - until_ns);
    assert_eq!(given_up_ns.is_some(), model.counts.unanswered > 0, "{told}");
    (outcome, model)
}

fn open(per_s: f64, spacing: Spacing) -> ArrivalsSpec {
    ArrivalsSpec::Open { per_s, spacing, waiting_max: 1_000_000 }
}

/// The run of the table, with each of its loads.
fn base() -> Virtual {
    Virtual {
        connections: 4,
        terminals: 4,
        warmup_ns: 4 * SECOND,
        window_ns: 20 * SECOND,
        drain_ns: 10 * SECOND,
        ..Virtual::default()
    }
}

const WORK_NS: u64 = 40 * MS;

fn loads() -> Vec<(&'static str, Virtual)> {
    let poisson = open(60.0, Spacing::Poisson);
    vec![
        ("closed, 4 terminals", base()),
        ("closed, 40 terminals", Virtual { terminals: 40, ..base() }),
        (
            "open, even, 50/s",
            Virtual { terminals: 40, arrivals: open(50.0, Spacing::Even), ..base() },
        ),
        ("open, Poisson, 60/s", Virtual { terminals: 40, arrivals: poisson, ..base() }),
    ]
}

/// Where a stall lies, in seconds from the window's begin.
const STALLS: [(&str, f64, f64); 7] = [
    ("none", -4.0, -4.0),
    ("3 s before to 3 s after its begin", -3.0, 3.0),
    ("6 s in its middle", 7.0, 13.0),
    ("its last 3 s and 3 s after", 17.0, 23.0),
    ("its last 0.1 s and 2 s after", 19.9, 22.0),
    ("its last 3 s and for good", 17.0, 60.0),
    ("its last 0.1 s and for good", 19.9, 60.0),
];

fn server_of(run: &Virtual, from_s: f64, until_s: f64) -> Stalling {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "some seconds"
    )]
    let at = |s: f64| (run.warmup_ns as f64 / 1e9 + s).mul_add(1e3, 0.5) as u64 * MS;
    Stalling { work_ns: WORK_NS, stall_ns: (at(from_s), at(until_s)) }
}

fn ms_text(ns: u64) -> String {
    let tenths = (ns + MS / 20) / (MS / 10);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// p50, p99 and maximum in ms, lower bounds marked.
fn shown(times: &Histogram<u64>, exact_below: Option<u64>) -> String {
    let values = [times.value_at_quantile(0.5), times.value_at_quantile(0.99), times.max()];
    let text = values.map(|ns| {
        let is_bound = exact_below.is_some_and(|below| ns >= below);
        format!("{}{}", if is_bound { "≥ " } else { "" }, ms_text(ns))
    });
    text.join(" | ")
}

#[test]
fn the_table_of_the_figures_is_what_the_driver_shows() {
    let mut table = String::new();
    for (load, _) in loads() {
        for (stall, from_s, until_s) in STALLS {
            let run = loads().into_iter().find(|(name, _)| *name == load).unwrap().1;
            let server = server_of(&run, from_s, until_s);
            let (outcome, model) = checked(run, server);
            let kind = &outcome.meter.kinds[0];
            let Counts { due, drained, unanswered, .. } = kind.window;
            let now = shown(&kind.response, kind.exact_below.response.ns());
            let before = shown(&model.before, None);
            writeln!(
                table,
                "| {load} | {stall} | {before} | {now} | {due} | {drained} | {unanswered} |"
            )
            .unwrap();
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/numbers.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&table), "docs/numbers.md does not hold this table:\n{table}");
}

#[test]
fn a_pipeline_and_several_workers_show_a_stall_as_one_does() {
    for (_, mut run) in loads() {
        (run.workers, run.workload.pipelined) = (2, true);
        for (_, from_s, until_s) in [STALLS[1], STALLS[3], STALLS[5]] {
            let server = server_of(&run, from_s, until_s);
            let run = Virtual {
                workload: run.workload.clone(),
                workers: run.workers,
                terminals: run.terminals,
                arrivals: run.arrivals,
                ..base()
            };
            checked(run, server);
        }
    }
}

#[test]
fn the_statement_that_has_no_answer_is_timed_until_the_drain_ends() {
    let run = base();
    let server = server_of(&run, 17.0, 60.0);
    let (outcome, _) = checked(run, server);
    let groups =
        drive::measure::statements::Groups::new(workload::Workload::statements(&Simple::new(1)));
    let times = &outcome.meter.kinds[0].statements;
    let results = drive::measure::statements::StatementResult::all(times, &groups).unwrap();
    let update = results.iter().find(|one| one.name == "update").unwrap();
    let told = serde_json::to_value(update.ns).unwrap();
    let max_ns = told["max"].as_u64().unwrap();
    // Sent up to 40 ms before the stall, which began 13 s before the end of the drain.
    assert!((13 * SECOND..=13_200 * MS).contains(&max_ns), "{told}");
    assert!((13 * SECOND..=13_040 * MS).contains(&told["exact_below"].as_u64().unwrap()), "{told}");
    let begin = results.iter().find(|one| one.name == "begin").unwrap();
    let told = serde_json::to_value(begin.ns).unwrap();
    assert!(told.get("exact_below").is_none(), "BEGIN was answered: {told}");
    assert_eq!(begin.count, outcome.window(0).due);
}

#[test]
fn steps_have_the_times_of_what_became_due_in_them() {
    let stair =
        |factor: f64| drive::schedule::ramps::Step { seconds: 10.0, from: factor, to: factor };
    let arrivals = open(50.0, Spacing::Even);
    let steps = vec![stair(1.0), stair(1.0)];
    let run = Virtual { terminals: 40, arrivals, steps, ..base() };
    let server = server_of(&run, 17.0, 23.0);
    let outcome = run.run(&Scripted::new(Served { server, clock: None }));
    let [first, last] = [0, 1].map(|step: usize| &outcome.meter.steps[step][0]);
    assert_eq!((first.counts.due, first.counts.unfinished), (500, 0));
    assert_eq!((last.counts.due, last.counts.unfinished), (500, last.counts.drained));
    assert_eq!((first.response.len(), last.response.len()), (500, 500));
    assert!(first.response.max() < 41 * MS && last.response.max() > 6 * SECOND);
    // What came to its end while a step lasted is throughput, and does not see the drain.
    assert_eq!(outcome.meter.ended.iter().sum::<u64>(), outcome.window(0).succeeded);
}

/// A window that follows checkpoints ends by a stop: its end must say as much as a planned one's.
#[test]
fn an_early_end_is_drained_as_a_planned_one() {
    for stall in [(0, 0), (13 * SECOND, 16 * SECOND)] {
        let server = Stalling { work_ns: WORK_NS, stall_ns: stall };
        let stop_after_ns = Some(14 * SECOND);
        let stopped = Virtual { terminals: 40, stop_after_ns, ..base() };
        let planned = Virtual { terminals: 40, window_ns: 10 * SECOND, ..base() };
        let (wanted, _) = checked(planned, server);
        let outcome = stopped.run(&Scripted::new(Served { server, clock: None }));
        assert!(outcome.shared.is_stopped());
        assert_eq!(outcome.window(0), wanted.window(0));
        assert!(outcome.meter.kinds[0].response == wanted.meter.kinds[0].response);
    }
}

#[test]
fn an_overload_is_drained_as_long_as_the_drain_lasts() {
    let arrivals = open(400.0, Spacing::Even);
    let run = Virtual { terminals: 40, arrivals, window_ns: 10 * SECOND, ..base() };
    let server = server_of(&run, -4.0, -4.0);
    let (outcome, _) = checked(run, server);
    let counts = outcome.window(0);
    assert!(counts.drained >= 990 && counts.unanswered > 1_500, "{counts:?}");
    assert_eq!(counts.stuck, 0, "the server answers all the time");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever the stall lies and however long it lasts.
    #[test]
    fn any_stall_shows_in_whoever_waited_for_it(
        loop_of in 0..3_u8,
        per_s in 1.0..150.0_f64,
        gap_ms in 5_u64..60,
        (workers, per_worker) in (1_usize..4, 1_usize..4),
        more in 0_u32..20,
        think_ms in prop_oneof![Just(0_u64), 1_u64..400],
        work_ms in 1_u64..60,
        (warmup_ms, window_ms, drain_ms) in (0_u64..1_000, 200_u64..3_000, 0_u64..1_500),
        (stall_ms, lasting_ms) in (0_u64..5_000, 0_u64..4_000),
        pipelined in any::<bool>(),
    ) {
        let mut workload = Simple::new(1);
        (workload.think_ns, workload.pipelined) = (think_ms * MS, pipelined);
        let connections = workers * per_worker;
        #[expect(clippy::cast_precision_loss, reason = "a few milliseconds")]
        let arrivals = match loop_of {
            0 => ArrivalsSpec::default(),
            1 => open(1e3 / gap_ms as f64, Spacing::Even),
            _ => open(per_s, Spacing::Poisson),
        };
        let run = Virtual {
            workload, connections, workers, arrivals,
            terminals: u32::try_from(connections).unwrap() + more,
            warmup_ns: warmup_ms * MS,
            window_ns: window_ms * MS,
            drain_ns: drain_ms * MS,
            ..Virtual::default()
        };
        let stall_ns = (stall_ms * MS, (stall_ms + lasting_ms) * MS);
        let server = Stalling { work_ns: work_ms * MS, stall_ns };
        // Which of two things that happen at the same instant comes first, nobody says.
        let end_ns = (warmup_ms + window_ms + drain_ms) * MS;
        let ties = waits(&run, &server);
        prop_assume!(ties.iter().all(|wait| wait.done_ns != end_ns && wait.taken_ns != end_ns));
        checked(run, server);
    }
}
