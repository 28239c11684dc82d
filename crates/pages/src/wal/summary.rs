//! What a range of WAL was made of: by what records do, by relation, images, first touches.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt as _};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    lsn::Lsn,
    relation::{Fork, Locator},
    version::Major,
    wal::{
        count::Count,
        kind::{kind_name, manager_name},
        places::Places,
        record::Record,
        scanner::Flaw,
        touch::{Touch, Touches},
        transactions::{TransactionSums, Transactions, changed},
        window::Window,
    },
};

/// Of [`WalSummary`].
const VERSION: u32 = 2;
/// Resource managers times what the upper half of an info can be.
const KINDS: usize = 256 * 16;

/// Records of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KindUse {
    /// Resource manager, e.g. `Heap`.
    pub manager: String,
    /// What its records did, e.g. `INSERT`, as `pg_waldump` calls it.
    pub kind: String,
    /// How many.
    pub records: u64,
    /// Their bytes, images included.
    pub bytes: u64,
    /// Full page images in them.
    pub images: u64,
    /// Bytes of these.
    pub image_bytes: u64,
}

/// What referred to a relation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RelationUse {
    /// OID of its tablespace.
    pub tablespace: u32,
    /// OID of its database; 0: shared.
    pub database: u32,
    /// Its files' name.
    pub relfilenode: u32,
    /// Records that referred to it.
    pub records: u64,
    /// Bytes of these that are its own: data and images of its blocks, and the rest of the record
    /// where its block is the first. Summed over relations they are those of all records with
    /// blocks.
    pub bytes: u64,
    /// Full page images of its blocks.
    pub images: u64,
    /// Bytes of these.
    pub image_bytes: u64,
    /// Its blocks that were referred to, each counted once.
    pub blocks: u64,
}

/// Where valid WAL ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WalEnd {
    /// The segment.
    pub file: String,
    /// The place.
    pub lsn: String,
    /// What was found there.
    pub why: String,
}

/// What a range of WAL was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WalSummary {
    /// Of this shape.
    pub version: u32,
    /// PostgreSQL's major.
    pub major: u16,
    /// Of the cluster, in decimal digits.
    pub system_identifier: String,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Timeline of the last page.
    pub timeline: u32,
    /// Begin of the range, as it was asked for.
    pub from_lsn: String,
    /// End of the range: as it was asked for, or of the last record.
    pub to_lsn: String,
    /// Begin of the first record; null: there was none.
    pub first_lsn: Option<String>,
    /// End of the last record.
    pub end_lsn: String,
    /// Bytes from the first record's begin to the last one's end: also headers of pages, and what
    /// switches of segments left empty.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// Bytes of records, images included.
    pub record_bytes: u64,
    /// Full page images.
    pub images: u64,
    /// Bytes of these.
    pub image_bytes: u64,
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that were rolled back.
    pub aborts: u64,
    /// Blocks that were touched first by an image.
    pub blocks_image: u64,
    /// Blocks that were made anew at first touch.
    pub blocks_init: u64,
    /// Blocks that were changed at first touch, without image.
    pub blocks_plain: u64,
    /// Records that a crash cut, and that were given up.
    pub overwritten: u64,
    /// By kind, most bytes first.
    pub kinds: Vec<KindUse>,
    /// By relation, most bytes first.
    pub relations: Vec<RelationUse>,
    /// By what became of transactions, and by the tables whose rows they changed.
    pub transactions: TransactionSums,
    /// Where valid WAL ended; null: the range ended first.
    pub ended: Option<WalEnd>,
}

/// Counts records.
#[derive(Debug)]
pub struct Summary {
    kinds: Vec<Count>,
    relations: Vec<(Locator, Count)>,
    places: Places,
    touches: Touches,
    transactions: Transactions,
    first: Option<Lsn>,
}

impl Summary {
    /// Of WAL of a major.
    #[must_use]
    pub fn new(major: Major) -> Self {
        Self {
            kinds: vec![Count::default(); KINDS],
            relations: Vec::new(),
            places: Places::default(),
            touches: Touches::default(),
            transactions: Transactions::new(major),
            first: None,
        }
    }

    /// Takes the next record.
    pub fn add(&mut self, record: &Record<'_>) {
        self.first.get_or_insert(record.start);
        let whole = Count {
            records: 1,
            bytes: u64::from(record.head.bytes),
            images: record.images().map(|_| 1).sum(),
            image_bytes: record.image_bytes(),
        };
        let kind = usize::from(record.head.manager) << 4 | usize::from(record.head.info >> 4);
        if let Some(count) = self.kinds.get_mut(kind) {
            count.add(whole);
        }
        let mut rest = whole.bytes;
        for (at, block) in record.blocks.iter().enumerate() {
            let image_bytes = block.image.as_ref().map_or(0, |image| u64::from(image.bytes));
            let is_again = record.blocks[..at].iter().any(|one| one.locator == block.locator);
            let count = Count {
                records: u64::from(!is_again),
                bytes: u64::from(block.data_bytes) + image_bytes,
                images: u64::from(block.image.is_some()),
                image_bytes,
            };
            rest = rest.saturating_sub(count.bytes);
            self.relation(block.locator).add(count);
        }
        if let Some(block) = record.blocks.first() {
            self.relation(block.locator).bytes += rest;
        }
        self.touches.add(record);
        let table = changed(record).map(|locator| self.place(locator));
        self.transactions.add(record, whole, table);
    }

    /// The first touch of each block.
    #[must_use]
    pub fn touches(&self) -> &Touches {
        &self.touches
    }

    fn relation(&mut self, locator: Locator) -> &mut Count {
        let at = self.place(locator);
        &mut self.relations[at].1
    }

    fn place(&mut self, locator: Locator) -> usize {
        let at = self.places.of(locator, Fork::Main);
        if at == self.relations.len() {
            self.relations.push((locator, Count::default()));
        }
        at
    }

    /// All of it, once the window was read; `ended` is where valid WAL did.
    #[must_use]
    pub fn finish(
        &self,
        window: &Window,
        range_from: Lsn,
        ended: Option<(String, Flaw)>,
    ) -> WalSummary {
        let (format, scanner) = (window.format(), window.scanner());
        let kinds = self.kinds(format.major);
        let of = |kind: &str| {
            let is = |one: &&KindUse| one.manager == "Transaction" && one.kind.starts_with(kind);
            kinds.iter().filter(is).map(|one| one.records).sum()
        };
        let mut total = Count::default();
        self.kinds.iter().for_each(|count| total.add(*count));
        let end = if self.first.is_some() { scanner.end() } else { range_from };
        WalSummary {
            version: VERSION,
            major: format.major.number(),
            system_identifier: format.system_identifier.to_string(),
            segment_bytes: format.segment_bytes,
            timeline: scanner.timeline(),
            from_lsn: range_from.to_string(),
            to_lsn: window.to().unwrap_or(end).to_string(),
            first_lsn: self.first.map(|lsn| lsn.to_string()),
            end_lsn: end.to_string(),
            bytes: self.first.map_or(0, |first| end.0.saturating_sub(first.0)),
            records: total.records,
            record_bytes: total.bytes,
            images: total.images,
            image_bytes: total.image_bytes,
            commits: of("COMMIT"),
            aborts: of("ABORT"),
            blocks_image: self.touches.count(Touch::Image),
            blocks_init: self.touches.count(Touch::Init),
            blocks_plain: self.touches.count(Touch::Plain),
            overwritten: scanner.overwritten(),
            kinds,
            relations: self.relations(),
            transactions: self.transactions.sums(|place| self.relations[place].0),
            ended: ended.map(|(file, flaw)| WalEnd {
                file,
                lsn: flaw.at.to_string(),
                why: flaw.fact,
            }),
        }
    }

    fn kinds(&self, major: Major) -> Vec<KindUse> {
        let mut by_name: BTreeMap<(String, String), Count> = BTreeMap::new();
        for (at, count) in self.kinds.iter().enumerate().filter(|(_, count)| count.records > 0) {
            let manager = u8::try_from(at >> 4).unwrap_or(u8::MAX);
            let info = u8::try_from((at & 0xF) << 4).unwrap_or(0);
            let kind = kind_name(major, manager, info);
            by_name.entry((manager_name(manager), kind)).or_default().add(*count);
        }
        let mut kinds: Vec<KindUse> = by_name
            .into_iter()
            .map(|((manager, kind), Count { records, bytes, images, image_bytes })| KindUse {
                manager,
                kind,
                records,
                bytes,
                images,
                image_bytes,
            })
            .collect();
        kinds.sort_by_key(|one| std::cmp::Reverse(one.bytes));
        kinds
    }

    fn relations(&self) -> Vec<RelationUse> {
        let mut blocks: HashMap<Locator, u64> = HashMap::new();
        for (locator, ..) in self.touches.iter() {
            *blocks.entry(locator).or_default() += 1;
        }
        let mut relations: Vec<RelationUse> = self
            .relations
            .iter()
            .map(|(locator, count)| RelationUse {
                tablespace: locator.tablespace,
                database: locator.database,
                relfilenode: locator.relfilenode,
                records: count.records,
                bytes: count.bytes,
                images: count.images,
                image_bytes: count.image_bytes,
                blocks: blocks.get(locator).copied().unwrap_or(0),
            })
            .collect();
        relations.sort_by_key(|one| {
            let name = (one.tablespace, one.database, one.relfilenode);
            (std::cmp::Reverse(one.bytes), name)
        });
        relations
    }
}
