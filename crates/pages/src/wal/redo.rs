//! Where redo of a crashed cluster begins and ends, and which blocks have to be whole for it.
//!
//! A block whose first touch is an image, or which is made anew, redo overwrites without looking at
//! it. Every other one it reads: that one a power cut may have torn, where WAL holds no image.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs::File,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    backup_label::BackupLabel,
    control::Control,
    error::Error,
    lsn::Lsn,
    page::PageHeader,
    relation::{Fork, Locator, RelationFile},
    version::Major,
    wal::{
        history::History,
        kind::{HEAP, HEAP2, is_custom, manager_name},
        page::Format,
        reading::{WalHead, control_of},
        record::Record,
        segment::{Segment, SegmentName, choose},
        summary::WalEnd,
        touch::{Touch, Touches},
        window::{Range, Step, Window},
    },
};

/// Of [`RedoNeeds`].
const VERSION: u32 = 1;
/// Resource managers whose records clear bits of the visibility map, before 17 without naming it.
const HEAPS: [u8; 2] = [HEAP2, HEAP];
/// Bits of the visibility map for each block.
const VISIBILITY_BITS: u32 = 2;

/// A cluster that is not running.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedoSpec {
    /// What lies in its `pg_wal`; names that are none of segments are left out.
    pub names: Vec<String>,
    /// Texts of history files, by name.
    #[serde(default)]
    pub histories: BTreeMap<String, String>,
    /// Its `pg_control`.
    pub control: WalHead,
    /// Text of its `backup_label`; null: it has none.
    pub backup_label: Option<String>,
}

/// What a cluster says of itself, and where its redo begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[allow(clippy::struct_excessive_bools, reason = "facts that hold or do not")]
pub struct RedoBegin {
    /// PostgreSQL's major.
    pub major: u16,
    /// Differs between any two clusters that are not copies, in decimal digits.
    pub system_identifier: String,
    /// What it last did, as `pg_controldata` says it.
    pub state: &'static str,
    /// It was stopped cleanly: no redo is needed.
    pub is_shut_down: bool,
    /// It is a standby, or was recovering from an archive.
    pub is_standby: bool,
    /// Redo begins here.
    pub redo_lsn: String,
    /// The checkpoint that it begins with.
    pub checkpoint_lsn: String,
    /// The timeline that redo follows.
    pub timeline: u32,
    /// `full_page_writes` at the checkpoint.
    pub full_page_writes: bool,
    /// Pages have checksums.
    pub has_checksums: bool,
    /// `wal_log_hints`.
    pub logs_hints: bool,
    /// 0: minimal, 1: replica, 2: logical.
    pub wal_level: u32,
    /// Bytes of a page of a relation.
    pub block_bytes: u32,
    /// Pages of a file of a relation.
    pub segment_blocks: u32,
    /// Bytes of a segment of WAL.
    pub wal_segment_bytes: u32,
}

/// Blocks of a file that have to be whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NeededFile {
    /// Below the data directory.
    pub path: String,
    /// `main`, `fsm`, `vm` or `init`.
    pub fork: &'static str,
    /// Number of the file's first block within its fork.
    pub first_block: u32,
    /// Numbers of blocks within the fork, ascending: the first, and how many from it on.
    pub runs: Vec<(u32, u32)>,
}

/// What redo needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RedoNeeds {
    /// Of this shape.
    pub version: u32,
    /// End of the last record: here redo will end.
    pub end_lsn: String,
    /// Where valid WAL ended.
    pub ended: WalEnd,
    /// Records of redo.
    pub records: u64,
    /// Bytes of WAL from the beginning of redo to its end.
    pub wal_bytes: u64,
    /// Blocks whose first touch is an image.
    pub blocks_image: u64,
    /// Blocks that are made anew first.
    pub blocks_init: u64,
    /// Blocks that redo reads, those of `files`.
    pub blocks: u64,
    /// Of these, pages of visibility maps that no record names.
    pub blocks_visibility: u64,
    /// Resource managers of extensions: what their records change is not known.
    pub custom_managers: Vec<String>,
    /// Where the blocks are, by path.
    pub files: Vec<NeededFile>,
}

/// The redo of a cluster, while its WAL is read.
#[derive(Debug)]
pub struct Redo {
    begin: RedoBegin,
    major: Major,
    /// Folder of relations in a tablespace, e.g. `PG_18_202506291`.
    version: String,
    from: Lsn,
    window: Window,
    segments: Vec<Segment>,
    touches: Touches,
    visibility: HashSet<(Locator, u32)>,
    custom: BTreeSet<u8>,
    records: u64,
}

impl Redo {
    /// Finds where redo begins, and the segments from there on.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is damaged, they are of different clusters, or the segment in which
    /// redo begins is missing.
    pub fn start(spec: &RedoSpec) -> Result<Self, Error> {
        let control = control_of(&spec.control)?;
        let major = control.major.ok_or_else(|| {
            Error::hinted(
                format!("pg_control has the catalogue {}, which is not known", control.catalogue),
                "Releases of PostgreSQL 12 to 18 are read.",
            )
        })?;
        let format = Format {
            major,
            system_identifier: control.system_identifier,
            segment_bytes: control.wal_segment_bytes,
            page_bytes: control.wal_block_bytes,
        };
        let (from, checkpoint, timeline) = begin_of(&control, spec.backup_label.as_deref())?;
        let history = match spec.histories.get(&format!("{timeline:08X}.history")) {
            Some(text) => History::parse(timeline, text)?,
            None => History::alone(timeline),
        };
        let names: Vec<SegmentName> =
            spec.names.iter().filter_map(|name| SegmentName::parse(name)).collect();
        let segments = choose(&names, &history, format.segment_bytes, Some(from), None)?;
        if segments.is_empty() {
            let name = SegmentName::holding(timeline, from, format.segment_bytes);
            return Err(Error::new(format!(
                "segment {name} is missing, where redo begins at {from}"
            )));
        }
        let block_bytes = u16::try_from(control.block_bytes)
            .map_err(|_| Error::new(format!("pages have {} bytes", control.block_bytes)))?;
        Ok(Self {
            begin: RedoBegin::of(&control, major, from, checkpoint, timeline),
            major,
            version: format!("PG_{major}_{}", control.catalogue),
            from,
            window: Window::new(format, block_bytes, Range { from, to: None }),
            segments,
            touches: Touches::default(),
            visibility: HashSet::new(),
            custom: BTreeSet::new(),
            records: 0,
        })
    }

    /// What the cluster says of itself.
    #[must_use]
    pub fn begin(&self) -> &RedoBegin {
        &self.begin
    }

    /// Names of the segments, in the order in which they are to be read.
    pub fn segments(&self) -> impl Iterator<Item = String> {
        self.segments.iter().map(|segment| segment.name.to_string())
    }

    /// Reads the next segment; whether another one is wanted.
    ///
    /// # Errors
    ///
    /// As [`Window::segment`].
    pub fn read(&mut self, name: &str, file: &File) -> Result<Step, Error> {
        let Self { window, touches, visibility, custom, records, begin, .. } = self;
        let heap_blocks = visibility_blocks(begin.block_bytes);
        window.segment(name, file, &mut |record: &Record<'_>| {
            *records += 1;
            touches.add(record);
            if HEAPS.contains(&record.head.manager) {
                let main = record.blocks.iter().filter(|block| block.fork == Fork::Main);
                visibility.extend(main.map(|block| (block.locator, block.number / heap_blocks)));
            }
            if is_custom(record.head.manager) {
                custom.insert(record.head.manager);
            }
        })
    }

    /// What redo needs, once all segments were read.
    ///
    /// # Errors
    ///
    /// As [`Window::finish`]; or WAL ends before the checkpoint that redo begins with does.
    pub fn finish(&mut self) -> Result<RedoNeeds, Error> {
        let (file, flaw) =
            self.window.finish()?.ok_or_else(|| Error::new("WAL goes on without end"))?;
        let end = self.window.scanner().end();
        let checkpoint: Lsn = self.begin.checkpoint_lsn.parse()?;
        if end <= checkpoint {
            return Err(Error::hinted(
                format!("WAL ends in {file} at {flaw}, before the checkpoint at {checkpoint} does"),
                "The disk lost WAL that it had said to be durable: recover from a backup, or from \
                 the standby.",
            ));
        }
        let plain = self.touches.iter().filter(|(.., touch)| *touch == Touch::Plain);
        let mut blocks: BTreeSet<(Locator, Fork, u32)> =
            plain.map(|(locator, fork, number, _)| (locator, fork, number)).collect();
        let named = blocks.len();
        blocks.extend(
            self.visibility.iter().map(|(locator, number)| (*locator, Fork::Visibility, *number)),
        );
        Ok(RedoNeeds {
            version: VERSION,
            end_lsn: end.to_string(),
            ended: WalEnd { file, lsn: flaw.at.to_string(), why: flaw.fact },
            records: self.records,
            wal_bytes: end.0.saturating_sub(self.from.0),
            blocks_image: self.touches.count(Touch::Image),
            blocks_init: self.touches.count(Touch::Init),
            blocks: count(blocks.len()),
            blocks_visibility: count(blocks.len() - named),
            custom_managers: self.custom.iter().map(|one| manager_name(*one)).collect(),
            files: self.files(blocks),
        })
    }

    fn files(&self, blocks: BTreeSet<(Locator, Fork, u32)>) -> Vec<NeededFile> {
        let mut files: Vec<NeededFile> = Vec::new();
        let mut of = None;
        for (locator, fork, number) in blocks {
            let segment = number / self.begin.segment_blocks.max(1);
            let file = RelationFile { locator, fork, segment };
            if of != Some(file) {
                of = Some(file);
                files.push(NeededFile {
                    path: file.path(&self.version),
                    fork: fork.name(),
                    first_block: segment * self.begin.segment_blocks,
                    runs: Vec::new(),
                });
            }
            let Some(latest) = files.last_mut() else { continue };
            match latest.runs.last_mut() {
                Some((first, length)) if *first + *length == number => *length += 1,
                _ => latest.runs.push((number, 1)),
            }
        }
        files
    }

    /// PostgreSQL's major.
    #[must_use]
    pub fn major(&self) -> Major {
        self.major
    }
}

impl RedoBegin {
    fn of(control: &Control, major: Major, from: Lsn, checkpoint: Lsn, timeline: u32) -> Self {
        Self {
            major: major.number(),
            system_identifier: control.system_identifier.to_string(),
            state: control.state.text(),
            is_shut_down: control.state.is_shut_down(),
            is_standby: control.state.is_standby(),
            redo_lsn: from.to_string(),
            checkpoint_lsn: checkpoint.to_string(),
            timeline,
            full_page_writes: control.checkpoint.full_page_writes,
            has_checksums: control.data_checksums != 0,
            logs_hints: control.settings.log_hints,
            wal_level: control.settings.level,
            block_bytes: control.block_bytes,
            segment_blocks: control.segment_blocks,
            wal_segment_bytes: control.wal_segment_bytes,
        }
    }
}

/// Where redo begins, the checkpoint it begins with, and the timeline that it follows.
fn begin_of(control: &Control, label: Option<&str>) -> Result<(Lsn, Lsn, u32), Error> {
    let Some(text) = label else {
        // After a promotion the latest checkpoint may be of the timeline before.
        let timeline = control.checkpoint.timeline.max(control.min_recovery_timeline);
        return Ok((control.checkpoint.redo, control.checkpoint.record, timeline));
    };
    let label = BackupLabel::parse(text)?;
    let timeline = label.timeline.unwrap_or(control.checkpoint.timeline);
    Ok((label.start, label.checkpoint, timeline))
}

/// Blocks of a table whose bits are on one page of its visibility map.
fn visibility_blocks(block_bytes: u32) -> u32 {
    let header = u32::try_from(PageHeader::BYTES).unwrap_or(0);
    (block_bytes.saturating_sub(header) * 8 / VISIBILITY_BITS).max(1)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
