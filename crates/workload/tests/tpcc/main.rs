//! What the TPC-C workload promises, and a test for each of the 28 ways in which drivers are known
//! to depart from the text: `trap_NN_…`.
//!
//! Some need more than this crate. What only a server can show (also of 5, 6, 7, 8, 9, 10, 11, 13,
//! 16, 24, 25, and the conditions of 27) is asked in `tests/data/observations.toml` and
//! `tests/data/violations.toml`. Response times from the due time (20) and errors that count as
//! nothing (also 21) are the driver's: `crates/drive/tests`.

mod arrived;
mod books;
mod called;
mod copied;
mod faces;
mod inputs;
mod loaded;
mod sent;
mod sold;

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use serde_json::{Value, json};
use workload::tpcc::Tpcc;

/// The workload with these parameters besides the kind.
fn tpcc(parameters: Value) -> Tpcc {
    let mut spec = parameters;
    spec["kind"] = json!("tpcc");
    Tpcc::from_spec(&spec).expect("a good specification")
}

/// Runs a future that never waits, as nothing on the books does.
fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the books keep nobody waiting"),
    }
}
