//! The machine's clock, and histograms as texts.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::time::Duration;

use drive::{
    clock::{Clock, SystemClock},
    measure::histogram::{ExactBelow, Summary, decode, empty, encode, merge, quantiles, record},
};

#[tokio::test]
async fn sleep_is_never_too_short_and_can_be_given_up() {
    let clock = SystemClock::new().unwrap();
    for pause_ns in [0, 1, 10_000, 1_500_000] {
        let until_ns = clock.now_ns() + pause_ns;
        clock.sleep_until(until_ns).await;
        assert!(clock.now_ns() >= until_ns);
    }
    // A sleep that is dropped, even one that has expired meanwhile, leaves nothing behind.
    let far_ns = clock.now_ns() + 3_600_000_000_000;
    let given_up = tokio::time::timeout(Duration::from_millis(1), clock.sleep_until(far_ns)).await;
    assert!(given_up.is_err());
    let until_ns = clock.now_ns() + 2_000_000;
    clock.sleep_until(until_ns).await;
    assert!(clock.now_ns() >= until_ns);
}

#[test]
fn histograms_survive_as_texts_and_add_up() {
    let (mut low, mut high) = (empty(), empty());
    for value in 1..=1000 {
        record(&mut low, value * 1_000);
        record(&mut high, value * 1_000_000);
    }
    let sum = merge(&[encode(&low).unwrap(), encode(&high).unwrap()]).unwrap();
    let read = decode(&sum).unwrap();
    assert_eq!(read.len(), 2000);
    let values = quantiles(&sum, &[0.0, 0.25, 0.5, 0.75, 1.0]).unwrap();
    for (value, wanted) in
        values.iter().zip([1_000, 500_000, 1_000_000, 500_000_000, 1_000_000_000])
    {
        assert!(value.abs_diff(wanted) <= wanted / 1000, "{values:?}");
    }
    assert_eq!(merge(&[]).unwrap(), encode(&empty()).unwrap());
}

#[test]
fn values_beyond_an_hour_are_an_hour() {
    let mut histogram = empty();
    record(&mut histogram, u64::MAX);
    record(&mut histogram, 0);
    assert_eq!(histogram.len(), 2);
    let json = serde_json::to_value(Summary::of(&histogram, ExactBelow::default())).unwrap();
    let max = json["max"].as_u64().unwrap();
    assert!(max.abs_diff(3_600_000_000_000) <= 3_600_000_000, "{max}");
}

#[test]
fn texts_that_are_no_histograms_are_refused() {
    for text in ["?", "", "aGVsbG8="] {
        assert!(decode(text).is_err(), "{text:?}");
    }
    let error = quantiles(&encode(&empty()).unwrap(), &[1.5]).unwrap_err();
    assert!(error.fact.contains("share 1.5"), "{}", error.fact);
}
