//! The loop of one connection: take the request that has been due the longest, perform it, record
//! it; connect again when the connection was lost.

use std::time::Duration;

use tokio::time::sleep;
use wire::{Session, Timestamp};
use workload::{Workload, digest::mix};

use crate::{
    clock::Clock,
    connection::{
        opener::Opener,
        retry::{Ending, Failure, Repetition, until_done},
    },
    measure::{
        meter::Record,
        statements::{Slower, Stopwatch},
    },
    schedule::queue::Job,
    worker::Worker,
};

const BACK_OFF_FIRST_MS: u64 = 50;
const BACK_OFF_MAX_MS: u64 = 2_000;

/// Performs requests until the run ends.
pub async fn run_client<W: Workload, K: Clock, D: Opener>(
    worker: &Worker<W, K, D>,
    slot: usize,
    mut session: Session<D::Stream>,
) {
    loop {
        let Some(failure) = serve(worker, slot, &mut session).await else { break };
        worker.shared.lost(worker.clock.now_ns());
        drop(session);
        match connect_again(worker, slot, failure).await {
            Some(again) => session = again,
            None => return,
        }
    }
    worker.hang_up(slot);
    // The measurement is over; what the server makes of the goodbye changes nothing.
    let _best_effort = session.close().await;
}

/// Performs requests until the run ends (`None`) or the connection is lost.
#[expect(clippy::await_holding_refcell_ref, reason = "the worker looks when this task is no more")]
async fn serve<W: Workload, K: Clock, D: Opener>(
    worker: &Worker<W, K, D>,
    slot: usize,
    session: &mut Session<D::Stream>,
) -> Option<Box<Failure>> {
    let mut laps = worker.laps[slot].borrow_mut();
    let timer = timer(worker);
    let slower = worker.slowdowns.as_ref().zip(timer.as_ref());
    let slower = slower.map(|(slowdowns, timer)| Slower { slowdowns, timer });
    while let Some((job, taken_ns)) = worker.next(slot).await {
        let Job { head, request } = &job;
        let now = micros(worker.timeline.unix_ns(taken_ns));
        let repeated = |retries| {
            let now_ns = worker.clock.now_ns();
            worker.meter.borrow_mut().retry(head, retries, now_ns, worker.window());
        };
        let limits = Repetition {
            most: worker.retries_max,
            ident: [worker.seed, head.id.into(), head.number],
        };
        let entry = worker.enter(head, request, now, taken_ns);
        let (clock, groups) = (&worker.clock, &worker.groups);
        let watch = Stopwatch { clock, groups, laps: &mut laps, slower };
        let (ending, work) =
            until_done(&*worker.workload, session, request, now, limits, watch, repeated).await;
        let ended_ns = worker.clock.now_ns();
        worker.enter_end(entry, ended_ns, &ending);
        assert!(head.due_ns <= taken_ns, "a request was taken up before it was due");
        let record = Record { head, taken_ns, ended_ns, ending: &ending, work, laps: &laps };
        worker.answered(slot, &record, request);
        if let Ending::Failed(failure) = ending
            && failure.lost
        {
            return Some(failure);
        }
    }
    None
}

/// What a connection's exchanges are delayed by; only where any are made slower.
///
/// # Panics
///
/// When the kernel has no timer left: a run that was to be slower and is not would be a wrong
/// answer.
fn timer<W: Workload, K: Clock, D: Opener>(worker: &Worker<W, K, D>) -> Option<K> {
    worker.slowdowns.as_ref()?;
    Some(worker.clock.another().expect("a timer for each connection"))
}

fn micros(unix_ns: u64) -> Timestamp {
    Timestamp::from_unix_micros(i64::try_from(unix_ns / 1_000).unwrap_or(i64::MAX))
}

/// Tries until it succeeds or the run ends, with growing pauses. When no connection of the whole
/// run stands for too long, gives the run up.
async fn connect_again<W: Workload, K: Clock, D: Opener>(
    worker: &Worker<W, K, D>,
    slot: usize,
    failure: Box<Failure>,
) -> Option<Session<D::Stream>> {
    let mut reason = failure.text;
    for attempt in 0.. {
        let now_ns = worker.clock.now_ns();
        if now_ns >= worker.window().until_ns {
            return None;
        }
        let alone_ns = worker.shared.alone_ns(now_ns);
        if alone_ns >= worker.give_up_ns {
            let seconds = alone_ns / 1_000_000_000;
            let why =
                format!("no connection to {} for {seconds} s: {reason}", worker.opener_of(slot));
            worker.shared.give_up(now_ns, why);
            return None;
        }
        let pause = back_off(worker.seed, worker.seat, slot, attempt);
        worker.or_end(sleep(pause)).await?;
        match worker.or_end(worker.opener_of(slot).open()).await? {
            Ok(session) => {
                worker.shared.replaced(worker.clock.now_ns());
                worker.keep_key(slot, session.cancel_key());
                return Some(session);
            }
            Err(error) => reason = error.to_string(),
        }
    }
    None
}

/// 50 ms, doubled with each attempt up to 2 s, of which a random half is left out so that
/// connections lost together do not come back together.
fn back_off(seed: u64, worker: usize, slot: usize, attempt: u32) -> Duration {
    let full = (BACK_OFF_FIRST_MS << attempt.min(10)).min(BACK_OFF_MAX_MS) * 1_000;
    let random = mix(&[seed, worker as u64, slot as u64, attempt.into()]);
    Duration::from_micros(full / 2 + random % (full / 2))
}

#[cfg(test)]
mod tests {
    use super::{BACK_OFF_MAX_MS, back_off};
    use std::time::Duration;

    #[test]
    fn back_off_grows_to_its_limit_and_depends_on_the_seed() {
        assert!((25..50).contains(&back_off(1, 0, 0, 0).as_millis()));
        assert!((50..100).contains(&back_off(1, 0, 0, 1).as_millis()));
        for attempt in 6..200 {
            let pause = back_off(7, 0, 3, attempt);
            assert!(pause >= Duration::from_millis(BACK_OFF_MAX_MS / 2));
            assert!(pause < Duration::from_millis(BACK_OFF_MAX_MS));
        }
        assert_eq!(back_off(1, 0, 2, 3), back_off(1, 0, 2, 3));
        assert_ne!(back_off(1, 0, 2, 3), back_off(2, 0, 2, 3));
        assert_ne!(back_off(1, 0, 2, 3), back_off(1, 1, 2, 3), "another thread");
    }
}
