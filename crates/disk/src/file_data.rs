//! One file's data: what is settled, and everything that it was since, sector by sector.
//!
//! A sector's state is told by where its bytes lie, not by the bytes, so that a record is read
//! without being held in memory.

use std::collections::BTreeMap;

/// Where the bytes of a sector lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// Nowhere: they are zeroes.
    Zero,
    /// In the record, from this place on.
    Record(u64),
    /// Among the sectors that were written in part: its number there.
    Patched(usize),
}

/// When something was asked for: the number of its event in the record.
pub type Order = u64;

/// A file that was made shorter, and that may still have its old length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCut {
    /// When.
    pub order: Order,
    /// To so many bytes.
    pub size: u64,
}

/// The data of one file.
#[derive(Clone, Debug, Default)]
pub struct FileData {
    settled: BTreeMap<u64, Bytes>,
    settled_size: u64,
    open: BTreeMap<u64, Vec<(Order, Bytes)>>,
    growths: Vec<(Order, u64)>,
    cuts: Vec<OpenCut>,
    size: u64,
}

impl FileData {
    /// As long as it would be without a cut.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its open cuts, oldest first.
    #[must_use]
    pub fn cuts(&self) -> &[OpenCut] {
        &self.cuts
    }

    /// Sectors that have more than one state, first to last.
    pub fn open_sectors(&self) -> impl Iterator<Item = u64> + '_ {
        self.open.keys().copied()
    }

    /// What is settled below a size, if so many of the open cuts came about; the rest is zeroes.
    #[must_use]
    pub fn base(&self, size: u64, sector_bytes: u64, cuts: usize) -> BTreeMap<u64, Bytes> {
        let shortest = self.cuts[..cuts].iter().map(|cut| cut.size).min().unwrap_or(size).min(size);
        let settled = self.settled.range(..shortest.div_ceil(sector_bytes));
        settled.map(|(sector, bytes)| (*sector, *bytes)).collect()
    }

    /// What a reader would find in a sector now.
    #[must_use]
    pub fn newest(&self, sector: u64, sector_bytes: u64) -> Bytes {
        self.states(sector, sector_bytes, self.cuts.len()).last().map_or(Bytes::Zero, |one| one.1)
    }

    /// A sector was written.
    pub fn write(&mut self, order: Order, sector: u64, bytes: Bytes) {
        self.open.entry(sector).or_default().push((order, bytes));
    }

    /// It is at least so long now.
    pub fn grow(&mut self, order: Order, size: u64) {
        if size > self.size {
            self.size = size;
            self.growths.push((order, size));
        }
    }

    /// It is as short as this now. A sector that is cut in two is written besides.
    pub fn cut(&mut self, order: Order, size: u64) {
        self.size = size;
        self.cuts.push(OpenCut { order, size });
    }

    /// All states of a sector, oldest first, if so many of the open cuts came about: `Order` 0 is
    /// what is settled, or the zeroes behind the last of these cuts.
    #[must_use]
    pub fn states(&self, sector: u64, sector_bytes: u64, cuts: usize) -> Vec<(Order, Bytes)> {
        let covers = |cut: &&OpenCut| cut.size <= sector * sector_bytes;
        let from = self.cuts[..cuts].iter().rfind(covers).map(|cut| cut.order);
        let until = self.cuts[cuts..].iter().find(covers).map(|cut| cut.order);
        let base = match from {
            Some(_) => Bytes::Zero,
            None => self.settled.get(&sector).copied().unwrap_or(Bytes::Zero),
        };
        let written = self.open.get(&sector).map(Vec::as_slice).unwrap_or_default();
        let seen = written.iter().filter(|(order, _)| {
            from.is_none_or(|from| *order > from) && until.is_none_or(|until| *order < until)
        });
        std::iter::once((0, base)).chain(seen.copied()).collect()
    }

    /// The size that is sure, and those that it grew to after, if so many of the open cuts came
    /// about.
    #[must_use]
    pub fn sizes(&self, cuts: usize) -> (u64, Vec<u64>) {
        let from = cuts.checked_sub(1).map(|last| self.cuts[last]);
        let until = self.cuts.get(cuts).map(|next| next.order);
        let grown = self.growths.iter().filter(|(order, _)| {
            from.is_none_or(|from| *order > from.order) && until.is_none_or(|until| *order < until)
        });
        let base = from.map_or(self.settled_size, |from| from.size);
        (base, grown.map(|one| one.1).filter(|size| *size > base).collect())
    }

    /// The oldest open cut came about for good, if it is this one.
    pub fn settle_cut(&mut self, order: Order, sector_bytes: u64) {
        if self.cuts.first().is_none_or(|cut| cut.order != order) {
            return;
        }
        let cut = self.cuts.remove(0);
        let kept = cut.size.div_ceil(sector_bytes);
        self.settled.split_off(&kept);
        for (_, states) in self.open.range_mut(kept..) {
            states.retain(|(written, _)| *written > cut.order);
        }
        self.open.retain(|_, states| !states.is_empty());
        self.growths.retain(|(grown, _)| *grown > cut.order);
        self.settled_size = cut.size;
    }

    /// What was asked for before this lies on the medium; cuts are settled first.
    pub fn settle(&mut self, before: Order) {
        let Self { settled, open, .. } = self;
        open.retain(|sector, states| {
            let (done, rest) = states.split_at(states.partition_point(|one| one.0 < before));
            if let Some((_, bytes)) = done.last() {
                settled.insert(*sector, *bytes);
            }
            *states = rest.to_vec();
            !states.is_empty()
        });
        let done = self.growths.partition_point(|one| one.0 < before);
        if let Some((_, size)) = self.growths.drain(..done).next_back() {
            self.settled_size = self.settled_size.max(size);
        }
    }
}
