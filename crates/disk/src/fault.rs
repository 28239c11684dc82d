//! Faults of a device: for a while, calls fail or get no answer.

use std::{
    ffi::OsStr,
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::log::now_ns;

/// Longer than any server waits.
const SECONDS_MAX: f64 = 3600.0;

/// Which calls meet a fault.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Calls {
    /// What writes data, or makes room for it.
    Write,
    /// Of these, what needs room that the file system has not given yet: it makes a file, or one
    /// longer.
    Grow,
    /// What waits until data lie on the medium.
    Sync,
}

/// What they get.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// EIO: the device cannot do it.
    Error,
    /// ENOSPC: there is no room.
    Full,
    /// None, until the fault is over; then they are carried out.
    Nothing,
}

/// A fault of a device, of all of it or of a part.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// Which calls meet it.
    pub calls: Calls,
    /// What they get.
    pub answer: Answer,
    /// How long, from the first call on that meets it.
    #[schemars(range(min = 0.0, max = SECONDS_MAX))]
    pub seconds: f64,
    /// Only below this folder of the recorded one; None: anywhere.
    #[serde(default)]
    pub folder: Option<String>,
    /// Everywhere but there.
    #[serde(default)]
    pub elsewhere: bool,
}

impl FaultSpec {
    fn concerns(&self, asked: Asked) -> bool {
        let by_call = match self.calls {
            Calls::Write => asked.calls != Calls::Sync,
            Calls::Grow | Calls::Sync => asked.calls == self.calls,
        };
        let by_place = self
            .folder
            .as_ref()
            .is_none_or(|folder| (asked.top == folder.as_str()) != self.elsewhere);
        by_call && by_place
    }
}

/// A call that may meet a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// What it does: as narrow as it can be said.
    pub(crate) calls: Calls,
    /// The first name of its path.
    pub(crate) top: &'a OsStr,
}

/// The fault of a device, if it has one.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    armed: Mutex<Option<Armed>>,
    met: AtomicU64,
}

#[derive(Debug)]
struct Armed {
    fault: FaultSpec,
    lasts: Duration,
    /// When it is over, in ns of the record's clock; None: no call has met it yet.
    until_ns: Option<u64>,
}

impl Faults {
    /// From now on; one that was there is over.
    pub(crate) fn begin(&self, fault: FaultSpec) -> Result<(), String> {
        let seconds = fault.seconds;
        if !(0.0..=SECONDS_MAX).contains(&seconds) {
            return Err(format!("a fault lasts {seconds} s, allowed are 0 to {SECONDS_MAX}"));
        }
        let lasts = Duration::from_secs_f64(seconds);
        *self.armed() = Some(Armed { fault, lasts, until_ns: None });
        Ok(())
    }

    /// How many calls have met one.
    pub(crate) fn met(&self) -> u64 {
        self.met.load(Ordering::Relaxed)
    }

    /// Whether a call may meet one: else nobody need look which it is.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed().is_some()
    }

    /// A call meets it: it fails, or waits, or nothing happens.
    pub(crate) fn meet(&self, asked: Asked) -> io::Result<()> {
        let Some((answer, left)) = self.now(asked) else { return Ok(()) };
        self.met.fetch_add(1, Ordering::Relaxed);
        match answer {
            Answer::Error => Err(Errno::IO.into()),
            Answer::Full => Err(Errno::NOSPC.into()),
            Answer::Nothing => {
                thread::sleep(left);
                Ok(())
            }
        }
    }

    fn now(&self, asked: Asked) -> Option<(Answer, Duration)> {
        let mut armed = self.armed();
        let Armed { fault, lasts, until_ns } =
            armed.as_mut().filter(|one| one.fault.concerns(asked))?;
        let lasts_ns = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
        let now_ns = now_ns();
        let until_ns = *until_ns.get_or_insert(now_ns.saturating_add(lasts_ns));
        let left_ns = until_ns.checked_sub(now_ns)?;
        Some((fault.answer, Duration::from_nanos(left_ns)))
    }

    fn armed(&self) -> MutexGuard<'_, Option<Armed>> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(calls: Calls, top: &str) -> Asked<'_> {
        Asked { calls, top: OsStr::new(top) }
    }

    fn fault(answer: Answer, seconds: f64) -> FaultSpec {
        FaultSpec { calls: Calls::Write, answer, seconds, folder: None, elsewhere: false }
    }

    #[test]
    fn only_the_named_calls_meet_it_and_only_while_it_lasts() {
        let faults = Faults::default();
        let (write, sync) = (asked(Calls::Write, "base"), asked(Calls::Sync, "base"));
        assert!(faults.meet(write).is_ok());
        faults.begin(fault(Answer::Full, 3600.0)).unwrap();
        assert_eq!(faults.meet(write).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(faults.meet(asked(Calls::Grow, "base")).is_err(), "what grows, writes");
        assert!(faults.meet(sync).is_ok());
        assert_eq!(faults.met(), 2);
        faults.begin(fault(Answer::Error, 0.0)).unwrap();
        assert!(faults.meet(write).is_err(), "it begins with the first call that meets it");
        thread::sleep(Duration::from_millis(1));
        assert!(faults.meet(write).is_ok());
    }

    #[test]
    fn a_fault_of_a_part_is_met_there_alone() {
        let folder = Some("pg_wal".to_owned());
        for elsewhere in [false, true] {
            let faults = Faults::default();
            let calls = Calls::Grow;
            let spec =
                FaultSpec { calls, folder: folder.clone(), elsewhere, ..fault(Answer::Full, 9.0) };
            faults.begin(spec).unwrap();
            assert_eq!(faults.meet(asked(Calls::Grow, "pg_wal")).is_err(), !elsewhere);
            assert_eq!(faults.meet(asked(Calls::Grow, "base")).is_err(), elsewhere);
            assert!(faults.meet(asked(Calls::Write, "pg_wal")).is_ok(), "it has its room");
        }
    }

    #[test]
    fn a_call_without_an_answer_is_carried_out_in_the_end() {
        let faults = Faults::default();
        let begun_ns = now_ns();
        faults.begin(fault(Answer::Nothing, 0.05)).unwrap();
        assert!(faults.meet(asked(Calls::Write, "base")).is_ok());
        assert!(now_ns() - begun_ns >= 45_000_000);
    }

    #[test]
    fn a_time_that_is_none_is_refused() {
        for seconds in [-1.0, f64::NAN, 1e9] {
            assert!(Faults::default().begin(fault(Answer::Error, seconds)).is_err());
        }
    }
}
