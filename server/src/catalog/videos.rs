//! Videos: adding them with their first job, reading, changing.

use uuid::Uuid;

use super::database::{Row, Tx, Value, values};
use super::error::CatalogError;
use super::filter::attributes::attributes;
use super::tables::jobs;
use super::tables::listed;
use super::tables::stored::to_json;
use super::tables::videos::{check_metadata, from_row, lock, read, video_columns};
use super::types::*;
use super::view::View;
use super::wake::News;
use super::{cues, instant, keys, labels, spans, uploads};

/// Attempts to add a video. Another attempt follows if a video with the same bytes is deleted at that moment.
const TRIES: usize = 3;

impl View<'_> {
    /// Adds a video and its first job in one transaction, unless a visible video has its content hash.
    ///
    /// With `idempotency`, the key and the resulting ids are stored in the same transaction. [`CatalogError::Outside`] if
    /// the caller would not see the video, [`CatalogError::OverQuota`] if the caller's key has no room for it.
    pub async fn add_video(
        &self,
        video: NewVideo,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Added, CatalogError> {
        check_metadata(&video.metadata)?;
        video.given.iter().try_for_each(spans::check_given)?;
        video.subtitles.iter().try_for_each(cues::check)?;
        let mut tx = self.begin().await?;
        let now = tx.now_ms().await?;
        if let Some(key) = &idempotency
            && let Some(record) = claim(&mut tx, key, now).await?
        {
            let added = repeat(&mut tx, key, &record).await?;
            finish_upload(&mut tx, video.upload, &added).await?;
            tx.commit().await?;
            return Ok(added);
        }
        lock_content(&mut tx, &video.content_hash).await?;
        let mut added = None;
        for _ in 0..TRIES {
            added = add_once(&mut tx, &video, now).await?;
            if added.is_some() {
                break;
            }
        }
        let Some(added) = added else {
            return Err(CatalogError::Conflict(
                "the same file is being added and deleted; try again".to_owned(),
            ));
        };
        if let Some(key) = &idempotency {
            record(&mut tx, key, &added, now).await?;
        }
        finish_upload(&mut tx, video.upload, &added).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(added)
    }

    /// Checks that the caller would see a new video with this metadata, these tags and this folder. A filter means what it means to the database, so the
    /// database is asked, in a transaction that is dropped.
    ///
    /// # Errors
    /// [`CatalogError::Outside`].
    pub async fn check_reach(
        &self,
        metadata: &serde_json::Value,
        tags: &Tags,
        folder: &Folder,
    ) -> Result<(), CatalogError> {
        if !self.visibility().is_limited() {
            return Ok(());
        }
        check_metadata(metadata)?;
        let id = Uuid::now_v7();
        let sql = "INSERT INTO videos (id, content_hash, file, file_name, bytes, title, metadata, created_at_ms, state, \
                   segmentation, warnings) VALUES ($1, $2, '', '', 0, '', $3, 0, 'pending', '{}', '[]')";
        let mut tx = self.begin().await?;
        tx.execute(sql, values![id, id.to_string(), to_json(metadata)?]).await?;
        insert_attributes(&mut tx, id, metadata).await?;
        labels::set_folder(&mut tx, id, folder).await?;
        labels::set_tags(&mut tx, id, tags).await?;
        tx.must_see(id).await
    }

    /// The result of an earlier request with this key within [`IDEMPOTENCY_WINDOW`].
    pub async fn idempotent(&self, key: &str) -> Result<Option<IdempotencyRecord>, CatalogError> {
        if key.contains('\0') {
            return Ok(None);
        }
        let now = self.database().now_ms().await?;
        let row = self.database().row(RECORD, values![key, oldest_key(now)]).await?;
        row.as_ref().map(record_from).transpose()
    }

    /// Changes title, metadata, tags, folder or recording time; `None` if there is no such video.
    ///
    /// [`CatalogError::Outside`] if the caller would not see the video any more.
    pub async fn update_video(&self, id: Uuid, patch: VideoPatch) -> Result<Option<Video>, CatalogError> {
        if let Some(metadata) = &patch.metadata {
            check_metadata(metadata)?;
        }
        let mut tx = self.begin().await?;
        if !lock(&mut tx, id).await? {
            return Ok(None);
        }
        if let Some(expected) = patch.expected
            && read(&mut tx, id).await? != Some(*expected)
        {
            return Err(CatalogError::Stale);
        }
        if let Some(title) = patch.title {
            tx.execute("UPDATE videos SET title = $2 WHERE id = $1", values![id, title]).await?;
        }
        if let Some(metadata) = patch.metadata {
            tx.execute("UPDATE videos SET metadata = $2 WHERE id = $1", values![id, to_json(&metadata)?])
                .await?;
            tx.execute("DELETE FROM video_attributes WHERE video = $1", values![id]).await?;
            insert_attributes(&mut tx, id, &metadata).await?;
        }
        if let Some(tags) = &patch.tags {
            labels::set_tags(&mut tx, id, tags).await?;
        }
        if let Some(folder) = &patch.folder {
            labels::set_folder(&mut tx, id, folder).await?;
        }
        if let Some(recorded_at) = patch.recorded_at {
            let ms = recorded_at_ms(recorded_at.as_deref())?;
            let sql = "UPDATE videos SET recorded_at = $2, recorded_at_ms = $3 WHERE id = $1";
            tx.execute(sql, values![id, recorded_at, ms]).await?;
        }
        listed::index(&mut tx, id).await?;
        tx.must_see(id).await?;
        let video = read(&mut tx, id).await?;
        tx.commit().await?;
        Ok(video)
    }

    /// One video.
    pub async fn video(&self, id: Uuid) -> Result<Option<Video>, CatalogError> {
        let sql = concat!("SELECT ", video_columns!(), " FROM visible_videos v WHERE v.id = $1");
        let row = self.row(sql, values![id]).await?;
        row.as_ref().map(from_row).transpose()
    }

    /// The first video with this content hash (64 hex digits). A caller who sees some videos only may have added a second.
    pub async fn video_by_hash(&self, content_hash: &str) -> Result<Option<Video>, CatalogError> {
        let sql = concat!(
            "SELECT ",
            video_columns!(),
            " FROM visible_videos v WHERE v.content_hash = $1 ORDER BY v.id LIMIT 1"
        );
        let row = self.row(sql, values![content_hash]).await?;
        row.as_ref().map(from_row).transpose()
    }

    /// Videos in order of id, which is the order of creation, after `after`.
    pub async fn videos(&self, after: Option<Uuid>, limit: u32) -> Result<Vec<Video>, CatalogError> {
        let after = after.map(|id| VideoPlace { key: PlaceKey::Nothing, id });
        self.videos_of(&VideoList::default(), after.as_ref(), limit).await
    }
}

/// `None` if the video with these bytes was deleted during the call.
async fn add_once(tx: &mut Tx, video: &NewVideo, now: i64) -> Result<Option<Added>, CatalogError> {
    let sql = concat!(
        "SELECT ",
        video_columns!(),
        " FROM visible_videos v WHERE v.content_hash = $1 ORDER BY v.id LIMIT 1"
    );
    let twin = tx.visible_row(sql, values![video.content_hash.as_str()]).await?;
    match twin.as_ref().map(from_row).transpose()? {
        Some(twin) => add_to_twin(tx, video, twin).await,
        None => add_new(tx, video, now).await.map(Some),
    }
}

async fn add_new(tx: &mut Tx, video: &NewVideo, now: i64) -> Result<Added, CatalogError> {
    insert(tx, video, now).await?;
    insert_attributes(tx, video.id, &video.metadata).await?;
    labels::set_folder(tx, video.id, &video.folder).await?;
    labels::set_tags(tx, video.id, &video.tags).await?;
    listed::index(tx, video.id).await?;
    tx.must_see(video.id).await?;
    if let Some(key) = video.added_by {
        keys::check_quota(tx, key).await?;
    }
    spans::insert_given(tx, video.id, &video.given).await?;
    cues::store(tx, video.id, &video.subtitles).await?;
    let job = jobs::enqueue(tx, jobs::NewJob::ingest(video.id, None)).await?;
    let stored = read(tx, video.id).await?;
    let missing = || CatalogError::Damaged(format!("video {} was stored and is not there", video.id).into());
    Ok(Added::New(Box::new(stored.ok_or_else(missing)?), Box::new(job)))
}

async fn add_to_twin(tx: &mut Tx, video: &NewVideo, twin: Video) -> Result<Option<Added>, CatalogError> {
    let mut stored = twin;
    if !video.subtitles.is_empty() {
        if !lock(tx, stored.id).await? {
            return Ok(None);
        }
        cues::store(tx, stored.id, &video.subtitles).await?;
        stored = read(tx, stored.id).await?.unwrap_or(stored);
    }
    let job = match stored.job_id {
        Some(id) => jobs::read(tx, id).await?,
        None => None,
    };
    Ok(Some(Added::Duplicate(Box::new(stored), job.map(Box::new))))
}

/// Makes other transactions that add these bytes wait. SQLite has one writer anyway.
async fn lock_content(tx: &mut Tx, content_hash: &str) -> Result<(), CatalogError> {
    if tx.is_postgres() {
        let sql = "SELECT pg_advisory_xact_lock(hashtextextended($1, 7266))";
        tx.execute(sql, values![content_hash]).await?;
    }
    Ok(())
}

async fn insert(tx: &mut Tx, video: &NewVideo, now: i64) -> Result<(), CatalogError> {
    let sql = "INSERT INTO videos (id, content_hash, file, file_name, bytes, title, metadata, recorded_at, \
               recorded_at_ms, created_at_ms, state, segmentation, warnings, added_by, probed_ms) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'pending', $11, '[]', $12, $13)";
    let values = values![
        video.id,
        video.content_hash.as_str(),
        video.file.as_str(),
        video.file_name.as_str(),
        video.bytes,
        video.title.as_str(),
        to_json(&video.metadata)?,
        video.recorded_at.clone(),
        recorded_at_ms(video.recorded_at.as_deref())?,
        now,
        to_json(&video.segmentation)?,
        video.added_by,
        video.probed_ms,
    ];
    tx.execute(sql, values).await?;
    Ok(())
}

/// Reserves the key for this transaction, or returns the result of an earlier request with it.
async fn claim(
    tx: &mut Tx,
    key: &IdempotencyKey,
    now: i64,
) -> Result<Option<IdempotencyRecord>, CatalogError> {
    if tx.is_postgres() {
        // A second request with the key waits here for the commit of the first.
        let sql = "SELECT pg_advisory_xact_lock(hashtextextended($1, 7265))";
        tx.execute(sql, values![key.key.as_str()]).await?;
    }
    tx.execute("DELETE FROM idempotency_keys WHERE created_at_ms <= $1", values![oldest_key(now)]).await?;
    let row = tx.row(RECORD, values![key.key.as_str(), oldest_key(now)]).await?;
    row.as_ref().map(record_from).transpose()
}

const RECORD: &str = "SELECT request_hash, video, job, duplicate FROM idempotency_keys \
                      WHERE key = $1 AND created_at_ms > $2";

fn record_from(row: &Row) -> Result<IdempotencyRecord, CatalogError> {
    Ok(IdempotencyRecord {
        request_hash: row.get("request_hash")?,
        video: row.get("video")?,
        job: row.get("job")?,
        duplicate: row.get("duplicate")?,
    })
}

fn oldest_key(now: i64) -> i64 {
    now - i64::try_from(IDEMPOTENCY_WINDOW.as_millis()).unwrap_or(i64::MAX)
}

/// Repeats the answer of the earlier request.
async fn repeat(
    tx: &mut Tx,
    key: &IdempotencyKey,
    record: &IdempotencyRecord,
) -> Result<Added, CatalogError> {
    if record.request_hash != key.request_hash {
        return Err(CatalogError::Conflict(format!("the key {:?} was used for another request", key.key)));
    }
    let damaged =
        || CatalogError::Damaged(format!("the idempotency key {:?} names a missing video", key.key).into());
    let video = read(tx, record.video).await?.ok_or_else(damaged)?;
    let job = match record.job {
        Some(id) => jobs::read(tx, id).await?,
        None => None,
    };
    match job {
        job if record.duplicate => Ok(Added::Duplicate(Box::new(video), job.map(Box::new))),
        Some(job) => Ok(Added::New(Box::new(video), Box::new(job))),
        None => Err(damaged()),
    }
}

/// Stores what a resumable upload has become.
async fn finish_upload(tx: &mut Tx, upload: Option<Uuid>, added: &Added) -> Result<(), CatalogError> {
    let Some(upload) = upload else { return Ok(()) };
    let (video, job, duplicate) = match added {
        Added::New(video, job) => (video.id, Some(job.id), false),
        Added::Duplicate(video, job) => (video.id, job.as_ref().map(|job| job.id), true),
    };
    uploads::finish(tx, upload, &FinishedUpload { video, job, duplicate }).await
}

async fn record(tx: &mut Tx, key: &IdempotencyKey, added: &Added, now: i64) -> Result<(), CatalogError> {
    let (video, job, duplicate) = match added {
        Added::New(video, job) => (video.id, Some(job.id), false),
        Added::Duplicate(video, job) => (video.id, job.as_ref().map(|job| job.id), true),
    };
    let sql = "INSERT INTO idempotency_keys (key, request_hash, video, job, duplicate, created_at_ms) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let values = values![key.key.as_str(), key.request_hash.as_str(), video, job, duplicate, now];
    tx.execute(sql, values).await?;
    Ok(())
}

fn recorded_at_ms(recorded_at: Option<&str>) -> Result<Option<i64>, CatalogError> {
    let invalid = |text: &str| {
        CatalogError::Invalid(
            format!("recorded_at {text:?} is neither an RFC 3339 date nor an instant").into(),
        )
    };
    recorded_at.map(|text| instant::parse(text).ok_or_else(|| invalid(text))).transpose()
}

async fn insert_attributes(tx: &mut Tx, id: Uuid, metadata: &serde_json::Value) -> Result<(), CatalogError> {
    let rows: Vec<Vec<Value>> = attributes(metadata)
        .into_iter()
        .map(|found| values![id, found.path, found.kind, found.number, found.text])
        .collect();
    tx.insert("INSERT INTO video_attributes (video, path, kind, number, text)", rows, "").await?;
    Ok(())
}
