//! The load driver.

pub mod load;
