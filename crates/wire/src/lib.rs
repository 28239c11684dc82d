//! PostgreSQL protocol sessions: a codec without sockets, and a thin session over a stream that it
//! owns. Nothing here knows a workload, a schedule or a histogram.

mod answer;
mod bind;
mod copy;
mod error;
mod exchange;
mod inbox;
mod numeric;
mod session;
mod startup;
mod stream;
mod target;
mod value;

pub use answer::{Answer, Answers, Row};
pub use copy::CopyIn;
pub use error::Error;
pub use exchange::{Exchange, Kind, Statement, StatementId};
pub use session::{Session, TransactionStatus, Work};
pub use startup::CancelKey;
pub use stream::Stream;
pub use target::{Password, SslMode, Target};
pub use value::{Decimal, Param, Timestamp};
