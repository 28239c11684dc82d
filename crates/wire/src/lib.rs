//! PostgreSQL protocol sessions: a codec without sockets, and a thin session over a stream that it
//! owns. Nothing here knows a workload, a schedule or a histogram.

mod answer;
mod error;
mod exchange;
mod value;

pub use answer::{Answer, Answers, Row};
pub use error::Error;
pub use exchange::{Exchange, Kind, Statement, StatementId};
pub use value::{Decimal, Param, Timestamp};
