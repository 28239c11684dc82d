//! Write-ahead log: pages, records and block references, and what a window of it was made of.
//!
//! [`Scanner`] takes page after page and gives the records on them, as PostgreSQL's own reader
//! would; [`Window`] takes segment after segment of a range; [`Summary`] and [`Touches`] are made
//! of records.

mod count;
mod history;
mod kind;
mod named;
mod open;
mod page;
mod places;
mod reading;
mod record;
mod redo;
mod scanner;
mod segment;
mod summary;
mod table_sets;
mod touch;
mod transactions;
mod window;

pub use history::{Ancestor, History};
pub use kind::{kind_name, manager_name};
pub use named::{NamedRelation, WalCheckpoint, WalNamed};
pub use page::{Format, PageHead};
pub use reading::{Reading, WalBlock, WalHead, WalPart, WalRecord, WalSpec};
pub use record::{Block, Compression, Image, Record, RecordHead};
pub use redo::{NeededFile, Redo, RedoBegin, RedoNeeds, RedoSpec};
pub use scanner::{Flaw, Scanner, Went};
pub use segment::{Segment, SegmentName, choose};
pub use summary::{KindUse, RelationUse, Summary, WalEnd, WalSummary};
pub use touch::{Touch, Touches};
pub use transactions::{TransactionKind, TransactionSums, TransactionUse};
pub use window::{Range, Step, Window, head_of};
