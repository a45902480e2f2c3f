//! Encodes missing vectors: of clips given later, of passages, and of new spaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprise_encoders::EncodeError;
use reprise_encoders::video::segment::ClipRange;
use uuid::Uuid;

use super::embed::{self, Plan, SourceFacts};
use super::error::IngestError;
use super::moments::windows_inside;
use super::pass::{Cutting, Target};
use super::passages;
use super::pictures::Wanted;
use super::raw_vectors::{RawVector, Spans, moment, pooled, unit};
use super::source::Source;
use super::spaces::fillable;
use crate::app::App;
use crate::catalog::{CatalogError, Filled, NewVector, Segmentation, Span, Video, VideoState};
use crate::models::LoadedSpace;
use crate::terms::{Level, SpanKey};

/// Encodes the missing vectors of a video. Spaces that lack the same spans share one decode.
///
/// # Errors
/// [`IngestError`]. The catalog then stores nothing.
pub async fn missing(source: Source<'_>) -> Result<Filled, IngestError> {
    let progress = Arc::clone(&source.progress);
    progress.unless_stopped(encode_missing(source)).await
}

async fn encode_missing(source: Source<'_>) -> Result<Filled, IngestError> {
    let Source { app, video, .. } = source;
    let media = source.media().await?;
    let facts = SourceFacts {
        duration_ms: video.facts.as_ref().map_or(media.probe.duration_ms, |facts| facts.duration_ms),
        seek_is_safe: video.facts.as_ref().is_some_and(|facts| facts.seek_is_safe),
    };
    let duration_ms = facts.duration_ms;
    let mut filled =
        Filled { vectors: passages::fill(app, video.id, &source.progress).await?, ..Filled::default() };
    for (spans, spaces) in lacking(app, video.id, duration_ms).await? {
        let lacking = Lacking::new(spans, video, duration_ms);
        let plan = lacking.plan(video, app, spaces);
        let spans = embed::fill(media.clone(), plan, facts, Arc::clone(&source.progress)).await?;
        filled.vectors.extend(lacking.vectors(&spans)?);
        for ((_, at), raws) in spans.iter().filter(|((target, _), _)| *target == Target::Moment) {
            filled.moments.extend(moment(range(at.0, at.1), duration_ms, raws)?);
        }
    }
    Ok(filled)
}

/// Spans, and the spaces in which all of them lack a vector.
type Together = (Vec<Span>, Vec<Arc<LoadedSpace>>);

async fn lacking(app: &App, video: Uuid, duration_ms: i64) -> Result<Vec<Together>, IngestError> {
    let mut together: BTreeMap<(bool, Vec<SpanKey>), Together> = BTreeMap::new();
    for space in fillable(app).await?.into_iter().filter(|it| it.space.can.frames) {
        let mut lacking = app.catalog.spans_without_vector(video, space.key).await?;
        let has_moments = space.space.temporal;
        lacking.retain(|span| span.start_ms < duration_ms && (has_moments || span.level != Level::Moment));
        let keys = lacking.iter().map(|span| span.key).collect();
        let of_keys = together.entry((has_moments, keys)).or_insert_with(|| (lacking, Vec::new()));
        of_keys.1.push(space);
    }
    Ok(together.into_values().filter(|(lacking, _)| !lacking.is_empty()).collect())
}

/// Enqueues another fill if a space was added, or its fill resumed, while a job worked on the video. That job filled
/// the spaces `before`, and nothing else enqueues a video that has a running job. Errors are logged, and the next start
/// tries again.
pub async fn enqueue_new_spaces(app: &App, video: Uuid, before: &[Arc<LoadedSpace>]) {
    let enqueued = async {
        let now = fillable(app).await?;
        if now.iter().any(|it| before.iter().all(|old| old.key != it.key)) {
            app.catalog.enqueue_fill(video).await?;
        }
        Ok::<_, CatalogError>(())
    };
    if let Err(error) = enqueued.await {
        tracing::warn!(%error, %video, "a video waits for the next start to be filled into a new space");
    }
}

/// Enqueues a fill if spans of a ready video lack vectors: nothing else enqueues one for a space that was added while the
/// video was in the trash. Errors are logged, and the next start tries again.
pub async fn enqueue_lacking(app: &App, video: &Video) {
    let Some(facts) = video.facts.as_ref().filter(|_| video.state == VideoState::Ready) else { return };
    let enqueued = async {
        if !lacking(app, video.id, facts.duration_ms).await?.is_empty() {
            app.catalog.enqueue_fill(video.id).await?;
        }
        Ok::<_, IngestError>(())
    };
    if let Err(error) = enqueued.await {
        tracing::warn!(%error, video = %video.id, "a restored video waits for the next start to be filled");
    }
    passages::enqueue(app, video.id).await;
}

/// The spans of a video that lack a vector.
struct Lacking {
    full_video: Option<SpanKey>,
    /// Given clips, found clips and moments.
    parts: Vec<Span>,
    /// Windows inside the clips that are not stored as moments yet.
    windows: Vec<ClipRange>,
    /// Whether the found clips in `parts` cover the video. Then their vectors are pooled into the video's vector.
    cover: bool,
}

impl Lacking {
    fn new(spans: Vec<Span>, video: &Video, duration_ms: i64) -> Lacking {
        let (full, parts): (Vec<_>, Vec<_>) = spans.into_iter().partition(|it| it.level == Level::Video);
        let found = parts.iter().filter(|it| it.level == Level::Clip && !it.given);
        let cover = found.map(|it| it.end_ms - it.start_ms).sum::<i64>() == duration_ms;
        let given_only = video.segmentation == (Segmentation::Given {});
        let clips = parts.iter().filter(|it| it.level == Level::Clip && it.given == given_only);
        let mut windows = windows_inside(&clips.cloned().collect::<Vec<_>>());
        let stored = |at: &ClipRange| {
            let mut moments = parts.iter().filter(|it| it.level == Level::Moment);
            moments.any(|it| (it.start_ms, it.end_ms) == (at.start_ms, at.end_ms))
        };
        windows.retain(|window| !stored(window));
        Lacking { full_video: full.first().map(|it| it.key), parts, windows, cover }
    }

    fn plan(&self, video: &Video, app: &App, spaces: Vec<Arc<LoadedSpace>>) -> Plan {
        let cut = self.full_video.is_some() && !self.cover;
        let segmentation = video.segmentation.of_parts(app.config.max_clip_seconds);
        let known = self.parts.iter().map(|it| (Target::Known(it.key), range(it.start_ms, it.end_ms)));
        let windows = self.windows.clone();
        let segment = cut.then_some(Cutting { segmentation, cues: Vec::new(), target: Target::Pooled });
        let features = app.storage.features(video.id);
        Plan { segment, known: known.collect(), windows, spaces, features, pictures: Wanted::default() }
    }

    fn vectors(&self, spans: &Spans) -> Result<Vec<NewVector>, EncodeError> {
        let is_found = |it: &Span| it.level == Level::Clip && !it.given;
        let found = |key: SpanKey| self.parts.iter().any(|it| it.key == key && is_found(it));
        let counts = |target: &Target| match target {
            Target::Known(key) => self.cover && found(*key),
            target => *target == Target::Pooled,
        };
        let of_video = spans.iter().filter(|((target, _), _)| counts(target));
        let of_video = pooled(of_video.flat_map(|(_, vectors)| vectors));
        let of_video = self.full_video.iter().flat_map(|key| of_video.iter().map(|raw| (*key, raw)));
        let of_clips = spans.iter().filter_map(|((target, _), raws)| match target {
            Target::Known(key) => Some(raws.iter().map(|raw| (*key, raw))),
            _ => None,
        });
        let new = |(span, raw): (SpanKey, &RawVector)| {
            unit(raw).map(|(unit, norm)| NewVector { span, space: raw.space, unit, norm })
        };
        of_video.chain(of_clips.flatten()).map(new).collect()
    }
}

fn range(start_ms: i64, end_ms: i64) -> ClipRange {
    ClipRange { start_ms, end_ms }
}
