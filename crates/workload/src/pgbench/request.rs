//! What one transaction of a built-in workload is about.

/// pgbench's `\set delta random(-5000, 5000)`.
pub(super) const DELTA_MAX: i32 = 5000;

/// What one transaction is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Account.
    pub aid: i64,
    /// Branch, not that of the account.
    pub bid: i32,
    /// Teller, of any branch.
    pub tid: i32,
    /// What is added to the balances.
    pub delta: i32,
    /// What the numbers were drawn for, for the audit.
    pub scale: i32,
}
