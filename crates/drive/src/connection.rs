//! Sessions: how they are opened, kept, lost and replaced, and the loop that each of them serves.

pub mod background;
pub mod client;
pub mod opener;
pub mod outages;
pub mod retry;
pub mod spec;
