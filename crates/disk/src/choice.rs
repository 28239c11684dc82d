//! One disk of those that a cut allows, drawn by a seed.
//!
//! Each choice is a function of the seed, of what it is about and of nothing else. What is drawn,
//! and how often, stands at the end of `docs/concepts/power-cuts.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::event::{Ino, Kind};
use crate::file_data::{Bytes, FileData, Order};
use crate::names::{Entry, Survival};
use crate::settle::Medium;

/// PostgreSQL's page; what is drawn together.
const BLOCK_BYTES: u64 = 8192;
/// Of the kernel's page cache: a size on the medium may stop at each.
const CACHE_PAGE_BYTES: u64 = 4096;

/// A file as it came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its size in bytes.
    pub size: u64,
    /// Its sectors that are not zeroes.
    pub sectors: BTreeMap<u64, Bytes>,
}

/// A disk as it came out.
pub struct Drawn {
    /// All names.
    pub names: BTreeMap<Entry, Ino>,
    /// Files that have a name.
    pub files: BTreeMap<Ino, Content>,
    /// What of it was open.
    pub figures: Figures,
    /// Blocks that are not as they were last.
    pub lost: Vec<LostBlock>,
}

/// What is not lost though it was drawn so: a disk that shows damage is made smaller by it.
#[derive(Clone, Debug, Default)]
pub struct Spared {
    /// All names and sizes are as they were last.
    pub names: bool,
    /// Blocks that are, by their numbers among those that lose something.
    pub blocks: Vec<Range<u64>>,
}

/// A block of a file of which something was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostBlock {
    /// The file.
    pub ino: Ino,
    /// Number of the block in it.
    pub block: u64,
    /// Sectors that had more than one state.
    pub sectors_open: u64,
    /// Of these, not as they were last.
    pub sectors_lost: u64,
}

/// How much a cut left to chance, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Operations on names, and truncations, that were open.
    pub names_open: u64,
    /// Of these, lost.
    pub names_lost: u64,
    /// Sectors that had more than one state.
    pub sectors_open: u64,
    /// Of these, not as they were last.
    pub sectors_lost: u64,
    /// Blocks of 8 KiB that are as they never were: sectors of different times.
    pub blocks_torn: u64,
    /// Blocks that were to lose something, before any was spared.
    pub blocks_lost: u64,
}

/// How the whole disk fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Nothing,
    Everything,
    Some,
}

/// What a draw is about.
#[derive(Clone, Copy)]
enum About {
    Mood = 1,
    NamesKept,
    Name,
    Share,
    Size,
    Block,
    Split,
    Before,
    After,
    Sector,
}

struct Draw {
    seed: u64,
}

impl Draw {
    /// A number below `below`, which is not 0.
    fn below(&self, below: u64, about: About, of: u64, at: u64) -> u64 {
        let mut mixed = self.seed;
        for part in [about as u64, of, at] {
            mixed = mix(mixed ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
        mixed % below
    }
}

/// The finisher of `SplitMix64`.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// Draw a disk.
#[must_use]
pub fn draw(medium: &Medium, seed: u64, spared: &Spared) -> Drawn {
    let draw = Draw { seed };
    let mood = match draw.below(8, About::Mood, 0, 0) {
        0 => Mood::Nothing,
        1 => Mood::Everything,
        _ => Mood::Some,
    };
    let of_names = if spared.names { Mood::Everything } else { mood };
    let survivors = survivors(medium, &draw, of_names);
    let names = medium.names.with(&survivors);
    let open = medium.names.open().count() as u64;
    let mut figures = Figures {
        names_open: open,
        names_lost: open - survivors.len() as u64,
        ..Figures::default()
    };
    let (mut files, mut lost) = (BTreeMap::new(), Vec::new());
    for ino in names.values() {
        let Some(node) = medium.nodes.get(ino).filter(|node| node.kind == Kind::File) else {
            continue;
        };
        let cuts = node.data.cuts().iter().filter(|cut| survivors.contains(&cut.order)).count();
        let one = OneFile { data: &node.data, ino: *ino, cuts, draw: &draw, mood, spared };
        let sector_bytes = medium.device.sector_bytes;
        files.entry(*ino).or_insert_with(|| one.content(sector_bytes, &mut figures, &mut lost));
    }
    Drawn { names, files, figures, lost }
}

fn survivors(medium: &Medium, draw: &Draw, mood: Mood) -> BTreeSet<Order> {
    let open = medium.names.open().count() as u64;
    let first = match mood {
        Mood::Nothing => 0,
        Mood::Everything => open,
        Mood::Some => draw.below(open + 1, About::NamesKept, 0, 0),
    };
    // Of those that survive alone, how many of 10 do.
    let share = 1 + draw.below(9, About::Share, 0, 0);
    let mut survivors = BTreeSet::new();
    for (number, operation) in (0..).zip(medium.names.open()) {
        let drawn = match (mood, medium.names.survival()) {
            (Mood::Some, Survival::Alone) => {
                draw.below(10, About::Name, operation.order, 0) < share
            }
            _ => number < first,
        };
        if drawn && medium.names.may_survive(operation, &survivors) {
            survivors.insert(operation.order);
        }
    }
    survivors
}

struct OneFile<'a> {
    data: &'a FileData,
    ino: Ino,
    cuts: usize,
    draw: &'a Draw,
    mood: Mood,
    spared: &'a Spared,
}

impl OneFile<'_> {
    fn content(
        &self,
        sector_bytes: u64,
        figures: &mut Figures,
        lost: &mut Vec<LostBlock>,
    ) -> Content {
        let size = self.size();
        let count = size.div_ceil(sector_bytes);
        let mut sectors = self.data.base(size, sector_bytes, self.cuts);
        let per_block = BLOCK_BYTES / sector_bytes;
        let open: Vec<u64> = self.data.open_sectors().take_while(|one| *one < count).collect();
        for block in open.chunk_by(|one, next| one / per_block == next / per_block) {
            lost.extend(self.block(block, sector_bytes, &mut sectors, figures));
        }
        Content { size, sectors }
    }

    fn size(&self) -> u64 {
        let (base, grown) = self.data.sizes(self.cuts);
        let last = grown.last().copied().unwrap_or(base);
        match if self.spared.names { Mood::Everything } else { self.mood } {
            Mood::Nothing => return base,
            Mood::Everything => return last,
            Mood::Some => {}
        }
        let pages = (base / CACHE_PAGE_BYTES + 1)..last.div_ceil(CACHE_PAGE_BYTES);
        let pages_count = pages.end.saturating_sub(pages.start);
        // The ends of writes come out as often as all boundaries within.
        let exact = grown.len() as u64 + 1;
        let of_page = pages_count.min(exact);
        let drawn = self.draw.below(exact + of_page, About::Size, self.ino, 0);
        if drawn == 0 {
            base
        } else if drawn < exact {
            grown[usize::try_from(drawn - 1).unwrap_or(0)]
        } else {
            let page = self.draw.below(pages_count, About::Size, self.ino, 1);
            (pages.start + page) * CACHE_PAGE_BYTES
        }
    }

    /// Sectors of one block that have more than one state; what is lost of it.
    fn block(
        &self,
        open: &[u64],
        sector_bytes: u64,
        out: &mut BTreeMap<u64, Bytes>,
        figures: &mut Figures,
    ) -> Option<LostBlock> {
        let states: Vec<_> =
            open.iter().map(|one| self.data.states(*one, sector_bytes, self.cuts)).collect();
        let mut times: Vec<Order> = states.iter().flatten().map(|one| one.0).collect();
        times.sort_unstable();
        times.dedup();
        let per_block = BLOCK_BYTES / sector_bytes;
        let block = open[0] / per_block;
        let pick = |below, about| self.draw.below(below, about, self.ino, block);
        let time = |about| times[usize::try_from(pick(times.len() as u64, about)).unwrap_or(0)];
        let newest = times.last().copied().unwrap_or(0);
        let until = |sector: u64| match (self.mood, pick(100, About::Block)) {
            (Mood::Everything, _) | (Mood::Some, 0..30) => Some(newest),
            (Mood::Nothing, _) | (Mood::Some, 30..50) => Some(0),
            (Mood::Some, 50..70) => {
                let first = sector % per_block < pick(per_block + 1, About::Split);
                Some(time(if first { About::Before } else { About::After }))
            }
            (Mood::Some, _) => None,
        };
        let mut chosen: Vec<usize> = open
            .iter()
            .zip(&states)
            .map(|(sector, states)| {
                if let Some(until) = until(*sector) {
                    return states.partition_point(|one| one.0 <= until) - 1;
                }
                let below = states.len() as u64;
                let drawn = self.draw.below(below, About::Sector, self.ino, *sector);
                usize::try_from(drawn).unwrap_or(0)
            })
            .collect();
        let losing = |chosen: &[usize]| {
            chosen.iter().zip(&states).filter(|(index, states)| *index + 1 < states.len()).count()
        };
        if losing(&chosen) > 0 {
            let number = figures.blocks_lost;
            figures.blocks_lost += 1;
            if self.spared.blocks.iter().any(|range| range.contains(&number)) {
                chosen = states.iter().map(|states| states.len() - 1).collect();
            }
        }
        for ((sector, states), index) in open.iter().zip(&states).zip(&chosen) {
            match states[*index].1 {
                Bytes::Zero => out.remove(sector),
                bytes => out.insert(*sector, bytes),
            };
        }
        let sectors_open = states.iter().filter(|states| states.len() > 1).count() as u64;
        let sectors_lost = losing(&chosen) as u64;
        figures.sectors_open += sectors_open;
        figures.sectors_lost += sectors_lost;
        figures.blocks_torn += u64::from(is_torn(&times, &states, &chosen));
        (sectors_lost > 0).then_some(LostBlock { ino: self.ino, block, sectors_open, sectors_lost })
    }
}

/// Whether there was no moment at which all sectors were as they came out.
fn is_torn(times: &[Order], states: &[Vec<(Order, Bytes)>], chosen: &[usize]) -> bool {
    !times.iter().any(|time| {
        states
            .iter()
            .zip(chosen)
            .all(|(states, index)| states.partition_point(|one| one.0 <= *time) - 1 == *index)
    })
}
