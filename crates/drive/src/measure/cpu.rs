//! What the driver itself costs: CPU, context switches, time spent runnable but not running.

use std::{fs, io, thread::available_parallelism};

use nix::{
    errno::Errno,
    sys::resource::{UsageWho, getrusage},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{clock::steady_ns, error::RunError};

/// The process's account at one instant.
#[derive(Clone, Debug)]
pub struct Account {
    at_ns: u64,
    user_s: f64,
    system_s: f64,
    voluntary_switches: i64,
    involuntary_switches: i64,
    threads: Vec<ThreadTime>,
    rss_max_bytes: i64,
}

/// What a thread got from the scheduler so far.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadTime {
    cpu_ns: u64,
    wait_ns: u64,
}

/// What the driver cost between two instants.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ClientCost {
    /// CPU in user mode, all threads of the process.
    pub user_s: f64,
    /// CPU in the kernel, all threads of the process.
    pub system_s: f64,
    /// Between the two readings.
    pub window_s: f64,
    /// CPUs that the process may use: those of its affinity mask, and no more than the whole ones
    /// of its control groups' quota.
    pub cpus: usize,
    /// (user + system) / (window * CPUs).
    pub share_of_host: f64,
    /// A thread went to sleep, e.g. to wait for an answer.
    pub voluntary_switches: i64,
    /// A thread was taken off its CPU.
    pub involuntary_switches: i64,
    /// Time that driver threads were runnable but had no CPU, summed.
    pub run_queue_wait_s: f64,
    /// CPU of each driver thread.
    pub thread_cpu_s: Vec<f64>,
    /// Time that each driver thread was runnable but had no CPU, same order.
    pub thread_wait_s: Vec<f64>,
    /// Driver threads.
    pub threads: usize,
    /// Largest resident set of the process so far.
    pub rss_max_bytes: i64,
}

impl Account {
    /// Reads the account; `threads` are the kernel's numbers of the driver threads.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn read(threads: &[i32]) -> Result<Self, RunError> {
        let failed = |what: &str, e: &dyn std::fmt::Display| {
            RunError::internal(format!("read {what} of the driver: {e}"))
        };
        let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| failed("CPU time", &e))?;
        let times: io::Result<Vec<_>> = threads.iter().map(|thread| thread_time(*thread)).collect();
        Ok(Self {
            at_ns: steady_ns(),
            user_s: seconds(usage.user_time()),
            system_s: seconds(usage.system_time()),
            voluntary_switches: usage.voluntary_context_switches(),
            involuntary_switches: usage.involuntary_context_switches(),
            threads: times.map_err(|e| failed("run-queue wait", &e))?,
            rss_max_bytes: usage.max_rss() * 1024, // Linux counts KiB
        })
    }

    /// What was spent from here until `end`.
    #[must_use]
    pub fn until(&self, end: &Self, threads: usize) -> ClientCost {
        let cpus = available_parallelism().map_or(1, usize::from);
        let window_s = nanos(end.at_ns - self.at_ns);
        let (user_s, system_s) = (end.user_s - self.user_s, end.system_s - self.system_s);
        #[allow(clippy::cast_precision_loss, reason = "machines have fewer than 2^52 CPUs")]
        let capacity_s = window_s * cpus as f64;
        let grown = |part: fn(&ThreadTime) -> u64| -> Vec<f64> {
            let pairs = self.threads.iter().zip(&end.threads);
            pairs.map(|(a, b)| nanos(part(b).saturating_sub(part(a)))).collect()
        };
        let thread_wait_s = grown(|time| time.wait_ns);
        ClientCost {
            user_s,
            system_s,
            window_s,
            cpus,
            share_of_host: if capacity_s > 0.0 { (user_s + system_s) / capacity_s } else { 0.0 },
            voluntary_switches: end.voluntary_switches - self.voluntary_switches,
            involuntary_switches: end.involuntary_switches - self.involuntary_switches,
            run_queue_wait_s: thread_wait_s.iter().sum(),
            thread_cpu_s: grown(|time| time.cpu_ns),
            thread_wait_s,
            threads,
            rss_max_bytes: end.rss_max_bytes,
        }
    }
}

/// The thread's schedstat: ns on a CPU, ns on a run queue. An ended thread has neither any more.
fn thread_time(thread: i32) -> io::Result<ThreadTime> {
    match fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")) {
        Ok(text) => {
            let mut fields = text.split_whitespace().map(str::parse);
            match (fields.next(), fields.next()) {
                (Some(Ok(cpu_ns)), Some(Ok(wait_ns))) => Ok(ThreadTime { cpu_ns, wait_ns }),
                _ => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("schedstat is {text:?}"),
                )),
            }
        }
        // Kernels without CONFIG_SCHED_INFO have no such file.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(ThreadTime::default()),
        Err(e) if e.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(ThreadTime::default()),
        Err(e) => Err(e),
    }
}

fn seconds(time: nix::sys::time::TimeVal) -> f64 {
    use nix::sys::time::TimeValLike;
    #[allow(clippy::cast_precision_loss, reason = "2^52 us are 142 years")]
    let micros = time.num_microseconds() as f64;
    micros / 1e6
}

/// Nanoseconds as seconds.
#[must_use]
pub fn nanos(ns: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "2^52 ns are 52 days, the rest is noise")]
    let ns = ns as f64;
    ns / 1e9
}
