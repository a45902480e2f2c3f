//! Adds a video: once per content and once per idempotency key.

use std::path::{Path, PathBuf};

use reprise_encoders::video::{self, Probe, VideoError};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Library, LibraryError};
use crate::catalog::{
    Added, CatalogError, Folder, GivenClip, IdempotencyKey, Job, NewRefusal, NewVideo, RefusedFile,
    Segmentation, Subtitles, Tags, Video,
};
use crate::storage::{Fingerprint, Received, Storage, StoredFile};

/// A file to add.
pub enum SourceFile {
    /// An upload; it will move into the storage.
    Received(Received),
    /// A user's own file, which stays in its place.
    InPlace {
        /// Its absolute path.
        path: PathBuf,
        /// Hash and size of the file.
        fingerprint: Fingerprint,
    },
}

impl SourceFile {
    /// SHA-256 of its bytes, 64 hex digits.
    pub fn content_hash(&self) -> &str {
        match self {
            SourceFile::Received(received) => received.content_hash(),
            SourceFile::InPlace { fingerprint, .. } => &fingerprint.content_hash,
        }
    }

    fn path(&self) -> &Path {
        match self {
            SourceFile::Received(received) => received.path(),
            SourceFile::InPlace { path, .. } => path,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            SourceFile::Received(received) => received.bytes(),
            SourceFile::InPlace { fingerprint, .. } => fingerprint.bytes,
        }
    }
}

/// The owner's description of a video.
#[derive(Debug, Clone, Default)]
pub struct VideoDetails {
    /// Display title; default: the file's name without its extension.
    pub title: Option<String>,
    /// A JSON object; default: an empty one.
    pub metadata: Option<Value>,
    /// Its tags.
    pub tags: Tags,
    /// Its folder.
    pub folder: Folder,
    /// Recording time: an RFC 3339 date or instant.
    pub recorded_at: Option<String>,
}

/// A video to add, with its clips and subtitles.
pub struct NewUpload {
    /// The file.
    pub file: SourceFile,
    /// The user's file name; for display, never a path.
    pub file_name: String,
    /// Its description.
    pub details: VideoDetails,
    /// Its segmentation.
    pub segmentation: Segmentation,
    /// Clips from the user.
    pub clips: Vec<GivenClip>,
    /// Its subtitles. If these bytes are stored already, the existing video gets the subtitles.
    pub subtitles: Vec<Subtitles>,
    /// The resumable upload whose file it is.
    pub upload: Option<Uuid>,
}

/// The result of [`Library::add`].
pub struct AddedVideo {
    /// The new video, or the existing one with these bytes.
    pub video: Video,
    /// The job that makes it searchable.
    pub job: Option<Job>,
    /// Whether the bytes were stored already.
    pub duplicate: bool,
}

impl From<Added> for AddedVideo {
    fn from(added: Added) -> AddedVideo {
        match added {
            Added::New(video, job) => AddedVideo { video: *video, job: Some(*job), duplicate: false },
            Added::Duplicate(video, job) => {
                AddedVideo { video: *video, job: job.map(|job| *job), duplicate: true }
            }
        }
    }
}

impl Library<'_> {
    /// Adds a video, unless its bytes are stored already or the key was used before.
    ///
    /// The result is durable: after a crash the file and its row still exist. A crash during the call leaves no row
    /// without a file; a file without a row is swept.
    ///
    /// A file that is refused, because it is no video, beyond the limits or over the quota, is listed as a failed job.
    ///
    /// # Errors
    /// [`LibraryError::Refused`]; [`LibraryError::KeyReused`] if another request used the key.
    pub async fn add(&self, new: NewUpload, key: Option<IdempotencyKey>) -> Result<AddedVideo, LibraryError> {
        if let Some(earlier) = self.earlier(key.as_ref()).await? {
            return Ok(earlier);
        }
        let bytes = Some(i64::try_from(new.file.bytes()).unwrap_or(i64::MAX));
        let file = RefusedFile { file_name: new.file_name.clone(), bytes };
        match self.add_new(new, key.clone()).await {
            Err(error) if error.is_of_file() => match self.refuse(file, error.to_string(), key).await {
                Some(job) => Err(LibraryError::Refused { job, error: Box::new(error) }),
                None => Err(error),
            },
            added => added,
        }
    }

    /// Lists a refused file as a failed job; returns the job's id. `None` if refused files are not listed, or the catalog
    /// failed: the refusal itself matters more to the caller.
    pub async fn refuse(
        &self,
        file: RefusedFile,
        reason: String,
        repeat: Option<IdempotencyKey>,
    ) -> Option<Uuid> {
        if self.app.config.refusal_days == 0 {
            return None;
        }
        let new = NewRefusal { file, reason, added_by: self.app.caller().key_id(), repeat };
        match self.app.view().add_refusal(&new).await {
            Ok(job) => Some(job.id),
            Err(error) => {
                tracing::warn!(%error, "a refused file is not listed as a failed job");
                None
            }
        }
    }

    async fn add_new(&self, new: NewUpload, key: Option<IdempotencyKey>) -> Result<AddedVideo, LibraryError> {
        let probe = match self.app.view().video_by_hash(new.file.content_hash()).await? {
            Some(_) => None,
            None => Some(self.probe(new.file.path()).await?),
        };
        let probed_ms = probe.as_ref().map_or(0, |probe| probe.duration_ms);
        // A file that stays in its place may be changed by others.
        let lasting = probe.filter(|_| matches!(new.file, SourceFile::Received(_)));
        let row = NewVideo { probed_ms, ..self.keep(new).await? };
        let (id, file) = (row.id, StoredFile::of(&row.file));
        // Before the row, because a job may begin at once.
        lasting.into_iter().for_each(|probe| self.app.probes.keep(file.clone(), probe));
        let added = self.app.view().add_video(row, key).await;
        let may_be_named = match &added {
            Ok(Added::New(video, _)) => video.id == id,
            // The bytes or the key existed already.
            Ok(Added::Duplicate(..)) => false,
            // A file without a row is swept.
            Err(error) => error.outcome_is_unknown(),
        };
        if !may_be_named && let Err(error) = self.app.storage.remove(&file).await {
            tracing::warn!(%error, file = file.name(), "a file that no video names waits for the next sweep");
        }
        let added = AddedVideo::from(added?);
        if added.duplicate {
            self.subtitles_changed(added.video.id).await?;
        }
        Ok(added)
    }

    /// The result of an earlier request with this key.
    async fn earlier(&self, key: Option<&IdempotencyKey>) -> Result<Option<AddedVideo>, LibraryError> {
        let Some(key) = key else { return Ok(None) };
        let Some(record) = self.app.view().idempotent(&key.key).await? else { return Ok(None) };
        if record.request_hash != key.request_hash {
            return Err(LibraryError::KeyReused);
        }
        let video = self.app.view().video(record.video).await?.ok_or(LibraryError::KeyOutlived)?;
        let job = match record.job {
            Some(id) => self.app.view().job(id).await?,
            None => None,
        };
        Ok(Some(AddedVideo { video, job, duplicate: record.duplicate }))
    }

    async fn probe(&self, path: &Path) -> Result<Probe, LibraryError> {
        let (path, limits) = (path.to_owned(), self.app.config.decode_limits());
        Ok(tokio::task::spawn_blocking(move || video::probe(&path, &limits)).await??)
    }

    /// Moves the file into the storage, unless it stays in its place. Returns the row to insert.
    async fn keep(&self, new: NewUpload) -> Result<NewVideo, LibraryError> {
        let id = Uuid::now_v7();
        let VideoDetails { title, metadata, tags, folder, recorded_at } = new.details;
        let (content_hash, bytes) = (new.file.content_hash().to_owned(), new.file.bytes());
        let file = match new.file {
            SourceFile::Received(received) => {
                self.app.storage.keep(received, &Storage::video_name(id, &new.file_name)).await?
            }
            SourceFile::InPlace { path, .. } => StoredFile::in_place(&path),
        };
        Ok(NewVideo {
            id,
            content_hash,
            file: file.name().to_owned(),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            title: title.unwrap_or_else(|| title_of(&new.file_name)),
            file_name: new.file_name,
            metadata: metadata.unwrap_or_else(|| Value::Object(Map::new())),
            tags,
            folder,
            recorded_at,
            segmentation: new.segmentation,
            given: new.clips,
            subtitles: new.subtitles,
            added_by: self.app.caller().key_id(),
            probed_ms: 0,
            upload: new.upload,
        })
    }
}

impl LibraryError {
    /// Whether the file is the reason: another request with it fails too.
    fn is_of_file(&self) -> bool {
        match self {
            LibraryError::Video(error) => !matches!(error, VideoError::Ffmpeg(_)),
            LibraryError::Catalog(error) => matches!(error, CatalogError::OverQuota(_)),
            _ => false,
        }
    }
}

fn title_of(file_name: &str) -> String {
    let stem = Path::new(file_name).file_stem().and_then(|it| it.to_str()).unwrap_or(file_name);
    stem.to_owned()
}
