//! What a power cut leaves. [`recording`] mounts a file system that passes through to a folder and
//! writes down whatever is asked of it; of that record [`make`] makes any number of disks, each as
//! the power could have left it at an instant, by a seed.
//!
//! `docs/concepts/power-cuts.md` says what is possible; [`settle`] follows it, [`choice`] draws.
//! Nothing here knows PostgreSQL.

mod attributes;
mod below;
mod calls;
pub mod choice;
pub mod event;
pub mod fault;
pub mod file_data;
pub mod in_place;
mod log;
pub mod make;
pub mod names;
mod owner;
pub mod preloaded;
pub mod record;
mod recorder;
pub mod recording;
pub mod settle;
mod stock;
mod syncing;
