//! Reads a backup's manifest, and compares every part with its hash.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::manifest::{self, FORMAT, Manifest, Media, Stretch, Versions, VideoEntry};
use super::{BackupError, PIECE_BYTES, VIDEOS};
use crate::storage::hex;

/// Longest line that is read, in bytes.
const MOST_LINE_BYTES: u64 = 256 << 20;

/// A backup whose manifest is whole.
#[derive(Debug)]
pub struct Backup {
    folder: PathBuf,
    /// Its parts.
    pub manifest: Manifest,
}

/// A damaged part of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The video; `None` for a table of the library.
    pub video: Option<Uuid>,
    /// The video's title, or the table's name.
    pub name: String,
    /// The file and its damage.
    pub why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.video {
            Some(id) => write!(formatter, "video {id} {:?}: {}", self.name, self.why),
            None => write!(formatter, "table {}: {}", self.name, self.why),
        }
    }
}

impl Backup {
    /// Reads the manifest of the backup in `folder`, of a database whose schema has this version. Blocks.
    ///
    /// # Errors
    /// [`BackupError::NoBackup`] without a whole manifest; [`BackupError::Version`] if another version wrote it.
    pub fn open(folder: &Path, schema: i64) -> Result<Backup, BackupError> {
        let no_backup = |why: String| BackupError::NoBackup { folder: folder.to_owned(), why };
        let read =
            |name: &str| read_bounded(&folder.join(name)).map_err(|why| no_backup(format!("{name}: {why}")));
        let (text, hash) = (read(manifest::FILE)?, read(manifest::HASH_FILE)?);
        if !hash.starts_with(hex(&Sha256::digest(&text)).as_bytes()) {
            return Err(no_backup(format!(
                "the hash of {} is not that in {}",
                manifest::FILE,
                manifest::HASH_FILE
            )));
        }
        let unreadable = |error: serde_json::Error| no_backup(format!("{}: {error}", manifest::FILE));
        check_versions(&serde_json::from_slice(&text).map_err(unreadable)?, schema)?;
        let manifest: Manifest = serde_json::from_slice(&text).map_err(unreadable)?;
        if let Some(name) = manifest.paths().find(|name| !is_inside(name)) {
            return Err(no_backup(format!("{name} is no name of a file inside it")));
        }
        Ok(Backup { folder: folder.to_owned(), manifest })
    }

    /// Reads everything and compares it with the manifest. Returns what is damaged. `report` receives the number of
    /// videos that are done. Blocks.
    pub fn check(&self, report: &dyn Fn(u64)) -> Vec<Damage> {
        let mut damages = Vec::new();
        for table in &self.manifest.tables {
            if let Err(why) = self.check_lines(&table.file, &table.rows) {
                damages.push(Damage { video: None, name: table.of.name.clone(), why });
            }
        }
        for (number, video) in self.manifest.videos.iter().enumerate() {
            report(number as u64);
            if let Err(why) = self.check_video(video) {
                damages.push(Damage { video: Some(video.id), name: video.title.clone(), why });
            }
        }
        damages
    }

    fn check_video(&self, video: &VideoEntry) -> Result<(), String> {
        self.check_lines(VIDEOS, &video.rows).map_err(|why| format!("its rows: {why}"))?;
        let Media::Copied { file, bytes, sha256, .. } = &video.media else { return Ok(()) };
        let opened = File::open(self.path(file)).map_err(|error| format!("{file}: {error}"))?;
        let length = opened.metadata().map_err(|error| format!("{file}: {error}"))?.len();
        if length != *bytes {
            return Err(format!("{file} has {length} bytes, not {bytes}"));
        }
        expect_hash(file, opened, sha256)
    }

    fn check_lines(&self, file: &str, stretch: &Stretch) -> Result<(), String> {
        let mut opened = File::open(self.path(file)).map_err(|error| format!("{file}: {error}"))?;
        opened.seek(SeekFrom::Start(stretch.offset)).map_err(|error| format!("{file}: {error}"))?;
        expect_hash(file, opened.take(stretch.length), &stretch.sha256)
    }

    /// The path of a part.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The lines of a stretch, which [`Backup::check`] has compared.
    pub(super) fn lines(&self, file: &str, stretch: &Stretch) -> Result<LineReader, BackupError> {
        let path = self.path(file);
        let mut opened = File::open(&path).map_err(BackupError::disk(&path))?;
        opened.seek(SeekFrom::Start(stretch.offset)).map_err(BackupError::disk(&path))?;
        let file = BufReader::with_capacity(PIECE_BYTES, opened).take(stretch.length);
        Ok(LineReader { path, file })
    }
}

impl Manifest {
    /// All names of files that it gives.
    fn paths(&self) -> impl Iterator<Item = &str> {
        let tables = self.tables.iter().map(|table| table.file.as_str());
        let media = self.videos.iter().flat_map(|video| match &video.media {
            Media::Copied { file, stored_as, .. } => vec![file.as_str(), stored_as.as_str()],
            _ => vec![],
        });
        tables.chain(media)
    }
}

fn check_versions(versions: &Versions, schema: i64) -> Result<(), BackupError> {
    if FORMAT < versions.format || schema < versions.schema {
        return Err(BackupError::Version(format!(
            "the backup has format {} and schema {}, and this reprise reads up to format {FORMAT} and schema {schema}: \
             restore it with a newer reprise",
            versions.format, versions.schema
        )));
    }
    if versions.schema < schema {
        return Err(BackupError::Version(format!(
            "the backup has schema {}, and this reprise has {schema}: restore it with the reprise that wrote it; the \
             first start of this one then migrates the database",
            versions.schema
        )));
    }
    Ok(())
}

/// Whether a name stays below the folder that it is joined to.
fn is_inside(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, std::io::Error> {
    let mut text = Vec::new();
    File::open(path)?.take(manifest::MOST_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

fn expect_hash(name: &str, mut from: impl Read, expected: &str) -> Result<(), String> {
    let (mut piece, mut hash) = (vec![0; PIECE_BYTES], Sha256::new());
    loop {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => hash.update(&piece[..read]),
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    if hex(&hash.finalize()) == expected { Ok(()) } else { Err(format!("{name} is not as it was written")) }
}

/// Reads lines, each of bounded length.
pub(super) struct LineReader {
    path: PathBuf,
    file: std::io::Take<BufReader<File>>,
}

impl LineReader {
    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Vec<serde_json::Value>>, BackupError> {
        let failed = BackupError::disk(&self.path);
        let mut line = Vec::new();
        match self.file.by_ref().take(MOST_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => Ok(None),
            Ok(_) => serde_json::from_slice(&line).map(Some).map_err(|error| failed(error.into())),
            Err(error) => Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: u32, schema: i64, expected: &str) {
        let said = match check_versions(&Versions { format, schema }, 12) {
            Ok(()) => "read".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn a_backup_of_another_version_is_refused_with_the_reason() {
        check(FORMAT, 12, "read");
        check(FORMAT + 1, 12, "restore it with a newer reprise");
        check(FORMAT, 13, "restore it with a newer reprise");
        check(FORMAT, 11, "restore it with the reprise that wrote it");
    }

    #[test]
    fn a_manifest_names_only_files_of_its_folder() {
        for (name, expected) in [
            ("media/a.mp4", true),
            ("../a", false),
            ("/etc/passwd", false),
            ("a/../../b", false),
            ("", false),
        ] {
            assert_eq!(is_inside(name), expected, "{name}");
        }
    }
}
