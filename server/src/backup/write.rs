//! Writes a backup: first all rows, as they are at one moment, then the files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::lease::PurgeLease;
use super::manifest::{self, Columns, FORMAT, Manifest, Media, Stretch, TableEntry, VideoEntry};
use super::{BackupError, MEDIA, PIECE_BYTES, TABLES, VIDEOS};
use crate::catalog::archive::{ArchivedVideo, LIBRARY, OF_VIDEO, Snapshot, Table};
use crate::catalog::{Catalog, instant};
use crate::storage::{Storage, StoredFile, hex};

/// What to back up, and where to.
pub struct Request<'a> {
    /// The database.
    pub catalog: Arc<Catalog>,
    /// The stored files.
    pub storage: &'a Storage,
    /// The folder to make.
    pub folder: &'a Path,
    /// Make hard links to the stored files where the file system can; they are then not read.
    pub link: bool,
    /// Receives the number of files that are done.
    pub report: &'a (dyn Fn(u64, u64) + Sync),
}

/// A finished backup.
#[derive(Debug)]
pub struct Written {
    /// Number of videos.
    pub videos: u64,
    /// Bytes of the media files in it.
    pub media_bytes: u64,
    /// Videos whose file was gone or damaged.
    pub lost: Vec<VideoEntry>,
}

/// Writes a backup to `folder.partial`, makes it durable, and renames it. Servers may run meanwhile; their purges wait.
///
/// # Errors
/// [`BackupError`]; nothing is left of the backup then.
pub async fn write(request: Request<'_>) -> Result<Written, BackupError> {
    let mut name = request.folder.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    for folder in [request.folder, &partial] {
        if folder.exists() {
            return Err(BackupError::Exists(folder.to_owned()));
        }
    }
    BackupError::fault("backup: make a folder", &partial)?;
    fs::create_dir_all(partial.join(TABLES)).map_err(BackupError::disk(&partial))?;
    fs::create_dir(partial.join(MEDIA)).map_err(BackupError::disk(&partial))?;
    let written = write_into(&request, &partial).await;
    if written.is_err() {
        // The error that ended the backup counts.
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

async fn write_into(request: &Request<'_>, partial: &Path) -> Result<Written, BackupError> {
    // Before the rows are read: a video that they name keeps its file.
    let lease = PurgeLease::begin(&request.catalog).await?;
    let written = write_parts(request, partial).await;
    let held = lease.end().await;
    let manifest = written?;
    held?;
    finish(&manifest, request.folder, partial)?;
    let copied = manifest.videos.iter().map(|video| match &video.media {
        Media::Copied { bytes, .. } => *bytes,
        _ => 0,
    });
    let (videos, media_bytes) = (manifest.videos.len() as u64, copied.sum());
    let lost = manifest.videos.into_iter().filter(|video| matches!(video.media, Media::Lost { .. }));
    Ok(Written { videos, media_bytes, lost: lost.collect() })
}

async fn write_parts(request: &Request<'_>, partial: &Path) -> Result<Manifest, BackupError> {
    let (mut manifest, videos) = write_rows(request, partial).await?;
    for (number, video) in videos.into_iter().enumerate() {
        (request.report)(number as u64, manifest.videos.len() as u64);
        manifest.videos[number].media = keep_media(request, partial, video).await?;
    }
    Ok(manifest)
}

/// Writes all rows. The snapshot ends with this call, because a long one keeps the database from freeing space.
async fn write_rows(
    request: &Request<'_>,
    partial: &Path,
) -> Result<(Manifest, Vec<ArchivedVideo>), BackupError> {
    let mut snapshot = request.catalog.snapshot().await?;
    let taken_at = instant::format(instant::now_ms());
    let videos = snapshot.videos().await?;
    let mut tables = Vec::new();
    for table in &LIBRARY {
        let file = format!("{TABLES}/{}.jsonl", table.name);
        let mut lines = Lines::create(&partial.join(&file))?;
        add_rows(&mut snapshot, table, None, &mut lines).await?;
        let rows = lines.stretch();
        lines.finish()?;
        tables.push(TableEntry { of: columns(table), file, rows });
    }
    let mut lines = Lines::create(&partial.join(VIDEOS))?;
    let mut entries = Vec::with_capacity(videos.len());
    for video in &videos {
        for table in &OF_VIDEO {
            add_rows(&mut snapshot, table, Some(video.id), &mut lines).await?;
        }
        let media = Media::Lost { why: String::new() };
        entries.push(VideoEntry { id: video.id, title: video.title.clone(), rows: lines.stretch(), media });
    }
    lines.finish()?;
    let manifest = Manifest {
        format: FORMAT,
        schema: request.catalog.schema_version().await?,
        reprise: env!("CARGO_PKG_VERSION").to_owned(),
        database: request.catalog.kind().to_owned(),
        taken_at,
        positions: snapshot.positions().await?,
        tables,
        tables_of_videos: OF_VIDEO.iter().map(columns).collect(),
        videos: entries,
    };
    snapshot.end().await?;
    Ok((manifest, videos))
}

fn columns(table: &Table) -> Columns {
    let columns = table.column_names().into_iter().map(str::to_owned).collect();
    Columns { name: table.name.to_owned(), columns }
}

/// Writes the rows of a table; those of a video begin with the table's name.
async fn add_rows(
    snapshot: &mut Snapshot,
    table: &Table,
    video: Option<Uuid>,
    lines: &mut Lines,
) -> Result<(), BackupError> {
    let add = |mut row: Vec<Json>| {
        if video.is_some() {
            row.insert(0, Json::from(table.name));
        }
        lines.add(&row)
    };
    snapshot.rows(table, video, add).await
}

/// A file of rows, one JSON array a line.
struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
    /// Bytes of the stretches before this one.
    offset: u64,
    /// Bytes, lines and hash of this stretch.
    length: u64,
    count: u64,
    hash: Sha256,
}

impl Lines {
    fn create(path: &Path) -> Result<Lines, BackupError> {
        BackupError::fault("backup: create a file", path)?;
        let file = File::create_new(path).map_err(BackupError::disk(path))?;
        let file = BufWriter::with_capacity(PIECE_BYTES, file);
        Ok(Lines { path: path.to_owned(), file, offset: 0, length: 0, count: 0, hash: Sha256::new() })
    }

    fn add(&mut self, row: &[Json]) -> Result<(), BackupError> {
        let mut line = serde_json::to_vec(row).map_err(|error| self.failed(error.into()))?;
        line.push(b'\n');
        self.hash.update(&line);
        self.length += line.len() as u64;
        self.count += 1;
        self.file.write_all(&line).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> BackupError {
        BackupError::Disk { path: self.path.clone(), error }
    }

    /// The lines since the last call.
    fn stretch(&mut self) -> Stretch {
        let sha256 = hex(&self.hash.finalize_reset());
        let stretch = Stretch { count: self.count, offset: self.offset, length: self.length, sha256 };
        (self.offset, self.length, self.count) = (self.offset + self.length, 0, 0);
        stretch
    }

    /// Makes the file durable.
    fn finish(mut self) -> Result<(), BackupError> {
        BackupError::fault("backup: sync", &self.path)?;
        let done = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        done.map_err(|error| self.failed(error))
    }
}

/// Copies or links the file of a video into the backup, unless it is a user's own.
async fn keep_media(
    request: &Request<'_>,
    partial: &Path,
    video: ArchivedVideo,
) -> Result<Media, BackupError> {
    let stored = StoredFile::of(&video.file);
    if !stored.is_ours() {
        return Ok(Media::InPlace { path: video.file });
    }
    let found = match request.storage.local(&stored).await {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Media::Lost { why: format!("{} is gone", video.file) });
        }
        Err(error) => return Err(BackupError::Disk { path: video.file.into(), error }),
    };
    let name = Path::new(&video.file).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (file, link) = (format!("{MEDIA}/{name}"), request.link);
    let (from, to) = (found.path().to_owned(), partial.join(&file));
    BackupError::fault("backup: keep a file", &to)?;
    tokio::task::spawn_blocking(move || {
        if link && fs::hard_link(&from, &to).is_ok() {
            let bytes = to.metadata().map_err(BackupError::disk(&to))?.len();
            if bytes != video.bytes {
                fs::remove_file(&to).map_err(BackupError::disk(&to))?;
                return Ok(Media::Lost { why: format!("{} is damaged: it has {bytes} bytes", video.file) });
            }
            return Ok(Media::Copied { file, stored_as: video.file, bytes, sha256: video.content_hash });
        }
        let sha256 = copy(&from, &to)?;
        if sha256 != video.content_hash {
            fs::remove_file(&to).map_err(BackupError::disk(&to))?;
            return Ok(Media::Lost { why: format!("{} is damaged: its SHA-256 is {sha256}", video.file) });
        }
        Ok(Media::Copied { file, stored_as: video.file, bytes: video.bytes, sha256 })
    })
    .await?
}

/// Copies a file in pieces and makes it durable; returns its SHA-256. Blocks.
fn copy(from: &Path, to: &Path) -> Result<String, BackupError> {
    let mut source = File::open(from).map_err(BackupError::disk(from))?;
    let mut target = File::create_new(to).map_err(BackupError::disk(to))?;
    let (mut piece, mut hash) = (vec![0; PIECE_BYTES], Sha256::new());
    loop {
        let read = source.read(&mut piece).map_err(BackupError::disk(from))?;
        if read == 0 {
            break;
        }
        hash.update(&piece[..read]);
        target.write_all(&piece[..read]).map_err(BackupError::disk(to))?;
    }
    BackupError::fault("backup: sync", to)?;
    target.sync_all().map_err(BackupError::disk(to))?;
    Ok(hex(&hash.finalize()))
}

/// Writes the manifest, makes all names durable, and gives the backup its name.
fn finish(manifest: &Manifest, folder: &Path, partial: &Path) -> Result<(), BackupError> {
    let path = partial.join(manifest::FILE);
    let text = serde_json::to_vec_pretty(manifest).map_err(|error| BackupError::disk(&path)(error.into()))?;
    let hash = format!("{}  {}\n", hex(&Sha256::digest(&text)), manifest::FILE);
    for (path, text) in [(path, text), (partial.join(manifest::HASH_FILE), hash.into_bytes())] {
        BackupError::fault("backup: write the manifest", &path)?;
        let mut file = File::create_new(&path).map_err(BackupError::disk(&path))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(BackupError::disk(&path))?;
    }
    for folder in [partial.join(MEDIA), partial.join(TABLES), partial.to_owned()] {
        sync_folder(&folder)?;
    }
    BackupError::fault("backup: rename", folder)?;
    fs::rename(partial, folder).map_err(BackupError::disk(folder))?;
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(above)
}

fn sync_folder(path: &Path) -> Result<(), BackupError> {
    BackupError::fault("backup: sync a folder", path)?;
    File::open(path).and_then(|folder| folder.sync_all()).map_err(BackupError::disk(path))
}
