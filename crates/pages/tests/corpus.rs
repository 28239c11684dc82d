//! Inputs that once went wrong, or are near to it, read again: `corpus/<reader>-<what>.bin`.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{fs, path::PathBuf};

use crate::fuzz::read;

#[test]
fn kept_inputs_are_read_or_refused() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        read(name.split_once('-').unwrap().0, &fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count > 0, "the corpus is gone");
}
