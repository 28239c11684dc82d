//! The five kinds of transactions, and the version of everything that is made from a seed.

/// Transaction kinds, in the order of their index.
pub const KINDS: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// Raised whenever the rows loaded, the requests or the statements change: results of different
/// versions are never compared, fixtures of another version never reused.
pub const VERSION: u32 = 2;
