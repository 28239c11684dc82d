//! The load driver. `run` starts one thread per core; each thread is a `lane` that deals the
//! requests of many terminals (`queue`) to its connections (`client`), repeats what may be repeated
//! (`retry`) and counts (`meter`). Only `clock` reads time. The loader (`load`) is apart.

pub mod arrivals;
pub mod aside;
pub mod client;
pub mod clock;
pub mod connection;
pub mod counts;
pub mod course;
pub mod cpu;
pub mod dial;
pub mod due;
pub mod error;
pub mod export;
pub mod gaps;
pub mod histogram;
pub mod lane;
pub mod load;
pub mod meter;
pub mod parts;
pub mod progress;
pub mod queue;
pub mod result;
pub mod retry;
pub mod run;
pub mod seconds;
pub mod setup;
pub mod spec;
pub mod statements;
pub mod steps;
