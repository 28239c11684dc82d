//! Broken recorders and makers are found by the same checks that ours pass.

use disk::settle::Device;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::settled::{asked, objection};

/// Objections to the same requests, as ours are asked for.
fn objections(device: Device, syncs_are_written_down: bool) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let requests = asked();
    (0..64)
        .filter_map(|_| {
            let one = requests.new_tree(&mut runner).unwrap().current();
            objection(&one, device, syncs_are_written_down)
        })
        .collect()
}

#[test]
fn ours_is_not_objected_to() {
    assert_eq!(objections(Device::HONEST, true), Vec::<String>::new());
}

#[test]
fn a_recorder_that_forgets_syncs_is_found() {
    let found = objections(Device::HONEST, false);

    assert!(found.iter().any(|one| one.contains("lost") || one.contains("bytes")), "{found:?}");
    assert!(found.iter().any(|one| one.contains("is not there")), "{found:?}");
}

#[test]
fn a_device_that_lies_is_found() {
    let found = objections(Device { forgets_ns: 10, ..Device::HONEST }, true);

    assert!(found.iter().any(|one| one.contains("lost") || one.contains("bytes")), "{found:?}");
}

#[test]
fn a_maker_that_tears_below_the_sector_is_found() {
    let found = objections(Device { sector_bytes: 256, ..Device::HONEST }, true);

    assert!(found.iter().any(|one| one.contains("never had")), "{found:?}");
}
