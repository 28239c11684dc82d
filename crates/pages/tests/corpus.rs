//! Inputs that once went wrong, or are near to it, read again: `corpus/<reader>-<what>.bin`.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{fs, path::PathBuf};

use pages::{
    control::{Control, State},
    page::{PageHeader, checksum},
};

use crate::fuzz::read;

fn kept(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)).unwrap()
}

/// The fourth page of `pg_class`, as PostgreSQL 18 wrote it.
#[test]
fn the_checksum_is_that_which_postgres_wrote() {
    let page = kept("page-of-pg-class.bin");
    let header = PageHeader::read(&page).unwrap();
    assert!(header.is_plausible(page.len()) && header.checksum != 0);
    assert_eq!((header.page_bytes, header.layout), (8192, 4));
    assert_eq!(checksum(&page, 3), Some(header.checksum));
    assert_ne!(checksum(&page, 4), Some(header.checksum));
}

#[test]
fn what_clusters_say_of_themselves_is_read() {
    for (name, major) in [("control-of-15.bin", 15), ("control-of-18.bin", 18)] {
        let control = Control::read(&kept(name)).unwrap();
        assert_eq!(control.major.map(pages::Major::number), Some(major));
        assert_eq!((control.state, control.data_checksums), (State::ShutDown, 1));
        assert_eq!((control.block_bytes, control.wal_segment_bytes), (8192, 16 << 20));
        assert_eq!((control.segment_blocks, control.checkpoint.timeline), (131_072, 1));
        assert_eq!(control.settings.max_connections, 100);
        assert!(control.checkpoint.redo <= control.checkpoint.record);
        assert!(control.unix_s - control.checkpoint.unix_s < 60);
    }
}

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
