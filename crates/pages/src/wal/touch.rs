//! How a range of WAL touches each block first: what recovery from its beginning needs of the block
//! that is on the disk.

use crate::{
    relation::{Fork, Locator},
    wal::{
        places::Places,
        record::{Block, Record},
    },
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

/// Blocks of a fork whose touches lie together.
const CHUNK: usize = 4096;

/// First touches of a fork: by block, in chunks that are made when one of theirs is touched.
#[derive(Clone, Debug)]
struct ForkTouches {
    locator: Locator,
    fork: Fork,
    chunks: Vec<Option<Box<[Option<Touch>; CHUNK]>>>,
}

impl ForkTouches {
    fn touch(&mut self, number: u32, touch: Touch) {
        let (chunk, at) = place(number);
        if self.chunks.len() <= chunk {
            self.chunks.resize(chunk + 1, None);
        }
        let chunk = self.chunks[chunk].get_or_insert_with(|| Box::new([None; CHUNK]));
        chunk[at].get_or_insert(touch);
    }

    fn first(&self, number: u32) -> Option<Touch> {
        let (chunk, at) = place(number);
        self.chunks.get(chunk)?.as_ref()?[at]
    }

    fn iter(&self) -> impl Iterator<Item = (u32, Touch)> {
        let made = self.chunks.iter().enumerate();
        let made = made.filter_map(|(chunk, touches)| Some((chunk, touches.as_ref()?)));
        made.flat_map(|(chunk, touches)| {
            let numbers =
                touches.iter().enumerate().map(move |(at, touch)| (chunk * CHUNK + at, touch));
            numbers.filter_map(|(number, touch)| Some((u32::try_from(number).ok()?, (*touch)?)))
        })
    }
}

fn place(number: u32) -> (usize, usize) {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    (number / CHUNK, number % CHUNK)
}

/// The first touch of each block.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    forks: Vec<ForkTouches>,
    places: Places,
}

impl Touches {
    /// Takes the next record.
    pub fn add(&mut self, record: &Record<'_>) {
        for block in record.blocks {
            let at = self.places.of(block.locator, block.fork);
            if at == self.forks.len() {
                let (locator, fork) = (block.locator, block.fork);
                self.forks.push(ForkTouches { locator, fork, chunks: Vec::new() });
            }
            self.forks[at].touch(block.number, Touch::of(block));
        }
    }

    /// How a block is touched first; `None`: not at all.
    #[must_use]
    pub fn first(&self, locator: Locator, fork: Fork, number: u32) -> Option<Touch> {
        self.forks[self.places.known(locator, fork)?].first(number)
    }

    /// All of them, blocks of a fork together and in order.
    pub fn iter(&self) -> impl Iterator<Item = (Locator, Fork, u32, Touch)> {
        self.forks.iter().flat_map(|one| {
            one.iter().map(|(number, touch)| (one.locator, one.fork, number, touch))
        })
    }

    /// How many blocks are touched so first.
    #[must_use]
    pub fn count(&self, touch: Touch) -> u64 {
        self.iter().map(|(.., one)| u64::from(one == touch)).sum()
    }
}
