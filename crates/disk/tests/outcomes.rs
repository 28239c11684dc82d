//! Exactly what the model allows comes out: none is missing, and none is too many.

use std::collections::BTreeSet;

use disk::choice::{LostBlock, Spared, draw};
use disk::event::{Event, Kind, Place};
use disk::names::Survival;
use disk::settle::{Device, Medium};

use crate::scribe::{Files, Scribe, files, letters};

const SEEDS: u64 = 3000;
const ALONE: Device = Device { names: Survival::Alone, ..Device::HONEST };
const LARGE: Device = Device { sector_bytes: 4096, ..Device::HONEST };

fn outcomes(scribe: Scribe, device: Device, told: impl Fn(&Files) -> String) -> BTreeSet<String> {
    let now_ns = scribe.now_ns;
    let record = scribe.record();
    drawn(&record, now_ns, device, told)
}

fn drawn(
    record: &Vec<u8>,
    instant_ns: u64,
    device: Device,
    told: impl Fn(&Files) -> String,
) -> BTreeSet<String> {
    let medium = Medium::at(record, instant_ns, device).unwrap();
    (0..SEEDS).map(|seed| told(&files(record, &medium, seed))).collect()
}

/// Every file with its sectors, e.g. `a=AB b=`.
fn all(files: &Files) -> String {
    let told: Vec<_> =
        files.iter().map(|(name, bytes)| format!("{name}={}", letters(bytes))).collect();
    told.join(" ")
}

fn set(wanted: &[&str]) -> BTreeSet<String> {
    wanted.iter().map(ToString::to_string).collect()
}

/// A file that is settled with two sectors of `A`.
fn with_file() -> (Scribe, u64) {
    let mut scribe = Scribe::new();
    let file = scribe.create("a");
    scribe.fill(file, 0..2, b'A');
    scribe.sync(file);
    (scribe, file)
}

#[test]
fn each_sector_is_as_it_was_at_any_time_since_the_sync() {
    let (mut scribe, file) = with_file();
    scribe.fill(file, 0..2, b'B');
    scribe.fill(file, 1..2, b'C');

    let wanted = set(&["a=AA", "a=AB", "a=AC", "a=BA", "a=BB", "a=BC"]);
    assert_eq!(outcomes(scribe, Device::HONEST, all), wanted);
}

#[test]
fn a_sector_of_four_kib_is_whole() {
    let mut scribe = Scribe::new();
    let file = scribe.create("a");
    scribe.fill(file, 0..16, b'A');
    scribe.sync(file);
    scribe.fill(file, 0..16, b'B');
    scribe.fill(file, 3..4, b'C'); // a part of a sector

    let (a, b, c) = ("A".repeat(8), "B".repeat(8), "BBBCBBBB");
    let wanted = set(&[
        &format!("a={a}{a}"),
        &format!("a={a}{b}"),
        &format!("a={b}{a}"),
        &format!("a={b}{b}"),
        &format!("a={c}{a}"),
        &format!("a={c}{b}"),
    ]);
    assert_eq!(outcomes(scribe, LARGE, all), wanted);
}

#[test]
fn a_part_of_a_sector_is_written_with_the_rest_of_it() {
    let (mut scribe, file) = with_file();
    scribe.write(file, 100, &[b'B'; 100]);
    scribe.write(file, 150, &[b'C'; 400]);

    let told = |files: &Files| {
        let file = &files["a"];
        let runs = file.chunk_by(|one, next| one == next);
        let told = runs.map(|run| format!("{}{} ", char::from(run[0]), run.len()));
        told.collect::<Vec<_>>().concat()
    };
    let wanted = set(&[
        "A1024 ",
        "A100 B100 A824 ",
        "A100 B50 C362 A512 ",
        "A512 C38 A474 ",
        "A100 B100 A312 C38 A474 ",
        "A100 B50 C400 A474 ",
    ]);
    assert_eq!(outcomes(scribe, Device::HONEST, told), wanted);
}

#[test]
fn what_was_written_beyond_the_end_may_be_missing_or_zero_and_as_long_as_a_page() {
    let mut scribe = Scribe::new();
    let file = scribe.create("a");
    scribe.sync(file);
    scribe.write(file, 0, &[b'B'; 8192]);

    let told = |files: &Files| {
        let size = files["a"].len();
        let kinds: BTreeSet<char> = letters(&files["a"]).chars().collect();
        format!("{size} {}", kinds.into_iter().collect::<String>())
    };
    let wanted = set(&["0 ", "4096 0", "4096 0B", "4096 B", "8192 0", "8192 0B", "8192 B"]);
    assert_eq!(outcomes(scribe, Device::HONEST, told), wanted);
}

#[test]
fn a_truncation_is_done_or_not_and_what_came_after_needs_it() {
    let (mut scribe, file) = with_file();
    scribe.cut(file, 512);
    scribe.fill(file, 1..2, b'C');

    let wanted = set(&["a=AA", "a=A", "a=A0", "a=AC"]);
    assert_eq!(outcomes(scribe, Device::HONEST, all), wanted);
}

#[test]
fn names_survive_in_their_order() {
    let mut scribe = Scribe::new();
    let first = scribe.create("a");
    scribe.create("b");
    scribe.rename(first, "a", "c");
    let other = scribe.create("d");
    scribe.unlink(other, "d");

    let wanted = set(&["", "a=", "a= b=", "b= c=", "b= c= d="]);
    assert_eq!(outcomes(scribe, Device::HONEST, all), wanted);
}

#[test]
fn names_survive_alone_with_what_they_stand_on() {
    let mut scribe = Scribe::new();
    let first = scribe.create("a");
    scribe.create("b");
    scribe.rename(first, "a", "c");

    let wanted = set(&["", "a=", "b=", "a= b=", "c=", "b= c="]);
    assert_eq!(outcomes(scribe, ALONE, all), wanted);
}

#[test]
fn a_renamed_file_replaces_another_whole_and_may_be_empty() {
    for device in [Device::HONEST, ALONE] {
        let (mut scribe, _) = with_file();
        let new = scribe.create("new");
        scribe.fill(new, 0..1, b'N');
        scribe.rename(new, "new", "a");

        let wanted = set(&["a=AA", "a=AA new=", "a=AA new=0", "a=AA new=N", "a=", "a=0", "a=N"]);
        assert_eq!(outcomes(scribe, device, all), wanted);
    }
}

#[test]
fn what_lies_in_a_folder_needs_the_folder() {
    for device in [Device::HONEST, ALONE] {
        let mut scribe = Scribe::new();
        let folder = scribe.make(Kind::Folder, crate::scribe::place("f"));
        scribe.make(Kind::File, Place { folder, name: b"a" });

        assert_eq!(outcomes(scribe, device, all), set(&["", "f/=", "f/= f/a="]));
    }
}

#[test]
fn a_sync_settles_what_had_ended_before_it_began() {
    let (mut scribe, file) = with_file();
    scribe.fill(file, 0..1, b'B');
    let sync = scribe.begin_sync(file);
    scribe.fill(file, 1..2, b'C');
    scribe.end_sync(file, sync, false);

    assert_eq!(outcomes(scribe, Device::HONEST, all), set(&["a=BA", "a=BC"]));
}

#[test]
fn a_sync_that_has_not_returned_settles_nothing() {
    let (mut scribe, file) = with_file();
    scribe.fill(file, 0..1, b'B');
    scribe.begin_sync(file);

    assert_eq!(outcomes(scribe, Device::HONEST, all), set(&["a=AA", "a=BA"]));
}

#[test]
fn a_sync_of_data_settles_no_name() {
    let mut scribe = Scribe::new();
    let file = scribe.create("a");
    scribe.fill(file, 0..1, b'A');
    let sync = scribe.begin_sync(file);
    scribe.end_sync(file, sync, true);

    assert_eq!(outcomes(scribe, Device::HONEST, all), set(&["", "a=A"]));
}

#[test]
fn a_sync_of_a_folder_settles_its_names_and_no_data() {
    for device in [Device::HONEST, ALONE] {
        let mut scribe = Scribe::new();
        let file = scribe.create("a");
        scribe.fill(file, 0..1, b'A');
        scribe.sync(disk::event::ROOT);

        assert_eq!(outcomes(scribe, device, all), set(&["a=", "a=0", "a=A"]));
    }
}

#[test]
fn a_sync_of_a_file_settles_what_the_journal_holds_before_it() {
    let mut scribe = Scribe::new();
    scribe.create("a");
    let second = scribe.create("b");
    scribe.sync(second);
    let record = scribe.record();

    assert_eq!(drawn(&record, 1007, Device::HONEST, all), set(&["a= b="]));
    assert_eq!(drawn(&record, 1007, ALONE, all), set(&["b=", "a= b="]));
}

#[test]
fn a_device_that_lies_forgets_what_it_acknowledged_last() {
    let (mut scribe, file) = with_file();
    scribe.fill(file, 0..1, b'B');
    scribe.sync(file);
    let settled_ns = scribe.now_ns;
    scribe.put(&Event::Grown { ino: file, size: 1024 });
    let record = scribe.record();
    let lying = |forgets_ns| Device { forgets_ns, ..Device::HONEST };
    let lied = |ns| drawn(&record, settled_ns + 1, lying(ns), all);

    assert_eq!(lied(1), set(&["a=BA"]));
    assert_eq!(lied(2), set(&["a=AA", "a=BA"]));
}

#[test]
fn what_is_old_enough_is_written_back() {
    let (mut scribe, file) = with_file();
    scribe.fill(file, 0..1, b'B');
    let written_ns = scribe.now_ns;
    scribe.fill(file, 1..2, b'C');
    let record = scribe.record();
    let aged = |ns| {
        let device = Device { written_back_ns: Some(ns), ..Device::HONEST };
        drawn(&record, written_ns + 1, device, all)
    };

    assert_eq!(aged(1), set(&["a=BA", "a=BC"]));
    assert_eq!(aged(0), set(&["a=BC"]));
    assert_eq!(aged(2), set(&["a=AA", "a=AC", "a=BA", "a=BC"]));
}

#[test]
fn each_block_that_is_spared_is_one_loss_less_and_changes_no_other() {
    let mut scribe = Scribe::new();
    let file = scribe.create("a");
    scribe.fill(file, 0..64, b'A');
    scribe.sync(file);
    scribe.fill(file, 0..64, b'B');
    scribe.fill(file, 16..32, b'C');
    let now_ns = scribe.now_ns;
    let medium = Medium::at(&scribe.record(), now_ns, Device::HONEST).unwrap();
    let lost_without = |seed, blocks: std::ops::Range<u64>| -> Vec<LostBlock> {
        draw(&medium, seed, &Spared { names: false, blocks: vec![blocks] }).lost
    };

    let mut tried = 0;
    for seed in 0..200 {
        let whole = draw(&medium, seed, &Spared::default()).lost;
        assert_eq!(draw(&medium, seed, &Spared::default()).figures.blocks_lost, whole.len() as u64);
        for number in 0..whole.len() {
            let mut wanted = whole.clone();
            wanted.remove(number);
            let number = number as u64;
            assert_eq!(lost_without(seed, number..number + 1), wanted);
            tried += 1;
        }
        assert_eq!(lost_without(seed, 0..4), []);
    }
    assert!(tried > 100, "something was lost");
}
