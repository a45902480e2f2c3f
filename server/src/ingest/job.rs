//! One job: from a stored file to what the catalog is to keep.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reprise_encoders::EncodeError;
use reprise_encoders::video::segment::ClipRange;
use reprise_encoders::video::{self, Probe};
use uuid::Uuid;

use super::embed::{self, Cutting, Embedded, PassError, Plan, RawVector, pooled};
use super::moments;
use super::pass::{Media, Target};
use super::runner::JobError;
use super::segmentation::{is_given_only, segmenter_settings};
use super::watch::Watch;
use super::{passages, subtitles};
use crate::app::App;
use crate::catalog::{
    CueKind, Ingested, IngestedSpan, JobKind, Leased, Line, MediaFacts, NewVector, Span, Video, VideoState,
};
use crate::spaces::LoadedSpace;
use crate::terms::{Level, SpanKey, UnitVector};

/// Does the leased work and finishes the job in the catalog.
///
/// # Errors
/// Nothing was stored; the caller says what becomes of the job.
pub(super) async fn run(app: Arc<App>, leased: Leased, watch: Arc<Watch>) -> Result<(), JobError> {
    let path = app.media.path_of(&leased.video.file);
    if !path.exists() {
        return Err(JobError::FileGone(leased.video.file.clone()));
    }
    let limits = app.config.decode_limits();
    let probed = {
        let path = path.clone();
        tokio::task::spawn_blocking(move || video::probe(&path, &limits)).await
    };
    let probe = probed.map_err(|panic| PassError::Panicked(panic.to_string()))??;
    watch.expect(probe.duration_ms, probe.frame_rate);
    let media = Media { path, probe, limits };
    match leased.job.kind {
        JobKind::Ingest => ingest(&app, leased, media, watch).await,
        JobKind::Fill => fill(&app, leased, media, watch).await,
    }
}

/// Stores how far the job came: between heartbeats, or before the first, nobody would know how much was decoded.
async fn tell(app: &App, leased: &Leased, watch: &Watch) -> Result<(), JobError> {
    let lease = Duration::from_secs_f64(app.config.lease_seconds);
    app.catalog.heartbeat(&leased.lease, lease, &watch.progress()).await?;
    Ok(())
}

async fn ingest(app: &App, leased: Leased, media: Media, watch: Arc<Watch>) -> Result<(), JobError> {
    let plan = plan(app, &leased, &media.probe).await?;
    let probe = media.probe.clone();
    let again = leased.video.facts.clone().filter(|_| leased.video.state == VideoState::Ready);
    let before =
        if again.is_some() { app.catalog.clips(leased.video.id, None, u32::MAX).await? } else { Vec::new() };
    let recut = match &again {
        Some(facts) => embed::recut(media.clone(), &plan, facts, Arc::clone(&watch)).await?,
        None => None,
    };
    let (embedded, unread) = match recut {
        Some(embedded) => (embedded, leased.video.warnings.clone()),
        None => {
            let unread = subtitles::take(app, leased.video.id, &media).await?;
            (embed::ingest(media, plan, Arc::clone(&watch)).await?, unread)
        }
    };
    let mut ingested = ingested(&leased, &probe, embedded)?;
    ingested.warnings.extend(unread);
    let mut told = BTreeSet::new();
    ingested.warnings.retain(|warning| told.insert(warning.clone()));
    tell(app, &leased, &watch).await?;
    app.catalog.finish_ingest(&leased.lease, ingested).await?;
    for clip in before.iter().filter(|clip| !clip.given) {
        app.media.remove_span(clip.id).await;
    }
    passages::enqueue(app, leased.video.id).await;
    Ok(())
}

async fn plan(app: &App, leased: &Leased, probe: &Probe) -> Result<Plan, JobError> {
    let given_only = is_given_only(&leased.video);
    let given = leased.given.iter().map(|span| (Target::Given(span.id), range(span.start_ms, span.end_ms)));
    let cutting = Cutting {
        settings: segmenter_settings(&leased.video.segmentation, app.config.max_clip_ms()),
        cues: cues(app, leased.video.id, probe.media_offset_ms).await?,
        target: if given_only { Target::Pooled } else { Target::Found },
    };
    Ok(Plan {
        segment: Some(cutting),
        known: given.collect(),
        windows: if given_only { windows_inside(&leased.given) } else { Vec::new() },
        spaces: app.spaces.all(),
        features: app.media.features(leased.video.id),
    })
}

/// When people speak, as far as it is known yet.
async fn cues(app: &App, video: Uuid, media_offset_ms: i64) -> Result<Vec<ClipRange>, JobError> {
    let cues = app.catalog.cues(video, None, u32::MAX).await?;
    let spoken = cues.into_iter().filter(|cue| cue.track.kind == CueKind::Speech);
    let at = |line: Line| range(line.start_ms - media_offset_ms, line.end_ms - media_offset_ms);
    Ok(spoken.map(|cue| at(cue.line)).collect())
}

fn ingested(leased: &Leased, probe: &Probe, embedded: Embedded) -> Result<Ingested, JobError> {
    let mut warnings = embedded.summary.warnings.clone();
    let duration_ms = embedded.summary.duration_ms;
    for span in leased.given.iter().filter(|span| duration_ms <= span.start_ms) {
        warnings.push(format!(
            "the given clip {} starts at {} s, after the video's end at {} s: it can't be searched",
            span.id,
            span.start_ms as f64 / 1000.0,
            duration_ms as f64 / 1000.0
        ));
    }
    let of_clips =
        embedded.spans.iter().filter(|((target, _), _)| matches!(target, Target::Found | Target::Pooled));
    let video = pooled(of_clips.flat_map(|(_, vectors)| vectors));
    let mut spans = vec![span(None, Level::Video, range(0, duration_ms), &video)?];
    for ((target, at), vectors) in &embedded.spans {
        match target {
            Target::Found => spans.push(span(None, Level::Clip, range(at.0, at.1), vectors)?),
            Target::Moment => spans.extend(moment(*at, duration_ms, vectors)?),
            Target::Given(id) => {
                let at = range(at.0, at.1.min(duration_ms));
                spans.push(span(Some(*id), Level::Clip, at, vectors)?);
            }
            Target::Pooled | Target::Known(_) => {}
        }
    }
    Ok(Ingested { facts: facts(probe, &embedded), warnings, spans })
}

/// The windows inside `clips`, each once.
fn windows_inside(clips: &[Span]) -> Vec<ClipRange> {
    let ranges = clips.iter().flat_map(|clip| moments::windows(range(clip.start_ms, clip.end_ms)));
    let once: BTreeSet<(i64, i64)> = ranges.map(|window| (window.start_ms, window.end_ms)).collect();
    once.into_iter().map(|(start_ms, end_ms)| range(start_ms, end_ms)).collect()
}

/// A window that ends after the video does not count.
fn moment(at: (i64, i64), duration_ms: i64, vectors: &[RawVector]) -> Result<Option<IngestedSpan>, JobError> {
    if duration_ms < at.1 {
        return Ok(None);
    }
    span(None, Level::Moment, range(at.0, at.1), vectors).map(Some)
}

fn span(
    given: Option<Uuid>,
    level: Level,
    at: ClipRange,
    vectors: &[RawVector],
) -> Result<IngestedSpan, JobError> {
    let vectors = vectors.iter().map(|raw| unit(raw).map(|(unit, norm)| (raw.space, unit, norm)));
    let vectors = vectors.collect::<Result<Vec<_>, _>>()?;
    Ok(IngestedSpan { given, level, start_ms: at.start_ms, end_ms: at.end_ms, vectors })
}

fn unit(raw: &RawVector) -> Result<(UnitVector, f32), JobError> {
    let failed =
        || PassError::Encode(EncodeError::Failed("a clip's vector is zero or not finite".to_owned()));
    Ok(UnitVector::from_raw(&raw.values).ok_or_else(failed)?)
}

fn facts(probe: &Probe, embedded: &Embedded) -> MediaFacts {
    MediaFacts {
        duration_ms: embedded.summary.duration_ms,
        frame_rate: probe.frame_rate,
        frames: embedded.summary.frames,
        width: probe.width,
        height: probe.height,
        codec: probe.codec.clone(),
        variable_frame_rate: probe.variable_frame_rate,
        media_offset_ms: embedded.summary.media_offset_ms,
        plays_in_browsers: probe.plays_in_browsers,
        seek_is_safe: embedded.seek_is_safe,
        probe: serde_json::to_value(probe).unwrap_or_default(),
    }
}

/// Encodes what a video's spans lack; spaces that lack the same spans are filled from one decode.
async fn fill(app: &App, leased: Leased, media: Media, watch: Arc<Watch>) -> Result<(), JobError> {
    let facts = leased.video.facts.as_ref();
    let duration_ms = facts.map_or(media.probe.duration_ms, |facts| facts.duration_ms);
    let seek_is_safe = facts.is_some_and(|facts| facts.seek_is_safe);
    let mut together: BTreeMap<(bool, Vec<SpanKey>), Together> = BTreeMap::new();
    for space in app.spaces.all().into_iter().filter(|it| it.space.can.frames) {
        let mut lacking = app.catalog.spans_without_vector(leased.video.id, space.key).await?;
        let has_moments = space.space.temporal;
        lacking.retain(|span| span.start_ms < duration_ms && (has_moments || span.level != Level::Moment));
        let keys = lacking.iter().map(|span| span.key).collect();
        let of_keys = together.entry((has_moments, keys)).or_insert_with(|| (lacking, Vec::new()));
        of_keys.1.push(space);
    }
    let mut vectors = passages::fill(app, leased.video.id, &watch).await?;
    let mut moments = Vec::new();
    for (lacking, spaces) in together.into_values().filter(|(lacking, _)| !lacking.is_empty()) {
        let lacking = Lacking::new(lacking, &leased.video, duration_ms);
        let features = app.media.features(leased.video.id);
        let plan = lacking.plan(&leased.video, app.config.max_clip_ms(), (spaces, features));
        let spans = embed::fill(media.clone(), plan, (duration_ms, seek_is_safe), Arc::clone(&watch)).await?;
        vectors.extend(lacking.vectors(&spans)?);
        for ((_, at), raws) in spans.iter().filter(|((target, _), _)| *target == Target::Moment) {
            moments.extend(moment(*at, duration_ms, raws)?);
        }
    }
    tell(app, &leased, &watch).await?;
    Ok(app.catalog.finish_fill(&leased.lease, vectors, moments).await?)
}

/// Spans, and the spaces in which all of them lack a vector.
type Together = (Vec<Span>, Vec<Arc<LoadedSpace>>);

/// Spans without vectors.
struct Lacking {
    full_video: Option<SpanKey>,
    /// Clips, given and found, and moments.
    parts: Vec<Span>,
    /// Windows inside the clips that are not stored as moments yet.
    windows: Vec<ClipRange>,
    /// Whether the found clips among the parts cover the video: then they make up its vector.
    cover: bool,
}

impl Lacking {
    fn new(spans: Vec<Span>, video: &Video, duration_ms: i64) -> Lacking {
        let (full, parts): (Vec<_>, Vec<_>) = spans.into_iter().partition(|it| it.level == Level::Video);
        let found = parts.iter().filter(|it| it.level == Level::Clip && !it.given);
        let cover = found.map(|it| it.end_ms - it.start_ms).sum::<i64>() == duration_ms;
        let given_only = is_given_only(video);
        let clips = parts.iter().filter(|it| it.level == Level::Clip && it.given == given_only);
        let mut windows = windows_inside(&clips.cloned().collect::<Vec<_>>());
        let stored = |at: &ClipRange| {
            let mut moments = parts.iter().filter(|it| it.level == Level::Moment);
            moments.any(|it| (it.start_ms, it.end_ms) == (at.start_ms, at.end_ms))
        };
        windows.retain(|window| !stored(window));
        Lacking { full_video: full.first().map(|it| it.key), parts, windows, cover }
    }

    fn plan(
        &self,
        video: &Video,
        max_clip_ms: i64,
        (spaces, features): (Vec<Arc<LoadedSpace>>, PathBuf),
    ) -> Plan {
        let cut = self.full_video.is_some() && !self.cover;
        let settings = segmenter_settings(&video.segmentation, max_clip_ms);
        let known = self.parts.iter().map(|it| (Target::Known(it.key), range(it.start_ms, it.end_ms)));
        let windows = self.windows.clone();
        let segment = cut.then_some(Cutting { settings, cues: Vec::new(), target: Target::Pooled });
        Plan { segment, known: known.collect(), windows, spaces, features }
    }

    fn vectors(&self, spans: &embed::Spans) -> Result<Vec<NewVector>, JobError> {
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
