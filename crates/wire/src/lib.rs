//! PostgreSQL protocol sessions: a codec without sockets, and a thin session over a stream that it
//! owns. Nothing here knows a workload, a schedule or a histogram.

mod answer;
mod bind;
mod connect;
mod copy;
mod error;
mod exchange;
mod fields;
mod host;
mod inbox;
mod login;
mod numeric;
mod session;
mod socket;
mod startup;
mod statement;
mod stream;
mod target;
mod tls;
mod tls_hint;
mod transport;
mod value;

pub use answer::{Answer, Answers, Row};
pub use copy::CopyIn;
pub use error::{Error, without_numbers};
pub use exchange::Exchange;
pub use fields::Fields;
pub use host::{Host, Password};
pub use session::{Session, TransactionStatus, Work};
pub use socket::Socket;
pub use startup::CancelKey;
pub use statement::{Kind, Results, Statement, StatementId};
pub use stream::Stream;
pub use target::{ChannelBinding, Keepalive, Prepare, SessionAttrs, Target};
pub use tls::{Roots, SslMode, Tls, TlsOptions, TlsVersion};
pub use value::{Decimal, Param, Timestamp};
