//! Rows of `videos`: reading and locking.

use uuid::Uuid;

use super::stored::{named, parse_json};
use crate::catalog::database::{Row, Sql, Tx, values};
use crate::catalog::error::CatalogError;
use crate::catalog::types::*;

/// The columns that [`from_row`] reads, of `videos v`.
macro_rules! video_columns {
    () => {
        "v.id, v.content_hash, v.file, v.file_name, v.bytes, v.title, v.metadata, v.folder, v.recorded_at, \
         v.created_at_ms, v.state, v.segmentation, v.facts, v.warnings, v.deleted_at_ms, v.restored_at_ms, \
         (SELECT string_agg(g.tag, ',' ORDER BY g.key) FROM video_tags g WHERE g.video = v.id) AS tags, \
         (SELECT string_agg(t.warnings, '' ORDER BY t.key) FROM tracks t WHERE t.video = v.id) AS said_wrong, \
         (SELECT count(*) FROM spans c WHERE c.video = v.id AND c.level = 'clip') AS clips, \
         (SELECT n.id FROM jobs n WHERE n.video = v.id ORDER BY n.id DESC LIMIT 1) AS job_id"
    };
}

pub(in crate::catalog) use video_columns;

/// Selects one video that is not deleted; $1 is its id.
pub(in crate::catalog) const BY_ID: &str =
    concat!("SELECT ", video_columns!(), " FROM videos v WHERE v.id = $1 AND v.deleted_at_ms IS NULL");

/// One video as this transaction reads it.
pub(in crate::catalog) async fn read(tx: &mut Tx, id: Uuid) -> Result<Option<Video>, CatalogError> {
    let row = tx.row(BY_ID, values![id]).await?;
    row.as_ref().map(from_row).transpose()
}

/// Locks the video: no other transaction changes its spans, vectors or jobs until this one ends. False if there is no
/// such video, or the caller may not see it. Locked before those rows, so that no two transactions deadlock.
pub(in crate::catalog) async fn lock(tx: &mut Tx, id: Uuid) -> Result<bool, CatalogError> {
    let sql = Sql::Each {
        sqlite: "SELECT id FROM videos WHERE id = $1 AND deleted_at_ms IS NULL",
        postgres: "SELECT id FROM videos WHERE id = $1 AND deleted_at_ms IS NULL FOR UPDATE",
    };
    Ok(tx.row(sql, values![id]).await?.is_some() && tx.sees(id).await?)
}

pub(in crate::catalog) fn from_row(row: &Row) -> Result<Video, CatalogError> {
    let states =
        [VideoState::Pending, VideoState::Ready, VideoState::Failed].map(|state| (state, state.name()));
    Ok(Video {
        id: row.get("id")?,
        content_hash: row.get("content_hash")?,
        file: row.get("file")?,
        file_name: row.get("file_name")?,
        bytes: row.get("bytes")?,
        title: row.get("title")?,
        metadata: parse_json(&row.get::<String>("metadata")?)?,
        tags: tags(row)?,
        folder: Some(row.get::<String>("folder")?).filter(|folder| !folder.is_empty()),
        recorded_at: row.get("recorded_at")?,
        created_at_ms: row.get("created_at_ms")?,
        state: named(&row.get::<String>("state")?, &states)?,
        segmentation: parse_json(&row.get::<String>("segmentation")?)?,
        facts: row.get::<Option<String>>("facts")?.as_deref().map(parse_json).transpose()?,
        warnings: warnings(row)?,
        clips: row.get("clips")?,
        job_id: row.get("job_id")?,
        deleted_at_ms: row.get("deleted_at_ms")?,
        restored_at_ms: row.get("restored_at_ms")?,
    })
}

/// The tags, which hold no commas.
fn tags(row: &Row) -> Result<Vec<String>, CatalogError> {
    let joined: Option<String> = row.get("tags")?;
    Ok(joined.iter().flat_map(|tags| tags.split(',')).map(str::to_owned).collect())
}

/// The warnings of the file, then those of its subtitles.
fn warnings(row: &Row) -> Result<Vec<String>, CatalogError> {
    let mut warnings: Vec<String> = parse_json(&row.get::<String>("warnings")?)?;
    let of_tracks: Option<String> = row.get("said_wrong")?;
    warnings.extend(of_tracks.unwrap_or_default().lines().map(str::to_owned));
    Ok(warnings)
}

/// Checks that metadata is a JSON object.
pub(in crate::catalog) fn check_metadata(metadata: &serde_json::Value) -> Result<(), CatalogError> {
    if metadata.is_object() {
        return Ok(());
    }
    Err(CatalogError::Invalid("metadata must be a JSON object".into()))
}
