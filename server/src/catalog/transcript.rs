//! The transcript of a video: its cues or passages of all kinds in order of time, a page at a time.

use uuid::Uuid;

use super::database::{Row, Sql, Value, values};
use super::error::CatalogError;
use super::tables::tracks::{self, cue_kind_name, line};
use super::types::*;
use super::view::View;

/// Cues and passages as one shape. A cue's times are on the container's clock, a passage's are the video's.
const CUES: &str = "SELECT c.id, t.kind, t.language, t.provenance, t.machine, c.start_ms, c.end_ms, c.text, \
                    c.box_left, c.box_top, c.box_width, c.box_height \
                    FROM tracks t JOIN cues c ON c.track = t.key JOIN visible_videos v ON v.id = t.video \
                    WHERE t.video = $1 AND (c.start_ms, c.id) > ($2, $3)";
const PASSAGES: &str = "SELECT c.id, t.kind, t.language, t.provenance, t.machine, c.start_ms, c.end_ms, p.text, \
                        NULL AS box_left, NULL AS box_top, NULL AS box_width, NULL AS box_height \
                        FROM tracks t JOIN passages p ON p.track = t.key JOIN spans c ON c.key = p.span \
                        JOIN visible_videos v ON v.id = t.video \
                        WHERE t.video = $1 AND (c.start_ms, c.id) > ($2, $3)";

impl View<'_> {
    /// Cues of a video in order of (start, id), at most `limit`, on the container's clock.
    pub async fn transcript(
        &self,
        video: Uuid,
        part: &TranscriptPart,
        limit: u32,
    ) -> Result<Vec<Cue>, CatalogError> {
        self.lines_of(CUES, video, part, limit).await
    }

    /// Passages of a video in order of (start, id), at most `limit`, in the video's time. A video has none before its
    /// first ingest.
    pub async fn passages(
        &self,
        video: Uuid,
        part: &TranscriptPart,
        limit: u32,
    ) -> Result<Vec<Cue>, CatalogError> {
        self.lines_of(PASSAGES, video, part, limit).await
    }

    async fn lines_of(
        &self,
        select: &str,
        video: Uuid,
        part: &TranscriptPart,
        limit: u32,
    ) -> Result<Vec<Cue>, CatalogError> {
        let (start_ms, id) = part.after.unwrap_or((i64::MIN, Uuid::nil()));
        let mut values = values![video, start_ms, id];
        let mut sql = select.to_owned();
        let mut and = |test: &str, value: Option<Value>| {
            if let Some(value) = value {
                values.push(value);
                sql.push_str(&format!(" AND {test} ${}", values.len()));
            }
        };
        and("t.kind =", part.kind.map(|kind| cue_kind_name(kind).into()));
        and("t.language =", part.language.as_deref().map(Value::from));
        and("c.end_ms >", part.from_ms.map(Value::from));
        and("c.start_ms <", part.until_ms.map(Value::from));
        values.push(limit.into());
        sql.push_str(&format!(" ORDER BY c.start_ms, c.id LIMIT ${}", values.len()));
        let found = self.rows(Sql::Built(sql), values).await?;
        let cue = |row: &Row| {
            let (track, region) = (tracks::from_row(row)?, tracks::region(row)?);
            Ok(Cue { id: row.get("id")?, track, line: line(row)?, region })
        };
        found.iter().map(cue).collect()
    }
}
