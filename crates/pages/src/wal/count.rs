//! Records, counted.

/// Records, summed up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) images: u64,
    pub(super) image_bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.images += other.images;
        self.image_bytes += other.image_bytes;
    }
}
