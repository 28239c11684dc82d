//! What a session of the protocol promises: all tests in one binary, which links once.

mod places;
mod sessions;
mod texts;
mod values;
