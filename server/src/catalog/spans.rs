//! Spans: reading them, and clips supplied by users.

use uuid::Uuid;

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::filter::Filter;
use super::filter::attributes::attributes;
use super::tables::spans::{from_row, insert, span_columns};
use super::tables::stored::{self, parse_json, to_json};
use super::tables::vectors::{self, Op};
use super::tables::{jobs, videos};
use super::types::*;
use super::view::View;
use super::visibility::Visibility;
use super::wake::News;
use crate::terms::{KeySet, SpanKey, VideoNumber};

macro_rules! beside {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            span_columns!(),
            " FROM spans s JOIN visible_videos v ON v.id = s.video WHERE s.video IN (SELECT o.video FROM spans o WHERE ",
            $condition,
            ") AND (s.level IN ('video', 'clip') OR ($2 AND s.level = 'moment'))"
        )
    };
}

macro_rules! by_key {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            span_columns!(),
            ", v.title, v.metadata AS video_metadata, v.media_offset_ms, v.duration_ms, v.recorded_at_ms \
             FROM spans s JOIN visible_videos v ON v.id = s.video WHERE ",
            $condition
        )
    };
}

impl View<'_> {
    /// Adds a given clip and a `fill` job for its vectors in one transaction; `None` if there is no such video.
    pub async fn add_given_clip(
        &self,
        video: Uuid,
        mut clip: GivenClip,
    ) -> Result<Option<(Span, Job)>, CatalogError> {
        check_given(&clip)?;
        let mut tx = self.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(None);
        }
        let row = tx.row("SELECT duration_ms FROM videos WHERE id = $1", values![video]).await?;
        if let Some(duration_ms) = row.map(|row| row.get::<Option<i64>>("duration_ms")).transpose()?.flatten()
        {
            if clip.start_ms >= duration_ms {
                let text =
                    format!("the clip starts at {} ms, the video ends at {duration_ms} ms", clip.start_ms);
                return Err(CatalogError::Invalid(text.into()));
            }
            clip.end_ms = clip.end_ms.min(duration_ms);
        }
        let ids = insert_given(&mut tx, video, &[clip]).await?;
        let job = jobs::enqueue(&mut tx, jobs::NewJob::fill(video)).await?;
        let mut added = None;
        for id in ids {
            added = read(&mut tx, id).await?;
        }
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(added.map(|span| (span, job)))
    }

    /// Replaces a given clip's metadata. `Err(Conflict)` for a found clip, `Err(Stale)` if the clip is not the one that the
    /// change expects.
    pub async fn update_clip(
        &self,
        id: Uuid,
        metadata: serde_json::Value,
        expected: Option<&Span>,
    ) -> Result<Option<Span>, CatalogError> {
        videos::check_metadata(&metadata)?;
        let mut tx = self.begin().await?;
        let Some(span) = lock_given(&mut tx, id).await? else { return Ok(None) };
        if expected.is_some_and(|expected| *expected != span) {
            return Err(CatalogError::Stale);
        }
        tx.execute("UPDATE spans SET metadata = $2 WHERE id = $1", values![id, to_json(&metadata)?]).await?;
        tx.execute("DELETE FROM span_attributes WHERE span = $1", values![span.key]).await?;
        tx.insert(INSERT_ATTRIBUTES, attribute_rows(span.key, &metadata), "").await?;
        tx.commit().await?;
        Ok(Some(Span { metadata, ..span }))
    }

    /// Deletes a given clip with its vectors. `Err(Conflict)` for a found clip.
    pub async fn delete_clip(&self, id: Uuid) -> Result<Option<Span>, CatalogError> {
        let mut tx = self.begin().await?;
        let Some(span) = lock_given(&mut tx, id).await? else { return Ok(None) };
        let mut gone = Vec::new();
        for key in moments_of(&mut tx, &span).await?.into_iter().chain([span.key]) {
            gone.extend(vectors::of_span(&mut tx, key).await?);
            tx.execute("DELETE FROM spans WHERE key = $1", values![key]).await?;
        }
        vectors::append_changes(&mut tx, gone.into_iter().map(|at| (Op::Delete, at)).collect()).await?;
        tx.commit().await?;
        Ok(Some(span))
    }

    /// Spans of a video at level clip, in order of (start, id), after `after`.
    pub async fn clips(
        &self,
        video: Uuid,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Span>, CatalogError> {
        let (start_ms, id) = after.unwrap_or((-1, Uuid::nil()));
        let sql = concat!(
            "SELECT ",
            span_columns!(),
            " FROM spans s JOIN visible_videos v ON v.id = s.video WHERE s.video = $1 AND s.level = 'clip' AND (s.start_ms, s.id) > ($2, $3) \
             ORDER BY s.start_ms, s.id LIMIT $4"
        );
        let rows = self.rows(sql, values![video, start_ms, id, limit]).await?;
        rows.iter().map(from_row).collect()
    }

    /// One span of any level.
    pub async fn span(&self, id: Uuid) -> Result<Option<Span>, CatalogError> {
        let row = self.row(VISIBLE_BY_ID, values![id]).await?;
        row.as_ref().map(from_row).transpose()
    }

    /// The clip or whole-video span of `video` with exactly this range and a vector in `space`.
    pub async fn span_at(
        &self,
        video: Uuid,
        start_ms: i64,
        end_ms: i64,
        space: u32,
    ) -> Result<Option<Span>, CatalogError> {
        let sql = concat!(
            "SELECT ",
            span_columns!(),
            " FROM spans s JOIN visible_videos v ON v.id = s.video WHERE s.video = $1 AND s.level IN ('clip', 'video') AND s.start_ms = $2 \
             AND s.end_ms = $3 AND EXISTS (SELECT 1 FROM embeddings e WHERE e.space = $4 AND e.span = s.key) \
             ORDER BY s.level, s.key LIMIT 1"
        );
        let row = self.row(sql, values![video, start_ms, end_ms, space]).await?;
        row.as_ref().map(from_row).transpose()
    }

    /// The whole-video span, the clips and, with `moments`, the moments of every video with one of these spans; in any
    /// order.
    pub async fn spans_beside(&self, keys: &[SpanKey], moments: bool) -> Result<Vec<Span>, CatalogError> {
        let sqlite = beside!("o.key IN (SELECT value FROM json_each($1))");
        let sql = Sql::Each { sqlite, postgres: beside!("o.key = ANY($1)") };
        let rows = self.rows(sql, vec![stored::keys(keys), moments.into()]).await?;
        rows.iter().map(from_row).collect()
    }

    /// The spans of these keys, with the fields that a hit shows. Unknown keys are left out; in any order.
    pub async fn spans_by_key(&self, keys: &[SpanKey]) -> Result<Vec<SpanWithVideo>, CatalogError> {
        let sql = Sql::Each { sqlite: BY_KEY_SQLITE, postgres: BY_KEY_POSTGRES };
        let rows = self.rows(sql, vec![stored::keys(keys)]).await?;
        rows.iter().map(with_video).collect()
    }

    /// Keys of all spans that match. `filter` is already validated.
    pub async fn keys_matching(&self, filter: &Filter) -> Result<KeySet, CatalogError> {
        let (sql, values) = filter.to_sql();
        self.keys(sql, values).await
    }

    /// Numbers of the visible videos, or of those with a span that matches, in order. `filter` is already validated.
    pub async fn videos_matching(&self, filter: Option<&Filter>) -> Result<Vec<VideoNumber>, CatalogError> {
        let all = || ("SELECT v.number FROM visible_videos v".into(), values![]);
        let (sql, values) = filter.map_or_else(all, Filter::videos_to_sql);
        let rows = self.rows(sql, values).await?;
        let mut numbers = rows.iter().map(|row| row.video_number("number")).collect::<Result<Vec<_>, _>>()?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Keys of the spans that a search may return, by filter and visibility; `None`: all spans.
    pub async fn keys_allowed(&self, filter: Option<&Filter>) -> Result<Option<KeySet>, CatalogError> {
        match (filter, self.visibility()) {
            (Some(filter), _) => self.keys_matching(filter).await.map(Some),
            (None, Visibility::All) => Ok(None),
            (None, Visibility::Matching(_)) => self
                .keys("SELECT s.key FROM spans s JOIN visible_videos v ON v.id = s.video", values![])
                .await
                .map(Some),
        }
    }
}

const BY_ID: &str = concat!("SELECT ", span_columns!(), " FROM spans s WHERE s.id = $1");
const VISIBLE_BY_ID: &str = concat!(
    "SELECT ",
    span_columns!(),
    " FROM spans s JOIN visible_videos v ON v.id = s.video WHERE s.id = $1"
);

const BY_KEY_SQLITE: &str = by_key!("s.key IN (SELECT value FROM json_each($1))");
const BY_KEY_POSTGRES: &str = by_key!("s.key = ANY($1)");

fn with_video(row: &Row) -> Result<SpanWithVideo, CatalogError> {
    Ok(SpanWithVideo {
        span: from_row(row)?,
        title: row.get("title")?,
        video_metadata: parse_json(&row.get::<String>("video_metadata")?)?,
        media_offset_ms: row.get::<Option<i64>>("media_offset_ms")?.unwrap_or(0),
        duration_ms: row.get::<Option<i64>>("duration_ms")?.unwrap_or(0),
        recorded_at_ms: row.get("recorded_at_ms")?,
    })
}

/// Refuses a given clip without length, or whose metadata is not an object.
pub(super) fn check_given(clip: &GivenClip) -> Result<(), CatalogError> {
    if clip.start_ms < 0 || clip.end_ms <= clip.start_ms {
        let range = format!("{} to {} ms", clip.start_ms, clip.end_ms);
        return Err(CatalogError::Invalid(
            format!("{range} is no range: it must start at 0 or later and not be empty").into(),
        ));
    }
    videos::check_metadata(&clip.metadata)
}

/// Inserts clips that passed [`check_given`]; returns their ids in the same order.
pub(super) async fn insert_given(
    tx: &mut Tx,
    video: Uuid,
    clips: &[GivenClip],
) -> Result<Vec<Uuid>, CatalogError> {
    let ids: Vec<Uuid> = clips.iter().map(|_| Uuid::now_v7()).collect();
    let row = |(clip, id): (&GivenClip, &Uuid)| {
        Ok(values![*id, video, "clip", true, clip.start_ms, clip.end_ms, to_json(&clip.metadata)?])
    };
    let rows = clips.iter().zip(&ids).map(row).collect::<Result<Vec<_>, CatalogError>>()?;
    let keys = insert(tx, rows).await?;
    let mut attributes = Vec::new();
    for (clip, id) in clips.iter().zip(&ids) {
        if let Some(key) = keys.get(id) {
            attributes.extend(attribute_rows(*key, &clip.metadata));
        }
    }
    tx.insert(INSERT_ATTRIBUTES, attributes, "").await?;
    Ok(ids)
}

const INSERT_ATTRIBUTES: &str = "INSERT INTO span_attributes (span, path, kind, number, text)";

fn attribute_rows(key: SpanKey, metadata: &serde_json::Value) -> Vec<Vec<Value>> {
    let found = attributes(metadata).into_iter();
    found.map(|found| values![key, found.path, found.kind, found.number, found.text]).collect()
}

async fn read(tx: &mut Tx, id: Uuid) -> Result<Option<Span>, CatalogError> {
    let row = tx.row(BY_ID, values![id]).await?;
    row.as_ref().map(from_row).transpose()
}

/// Locks the clip's video and returns the clip. `None` if it is gone, an error if it is a found clip.
async fn lock_given(tx: &mut Tx, id: Uuid) -> Result<Option<Span>, CatalogError> {
    let Some(span) = read(tx, id).await? else { return Ok(None) };
    if !videos::lock(tx, span.video).await? {
        return Ok(None);
    }
    // Read again: the clip may have been deleted before the lock was taken.
    let Some(span) = read(tx, id).await? else { return Ok(None) };
    if !span.given {
        return Err(CatalogError::Conflict(
            "only clips that a user gave can be changed or deleted".to_owned(),
        ));
    }
    Ok(Some(span))
}

/// The moments inside this clip and inside no other clip.
async fn moments_of(tx: &mut Tx, clip: &Span) -> Result<Vec<SpanKey>, CatalogError> {
    let sql = "SELECT m.key FROM spans m WHERE m.video = $1 AND m.level = 'moment' AND $3 <= m.start_ms \
               AND m.end_ms <= $4 AND NOT EXISTS (SELECT 1 FROM spans c WHERE c.video = m.video \
               AND c.level = 'clip' AND c.key <> $2 AND c.start_ms <= m.start_ms AND m.end_ms <= c.end_ms)";
    let rows = tx.rows(sql, values![clip.video, clip.key, clip.start_ms, clip.end_ms]).await?;
    rows.iter().map(|row| row.key("key")).collect()
}
