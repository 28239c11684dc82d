//! `pg_control` of every major, made by hand.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use pages::{
    Lsn, Major,
    control::{Control, State},
    crc32c,
};

/// Format, catalogue, where the CRC lies: as the sources of each major have it.
pub(crate) const FORMATS: [(u16, u32, u32, usize); 7] = [
    (12, 1201, 201_909_212, 288),
    (13, 1300, 202_007_201, 288),
    (14, 1300, 202_107_181, 288),
    (15, 1300, 202_209_061, 288),
    (16, 1300, 202_307_071, 288),
    (17, 1300, 202_406_281, 288),
    (18, 1800, 202_506_291, 292),
];

pub(crate) fn file(format: u32, catalogue: u32, crc_at: usize) -> Vec<u8> {
    let mut file = vec![0; 8192];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &77_u64.to_le_bytes());
    put(8, &format.to_le_bytes());
    put(12, &catalogue.to_le_bytes());
    put(16, &6_u32.to_le_bytes());
    put(24, &1_700_000_000_u64.to_le_bytes());
    put(32, &0x16_B374_D848_u64.to_le_bytes());
    put(40, &0x16_B374_D810_u64.to_le_bytes());
    put(48, &3_u32.to_le_bytes());
    put(52, &2_u32.to_le_bytes());
    put(56, &[1]);
    put(64, &0x1_0000_02DB_u64.to_le_bytes());
    put(104, &1_699_999_999_u64.to_le_bytes());
    put(172, &1_u32.to_le_bytes());
    for (at, value) in [(180, 100_u32), (184, 8), (188, 10), (196, 64), (204, 8), (216, 8192)] {
        put(at, &value.to_le_bytes());
    }
    put(208, &1_234_567_f64.to_le_bytes());
    for (at, value) in [(220, 131_072_u32), (224, 8192), (228, 16 << 20), (252, 1)] {
        put(at, &value.to_le_bytes());
    }
    sealed(file, crc_at)
}

/// The same with the CRC that it should have.
pub(crate) fn sealed(mut file: Vec<u8>, crc_at: usize) -> Vec<u8> {
    let crc = crc32c(&file[..crc_at]);
    file[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    file
}

#[test]
fn every_major_is_read() {
    for (major, format, catalogue, crc_at) in FORMATS {
        let control = Control::read(&file(format, catalogue, crc_at)).unwrap();
        assert_eq!(control.major, Major::of(major));
        assert_eq!((control.state, control.state.text()), (State::Production, "in production"));
        assert_eq!(control.checkpoint.record, Lsn(0x16_B374_D848));
        assert_eq!(control.checkpoint.redo, Lsn(0x16_B374_D810));
        assert_eq!((control.checkpoint.timeline, control.checkpoint.previous_timeline), (3, 2));
        assert_eq!((control.checkpoint.next_xid & 0xFFFF, control.data_checksums), (731, 1));
        assert_eq!((control.settings.level, control.settings.max_locks_per_transaction), (1, 64));
        assert_eq!((control.wal_segment_bytes, control.wal_block_bytes), (16 << 20, 8192));
        assert!(control.checkpoint.full_page_writes && !control.settings.log_hints);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let good = file(1800, 202_506_291, 292);
    let changed = |at: usize, byte: u8, is_sealed: bool| {
        let mut file = good.clone();
        file[at] = byte;
        Control::read(&if is_sealed { sealed(file, 292) } else { file }).unwrap_err()
    };
    assert!(changed(100, 9, false).fact.contains("its bytes have"));
    assert_eq!(changed(16, 7, true).fact, "pg_control has the state 7, states are 0 to 6");
    assert_eq!(changed(8, 9, true).fact, "pg_control has the format 1801, which is not known");
    assert_eq!(changed(204, 4, true).fact, "pg_control is of a machine that aligns to 4 bytes");
    let short = Control::read(&good[..200]).unwrap_err();
    assert_eq!(short.fact, "pg_control has 200 bytes, expected at least 296");
    assert_eq!(
        Control::read(&[]).unwrap_err().fact,
        "pg_control has 0 bytes, expected at least 12"
    );
    let mut swapped = good.clone();
    swapped[8..12].reverse();
    let error = Control::read(&swapped).unwrap_err();
    assert!(error.hint.unwrap().contains("other byte order"));
    let mut unknown = good;
    unknown[12] ^= 1;
    assert_eq!(Control::read(&sealed(unknown, 292)).unwrap().major, None);
}
