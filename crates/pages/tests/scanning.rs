//! Pages in, records out: for every major, size and way in which a record can lie on pages.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use pages::{
    Lsn, Major,
    relation::Fork,
    wal::{Compression, Flaw, Scanner, Touch, Touches, Went},
};

use crate::writer::{Body, HEAP, Picture, Writer};

const MIB: u32 = 1 << 20;
const END: Lsn = Lsn(u64::MAX);

/// What a record was: begin, manager, info, bytes, bytes of main data.
type Seen = (Lsn, u8, u8, u32, usize);

fn scan(
    writer: &Writer,
    pages: &[u8],
    from: Lsn,
    to: Lsn,
) -> (Vec<Seen>, Result<Went, Flaw>, Scanner) {
    let mut scanner = Scanner::new(writer.format, 8192, from, to);
    let mut seen = Vec::new();
    let skipped = usize::try_from(scanner.expected().0 - writer.begin).unwrap();
    let mut went = Ok(Went::On);
    for page in pages[skipped..].chunks(usize::try_from(writer.format.page_bytes).unwrap()) {
        went = scanner.page(page, &mut |record| {
            seen.push((
                record.start,
                record.head.manager,
                record.head.info,
                record.head.bytes,
                record.data.len(),
            ));
        });
        if went != Ok(Went::On) {
            break;
        }
    }
    (seen, went, scanner)
}

fn starts(seen: &[Seen]) -> Vec<Lsn> {
    seen.iter().map(|one| one.0).collect()
}

fn said(went: Result<Went, Flaw>) -> String {
    went.expect_err("a flaw").to_string()
}

#[test]
fn records_of_every_major_and_size_are_read() {
    for major in Major::all().map(Major::number) {
        for (segment, page) in
            [(MIB, 8192), (16 * MIB, 1024), (64 * MIB, 65_536), (1024 * MIB, 8192)]
        {
            let mut writer = Writer::new(major, segment, page);
            let wanted: Vec<Lsn> = [3, 40, 300, 9000, 70_000, 1, 8100, 24]
                .iter()
                .map(|bytes| writer.record(HEAP, 0, &Body::default().data(&vec![7; *bytes])))
                .collect();
            let (seen, went, scanner) = scan(&writer, &writer.pages(), Lsn(writer.begin), END);
            assert_eq!(starts(&seen), wanted, "{major} {segment} {page}");
            assert_eq!(
                seen.iter().map(|one| one.4).collect::<Vec<_>>(),
                [3, 40, 300, 9000, 70_000, 1, 8100, 24]
            );
            if let Err(flaw) = went {
                assert_eq!(flaw.fact, "no record follows");
                assert_eq!(flaw.at, scanner.end());
            }
        }
    }
}

/// A record's header may lie on two pages, at every multiple of 8.
#[test]
fn records_begin_anywhere_on_a_page() {
    for rest in (8..200).step_by(8) {
        let mut writer = Writer::new(18, MIB, 1024);
        let first = writer.record(HEAP, 0, &Body::default().data(&[1]));
        let left = 1024 - (writer.bytes.len().next_multiple_of(8)) - rest;
        writer.record(HEAP, 0, &Body::default().data(&vec![1; left - 29]));
        let third = writer.record(HEAP, 0x10, &Body::default().data(&[9; 150]));
        let fourth = writer.record(HEAP, 0x20, &Body::default().data(&[9; 2]));
        assert_eq!(third.0 % 1024, u64::try_from(1024 - rest).unwrap());
        let pages = writer.pages();
        let (seen, ..) = scan(&writer, &pages, Lsn(writer.begin), END);
        assert_eq!(seen.len(), 4, "{rest}");
        // From the middle of a record the next one is the first.
        let (seen, ..) = scan(&writer, &pages, third, END);
        assert_eq!(starts(&seen), [third, fourth]);
        let (seen, ..) = scan(&writer, &pages, Lsn(third.0 + 8), END);
        assert_eq!(starts(&seen), [fourth]);
        let (seen, went, _) = scan(&writer, &pages, first, third);
        assert_eq!((seen.len(), went), (2, Ok(Went::Done)));
    }
}

#[test]
fn a_switch_ends_its_segment() {
    let mut writer = Writer::new(15, MIB, 8192);
    writer.record(HEAP, 0, &Body::default().data(&[1]));
    writer.switch();
    let after = writer.record(HEAP, 0, &Body::default().data(&[2]));
    assert_eq!(after.0, 2 * u64::from(MIB) + 40);
    let (seen, ..) = scan(&writer, &writer.pages(), Lsn(writer.begin), END);
    assert_eq!(
        seen.iter().map(|one| (one.1, one.2)).collect::<Vec<_>>(),
        [(10, 0), (0, 0x40), (10, 0)]
    );
    assert_eq!(seen[2].0, after);
}

#[test]
fn a_record_that_a_crash_cut_is_given_up() {
    let mut writer = Writer::new(14, MIB, 1024);
    let first = writer.record(HEAP, 0, &Body::default().data(&[1]));
    writer.lost_record(&Body::default().data(&[3; 2000]));
    let after = writer.record(0, 0xD0, &Body::default().data(&[0; 16]));
    let (seen, _, scanner) = scan(&writer, &writer.pages(), Lsn(writer.begin), END);
    assert_eq!(starts(&seen), [first, after]);
    assert_eq!(scanner.overwritten(), 1);
}

#[test]
fn what_is_not_valid_ends_the_wal_and_is_said() {
    let mut writer = Writer::new(18, MIB, 1024);
    writer.record(HEAP, 0, &Body::default().data(&[1; 100]));
    let second = writer.record(HEAP, 0, &Body::default().data(&[2; 3000]));
    let third = writer.record(HEAP, 0, &Body::default().data(&[3; 10]));
    let place = |lsn: Lsn| usize::try_from(lsn.0 - writer.begin).unwrap();
    let cases: [(usize, &[u8], &str); 11] = [
        (place(third) + 30, &[9], "has the CRC"),
        (place(third), &[0, 0, 0, 0], "no record follows"),
        (place(third), &[23], "record has 23 bytes, expected at least 24"),
        (place(third) + 17, &[99], "record is of resource manager 99, which is none"),
        (place(third) + 8, &[1], "record follows 0/"),
        (1024, &[0], "page begins with D100, expected D118"),
        (1024, &[0, 0], "page was never written"),
        (1026, &[0x11], "page has the flags 0011, known are 000F"),
        (1026, &[0], "is not continued on the page at 0/100400"),
        (1032, &[0, 8], "page is that of 0/100800"),
        (1040, &[1], "bytes of the record are left by the page at 0/100400"),
    ];
    for (at, bytes, wanted) in cases {
        let mut pages = writer.pages();
        pages[at..at + bytes.len()].copy_from_slice(bytes);
        let (seen, went, _) = scan(&writer, &pages, Lsn(writer.begin), END);
        let said = said(went);
        assert!(said.contains(wanted), "{said} has no {wanted}");
        assert_eq!(seen.len(), if at >= place(third) { 2 } else { 1 }, "{wanted}");
    }
    // The same where nothing is wanted of it is no error.
    let mut pages = writer.pages();
    pages[place(third) + 30] ^= 1;
    let (seen, went, _) = scan(&writer, &pages, Lsn(writer.begin), third);
    assert_eq!((seen.len(), went), (2, Ok(Went::Done)));
    assert_eq!(seen[1].0, second);
}

#[test]
fn headers_of_another_cluster_and_older_timelines_are_refused() {
    let mut writer = Writer::new(13, MIB, 1024);
    writer.timeline = 3;
    writer.record(HEAP, 0, &Body::default().data(&[1; 100]));
    writer.timeline = 2;
    writer.record(HEAP, 0, &Body::default().data(&[2; 3000]));
    let (_, went, _) = scan(&writer, &writer.pages(), Lsn(writer.begin), END);
    assert!(said(went).ends_with("page is of timeline 2, after 3"));
    let mut pages = writer.pages();
    pages[24] ^= 1;
    let (_, went, _) = scan(&writer, &pages, Lsn(writer.begin), END);
    assert!(said(went).contains("page is of system 7300000000000000000 with segments of 1048576"));
}

/// Versions gave the bits of images other meanings.
#[test]
fn images_are_those_of_the_major() {
    let cases = [
        (12, 0x01 | 0x04, None, None, true),
        (14, 0x01 | 0x02 | 0x04, Some(100), Some(Compression::Pglz), true),
        (14, 0x01 | 0x02, Some(100), Some(Compression::Pglz), false),
        (15, 0x01 | 0x02, None, None, true),
        (15, 0x01 | 0x02 | 0x04, Some(100), Some(Compression::Pglz), true),
        (16, 0x01 | 0x08, Some(100), Some(Compression::Lz4), false),
        (18, 0x01 | 0x02 | 0x10, Some(100), Some(Compression::Zstd), true),
        (18, 0x01, None, None, false),
    ];
    for (major, info, hole_bytes, compression, is_applied) in cases {
        let mut writer = Writer::new(major, MIB, 8192);
        let image = Picture { bytes: 500, hole_at: 40, info, hole_bytes };
        let body = Body::default()
            .block(0, 0, 16_384, 7, b"abc", Some(image))
            .block(1, 0x80 | 0x40 | 0x2, 0, 0, b"", None)
            .data(b"main");
        writer.record(HEAP, 0, &body);
        let mut scanner = Scanner::new(writer.format, 8192, Lsn(writer.begin), END);
        let mut touches = Touches::default();
        let mut count = 0;
        let _ = scanner.page(&writer.pages(), &mut |record| {
            count += 1;
            touches.add(record);
            let image = record.blocks[0].image.as_ref().unwrap();
            assert_eq!((image.compression, image.is_applied), (compression, is_applied));
            let hole = hole_bytes.map_or(8192 - 500, usize::from);
            assert_eq!(image.hole, 40..40 + hole);
            assert_eq!(record.bytes[image.at.clone()][..3], [0, 1, 2]);
            assert_eq!(record.bytes[image.at.end..image.at.end + 3], *b"abc");
            assert_eq!((record.data, record.image_bytes()), (&b"main"[..], 500));
            assert_eq!(record.blocks[1].locator, record.blocks[0].locator);
        });
        assert_eq!(count, 1, "{major}");
        let locator =
            pages::relation::Locator { tablespace: 1663, database: 5, relfilenode: 16_384 };
        let first = if is_applied { Touch::Image } else { Touch::Plain };
        assert_eq!(touches.first(locator, Fork::Main, 7), Some(first));
        assert_eq!(touches.first(locator, Fork::Visibility, 0), Some(Touch::Init));
        assert_eq!(touches.first(locator, Fork::Main, 8), None);
        assert_eq!((touches.count(Touch::Init), touches.iter().count()), (1, 2));
    }
}

#[test]
fn bodies_that_make_no_sense_are_said() {
    let block = |id, flags, data: &[u8], image| Body::default().block(id, flags, 1, 1, data, image);
    let image =
        |bytes, hole_at, info, hole_bytes| Some(Picture { bytes, hole_at, info, hole_bytes });
    let cases = [
        (
            block(1, 0, b"", None).block(1, 0, 1, 2, b"", None).data(&[]),
            "block reference 1 follows 1",
        ),
        (block(0, 0x80, b"", None).data(&[]), "is of the relation before, and there is none"),
        (block(0, 0x20, b"", None).data(&[]), "has 0 bytes of data, its flags are 20"),
        (block(0, 0x7, b"", None).data(&[]), "is of fork 7, forks are 0 to 3"),
        (block(33, 0, b"", None).data(&[]), "has a part with the number 33, which is not known"),
        (
            block(0, 0, b"", image(8192, 1, 0x3, None)).data(&[]),
            "which is none of a page of 8192 bytes",
        ),
        (
            block(0, 0, b"", image(100, 0, 0x3, None)).data(&[]),
            "which is none of a page of 8192 bytes",
        ),
        (
            block(0, 0, b"", image(100, 0, 0x2, None)).data(&[]),
            "which is none of a page of 8192 bytes",
        ),
        (
            block(0, 0, b"", image(9000, 9, 0x3, None)).data(&[]),
            "which is none of a page of 8192 bytes",
        ),
        (
            block(0, 0, b"", image(100, 9, 0x7, Some(0))).data(&[]),
            "which is none of a page of 8192 bytes",
        ),
        (
            block(0, 0, b"", image(100, 9000, 0x7, Some(9))).data(&[]),
            "which is none of a page of 8192 bytes",
        ),
        (Body::default().header(&[255, 9]).data(&[]), "announces 9 bytes of data, 0 are left"),
        (Body::default().header(&[254, 1]).data(&[]), "record ends within its headers"),
        (Body::default().header(&[253, 1]).data(&[]), "record ends within its headers"),
    ];
    for (body, wanted) in cases {
        let mut writer = Writer::new(18, MIB, 65_536);
        writer.record(HEAP, 0, &body);
        let (seen, went, _) = scan(&writer, &writer.pages(), Lsn(writer.begin), END);
        let said = said(went);
        assert!(said.contains(wanted), "{said} has no {wanted}");
        assert!(seen.is_empty());
    }
}

#[test]
fn origins_and_top_transactions_are_read_where_they_can_be() {
    let body = Body::default().header(&[253, 5, 0]).header(&[252, 1, 2, 0, 0]).data(b"x");
    for (major, is_known) in [(13, false), (14, true)] {
        let mut writer = Writer::new(major, MIB, 8192);
        writer.record(HEAP, 0, &body);
        let mut found = None;
        let mut scanner = Scanner::new(writer.format, 8192, Lsn(writer.begin), END);
        let went = scanner.page(&writer.pages(), &mut |record| {
            found = Some((record.origin, record.top_xid));
        });
        assert_eq!(found, is_known.then_some((Some(5), Some(513))));
        assert_eq!(said(went).contains("number 252"), !is_known);
    }
}
