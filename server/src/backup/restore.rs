//! Fills an empty database and data folder with a backup: first the files, then all rows in one transaction.
//!
//! A restore that is cut off leaves an empty database, and files that the next one finds.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use uuid::Uuid;

use super::check::{Backup, Damage};
use super::manifest::{Media, Stretch, VideoEntry};
use super::{BackupError, PIECE_BYTES, VIDEOS};
use crate::catalog::archive::{LIBRARY, OF_VIDEO, Restoring, Table};
use crate::catalog::{Catalog, CatalogError};
use crate::storage::{Storage, StoredFile, fingerprint};

/// Most rows of one statement's batch.
const ROWS_AT_ONCE: usize = 512;
/// The table without which vectors mean nothing.
const ESSENTIAL: &str = "spaces";

/// Where a backup is restored to.
pub struct Target<'a> {
    /// An empty database.
    pub catalog: Arc<Catalog>,
    /// The data folder's files.
    pub storage: &'a Storage,
    /// The folder of the built-in index, which is removed: the first start builds another.
    pub index: &'a Path,
    /// Leave out what is damaged, instead of restoring nothing.
    pub skip_damaged: bool,
    /// Receives the numbers of steps done and of all: each video is checked, copied, and stored.
    pub report: &'a (dyn Fn(u64, u64) + Sync),
}

/// A finished restore.
#[derive(Debug)]
pub struct Restored {
    /// Number of videos.
    pub videos: u64,
    /// Damaged parts that were left out.
    pub skipped: Vec<Damage>,
    /// Videos whose file was lost before the backup, or is not in its place on this machine.
    pub without_file: Vec<Damage>,
}

/// Restores a backup. Everything is compared with its hash before anything is written.
///
/// # Errors
/// [`BackupError::Damaged`] unless damage may be skipped; [`CatalogError::Conflict`] if the database is not empty. The
/// database is unchanged then.
pub async fn restore(backup: Backup, target: &Target<'_>) -> Result<Restored, BackupError> {
    target.catalog.must_be_empty().await?;
    let all = backup.manifest.videos.len() as u64;
    let skipped = backup.check(&|done| (target.report)(done, 3 * all));
    if !skipped.is_empty() && !target.skip_damaged {
        return Err(BackupError::Damaged(skipped));
    }
    if let Some(table) = skipped.iter().find(|damage| damage.video.is_none() && damage.name == ESSENTIAL) {
        return Err(BackupError::Essential(table.name.clone()));
    }
    let left_out: HashSet<Uuid> = skipped.iter().filter_map(|damage| damage.video).collect();
    let videos: Vec<&VideoEntry> =
        backup.manifest.videos.iter().filter(|video| !left_out.contains(&video.id)).collect();
    let mut without_file = Vec::new();
    for (number, video) in videos.iter().enumerate() {
        (target.report)(all + number as u64, 3 * all);
        if let Some(why) = restore_media(&backup, target.storage, video).await? {
            without_file.push(Damage { video: Some(video.id), name: video.title.clone(), why });
        }
    }
    remove_index(target.index)?;
    let tables_left_out: HashSet<&str> =
        skipped.iter().filter(|damage| damage.video.is_none()).map(|damage| damage.name.as_str()).collect();
    let mut restoring = target.catalog.begin_restore().await?;
    for entry in backup.manifest.tables.iter().filter(|it| !tables_left_out.contains(it.of.name.as_str())) {
        let table = known(&LIBRARY, &entry.of.name)?;
        BackupError::fault("restore: insert a table", Path::new(&entry.file))?;
        insert_all(
            &mut restoring,
            &backup,
            &Rows { file: &entry.file, stretch: &entry.rows, table: Some(table) },
        )
        .await?;
    }
    for (number, video) in videos.iter().enumerate() {
        (target.report)(2 * all + number as u64, 3 * all);
        insert_all(&mut restoring, &backup, &Rows { file: VIDEOS, stretch: &video.rows, table: None })
            .await?;
    }
    restoring.finish(&backup.manifest.positions).await?;
    Ok(Restored { videos: videos.len() as u64, skipped, without_file })
}

/// Copies the file of a video into the storage, unless it is there. Returns why there is none.
async fn restore_media(
    backup: &Backup,
    storage: &Storage,
    video: &VideoEntry,
) -> Result<Option<String>, BackupError> {
    let (file, stored_as, sha256) = match &video.media {
        Media::Copied { file, stored_as, sha256, .. } => (file, stored_as, sha256),
        Media::InPlace { path } if Path::new(path).exists() => return Ok(None),
        Media::InPlace { path } => return Ok(Some(format!("there is no {path}"))),
        Media::Lost { why } => return Ok(Some(why.clone())),
    };
    let stored = StoredFile::of(stored_as);
    if let Ok(found) = storage.local(&stored).await
        && fingerprint(found.path()).is_ok_and(|found| found.content_hash == *sha256)
    {
        return Ok(None);
    }
    let path = backup.path(file);
    let mut source = std::fs::File::open(&path).map_err(BackupError::disk(&path))?;
    let unwritten = |error| BackupError::disk(stored_as)(error);
    let mut incoming = storage.receive().await.map_err(unwritten)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = source.read(&mut piece).map_err(BackupError::disk(&path))?;
        if read == 0 {
            break;
        }
        incoming.write(&piece[..read]).await.map_err(unwritten)?;
    }
    let received = incoming.finish().await.map_err(unwritten)?;
    if received.content_hash() != sha256 {
        return Err(BackupError::Changed(video.id));
    }
    storage.keep(received, stored_as).await.map_err(unwritten)?;
    Ok(None)
}

fn remove_index(folder: &Path) -> Result<(), BackupError> {
    BackupError::fault("restore: remove the index", folder)?;
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(BackupError::disk(folder)(error)),
        _ => Ok(()),
    }
}

/// Rows to insert.
struct Rows<'a> {
    file: &'a str,
    stretch: &'a Stretch,
    /// Their table; `None` if each row begins with the name of its table.
    table: Option<&'static Table>,
}

/// Inserts the rows of a stretch, consecutive ones of a table together.
async fn insert_all(restoring: &mut Restoring, backup: &Backup, rows: &Rows<'_>) -> Result<(), BackupError> {
    let mut lines = backup.lines(rows.file, rows.stretch)?;
    let mut batch: Vec<Vec<Json>> = Vec::new();
    let mut of_batch: Option<&'static Table> = rows.table;
    while let Some(mut row) = lines.next()? {
        let table = match rows.table {
            Some(table) => table,
            None if row.is_empty() => return Err(unknown("")),
            None => known(&OF_VIDEO, row.remove(0).as_str().unwrap_or_default())?,
        };
        let is_other = of_batch.is_some_and(|before| before.name != table.name);
        if (is_other || batch.len() == ROWS_AT_ONCE)
            && let Some(before) = of_batch
        {
            restoring.insert(before, std::mem::take(&mut batch)).await?;
        }
        of_batch = Some(table);
        batch.push(row);
    }
    match of_batch {
        Some(table) => Ok(restoring.insert(table, batch).await?),
        None => Ok(()),
    }
}

fn known(tables: &'static [Table], name: &str) -> Result<&'static Table, BackupError> {
    tables.iter().find(|table| table.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> BackupError {
    CatalogError::Damaged(format!("the backup holds rows of a table {name:?}, which there is not").into())
        .into()
}
