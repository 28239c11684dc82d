//! A range of WAL as it is asked for from outside: names in, files one by one, numbers out.
//!
//! Files come as descriptors that the caller opened, so that who may be read is the caller's to
//! judge.

use std::{collections::BTreeMap, fs::File};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    control::Control,
    error::Error,
    lsn::Lsn,
    version::Major,
    wal::{
        history::History,
        kind::{kind_name, manager_name},
        named::{Checkpoints, WalNamed},
        record::{Block, Compression, Record},
        segment::{Segment, SegmentName, choose},
        summary::{Summary, WalSummary},
        window::{Range, Step, Window, head_of},
    },
};

/// Of relations' pages, where no `pg_control` says otherwise.
const BLOCK_BYTES: u16 = 8192;
/// PostgreSQL makes it of this size.
const CONTROL_BYTES: u64 = 8192;

/// A file that the caller opened.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WalHead {
    /// What it is called in errors.
    pub name: String,
    /// Its descriptor.
    pub handle: u32,
}

/// Which WAL to read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WalSpec {
    /// What lies in the folder; names that are none of segments are left out.
    pub names: Vec<String>,
    /// Texts of history files, by name.
    #[serde(default)]
    pub histories: BTreeMap<String, String>,
    /// Any segment, which says of what size all are.
    pub head: WalHead,
    /// `pg_control` of the cluster, where there is one.
    pub control: Option<WalHead>,
    /// The timeline to follow; null: the newest there is.
    pub timeline: Option<u32>,
    /// Records that begin here or later; null: from the oldest segment on.
    pub from_lsn: Option<String>,
    /// Records that begin before it; null: to the end of valid WAL.
    pub to_lsn: Option<String>,
    /// Give each record, too.
    #[serde(default)]
    pub records: bool,
}

/// A block that a record refers to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WalBlock {
    /// Number of the reference.
    pub id: u8,
    /// OID of the tablespace.
    pub tablespace: u32,
    /// OID of the database; 0: shared.
    pub database: u32,
    /// The relation's files' name.
    pub relfilenode: u32,
    /// `main`, `fsm`, `vm` or `init`.
    pub fork: &'static str,
    /// Block of the fork.
    pub block: u32,
    /// Bytes of what the record says of it, without the image.
    pub data_bytes: u16,
    /// Replay makes it anew.
    pub is_init: bool,
    /// Bytes of its image in the record; null: it has none.
    pub image_bytes: Option<u16>,
    /// Replay puts the image in place of it.
    pub is_applied: bool,
    /// Where the image's hole of zeroes begins.
    pub hole_at: u32,
    /// Bytes of the hole.
    pub hole_bytes: u32,
    /// `pglz`, `lz4` or `zstd`; null: not compressed.
    pub compression: Option<&'static str>,
}

/// A record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WalRecord {
    /// Where it begins.
    pub lsn: String,
    /// The record before.
    pub prev_lsn: String,
    /// Resource manager.
    pub manager: String,
    /// What it did.
    pub kind: String,
    /// Transaction; 0: none.
    pub xid: u32,
    /// All of its bytes.
    pub bytes: u32,
    /// Bytes of images in it.
    pub image_bytes: u64,
    /// Blocks that it refers to.
    pub blocks: Vec<WalBlock>,
}

/// What a segment held.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WalPart {
    /// No further segment is wanted.
    pub done: bool,
    /// Its records, where they were asked for.
    pub records: Vec<WalRecord>,
}

/// A range that is being read.
#[derive(Debug)]
pub struct Reading {
    window: Window,
    from: Lsn,
    summary: Summary,
    checkpoints: Checkpoints,
    segments: Vec<Segment>,
    gives_records: bool,
}

impl Reading {
    /// Finds the segments of a range.
    ///
    /// # Errors
    ///
    /// A place or a history cannot be read, a segment is missing, or what was opened is no WAL.
    pub fn start(spec: &WalSpec) -> Result<Self, Error> {
        let parse = |text: &Option<String>| text.as_deref().map(str::parse::<Lsn>).transpose();
        let (from, to) = (parse(&spec.from_lsn)?, parse(&spec.to_lsn)?);
        let (format, _) = head_of(&spec.head.name, &spec.head.open()?)?;
        let control = spec.control.as_ref().map(control_of).transpose()?;
        if let Some(control) = &control
            && control.system_identifier != format.system_identifier
        {
            return Err(Error::new(format!(
                "{} is of system {}, pg_control of {}",
                spec.head.name, format.system_identifier, control.system_identifier
            )));
        }
        let names: Vec<SegmentName> =
            spec.names.iter().filter_map(|name| SegmentName::parse(name)).collect();
        let newest = names.iter().map(|name| name.timeline).max().unwrap_or(1);
        let history = spec.history(spec.timeline.unwrap_or(newest))?;
        let segments = choose(&names, &history, format.segment_bytes, from, to)?;
        let from = from.or_else(|| segments.first().map(|first| first.start)).unwrap_or_default();
        let block_bytes = control.and_then(|control| u16::try_from(control.block_bytes).ok());
        let window = Window::new(format, block_bytes.unwrap_or(BLOCK_BYTES), Range { from, to });
        let (summary, checkpoints) = (Summary::new(format.major), Checkpoints::default());
        Ok(Self { window, from, summary, checkpoints, segments, gives_records: spec.records })
    }

    /// Names of the segments, in the order in which they are to be read.
    pub fn segments(&self) -> impl Iterator<Item = String> {
        self.segments.iter().map(|segment| segment.name.to_string())
    }

    /// Reads the next segment.
    ///
    /// # Errors
    ///
    /// As [`Window::segment`].
    pub fn read(&mut self, file: &WalHead) -> Result<WalPart, Error> {
        let Self { window, summary, checkpoints, gives_records, .. } = self;
        let major = window.format().major;
        let mut records = Vec::new();
        let step = window.segment(&file.name, &file.open()?, &mut |record| {
            summary.add(record);
            checkpoints.add(record);
            if *gives_records {
                records.push(WalRecord::of(record, major));
            }
        })?;
        Ok(WalPart { done: step == Step::Done, records })
    }

    /// What the range was made of, once its segments were read.
    ///
    /// # Errors
    ///
    /// As [`Window::finish`].
    pub fn finish(&mut self) -> Result<WalSummary, Error> {
        let ended = self.window.finish()?;
        Ok(self.summary.finish(&self.window, self.from, ended))
    }

    /// What it names, as far as its segments were read.
    #[must_use]
    pub fn named(&self) -> WalNamed {
        self.checkpoints.named(self.summary.touches())
    }
}

impl WalSpec {
    fn history(&self, timeline: u32) -> Result<History, Error> {
        match self.histories.get(&format!("{timeline:08X}.history")) {
            Some(text) => History::parse(timeline, text),
            None => Ok(History::alone(timeline)),
        }
    }
}

impl WalHead {
    /// Opens it again, apart from the caller's.
    ///
    /// # Errors
    ///
    /// The descriptor is none.
    pub fn open(&self) -> Result<File, Error> {
        // The descriptor stays the caller's; this is another one of the same file.
        File::open(format!("/proc/self/fd/{}", self.handle))
            .map_err(|e| Error::new(format!("cannot open {}: {e}", self.name)))
    }
}

pub(super) fn control_of(head: &WalHead) -> Result<Control, Error> {
    use std::io::Read;

    let mut bytes = Vec::new();
    head.open()?
        .take(CONTROL_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::new(format!("cannot read {}: {e}", head.name)))?;
    Control::read(&bytes)
}

impl WalRecord {
    fn of(record: &Record<'_>, major: Major) -> Self {
        let (manager, info) = (record.head.manager, record.head.info);
        Self {
            lsn: record.start.to_string(),
            prev_lsn: record.head.prev.to_string(),
            manager: manager_name(manager),
            kind: kind_name(major, manager, info),
            xid: record.head.xid,
            bytes: record.head.bytes,
            image_bytes: record.image_bytes(),
            blocks: record.blocks.iter().map(WalBlock::of).collect(),
        }
    }
}

impl WalBlock {
    fn of(block: &Block) -> Self {
        let image = block.image.as_ref();
        let place = |at: usize| u32::try_from(at).unwrap_or(0);
        Self {
            id: block.id,
            tablespace: block.locator.tablespace,
            database: block.locator.database,
            relfilenode: block.locator.relfilenode,
            fork: block.fork.name(),
            block: block.number,
            data_bytes: block.data_bytes,
            is_init: block.is_init,
            image_bytes: image.map(|image| image.bytes),
            is_applied: image.is_some_and(|image| image.is_applied),
            hole_at: image.map_or(0, |image| place(image.hole.start)),
            hole_bytes: image.map_or(0, |image| place(image.hole.len())),
            compression: image.and_then(|image| image.compression).map(Compression::name),
        }
    }
}
