//! Bytes that were changed at random, from a seed: nothing panics, nothing goes on for ever, and
//! what is given is in order. `PGDYNO_FUZZ_ROUNDS` and `PGDYNO_FUZZ_SEED` ask for more of it.
//!
//! An input that fails is kept below the target folder, and belongs into `corpus`.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{env, fs, panic, path::PathBuf};

use pages::{
    Lsn,
    backup_label::BackupLabel,
    control::Control,
    crc32c, page,
    relation::RelationFile,
    wal::{Format, History, Scanner, SegmentName, Summary, Went},
};

use crate::{
    control::{FORMATS, file, sealed},
    writer::{Body, HEAP, Picture, Writer},
};

const ROUNDS: u64 = 2000;

/// Xorshift: the same numbers everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.roll().to_le_bytes()[3]
    }
}

/// Reads bytes as one of the readers would; whatever they are, it returns.
pub(crate) fn read(reader: &str, bytes: &[u8]) {
    match reader {
        "wal" => wal(bytes),
        "control" => drop(Control::read(bytes)),
        "text" => {
            let text = String::from_utf8_lossy(bytes);
            drop(BackupLabel::parse(&text));
            drop(History::parse(3, &text));
            let _ = (RelationFile::of_path(&text), SegmentName::parse(&text), text.parse::<Lsn>());
        }
        "page" => {
            let _ = page::PageHeader::read(bytes).map(|header| header.is_plausible(bytes.len()));
            let _ = page::checksum(bytes, 7);
        }
        other => panic!("no reader {other}"),
    }
}

fn wal(bytes: &[u8]) {
    let Ok((format, head)) = Format::read(bytes) else { return };
    let size = usize::try_from(format.page_bytes).unwrap();
    for from in [head.address, Lsn(head.address.0.saturating_add(5000))] {
        let mut scanner = Scanner::new(format, 8192, from, Lsn(u64::MAX));
        let mut summary = Summary::new(format.major);
        let mut last = Lsn::ZERO;
        for page in bytes.chunks(size) {
            let went = scanner.page(page, &mut |record| {
                assert!(record.start >= last && record.start < record.end, "out of order");
                assert_eq!(record.bytes.len(), usize::try_from(record.head.bytes).unwrap());
                for block in record.blocks {
                    if let Some(image) = &block.image {
                        assert_eq!(record.bytes[image.at.clone()].len(), usize::from(image.bytes));
                        assert!(image.hole.end <= 8192);
                    }
                }
                last = record.end;
                summary.add(record);
            });
            if went != Ok(Went::On) {
                break;
            }
        }
    }
}

fn wal_of(major: u16, dice: &mut Dice) -> Vec<u8> {
    let mut writer = Writer::new(major, 1 << 20, 1024);
    for _ in 0..12 {
        let image = Picture {
            bytes: 200,
            hole_at: 40,
            info: if major < 15 { 5 } else { 3 },
            hole_bytes: None,
        };
        let data = vec![dice.byte(); dice.below(700)];
        let body = Body::default()
            .block(0, 0, 16_384, 1, b"abc", (dice.below(2) == 0).then_some(image))
            .block(1, 0x80, 0, 2, b"", None);
        writer.record(HEAP, dice.byte(), &body.data(&data));
    }
    writer.lost_record(&Body::default().data(&[3; 2000]));
    writer.record(0, 0xD0, &Body::default().data(&[0; 16]));
    writer.pages()
}

/// A record on a page of its own whose body was changed before its CRC was computed: what lies
/// behind the CRC is reached.
fn sealed_wal(major: u16, dice: &mut Dice) -> Vec<u8> {
    let image = Picture { bytes: 60, hole_at: 40, info: 3, hole_bytes: None };
    let of_transaction = dice.below(3) == 0;
    let mut body = if of_transaction {
        Body::default().data(&end_of_transaction(dice))
    } else {
        Body::default()
            .block(0, 0, 16_384, 1, b"abc", Some(image))
            .block(1, 0x80, 0, 2, b"", None)
            .header(&[253, 1, 0])
            .data(&[9; 20])
    };
    for _ in 0..=dice.below(4) {
        let at = dice.below(60.min(body.len()));
        body[at] = if dice.below(2) == 0 { dice.byte() } else { body[at] ^ (1 << dice.below(8)) };
    }
    body.truncate(body.len().saturating_sub(dice.below(30) * dice.below(2)));
    let mut writer = Writer::new(major, 1 << 20, 1024);
    for _ in 0..3 {
        writer.xid = u32::from(dice.byte() % 4);
        let (manager, info) = if of_transaction { (1, dice.byte()) } else { (HEAP, 0) };
        writer.record(manager, info, &body);
    }
    writer.pages()
}

/// What a transaction's end says: its time, flags of what follows, and lists with their lengths.
fn end_of_transaction(dice: &mut Dice) -> Vec<u8> {
    let words = (0..4 + dice.below(20)).map(|at| match at {
        2 => u32::from(dice.byte()) | u32::from(dice.byte() & 1) << 8,
        _ => [0, 1, 2, 3, 700, 1 << 31, u32::MAX][dice.below(7)],
    });
    words.flat_map(u32::to_le_bytes).collect()
}

fn mutate(mut bytes: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    for _ in 0..=dice.below(5) {
        let at = dice.below(bytes.len());
        match dice.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let from = dice.below(bytes.len());
                let count = dice.below(300).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + count, at);
            }
            2 => {
                let count = dice.below(40).min(bytes.len() - at);
                bytes[at..at + count].fill([0, 0xFF][dice.below(2)]);
            }
            3 => {
                // Lengths and numbers lie at multiples of four.
                let at = at & !3;
                if let Some(word) = bytes.get_mut(at..at + 4) {
                    let value = [0, 1, 23, 24, 1024, u32::MAX, 1 << 31, 40_000][dice.below(8)];
                    word.copy_from_slice(&u32::to_le_bytes(value));
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

fn input(round: u64, dice: &mut Dice) -> (&'static str, Vec<u8>) {
    let (major, format, catalogue, crc_at) = FORMATS[dice.below(FORMATS.len())];
    match round % 8 {
        0..=2 => {
            let whole = wal_of(major, dice);
            ("wal", mutate(whole, dice))
        }
        3 | 4 => ("wal", sealed_wal(major, dice)),
        5 => {
            let changed = mutate(file(format, catalogue, crc_at)[..296].to_vec(), dice);
            let is_sealed = changed.len() == 296 && dice.below(2) == 0;
            ("control", if is_sealed { sealed(changed, crc_at) } else { changed })
        }
        6 => {
            let text = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\n\
                CHECKPOINT LOCATION: 0/2000080\nSTART TIMELINE: 1\n1\t0/300\tx\nbase/5/1_vm.1";
            ("text", mutate(text.as_bytes().to_vec(), dice))
        }
        _ => ("page", mutate(vec![dice.byte(); 8192 >> dice.below(5)], dice)),
    }
}

fn asked(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect(name))
}

#[test]
fn changed_bytes_never_panic() {
    let seed = asked("PGDYNO_FUZZ_SEED", 1);
    for round in 0..asked("PGDYNO_FUZZ_ROUNDS", ROUNDS) {
        let mut dice = Dice(start(seed, round));
        let (reader, bytes) = input(round, &mut dice);
        if panic::catch_unwind(|| read(reader, &bytes)).is_err() {
            let name = format!("{reader}-{seed}-{round}.bin");
            let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
            fs::write(&path, &bytes).unwrap();
            panic!("round {round} of seed {seed} failed: {}", path.display());
        }
    }
}

/// Each round has numbers of its own, so that it can be repeated alone.
fn start(seed: u64, round: u64) -> u64 {
    let mixed = [seed.to_le_bytes(), round.to_le_bytes()].concat();
    u64::from(crc32c(&mixed)) << 32 | (round + 1)
}
