//! Records: read as they were written, bounded, cut short, and not of ours.

use disk::event::Event;
use disk::record::{Reader, Writer};
use disk::settle::{Device, Medium, span};

use crate::scribe::{Scribe, disk};

#[test]
fn a_record_that_was_cut_short_holds_up_to_there() {
    let mut scribe = Scribe::new();
    let file = scribe.create("a");
    scribe.fill(file, 0..1, b'A');
    scribe.sync(file);
    let sure_ns = scribe.now_ns;
    scribe.fill(file, 0..1, b'B');
    let mut record = scribe.record();
    let whole = record.len();

    for lost in 1..=554 {
        // the end, and the write of B
        record.truncate(whole - lost);
        let found = span(&record).unwrap();
        assert!(found.until_ns >= sure_ns && !found.ended);
        assert_eq!(disk(&record, sure_ns, 1, Device::HONEST)["a"], [b'A'; 512]);
        assert!(Medium::at(&record, found.until_ns + 1, Device::HONEST).is_err());
    }
}

#[test]
fn a_record_that_is_full_says_so_and_is_no_longer_than_it_may() {
    let mut writer = Writer::new(Vec::new(), 2000).unwrap();
    writer.put(1, &Event::Begun).unwrap();
    for time_ns in 2..9 {
        writer
            .put(
                time_ns,
                &Event::Made {
                    ino: time_ns,
                    kind: disk::event::Kind::File,
                    rights: disk::event::Rights { mode: 0, uid: 0, gid: 0 },
                    target: &[7; 500],
                },
            )
            .unwrap();
    }
    writer.close(9, &Event::Ended).unwrap();
    assert!(writer.is_full() && writer.bytes() <= 2000);
    let record = writer.into_inner();

    assert!(record.len() <= 2000);
    let found = span(&record).unwrap();
    assert!(found.full);
    assert_eq!(found.until_ns, 5);
    assert!(Medium::at(&record, 4, Device::HONEST).is_ok());
    assert!(Medium::at(&record, 5, Device::HONEST).is_err());
}

#[test]
fn an_instant_before_the_load_is_refused() {
    let mut scribe = Scribe::unbegun();
    scribe.create("a");
    scribe.put(&Event::Begun);
    let record = scribe.record();

    assert!(Medium::at(&record, 1002, Device::HONEST).is_err());
    assert!(disk(&record, 1003, 1, Device::HONEST).contains_key("a"));
}

#[test]
fn what_is_no_record_is_refused() {
    for bytes in [Vec::new(), b"pgdisk".to_vec(), vec![0; 100], b"pgdisk\0\x02".to_vec()] {
        assert!(Reader::new(&bytes).is_err());
    }
}

#[test]
fn bytes_of_any_kind_are_an_error_and_never_a_panic() {
    let mut scribe = Scribe::new();
    let file = scribe.create("a");
    scribe.fill(file, 0..2, b'A');
    scribe.sync(file);
    scribe.rename(file, "a", "b");
    scribe.cut(file, 100);
    let now_ns = scribe.now_ns;
    let record = scribe.record();
    for at in 8..record.len() {
        for value in [0, 1, 255] {
            let mut damaged = record.clone();
            damaged[at] = value;
            if let Ok(medium) = Medium::at(&damaged, now_ns, Device::HONEST) {
                let _ = disk::choice::draw(&medium, 1, &disk::choice::Spared::default());
            }
        }
    }
}
