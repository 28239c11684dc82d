//! What the threads of a null server count, and the workers that its batches hold.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::Semaphore, time::sleep};

use super::spec::{Hold, Spread};

/// Written by one thread, read by all.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) thread: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) executions: AtomicU64,
    pub(super) batches: AtomicU64,
}

impl Counters {
    pub(super) fn add(&self, executions: u64, batches: u64) {
        self.executions.store(self.executions.load(Relaxed) + executions, Relaxed);
        self.batches.store(self.batches.load(Relaxed) + batches, Relaxed);
    }
}

/// The workers that batches hold.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    free: Arc<Semaphore>,
    drawn: Arc<AtomicU64>,
    hold: Hold,
}

impl Workers {
    pub(super) fn new(hold: Hold) -> Self {
        Self { free: Arc::new(Semaphore::new(hold.workers)), drawn: Arc::default(), hold }
    }

    pub(super) async fn hold(&self) {
        // The semaphore is never closed.
        let Ok(_worker) = self.free.acquire().await else { return };
        let factor = match self.hold.spread {
            Spread::Constant => 1.0,
            Spread::Exponential => exponential(self.drawn.fetch_add(1, Relaxed)),
        };
        sleep(Duration::from_secs_f64(self.hold.service_ms * factor / 1e3)).await;
    }
}

/// The `n`-th of a series of exponentially distributed numbers of mean 1.
fn exponential(n: u64) -> f64 {
    // SplitMix64; 53 of its bits make a number in (0, 1].
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    let uniform = (((x ^ (x >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln()
}
