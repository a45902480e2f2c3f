//! Cues: timed lines of a video, replaced track by track.

use uuid::Uuid;

use super::database::{Database, Row, Value, values};
use super::types::*;
use super::{CatalogError, rows, videos};

pub(super) async fn replace(
    database: &Database,
    video: Uuid,
    track: &Track,
    lines: &[Line],
) -> Result<bool, CatalogError> {
    if let Some(bad) = lines.iter().find(|line| line.start_ms < 0 || line.end_ms <= line.start_ms) {
        return Err(CatalogError::Invalid(format!("{} to {} ms is no range", bad.start_ms, bad.end_ms)));
    }
    let mut tx = database.begin().await?;
    if !videos::lock(&mut tx, video).await? {
        return Ok(false);
    }
    let kind = rows::cue_kind_name(track.kind);
    let sql = "DELETE FROM cues WHERE video = $1 AND kind = $2 AND language = $3";
    tx.execute(sql, values![video, kind, track.language.as_str()]).await?;
    let row = |line: &Line| -> Vec<Value> {
        let (language, provenance) = (track.language.as_str(), track.provenance.as_str());
        values![
            Uuid::now_v7(),
            video,
            kind,
            language,
            provenance,
            line.start_ms,
            line.end_ms,
            line.text.as_str()
        ]
    };
    let head = "INSERT INTO cues (id, video, kind, language, provenance, start_ms, end_ms, text)";
    tx.insert(head, lines.iter().map(row).collect(), "").await?;
    tx.commit().await?;
    Ok(true)
}

pub(super) async fn list(
    database: &Database,
    video: Uuid,
    after: Option<(i64, Uuid)>,
    limit: u32,
) -> Result<Vec<Cue>, CatalogError> {
    let (start_ms, id) = after.unwrap_or((-1, Uuid::nil()));
    let sql = "SELECT id, kind, language, provenance, start_ms, end_ms, text FROM cues \
               WHERE video = $1 AND (start_ms, id) > ($2, $3) ORDER BY start_ms, id LIMIT $4";
    let found = database.rows(sql, values![video, start_ms, id, limit]).await?;
    found.iter().map(cue).collect()
}

fn cue(row: &Row) -> Result<Cue, CatalogError> {
    Ok(Cue {
        id: row.get("id")?,
        track: Track {
            kind: rows::cue_kind(row)?,
            language: row.get("language")?,
            provenance: row.get("provenance")?,
        },
        line: Line { start_ms: row.get("start_ms")?, end_ms: row.get("end_ms")?, text: row.get("text")? },
    })
}
