//! A record: its header, the blocks that it refers to, and their images.

use std::ops::Range;

use crate::{
    bytes::{Cursor, u32_at, u64_at},
    lsn::Lsn,
    relation::{Fork, Locator},
    version::Major,
};

const BLOCK_MAX: u8 = 32;
const DATA_SHORT: u8 = 255;
const DATA_LONG: u8 = 254;
const ORIGIN: u8 = 253;
const TOP_XID: u8 = 252;
const HAS_IMAGE: u8 = 0x10;
const HAS_DATA: u8 = 0x20;
const WILL_INIT: u8 = 0x40;
const SAME_RELATION: u8 = 0x80;

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// Bytes of the whole record.
    pub bytes: u32,
    /// Transaction; 0: none.
    pub xid: u32,
    /// The record before.
    pub prev: Lsn,
    /// What it is, for its resource manager (upper half), and flags.
    pub info: u8,
    /// Resource manager.
    pub manager: u8,
    /// CRC-32C of all but itself.
    pub crc: u32,
}

impl RecordHead {
    /// Length in bytes.
    pub const BYTES: usize = 24;

    /// Reads it; `None` of too few bytes.
    #[must_use]
    pub fn read(record: &[u8]) -> Option<Self> {
        let bytes = record.first_chunk::<{ Self::BYTES }>()?;
        Some(Self {
            bytes: u32_at(bytes, 0)?,
            xid: u32_at(bytes, 4)?,
            prev: Lsn(u64_at(bytes, 8)?),
            info: bytes[16],
            manager: bytes[17],
            crc: u32_at(bytes, 20)?,
        })
    }
}

/// How an image is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// PostgreSQL's own.
    Pglz,
    /// 15 and later.
    Lz4,
    /// 15 and later.
    Zstd,
}

impl Compression {
    /// As `pg_waldump` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pglz => "pglz",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// An image of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Bytes that stand in the record.
    pub bytes: u16,
    /// Zeroes in the middle of the page that do not.
    pub hole: Range<usize>,
    /// How the bytes are compressed; `None`: not.
    pub compression: Option<Compression>,
    /// Replay puts it in place of the page; otherwise it is there to check replay.
    pub is_applied: bool,
    /// Where its bytes are in the record.
    pub at: Range<usize>,
}

/// A block that a record changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of the reference within the record.
    pub id: u8,
    /// Relation.
    pub locator: Locator,
    /// Fork.
    pub fork: Fork,
    /// Block of the fork.
    pub number: u32,
    /// Replay makes the page anew, without reading it.
    pub is_init: bool,
    /// Bytes of what the record says of the block, without the image.
    pub data_bytes: u16,
    /// The page's image.
    pub image: Option<Image>,
}

/// A whole record whose CRC was right.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Where it begins.
    pub start: Lsn,
    /// Where it ends, rounded up to 8 bytes.
    pub end: Lsn,
    /// Its fixed part.
    pub head: RecordHead,
    /// Blocks that it refers to.
    pub blocks: &'a [Block],
    /// Replication origin; `None`: of this cluster.
    pub origin: Option<u16>,
    /// Top transaction of a subtransaction, 14 and later.
    pub top_xid: Option<u32>,
    /// Its main data.
    pub data: &'a [u8],
    /// All of it.
    pub bytes: &'a [u8],
}

impl Record<'_> {
    /// Bytes of images in it.
    #[must_use]
    pub fn image_bytes(&self) -> u64 {
        self.images().map(|image| u64::from(image.bytes)).sum()
    }

    /// Images in it.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.blocks.iter().filter_map(|block| block.image.as_ref())
    }
}

/// What was read of a record besides its blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    pub(super) origin: Option<u16>,
    pub(super) top_xid: Option<u32>,
    pub(super) data: Range<usize>,
}

/// Reads what follows the fixed part; blocks go into `blocks`.
///
/// Errors are facts in words.
pub(super) fn body(
    record: &[u8],
    major: Major,
    block_bytes: u16,
    blocks: &mut Vec<Block>,
) -> Result<Body, String> {
    blocks.clear();
    let mut body = Body::default();
    let mut rest = Cursor::new(record.get(RecordHead::BYTES..).unwrap_or_default());
    let (mut announced, mut main_bytes) = (0_usize, 0_usize);
    // As PostgreSQL does: headers end where what is left is what they announced.
    while rest.left() > announced {
        let id = rest.u8().ok_or_else(cut)?;
        match id {
            DATA_SHORT | DATA_LONG => {
                let bytes = if id == DATA_SHORT { rest.u8().map(u32::from) } else { rest.u32() };
                main_bytes = usize::try_from(bytes.ok_or_else(cut)?).map_err(|_| cut())?;
                announced += main_bytes;
                break; // by convention the main data's header is the last
            }
            ORIGIN => body.origin = Some(rest.u16().ok_or_else(cut)?),
            TOP_XID if major.number() >= 14 => body.top_xid = Some(rest.u32().ok_or_else(cut)?),
            0..=BLOCK_MAX => {
                let previous = blocks.last();
                if let Some(before) = previous.filter(|before| before.id >= id) {
                    return Err(format!("block reference {id} follows {}", before.id));
                }
                let block = block(&mut rest, id, previous, major, block_bytes)?;
                announced += usize::from(block.data_bytes)
                    + block.image.as_ref().map_or(0, |image| usize::from(image.bytes));
                blocks.push(block);
            }
            _ => return Err(format!("record has a part with the number {id}, which is not known")),
        }
    }
    if rest.left() != announced {
        return Err(format!(
            "record announces {announced} bytes of data, {} are left for them",
            rest.left()
        ));
    }
    let mut at = record.len() - announced;
    for block in blocks {
        if let Some(image) = &mut block.image {
            image.at = at..at + usize::from(image.bytes);
            at = image.at.end;
        }
        at += usize::from(block.data_bytes);
    }
    body.data = at..at + main_bytes;
    Ok(body)
}

fn cut() -> String {
    "record ends within its headers".to_owned()
}

fn block(
    rest: &mut Cursor<'_>,
    id: u8,
    previous: Option<&Block>,
    major: Major,
    block_bytes: u16,
) -> Result<Block, String> {
    let flags = rest.u8().ok_or_else(cut)?;
    let data_bytes = rest.u16().ok_or_else(cut)?;
    if (flags & HAS_DATA != 0) != (data_bytes != 0) {
        return Err(format!(
            "block reference {id} has {data_bytes} bytes of data, its flags are {flags:02X}"
        ));
    }
    let image =
        if flags & HAS_IMAGE == 0 { None } else { Some(image(rest, id, major, block_bytes)?) };
    let locator = if flags & SAME_RELATION == 0 {
        Locator {
            tablespace: rest.u32().ok_or_else(cut)?,
            database: rest.u32().ok_or_else(cut)?,
            relfilenode: rest.u32().ok_or_else(cut)?,
        }
    } else {
        let before = previous.ok_or_else(|| {
            format!("block reference {id} is of the relation before, and there is none")
        })?;
        before.locator
    };
    let number = rest.u32().ok_or_else(cut)?;
    let fork = Fork::of(flags & 0xF).ok_or_else(|| {
        format!("block reference {id} is of fork {}, forks are 0 to 3", flags & 0xF)
    })?;
    let is_init = flags & WILL_INIT != 0;
    Ok(Block { id, locator, fork, number, is_init, data_bytes, image })
}

fn image(rest: &mut Cursor<'_>, id: u8, major: Major, block_bytes: u16) -> Result<Image, String> {
    let bytes = rest.u16().ok_or_else(cut)?;
    let hole_at = rest.u16().ok_or_else(cut)?;
    let info = rest.u8().ok_or_else(cut)?;
    let has_hole = info & 0x1 != 0;
    let (is_applied, compression) = image_flags(major, info);
    let hole_bytes = match (compression, has_hole) {
        (Some(_), true) => rest.u16().ok_or_else(cut)?,
        (Some(_), false) => 0,
        (None, _) => block_bytes.wrapping_sub(bytes),
    };
    let is_whole = bytes == block_bytes;
    let is_hole_wrong = if has_hole {
        hole_at == 0 || hole_bytes == 0 || is_whole
    } else {
        hole_at != 0 || hole_bytes != 0
    };
    let is_wrong = is_hole_wrong
        || (compression.is_some() && is_whole)
        || (compression.is_none() && bytes > block_bytes)
        || usize::from(hole_at) + usize::from(hole_bytes) > usize::from(block_bytes);
    if is_wrong {
        return Err(format!(
            "image of block reference {id} has {bytes} bytes, a hole of {hole_bytes} at {hole_at} \
             and the flags {info:02X}, which is none of a page of {block_bytes} bytes"
        ));
    }
    let hole = usize::from(hole_at)..usize::from(hole_at) + usize::from(hole_bytes);
    Ok(Image { bytes, hole, compression, is_applied, at: 0..0 })
}

/// Whether replay applies an image, and how it is compressed: 15 gave the bits other meanings.
fn image_flags(major: Major, info: u8) -> (bool, Option<Compression>) {
    if major.number() < 15 {
        return (info & 0x4 != 0, (info & 0x2 != 0).then_some(Compression::Pglz));
    }
    let compression = match info & 0x1C {
        0 => None,
        bits if bits & 0x4 != 0 => Some(Compression::Pglz),
        bits if bits & 0x8 != 0 => Some(Compression::Lz4),
        _ => Some(Compression::Zstd),
    };
    (info & 0x2 != 0, compression)
}
