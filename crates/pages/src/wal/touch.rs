//! How a range of WAL touches each block first: what recovery from its beginning needs of the block
//! that is on the disk.

use foldhash::HashMap;

use crate::{
    relation::{Fork, Locator},
    wal::record::{Block, Record},
};

/// How a block is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Touch {
    /// Its image is put in place of it: what is on the disk does not matter.
    Image,
    /// It is made anew: the same.
    Init,
    /// It is changed: it has to be whole on the disk.
    Plain,
}

impl Touch {
    /// Of one reference.
    #[must_use]
    pub fn of(block: &Block) -> Self {
        match &block.image {
            Some(image) if image.is_applied => Self::Image,
            _ if block.is_init => Self::Init,
            _ => Self::Plain,
        }
    }
}

/// The first touch of each block.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    first: HashMap<(Locator, Fork, u32), Touch>,
}

impl Touches {
    /// Takes the next record.
    pub fn add(&mut self, record: &Record<'_>) {
        for block in record.blocks {
            let key = (block.locator, block.fork, block.number);
            self.first.entry(key).or_insert_with(|| Touch::of(block));
        }
    }

    /// How a block is touched first; `None`: not at all.
    #[must_use]
    pub fn first(&self, locator: Locator, fork: Fork, number: u32) -> Option<Touch> {
        self.first.get(&(locator, fork, number)).copied()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Locator, Fork, u32, Touch)> {
        self.first.iter().map(|((locator, fork, number), touch)| (*locator, *fork, *number, *touch))
    }

    /// How many blocks are touched so first.
    #[must_use]
    pub fn count(&self, touch: Touch) -> u64 {
        self.first.values().map(|one| u64::from(*one == touch)).sum()
    }
}
