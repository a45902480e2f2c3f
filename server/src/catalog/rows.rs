//! Rows and the types of the service: how each is read back, and the names of what has few values.

use serde::de::DeserializeOwned;

use super::database::Row;
use super::types::*;
use super::{CatalogError, database};
use crate::terms::{Level, SpanKey, UnitVector};

/// What [`video`] reads, of `videos v`.
macro_rules! video_columns {
    () => {
        "v.id, v.content_hash, v.file, v.file_name, v.bytes, v.title, v.metadata, v.recorded_at, \
         v.created_at_ms, v.state, v.segmentation, v.facts, v.warnings, \
         (SELECT string_agg(t.warnings, '' ORDER BY t.key) FROM tracks t WHERE t.video = v.id) AS said_wrong, \
         (SELECT count(*) FROM spans c WHERE c.video = v.id AND c.level = 'clip') AS clips, \
         (SELECT n.id FROM jobs n WHERE n.video = v.id ORDER BY n.id DESC LIMIT 1) AS job_id"
    };
}

/// What [`span`] reads, of `spans s`.
macro_rules! span_columns {
    () => {
        "s.key, s.id, s.video, s.level, s.given, s.start_ms, s.end_ms, s.metadata"
    };
}

/// What [`job`] reads, of `jobs j`.
macro_rules! job_columns {
    () => {
        "j.id, j.kind, j.video, j.state, j.stage, j.fraction, j.frames_done, j.frames_total, j.eta_s, \
         j.attempts, j.reason, j.created_at_ms, j.updated_at_ms"
    };
}

pub(super) use {job_columns, span_columns, video_columns};

/// A stored JSON text.
pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, CatalogError> {
    serde_json::from_str(text).map_err(|error| CatalogError::Damaged(format!("{text:.80}: {error}")))
}

pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, CatalogError> {
    serde_json::to_string(value).map_err(|error| CatalogError::Invalid(error.to_string()))
}

fn named<T: Copy>(name: &str, names: &[(T, &str)]) -> Result<T, CatalogError> {
    let found = names.iter().find(|(_, known)| *known == name);
    found.map(|(value, _)| *value).ok_or_else(|| CatalogError::Damaged(format!("unknown name {name:?}")))
}

pub(super) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Video => "video",
        Level::Clip => "clip",
        Level::Moment => "moment",
        Level::Passage => "passage",
    }
}

pub(super) fn level(row: &Row) -> Result<Level, CatalogError> {
    let names =
        [Level::Video, Level::Clip, Level::Moment, Level::Passage].map(|level| (level, level_name(level)));
    named(&row.get::<String>("level")?, &names)
}

pub(super) fn kind_name(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Ingest => "ingest",
        JobKind::Fill => "fill",
    }
}

pub(super) fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::Succeeded => "succeeded",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

pub(super) fn cue_kind_name(kind: CueKind) -> &'static str {
    match kind {
        CueKind::Speech => "speech",
        CueKind::Caption => "caption",
        CueKind::Ocr => "ocr",
    }
}

pub(super) fn track(row: &Row) -> Result<Track, CatalogError> {
    let (kind, language, provenance) = (cue_kind(row)?, row.get("language")?, row.get("provenance")?);
    Ok(Track { kind, language, provenance })
}

fn cue_kind(row: &Row) -> Result<CueKind, CatalogError> {
    let names = [CueKind::Speech, CueKind::Caption, CueKind::Ocr].map(|kind| (kind, cue_kind_name(kind)));
    named(&row.get::<String>("kind")?, &names)
}

pub(super) fn video(row: &Row) -> Result<Video, CatalogError> {
    let states =
        [(VideoState::Pending, "pending"), (VideoState::Ready, "ready"), (VideoState::Failed, "failed")];
    Ok(Video {
        id: row.get("id")?,
        content_hash: row.get("content_hash")?,
        file: row.get("file")?,
        file_name: row.get("file_name")?,
        bytes: row.get("bytes")?,
        title: row.get("title")?,
        metadata: json(&row.get::<String>("metadata")?)?,
        recorded_at: row.get("recorded_at")?,
        created_at_ms: row.get("created_at_ms")?,
        state: named(&row.get::<String>("state")?, &states)?,
        segmentation: json(&row.get::<String>("segmentation")?)?,
        facts: row.get::<Option<String>>("facts")?.as_deref().map(json).transpose()?,
        warnings: warnings(row)?,
        clips: row.get("clips")?,
        job_id: row.get("job_id")?,
    })
}

/// Those of its file, then those of its subtitles.
fn warnings(row: &Row) -> Result<Vec<String>, CatalogError> {
    let mut warnings: Vec<String> = json(&row.get::<String>("warnings")?)?;
    let of_tracks: Option<String> = row.get("said_wrong")?;
    warnings.extend(of_tracks.unwrap_or_default().lines().map(str::to_owned));
    Ok(warnings)
}

pub(super) fn span(row: &Row) -> Result<Span, CatalogError> {
    Ok(Span {
        key: row.key("key")?,
        id: row.get("id")?,
        video: row.get("video")?,
        level: level(row)?,
        given: row.get("given")?,
        start_ms: row.get("start_ms")?,
        end_ms: row.get("end_ms")?,
        metadata: json(&row.get::<String>("metadata")?)?,
    })
}

pub(super) fn job(row: &Row) -> Result<Job, CatalogError> {
    let kinds = [JobKind::Ingest, JobKind::Fill].map(|kind| (kind, kind_name(kind)));
    let states =
        [JobState::Queued, JobState::Running, JobState::Succeeded, JobState::Failed, JobState::Cancelled]
            .map(|state| (state, state_name(state)));
    Ok(Job {
        id: row.get("id")?,
        kind: named(&row.get::<String>("kind")?, &kinds)?,
        video: row.get("video")?,
        state: named(&row.get::<String>("state")?, &states)?,
        progress: Progress {
            stage: row.get("stage")?,
            fraction: row.get("fraction")?,
            frames_done: row.get("frames_done")?,
            frames_total: row.get("frames_total")?,
            eta_s: row.get("eta_s")?,
        },
        attempts: row.get("attempts")?,
        reason: row.get("reason")?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}

/// A unit vector as little-endian f32.
pub(super) fn unit_bytes(unit: &UnitVector) -> Vec<u8> {
    unit.values().iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The unit vector that [`unit_bytes`] wrote for this span.
pub(super) fn unit(bytes: &[u8], span: SpanKey) -> Result<UnitVector, CatalogError> {
    let values = bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let whole = bytes.len().is_multiple_of(4);
    UnitVector::from_unit(values.collect()).filter(|_| whole).ok_or_else(|| {
        CatalogError::Damaged(format!("the vector of span {span} is not of norm 1; ingest its video again"))
    })
}

/// Keys as the databases store them.
pub(super) fn keys(keys: &[SpanKey]) -> database::Value {
    database::Value::Ints(keys.iter().map(|key| key.number().cast_signed()).collect())
}
