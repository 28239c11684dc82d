//! Servers without a database. [`null`] answers every statement of a workload at once, for
//! calibration. The scripted one is a test kit: it speaks enough of the protocol to serve sessions
//! of `wire`, answers what a script says, and can fail as real servers and networks do. It knows no
//! SQL beyond the first word of a statement, and stores nothing.
//!
//! # Fault model
//!
//! | fault | how a script makes it |
//! |---|---|
//! | an error of the server, in or outside a transaction | [`Step::Error`], severity `ERROR` |
//! | the server ends the session (shutdown, kill) | [`Step::Error`], severity `FATAL` |
//! | the connection breaks, also within a message | [`Step::Close`], after [`Step::Raw`] |
//! | the server stalls | [`Step::Wait`], on tokio's clock, which tests may pause |
//! | the server refuses new sessions | [`Script::greet`] returns steps |
//! | answers arrive in small pieces | serve over a `tokio::io::duplex` of few bytes |
//! | wrong, unknown or overlong messages | [`Step::Raw`] |
//!
//! Not modelled: a network that reorders or corrupts (TCP does not), a server that executes after
//! it lost its client (real servers in `tests/cluster` do).

mod listener;
mod messages;
pub mod null;
mod script;
mod server;

pub use listener::Listener;
pub use messages::{data_row, error_message};
pub use script::{Auth, Call, Log, Script, Scripted, Step};
pub use server::serve;
