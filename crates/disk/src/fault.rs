//! Faults of a device: for a while, calls fail or get no answer.

use std::{
    io,
    sync::{Mutex, PoisonError},
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

/// A fault that begins now.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// Which calls meet it.
    pub calls: Calls,
    /// What they get.
    pub answer: Answer,
    /// How long.
    #[schemars(range(min = 0.0, max = SECONDS_MAX))]
    pub seconds: f64,
}

/// The fault of a device, if it has one.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// With when it is over, in ns of the record's clock.
    armed: Mutex<Option<(FaultSpec, u64)>>,
}

impl Faults {
    /// From now on, for its time; one that was there is over.
    pub(crate) fn begin(&self, fault: FaultSpec) -> Result<(), String> {
        let seconds = fault.seconds;
        if !(0.0..=SECONDS_MAX).contains(&seconds) {
            return Err(format!("a fault lasts {seconds} s, allowed are 0 to {SECONDS_MAX}"));
        }
        let lasts_ns = u64::try_from(Duration::from_secs_f64(seconds).as_nanos());
        let until_ns = now_ns().saturating_add(lasts_ns.unwrap_or(u64::MAX));
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some((fault, until_ns));
        Ok(())
    }

    /// A call meets it: it fails, or waits, or nothing happens.
    pub(crate) fn meet(&self, calls: Calls) -> io::Result<()> {
        let Some((answer, left)) = self.now(calls) else { return Ok(()) };
        match answer {
            Answer::Error => Err(Errno::IO.into()),
            Answer::Full => Err(Errno::NOSPC.into()),
            Answer::Nothing => {
                thread::sleep(left);
                Ok(())
            }
        }
    }

    fn now(&self, calls: Calls) -> Option<(Answer, Duration)> {
        let (fault, until_ns) = (*self.armed.lock().unwrap_or_else(PoisonError::into_inner))?;
        let left_ns = until_ns.checked_sub(now_ns())?;
        (fault.calls == calls).then_some((fault.answer, Duration::from_nanos(left_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(answer: Answer, seconds: f64) -> FaultSpec {
        FaultSpec { calls: Calls::Write, answer, seconds }
    }

    #[test]
    fn only_the_named_calls_meet_it_and_only_while_it_lasts() {
        let faults = Faults::default();
        assert!(faults.meet(Calls::Write).is_ok());
        faults.begin(fault(Answer::Full, 3600.0)).unwrap();
        assert_eq!(faults.meet(Calls::Write).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(faults.meet(Calls::Sync).is_ok());
        faults.begin(fault(Answer::Error, 0.0)).unwrap();
        thread::sleep(Duration::from_millis(1));
        assert!(faults.meet(Calls::Write).is_ok());
    }

    #[test]
    fn a_call_without_an_answer_is_carried_out_in_the_end() {
        let faults = Faults::default();
        let begun_ns = now_ns();
        faults.begin(fault(Answer::Nothing, 0.05)).unwrap();
        assert!(faults.meet(Calls::Write).is_ok());
        assert!(now_ns() - begun_ns >= 45_000_000);
    }

    #[test]
    fn a_time_that_is_none_is_refused() {
        for seconds in [-1.0, f64::NAN, 1e9] {
            assert!(Faults::default().begin(fault(Answer::Error, seconds)).is_err());
        }
    }
}
