//! Leases jobs, runs them one at a time, and tells the catalog how they ended.

use std::sync::Arc;
use std::time::Duration;

use reprise_encoders::EncodeError;
use reprise_encoders::video::segment::{ClipRange, ContentSettings, MinSceneLen, SegmenterSettings};
use reprise_encoders::video::{self, Probe, VideoError};
use reprise_index::{Level, UnitVector};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::embed::{self, Embedded, Media, PassError, Plan, RawVector, Target, pooled};
use super::watch::{Stop, Watch};
use crate::app::App;
use crate::catalog::{
    Beat, CatalogError, Ingested, IngestedSpan, JobKind, Leased, MediaFacts, NewVector, Segmentation, Video,
};
use crate::spaces::LoadedSpace;

/// A job that is not heard of for this long is taken by another runner.
const LEASE: Duration = Duration::from_secs(30);
/// How often a running job renews its lease and stores its progress.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long an idle runner sleeps at most.
const IDLE: Duration = Duration::from_secs(5);

/// One worker of the job queue.
pub struct Runner {
    app: Arc<App>,
    id: Uuid,
    closing: CancellationToken,
}

/// Leases and runs jobs until `closing`; the job at hand is handed back then.
pub async fn run_forever(app: Arc<App>, closing: CancellationToken) {
    let runner = Runner { app, id: Uuid::now_v7(), closing };
    while !runner.closing.is_cancelled() {
        match runner.app.catalog.lease_job(runner.id, LEASE).await {
            Ok(Some(leased)) => runner.run(leased).await,
            Ok(None) => runner.idle().await,
            Err(error) => {
                tracing::warn!(%error, "no job can be leased; trying again");
                runner.idle().await;
            }
        }
    }
}

/// Why a job did not succeed.
#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error(transparent)]
    Pass(#[from] PassError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the stored file is gone: {0}")]
    FileGone(String),
}

impl From<VideoError> for JobError {
    fn from(error: VideoError) -> Self {
        JobError::Pass(PassError::Video(error))
    }
}

impl Runner {
    async fn idle(&self) {
        tokio::select! {
            () = self.closing.cancelled() => {}
            () = self.app.catalog.wait_for_job(IDLE) => {}
        }
    }

    async fn run(&self, leased: Leased) {
        let started = std::time::Instant::now();
        let watch = Arc::new(Watch::new());
        let (app, lease) = (Arc::clone(&self.app), leased.lease.clone());
        let beating =
            tokio::spawn(beat(Arc::clone(&app), leased.clone(), Arc::clone(&watch), self.closing.clone()));
        // A task of its own, so that a panic ends this job and not the runner.
        let work = tokio::spawn(work(Arc::clone(&app), leased.clone(), watch));
        let ended = work.await.unwrap_or_else(|panic| Err(PassError::Panicked(panic.to_string()).into()));
        beating.abort();
        let outcome = match &ended {
            Ok(()) => "succeeded",
            Err(error) => self.give_up(&leased, error).await,
        };
        if let Err(error) = self.app.gallery.catch_up().await {
            tracing::warn!(%error, "the index can't follow the catalog");
        }
        metrics::counter!("reprise_jobs_total", "outcome" => outcome).increment(1);
        metrics::histogram!("reprise_job_seconds").record(started.elapsed().as_secs_f64());
        tracing::info!(job = %lease.job, video = %leased.video.id, outcome, seconds = started.elapsed().as_secs_f64(), "job ended");
    }

    async fn give_up(&self, leased: &Leased, error: &JobError) -> &'static str {
        let catalog = &self.app.catalog;
        let (told, outcome) = match disposition(error) {
            Disposition::Drop => (Ok(()), "dropped"),
            Disposition::Release => (catalog.release_job(&leased.lease).await, "released"),
            Disposition::Fail => (catalog.fail_job(&leased.lease, &error.to_string(), false).await, "failed"),
            Disposition::Retry => {
                (catalog.fail_job(&leased.lease, &error.to_string(), true).await, "retried")
            }
        };
        if let Err(untold) = told {
            tracing::warn!(%untold, %error, job = %leased.lease.job, "a job's end could not be stored; its lease will run out");
        }
        outcome
    }
}

/// What becomes of a job that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disposition {
    /// Someone else decides about it now.
    Drop,
    /// Queued again; this attempt doesn't count.
    Release,
    /// It will fail again: the file is to blame.
    Fail,
    /// It may go better next time.
    Retry,
}

fn disposition(error: &JobError) -> Disposition {
    match error {
        JobError::Catalog(CatalogError::LeaseLost) => Disposition::Drop,
        JobError::Catalog(CatalogError::Conflict(_)) | JobError::FileGone(_) => Disposition::Fail,
        JobError::Catalog(_) => Disposition::Retry,
        JobError::Pass(error) => match error {
            PassError::Stopped(Stop::Closing) | PassError::Encode(EncodeError::Closed) => {
                Disposition::Release
            }
            PassError::Stopped(Stop::Cancelled | Stop::Lost) => Disposition::Drop,
            PassError::Video(VideoError::Ffmpeg(_)) => Disposition::Retry,
            PassError::Video(_) | PassError::Encode(EncodeError::BadInput(_)) => Disposition::Fail,
            PassError::Encode(_) | PassError::Panicked(_) => Disposition::Retry,
        },
    }
}

/// Renews the lease until aborted, and passes a stop on to the job.
async fn beat(app: Arc<App>, leased: Leased, watch: Arc<Watch>, closing: CancellationToken) {
    loop {
        match app.catalog.heartbeat(&leased.lease, LEASE, &watch.progress()).await {
            Ok(Beat::Held) => {}
            Ok(Beat::Cancelled) => watch.stop(Stop::Cancelled),
            Ok(Beat::Lost) => watch.stop(Stop::Lost),
            Err(error) => tracing::warn!(%error, "a heartbeat could not be stored"),
        }
        tokio::select! {
            () = tokio::time::sleep(HEARTBEAT) => {}
            () = closing.cancelled() => return watch.stop(Stop::Closing),
        }
    }
}

async fn work(app: Arc<App>, leased: Leased, watch: Arc<Watch>) -> Result<(), JobError> {
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

async fn ingest(app: &App, leased: Leased, media: Media, watch: Arc<Watch>) -> Result<(), JobError> {
    let found = if leased.video.segmentation.policy == "given" { Target::Pooled } else { Target::Found };
    let given = leased.given.iter().map(|span| (Target::Given(span.id), range(span.start_ms, span.end_ms)));
    let plan = Plan {
        segment: Some((segmenter_settings(&leased.video.segmentation, app.config.max_clip_ms()), found)),
        known: given.collect(),
        spaces: app.spaces.all().to_vec(),
    };
    let probe = media.probe.clone();
    let embedded = embed::run(media, plan, watch).await?;
    let ingested = ingested(&leased, &probe, embedded)?;
    Ok(app.catalog.finish_ingest(&leased.lease, ingested).await?)
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
            Target::Given(id) => {
                let at = range(at.0, at.1.min(duration_ms));
                spans.push(span(Some(*id), Level::Clip, at, vectors)?);
            }
            Target::Pooled | Target::Known(_) => {}
        }
    }
    Ok(Ingested { facts: facts(probe, &embedded), warnings, spans })
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

/// Encodes what a video's spans lack, space by space, from one decode.
async fn fill(app: &App, leased: Leased, media: Media, watch: Arc<Watch>) -> Result<(), JobError> {
    let mut vectors = Vec::new();
    for space in app.spaces.all() {
        vectors.extend(fill_space(app, &leased.video, &media, space, &watch).await?);
    }
    Ok(app.catalog.finish_fill(&leased.lease, vectors).await?)
}

async fn fill_space(
    app: &App,
    video: &Video,
    media: &Media,
    space: &Arc<LoadedSpace>,
    watch: &Arc<Watch>,
) -> Result<Vec<NewVector>, JobError> {
    let lacking = app.catalog.spans_without_vector(video.id, space.key).await?;
    let duration_ms = video.facts.as_ref().map_or(media.probe.duration_ms, |facts| facts.duration_ms);
    let lacking: Vec<_> = lacking.into_iter().filter(|span| span.start_ms < duration_ms).collect();
    if lacking.is_empty() || !space.space.can.frames {
        return Ok(Vec::new());
    }
    let full_video = lacking.iter().find(|span| span.level == Level::Video).map(|span| span.key);
    let known = lacking.iter().filter(|span| span.level != Level::Video);
    let plan = Plan {
        segment: full_video
            .map(|_| (segmenter_settings(&video.segmentation, app.config.max_clip_ms()), Target::Pooled)),
        known: known.map(|span| (Target::Known(span.key), range(span.start_ms, span.end_ms))).collect(),
        spaces: vec![Arc::clone(space)],
    };
    let embedded = embed::run(media.clone(), plan, Arc::clone(watch)).await?;
    let of_clips = embedded.spans.iter().filter(|((target, _), _)| *target == Target::Pooled);
    let video_vectors = pooled(of_clips.flat_map(|(_, vectors)| vectors));
    let mut all: Vec<(u32, &RawVector)> = Vec::new();
    all.extend(full_video.iter().flat_map(|key| video_vectors.iter().map(|raw| (*key, raw))));
    for ((target, _), raws) in &embedded.spans {
        if let Target::Known(key) = target {
            all.extend(raws.iter().map(|raw| (*key, raw)));
        }
    }
    let new = |(span, raw): (u32, &RawVector)| {
        unit(raw).map(|(unit, norm)| NewVector { span, space: raw.space, unit, norm })
    };
    all.into_iter().map(new).collect()
}

/// The detector settings that a video's segmentation spells out; the HTTP layer has checked them.
fn segmenter_settings(segmentation: &Segmentation, max_clip_ms: i64) -> SegmenterSettings {
    let number = |name: &str| segmentation.params.get(name).and_then(serde_json::Value::as_f64);
    SegmenterSettings {
        content: ContentSettings {
            threshold: number("threshold").unwrap_or(27.0),
            min_scene_len: match number("min_scene_seconds") {
                Some(seconds) => MinSceneLen::Millis((seconds * 1000.0) as i64),
                None => MinSceneLen::Frames(number("min_scene_frames").unwrap_or(15.0) as u64),
            },
        },
        max_clip_ms: number("max_clip_seconds").map_or(max_clip_ms, |seconds| (seconds * 1000.0) as i64),
    }
}

fn range(start_ms: i64, end_ms: i64) -> ClipRange {
    ClipRange { start_ms, end_ms }
}
