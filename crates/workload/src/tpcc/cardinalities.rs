//! How many there are of everything (clause 1.2.1), and what is limited.

/// Largest scale: identifiers and row numbers stay far from the ends of their types.
pub const WAREHOUSES_MAX: i32 = 100_000;
/// Clause 1.2.1.
pub const DISTRICTS: i32 = 10;
/// Customers of a district.
pub const CUSTOMERS: i32 = 3000;
/// Orders of a district after the load.
pub const ORDERS: i32 = 3000;
/// Orders from this one on are undelivered after the load.
pub const FIRST_NEW_ORDER: i32 = 2101;
/// Items, whatever the scale.
pub const ITEMS: i32 = 100_000;
/// An item number that no item has (clause 2.4.1.5, item 1).
pub const UNUSED_ITEM: i32 = ITEMS + 1;
