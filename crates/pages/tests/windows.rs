//! Ranges over files of segments: where they end, what is damage, and what the sums are.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{fs, fs::File, path::PathBuf};

use pages::{
    Error, Lsn,
    wal::{Range, Step, Summary, WalSummary, Window, head_of},
};

use crate::writer::{Body, HEAP, Picture, Writer};

const MIB: u32 = 1 << 20;

/// Files of segments, removed at the end.
pub(crate) struct Files(PathBuf, Vec<String>);

impl Files {
    pub(crate) fn of(test: &str, writer: &Writer, pages: &[u8]) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        fs::create_dir_all(&folder).unwrap();
        let mut names = Vec::new();
        for (at, bytes) in
            pages.chunks(usize::try_from(writer.format.segment_bytes).unwrap()).enumerate()
        {
            let name = format!("{:08X}{:08X}{:08X}", 1, 0, at + 1);
            let mut whole = bytes.to_vec();
            whole.resize(usize::try_from(writer.format.segment_bytes).unwrap(), 0);
            fs::write(folder.join(&name), whole).unwrap();
            names.push(name);
        }
        Self(folder, names)
    }

    pub(crate) fn read(&self, from: Lsn, to: Option<Lsn>) -> Result<WalSummary, Error> {
        let open = |name: &String| File::open(self.0.join(name)).unwrap();
        let (format, _) = head_of(&self.1[0], &open(&self.1[0]))?;
        let mut window = Window::new(format, 8192, Range { from, to });
        let mut summary = Summary::new(format.major);
        let skipped = usize::try_from(from.0 / u64::from(MIB) - 1).unwrap();
        for name in &self.1[skipped..] {
            if window.segment(name, &open(name), &mut |record| summary.add(record))? == Step::Done {
                break;
            }
        }
        let ended = window.finish()?;
        Ok(summary.finish(&window, from, ended))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn three_segments() -> (Writer, Vec<Lsn>) {
    let mut writer = Writer::new(18, MIB, 8192);
    let mut starts = Vec::new();
    while writer.bytes.len() < 5 << 19 {
        let image = Picture { bytes: 1000, hole_at: 40, info: 0x3, hole_bytes: None };
        let number = u32::try_from(starts.len()).unwrap();
        let body = Body::default()
            .block(0, 0, 16_384, number, b"abc", Some(image))
            .block(1, 0, 16_390, 1, b"defg", None);
        starts.push(writer.record(HEAP, 0, &body.data(b"main")));
        starts.push(writer.record(1, 0x80, &Body::default().data(&[0; 8])));
    }
    (writer, starts)
}

#[test]
fn a_range_is_summed_up() {
    let (writer, starts) = three_segments();
    let files = Files::of("summed", &writer, &writer.pages());
    let all = files.read(Lsn(writer.begin), None).unwrap();
    let count = u64::try_from(starts.len()).unwrap();
    assert_eq!((all.records, all.commits, all.aborts), (count, count / 2, 0));
    assert_eq!((all.images, all.image_bytes), (count / 2, count / 2 * 1000));
    assert_eq!((all.blocks_image, all.blocks_plain, all.blocks_init), (count / 2, 1, 0));
    let names: Vec<_> =
        all.kinds.iter().map(|one| format!("{} {}", one.manager, one.kind)).collect();
    assert_eq!(names, ["Heap INSERT", "Transaction COMMIT"]);
    assert_eq!(all.kinds.iter().map(|one| one.bytes).sum::<u64>(), all.record_bytes);
    let [big, small] = &all.relations[..] else { panic!("{:?}", all.relations) };
    assert_eq!(
        (big.relfilenode, big.records, big.blocks, big.images),
        (16_384, count / 2, count / 2, count / 2)
    );
    assert_eq!(
        (small.relfilenode, small.records, small.blocks, small.images),
        (16_390, count / 2, 1, 0)
    );
    assert_eq!(small.bytes, count / 2 * 4);
    assert_eq!(big.bytes + small.bytes, all.kinds[0].bytes);
    let ended = all.ended.unwrap();
    assert_eq!(
        (ended.why.as_str(), ended.file.as_str()),
        ("no record follows", "000000010000000000000003")
    );
    assert_eq!((ended.lsn, all.timeline), (all.end_lsn, 1));
}

/// Each record is in one of two ranges that follow each other.
#[test]
fn ranges_add_up_to_the_whole() {
    let (writer, starts) = three_segments();
    let files = Files::of("added", &writer, &writer.pages());
    let whole = files.read(Lsn(writer.begin), None).unwrap();
    for at in [1, 2, starts.len() / 2, starts.len() - 1] {
        for cut in [starts[at], Lsn(starts[at].0 - 8), Lsn(starts[at].0 + 8)] {
            let before = files.read(Lsn(writer.begin), Some(cut)).unwrap();
            let after = files.read(cut, None).unwrap();
            assert_eq!(before.records + after.records, whole.records);
            assert_eq!(before.record_bytes + after.record_bytes, whole.record_bytes);
            assert_eq!(before.ended, None);
        }
    }
}

/// A range may end with the last byte of a segment, of which there is no next one.
#[test]
fn a_range_may_end_with_a_segment() {
    let mut writer = Writer::new(16, MIB, 8192);
    let first = writer.record(HEAP, 0, &Body::default().data(&[1]));
    writer.switch();
    let files = Files::of("ending", &writer, &writer.pages());
    let to = Lsn(2 * u64::from(MIB));
    assert_eq!(files.read(Lsn(writer.begin), Some(to)).unwrap().records, 2);
    let all = files.read(first, None).unwrap();
    assert_eq!((all.records, all.end_lsn), (2, to.to_string()));
    assert_eq!(all.ended.unwrap().why, "no segment follows");
    let error = files.read(first, Some(Lsn(to.0 + 1))).unwrap_err();
    assert!(error.fact.contains("before 0/200001, at 0/200000: no segment follows"), "{error}");
}

/// What a server has flushed may end within a record, whose rest is then still what was there
/// before, or no segment yet: the range has the records before it.
#[test]
fn a_range_may_end_within_a_record() {
    let (writer, starts) = three_segments();
    let segment = u64::from(MIB);
    for to in [segment + 8192, segment + 40 * 8192, 2 * segment, 2 * segment + 7 * 8192] {
        let before = u64::try_from(starts.iter().filter(|one| one.0 < to).count()).unwrap();
        let mut pages = writer.pages();
        let whole = Files::of("within", &writer, &pages);
        assert_eq!(whole.read(Lsn(writer.begin), Some(Lsn(to))).unwrap().records, before);
        assert!(!starts.contains(&Lsn(to + 24)) && !starts.contains(&Lsn(to + 40)));
        let flushed = usize::try_from(to - segment).unwrap();
        let expect = |files: &Files| {
            let found = files.read(Lsn(writer.begin), Some(Lsn(to))).unwrap();
            assert_eq!((found.records, found.ended), (before - 1, None));
            assert_eq!(found.end_lsn, starts[usize::try_from(before - 1).unwrap()].to_string());
        };
        pages[flushed..].fill(0);
        expect(&Files::of("unwritten", &writer, &pages));
        pages.copy_within(..8192, flushed);
        expect(&Files::of("stale", &writer, &pages));
        if to % segment == 0 {
            expect(&Files::of("missing", &writer, &pages[..flushed]));
        }
        // What is not valid before the end is damage as ever.
        pages[flushed - 8192..].fill(0);
        let files = Files::of("lost", &writer, &pages);
        assert!(files.read(Lsn(writer.begin), Some(Lsn(to))).is_err());
    }
}

#[test]
fn damage_is_told_from_the_end() {
    let (writer, starts) = three_segments();
    let mut pages = writer.pages();
    let place = usize::try_from(starts[starts.len() / 2].0 - writer.begin).unwrap();
    pages[place + 60] ^= 1;
    let files = Files::of("damaged", &writer, &pages);
    let error = files.read(Lsn(writer.begin), None).unwrap_err();
    assert!(error.fact.starts_with("WAL is damaged in 000000010000000000000002 at 0/"), "{error}");
    assert!(error.fact.ends_with("segment 000000010000000000000003 after it is WAL again"));
    let error = files.read(Lsn(writer.begin), Some(*starts.last().unwrap())).unwrap_err();
    assert!(error.fact.starts_with("WAL ends in 000000010000000000000002 before"), "{error}");
    assert!(error.fact.contains("record has the CRC"), "{error}");
    // What was written before a segment was used again is no WAL of now.
    let mut pages = writer.pages();
    let (second, third) = (1 << 20, 2 << 20);
    pages.copy_within(..1 << 19, third);
    pages[second + (1 << 19)..third].fill(0);
    let files = Files::of("recycled", &writer, &pages);
    let all = files.read(Lsn(writer.begin), None).unwrap();
    assert_eq!(all.ended.unwrap().file, "000000010000000000000002");
}

#[test]
fn files_that_are_no_segments_are_refused() {
    let (writer, _) = three_segments();
    let wrong = |at: usize, bytes: &[u8]| {
        let mut pages = writer.pages();
        pages[at..at + bytes.len()].copy_from_slice(bytes);
        let files = Files::of(&format!("wrong-{at}-{}", bytes[0]), &writer, &pages);
        files.read(Lsn(writer.begin), None).unwrap_err()
    };
    let name = "000000010000000000000001";
    let cases = [
        (
            wrong(0, b"PK"),
            "its first page begins with 4B50, which no WAL that is read does",
            "no segment",
        ),
        (wrong(0, &[0, 0]), "its first page begins with 0000", "never written to"),
        (wrong(0, &[0xD1, 0x18]), "its first page begins with 18D1", "other byte order"),
        (wrong(0, &[0x98, 0xD0]), "its first page begins with D098", "12 to 18"),
        (wrong(2, &[0]), "the first page of a segment has no long header", ""),
        (wrong(33, &[1]), "its header tells of segments of 1048832 bytes", ""),
    ];
    for (error, fact, hint) in cases {
        assert!(error.fact.starts_with(&format!("{name}: {fact}")), "{error}");
        assert!(error.hint.unwrap_or_default().contains(hint), "{fact}");
    }
}
