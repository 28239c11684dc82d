//! PostgreSQL protocol sessions: a codec without sockets, and a thin session over a stream that it
//! owns. Nothing here knows a workload, a schedule or a histogram.

mod answer;
mod bind;
mod connect;
mod copy;
mod error;
mod exchange;
mod fields;
mod inbox;
mod login;
mod numeric;
mod session;
mod socket;
mod startup;
mod stream;
mod target;
mod tls;
mod value;

pub use answer::{Answer, Answers, Row};
pub use copy::CopyIn;
pub use error::Error;
pub use exchange::{Exchange, Kind, Results, Statement, StatementId};
pub use fields::Fields;
pub use session::{Session, TransactionStatus, Work};
pub use socket::Socket;
pub use startup::CancelKey;
pub use stream::Stream;
pub use target::{ChannelBinding, Host, Keepalive, Password, Prepare, SessionAttrs, Target};
pub use tls::{Roots, SslMode, Tls, TlsOptions, TlsVersion};
pub use value::{Decimal, Param, Timestamp};
