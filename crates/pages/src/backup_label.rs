//! `backup_label`: from where a copy of a cluster is to be recovered.

use crate::{error::Error, lsn::Lsn};

/// What a `backup_label` says that recovery needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupLabel {
    /// Redo begins here, whatever `pg_control` says.
    pub start: Lsn,
    /// The segment that holds the start.
    pub start_file: String,
    /// The record of the backup's checkpoint.
    pub checkpoint: Lsn,
    /// `START TIMELINE`; files of versions before 11 lack it.
    pub timeline: Option<u32>,
    /// `streamed` or `pg_start_backup`.
    pub method: Option<String>,
    /// `primary` or `standby`.
    pub from: Option<String>,
    /// What the backup was called.
    pub label: Option<String>,
    /// An incremental one: where the backup began that it builds on.
    pub incremental_from: Option<Lsn>,
}

impl BackupLabel {
    /// Reads the file's text.
    ///
    /// # Errors
    ///
    /// A line that recovery needs is missing, or says nothing that can be read.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let find = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(": ").map(str::trim_end))
        };
        let need = |key: &str| {
            find(key).ok_or_else(|| Error::new(format!("backup_label has no line {key:?}")))
        };
        let start = need("START WAL LOCATION")?;
        let (lsn, file) = start
            .strip_suffix(')')
            .and_then(|rest| rest.split_once(" (file "))
            .ok_or_else(|| Error::new(format!("backup_label begins its redo at {start:?}")))?;
        let timeline = match find("START TIMELINE") {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| {
                Error::new(format!("backup_label has the timeline {text:?}, no number"))
            })?),
        };
        Ok(Self {
            start: lsn.parse()?,
            start_file: file.to_owned(),
            checkpoint: need("CHECKPOINT LOCATION")?.parse()?,
            timeline,
            method: find("BACKUP METHOD").map(str::to_owned),
            from: find("BACKUP FROM").map(str::to_owned),
            label: find("LABEL").map(str::to_owned),
            incremental_from: find("INCREMENTAL FROM LSN").map(str::parse).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\n\
        CHECKPOINT LOCATION: 0/2000080\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n\
        START TIME: 2026-11-21 10:00:00 UTC\nLABEL: a (b): c\nSTART TIMELINE: 1\n";

    #[test]
    fn a_label_is_read() {
        let label = BackupLabel::parse(TEXT).expect("a label");
        assert_eq!((label.start, label.checkpoint), (Lsn(0x200_0028), Lsn(0x200_0080)));
        assert_eq!(label.start_file, "000000010000000000000002");
        assert_eq!(label.timeline, Some(1));
        assert_eq!(label.method.as_deref(), Some("streamed"));
        assert_eq!(label.from.as_deref(), Some("primary"));
        assert_eq!(label.label.as_deref(), Some("a (b): c"));
        assert_eq!(label.incremental_from, None);
        let text = format!("{TEXT}INCREMENTAL FROM LSN: 0/1000028\n");
        let label = BackupLabel::parse(&text).expect("a label");
        assert_eq!(label.incremental_from, Some(Lsn(0x100_0028)));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let cases = [
            ("START WAL", "x", "backup_label has no line \"START WAL LOCATION\""),
            ("CHECKPOINT", "x", "backup_label has no line \"CHECKPOINT LOCATION\""),
            (" (file", "(file", "backup_label begins its redo at"),
            ("0/2000080", "0-1", "\"0-1\" is no place in the WAL"),
            ("TIMELINE: 1", "TIMELINE: -1", "backup_label has the timeline \"-1\", no number"),
        ];
        for (old, new, said) in cases {
            let error = BackupLabel::parse(&TEXT.replacen(old, new, 1)).expect_err(said);
            assert!(error.fact.starts_with(said), "{error}");
        }
    }
}
