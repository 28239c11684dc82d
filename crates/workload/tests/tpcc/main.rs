//! What the TPC-C workload promises, and a test for each of the 28 ways in which drivers are known
//! to depart from the text: `trap_NN_…`. Some lie elsewhere too: what only a server can show
//! (8, 9, 10, 13, 22, 23, 25, 27) in `tests/cluster`, what the driver does (20, 21) in
//! `crates/drive`.

mod books;
mod copied;
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
