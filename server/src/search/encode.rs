//! Encodes one query: a text, a time range of a stored video, an upload, a still image, or a clip with a modification text.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use reprise_encoders::corpus;
use reprise_encoders::text::{Overflow, TextError, Windows};
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::{self, Probe, VideoError};
use reprise_encoders::{Clip, EncodeError, Frame, Input, Permit, Source};
use uuid::Uuid;

use super::error::SearchError;
use super::ranges;
use super::timings::millis;
use super::types::{
    EmbeddedWindow, Embedding, Fusion, FusionMode, Image, Origin, Query, QueryInfo, Request, Weights,
};
use crate::app::Authorized;
use crate::catalog::Video;
use crate::models::LoadedSpace;
use crate::query_frames::FramesOf;
use crate::storage::StoredFile;
use crate::terms::{Aggregation, QueryVectors, SearchKind, UnitVector};

/// Longer than any video, in milliseconds. The default end of an upload.
const LONGEST_MS: i64 = 10_000_000_000;

/// An encoded query.
pub struct Encoded {
    /// Unit vector.
    pub vector: UnitVector,
    /// Norm of the raw vector.
    pub norm: f32,
    /// First token, token after the last and unit vector of each text window, in order. Empty for a clip.
    pub windows: Vec<(usize, usize, UnitVector)>,
    /// The stored time ranges that the query shows: one for a clip, one for each example that has one, none for a text or
    /// an unknown upload.
    pub origins: Vec<Origin>,
    /// Token, window and frame counts of the query.
    pub info: QueryInfo,
    /// Milliseconds spent on decoding frames.
    pub decode_ms: f64,
    /// Milliseconds spent in the encoder pool.
    pub encode_ms: f64,
}

/// Input that the encoder needs for the video side of a query.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// Its vector. A stored vector needs no decoding.
    Vector,
    /// Frames from this sampler, which the encoder combines with a text.
    Frames(Sampler),
}

/// The decoded frames or the stored vector of a query clip.
pub(super) struct Footage {
    pub(super) source: Source,
    pub(super) frames: usize,
    pub(super) origin: Option<Origin>,
    pub(super) decode_ms: f64,
    /// Milliseconds that its vector has taken so far.
    pub(super) encode_ms: f64,
}

/// Encodes one query in one space.
pub struct QueryEncoder<'a> {
    pub(super) app: &'a Authorized,
    pub(super) space: &'a LoadedSpace,
    pub(super) permit: Permit,
}

impl<'a> QueryEncoder<'a> {
    /// An encoder that uses the space's pool with this permit.
    pub fn new(app: &'a Authorized, space: &'a LoadedSpace, permit: Permit) -> QueryEncoder<'a> {
        QueryEncoder { app, space, permit }
    }

    /// Encodes a search request.
    pub(super) async fn request(self, request: &Request) -> Result<Encoded, SearchError> {
        match (&request.query, &request.modification) {
            (Query::Examples(examples), _) => self.examples(examples, request.overflow).await,
            (clip, Some(modification)) => self.composed(clip, modification, request.fusion, "/query").await,
            (query, None) => self.embed(query, request.overflow, "/query").await,
        }
    }

    /// Encodes a text, a stored clip or range, or an upload. `at` is its JSON pointer in the request.
    ///
    /// # Errors
    /// A text over the limits, a missing video, a range without frames, or a file that can't be decoded.
    pub async fn embed(self, query: &Query, overflow: Overflow, at: &str) -> Result<Encoded, SearchError> {
        match query {
            Query::Text(text) => self.embed_text(text, overflow, at).await,
            clip => self.embed_clip(clip, at).await,
        }
    }

    async fn embed_text(self, text: &str, overflow: Overflow, at: &str) -> Result<Encoded, SearchError> {
        let at = format!("{at}/text");
        let windows = tokenizer(self.space, &at)?
            .windows(text, overflow, self.app.config.max_windows)
            .map_err(|error| too_long(&at, &error))?;
        let inputs = windows.windows.iter().map(|window| Input::Text(window.tokens.clone())).collect();
        let started = Instant::now();
        let (units, vector, norm) = text_vectors(&self.space.pool.encode(self.permit, inputs).await?)?;
        let placed = windows.windows.iter().zip(units);
        Ok(Encoded {
            vector,
            norm,
            windows: placed.map(|(window, unit)| (window.start_token, window.end_token, unit)).collect(),
            origins: Vec::new(),
            info: QueryInfo::of_text(SearchKind::Text, &windows),
            decode_ms: 0.0,
            encode_ms: millis(started),
        })
    }

    /// A span with a stored vector needs neither decoder nor encoder.
    async fn embed_clip(self, clip: &Query, at: &str) -> Result<Encoded, SearchError> {
        let footage = self.footage(clip, Wanted::Vector, at).await?;
        let started = Instant::now();
        let raw = match footage.source {
            Source::Raw(raw) => raw,
            Source::Frames(clip) => {
                one(self.space.pool.encode(self.permit, vec![Input::Frames(clip)]).await?)?
            }
        };
        let (vector, norm) = unit(&raw)?;
        Ok(Encoded {
            vector,
            norm,
            windows: Vec::new(),
            origins: footage.origin.into_iter().collect(),
            info: QueryInfo::of_clip(footage.frames),
            decode_ms: footage.decode_ms,
            encode_ms: footage.encode_ms + millis(started),
        })
    }

    /// Encodes a stored clip or range, an image or an upload together with a text that changes it. `at` is the clip's JSON
    /// pointer in the request.
    ///
    /// # Errors
    /// As [`QueryEncoder::embed`]; a space that takes no text.
    pub async fn composed(
        self,
        clip: &Query,
        modification: &str,
        fusion: Fusion,
        at: &str,
    ) -> Result<Encoded, SearchError> {
        let place = format!("{at}/modification");
        let read = tokenizer(self.space, &place)?
            .modification(modification)
            .map_err(|error| too_long(&place, &error))?;
        let head = fusion.mode.unwrap_or(if self.space.space.can.composed {
            FusionMode::Combiner
        } else {
            FusionMode::Average
        });
        let wanted = match (head, self.space.space.composed_frames) {
            (FusionMode::Combiner, Some(sampler)) => Wanted::Frames(sampler),
            _ => Wanted::Vector,
        };
        let footage = self.footage(clip, wanted, at).await?;
        let started = Instant::now();
        let raw = match head {
            FusionMode::Combiner => self.combine(footage.source, &read).await?,
            FusionMode::Average => self.average(footage.source, &read, fusion.alpha).await?,
        };
        let (vector, norm) = unit(&raw)?;
        let text = QueryInfo::of_text(SearchKind::Composed, &read);
        Ok(Encoded {
            vector,
            norm,
            windows: Vec::new(),
            origins: footage.origin.into_iter().collect(),
            info: QueryInfo { frames: footage.frames, fusion: Some(head), ..text },
            decode_ms: footage.decode_ms,
            encode_ms: footage.encode_ms + millis(started),
        })
    }

    async fn combine(self, query: Source, modification: &Windows) -> Result<Vec<f32>, SearchError> {
        let modification = modification.windows[0].tokens.clone();
        one(self.space.pool.encode(self.permit, vec![Input::Composed { query, modification }]).await?)
    }

    async fn average(
        self,
        query: Source,
        modification: &Windows,
        alpha: f32,
    ) -> Result<Vec<f32>, SearchError> {
        let mut inputs = vec![Input::Text(modification.windows[0].tokens.clone())];
        let stored = match query {
            Source::Raw(raw) => Some(raw),
            Source::Frames(clip) => {
                inputs.push(Input::Frames(clip));
                None
            }
        };
        let mut raw = self.space.pool.encode(self.permit, inputs).await?;
        let video = match stored {
            Some(raw) => raw,
            None => raw.pop().ok_or_else(|| SearchError::Internal("the encoder gave no vector"))?,
        };
        let (text, _) = unit(&one(raw)?)?;
        let (video, _) = unit(&video)?;
        let mixed = video.values().iter().zip(text.values());
        Ok(mixed.map(|(video, text)| alpha * video + (1.0 - alpha) * text).collect())
    }

    /// Decodes the frames of a query clip, or finds the stored vector that replaces them.
    pub(super) async fn footage(
        &self,
        clip: &Query,
        wanted: Wanted,
        at: &str,
    ) -> Result<Footage, SearchError> {
        let found = match clip {
            Query::Text(_) | Query::Examples(_) => Err(SearchError::Internal("this query has no pictures")),
            Query::Clip(id) => self.span(*id, wanted).await,
            Query::Range { video, start_ms, end_ms } => {
                let origin = Origin { video: *video, start_ms: *start_ms, end_ms: *end_ms };
                self.stored(origin, wanted).await
            }
            Query::Image(Image::Stored { video, at_ms }) => {
                // The frame on screen at that time, also if it began before.
                let origin = Origin { video: *video, start_ms: *at_ms, end_ms: at_ms.saturating_add(1) };
                self.stored(origin, wanted).await
            }
            Query::Image(Image::Upload { path, .. }) => self.still(path.clone(), wanted).await,
            Query::Upload { path, content_hash, start_ms, end_ms } => {
                let range = start_ms.unwrap_or(0)..end_ms.unwrap_or(LONGEST_MS);
                self.uploaded(path.clone(), content_hash, range, wanted).await
            }
        };
        found.map_err(|error| located(error, clip, at))
    }

    /// A stored span.
    async fn span(&self, id: Uuid, wanted: Wanted) -> Result<Footage, SearchError> {
        let span = self.app.view().span(id).await?.ok_or_else(|| SearchError::missing("clip", id))?;
        let origin = Origin { video: span.video, start_ms: span.start_ms, end_ms: span.end_ms };
        self.stored(origin, wanted).await
    }

    /// A stored range: as a vector if the encoder takes one, as decoded frames otherwise.
    async fn stored(&self, origin: Origin, wanted: Wanted) -> Result<Footage, SearchError> {
        let video = self.app.view().video(origin.video).await?;
        let video = video.ok_or_else(|| SearchError::missing("video", origin.video))?;
        match wanted {
            Wanted::Vector => self.vector_of(&video, origin).await,
            Wanted::Frames(_) => self.frames_of(&video, origin, wanted).await,
        }
    }

    /// The raw vector of a stored range: that of a span, one that an earlier query asked for, from the kept features of its
    /// frames, or else from decoded frames.
    async fn vector_of(&self, video: &Video, origin: Origin) -> Result<Footage, SearchError> {
        let of = |raw: Vec<f32>| Footage {
            source: Source::Raw(raw),
            frames: 0,
            origin: Some(origin),
            decode_ms: 0.0,
            encode_ms: 0.0,
        };
        let (view, space) = (self.app.view(), self.space);
        if let Some(span) = view.span_at(video.id, origin.start_ms, origin.end_ms, space.key).await?
            && let Some(raw) = view.raw_vector(span.key, space.key).await?
        {
            return Ok(of(raw));
        }
        if let Some(raw) = ranges::cached(self.app, space, origin).await {
            return Ok(of(raw));
        }
        let kept = ranges::features(self.app, space, video, origin.start_ms..origin.end_ms).await?;
        let (input, frames, decode_ms) = match kept {
            Some(features) => {
                let features = repeated(features, &space.space.sampler);
                let frames = features.len();
                (Input::Features(features), frames, 0.0)
            }
            None => {
                let Footage { source, frames, decode_ms, .. } =
                    self.frames_of(video, origin, Wanted::Vector).await?;
                let Source::Frames(clip) = source else {
                    return Err(SearchError::Internal("a decoded range has no frames"));
                };
                (Input::Frames(clip), frames, decode_ms)
            }
        };
        let started = Instant::now();
        let raw = one(self.space.pool.encode(self.permit.clone(), vec![input]).await?)?;
        let encode_ms = millis(started);
        ranges::keep(self.app, space, origin, &raw).await;
        Ok(Footage { frames, decode_ms, encode_ms, ..of(raw) })
    }

    async fn frames_of(&self, video: &Video, origin: Origin, wanted: Wanted) -> Result<Footage, SearchError> {
        let kept = FramesOf {
            content_hash: video.content_hash.clone(),
            range: origin.start_ms..origin.end_ms,
            sampler: self.sampler(wanted),
            scaling: self.space.space.scaling,
        };
        let (frames, decode_ms) = match self.app.query_frames.get(&kept) {
            Some(frames) => (frames, 0.0),
            None => self.frames_of_file(video, origin, wanted).await?,
        };
        self.app.query_frames.keep(kept, &frames);
        Ok(Footage {
            frames: frames.len(),
            source: Source::Frames(Clip { frames }),
            origin: Some(origin),
            decode_ms,
            encode_ms: 0.0,
        })
    }

    /// Decodes a range of a stored video. Returns the milliseconds that it took, too.
    async fn frames_of_file(
        &self,
        video: &Video,
        origin: Origin,
        wanted: Wanted,
    ) -> Result<(Vec<Frame>, f64), SearchError> {
        let gone = |_| SearchError::missing("file of video", video.id);
        let file = self.app.storage.local(&StoredFile::of(&video.file)).await.map_err(gone)?;
        let range = origin.start_ms..origin.end_ms;
        let in_order = video.facts.as_ref().is_some_and(|facts| !facts.seek_is_safe);
        let footage =
            FootageFile { path: file.path().to_owned(), probe: known_probe(video), range, in_order };
        self.decode(footage, wanted).await
    }

    async fn uploaded(
        &self,
        path: PathBuf,
        content_hash: &str,
        range: Range<i64>,
        wanted: Wanted,
    ) -> Result<Footage, SearchError> {
        let twin = self.app.view().video_by_hash(content_hash).await?;
        // An unknown file's index is not trusted: only decoding from the start is sure to give the right frames.
        let footage = FootageFile { path, probe: None, range: range.clone(), in_order: true };
        let (frames, decode_ms) = self.decode(footage, wanted).await?;
        let count = frames.len();
        let end_of = |video: &Video| video.facts.as_ref().map_or(LONGEST_MS, |facts| facts.duration_ms);
        let origin = twin.map(|video| Origin {
            video: video.id,
            start_ms: range.start,
            end_ms: range.end.min(end_of(&video)),
        });
        let source = Source::Frames(Clip { frames });
        Ok(Footage { frames: count, source, origin, decode_ms, encode_ms: 0.0 })
    }

    /// An uploaded image as a clip of one frame, as often as the sampler takes it.
    async fn still(&self, path: PathBuf, wanted: Wanted) -> Result<Footage, SearchError> {
        let (scaling, limits) = (self.space.space.scaling, self.app.config.query_decode_limits());
        let decode = move || video::decode_still(&path, scaling, &limits);
        let (frame, decode_ms) = self.in_turn(decode).await?;
        let frames = repeated(vec![frame], &self.sampler(wanted));
        let (count, source) = (frames.len(), Source::Frames(Clip { frames }));
        Ok(Footage { frames: count, source, origin: None, decode_ms, encode_ms: 0.0 })
    }

    fn sampler(&self, wanted: Wanted) -> Sampler {
        match wanted {
            Wanted::Vector => self.space.space.sampler,
            Wanted::Frames(sampler) => sampler,
        }
    }

    /// Decodes when a place is free. Returns the milliseconds that it took, too.
    async fn in_turn<T: Send + 'static>(
        &self,
        decode: impl FnOnce() -> Result<T, VideoError> + Send + 'static,
    ) -> Result<(T, f64), SearchError> {
        let closed = |_| SearchError::Encode(EncodeError::Closed);
        let place = std::sync::Arc::clone(&self.app.query_decodes).acquire_owned().await.map_err(closed)?;
        let started = Instant::now();
        let work = move || {
            // Held by the task, not the request. Otherwise a client that hangs up would make room for another decode.
            let _place = place;
            decode()
        };
        let span = tracing::debug_span!("decode");
        let decoded = tokio::task::spawn_blocking(move || span.in_scope(work)).await??;
        Ok((decoded, millis(started)))
    }

    async fn decode(&self, footage: FootageFile, wanted: Wanted) -> Result<(Vec<Frame>, f64), SearchError> {
        let (scaling, limits) = (self.space.space.scaling, self.app.config.query_decode_limits());
        let sampler = self.sampler(wanted);
        let FootageFile { path, probe, range, in_order } = footage;
        let decode = move || {
            let probe = match probe {
                Some(probe) => probe,
                None => video::probe(&path, &limits)?,
            };
            let file = video::VideoFile { path: &path, probe: &probe, in_order, limits: &limits };
            video::frames_of_span(file, range, &sampler, scaling)
        };
        let (frames, decode_ms) = self.in_turn(decode).await?;
        Ok((repeated(frames, &sampler), decode_ms))
    }
}

/// Turns raw vectors `[windows, dim]` of one text into unit vectors, their mean direction, and the mean's norm.
///
/// # Errors
/// [`EncodeError::Failed`] if a vector is zero or not finite.
pub fn text_vectors(raw: &[Vec<f32>]) -> Result<(Vec<UnitVector>, UnitVector, f32), SearchError> {
    let units = raw.iter().map(|raw| unit(raw)).collect::<Result<Vec<_>, _>>()?;
    let (vector, norm) = match &units[..] {
        [only] => only.clone(),
        _ => unit(&corpus::mean_direction(raw).unwrap_or_default())?,
    };
    Ok((units.into_iter().map(|(unit, _)| unit).collect(), vector, norm))
}

impl Encoded {
    /// Vectors for the search: one per window of a long text.
    pub(super) fn into_vectors(self, aggregation: Aggregation) -> Result<QueryVectors, SearchError> {
        let units: Vec<UnitVector> = match self.windows.len() {
            0 | 1 => vec![self.vector],
            _ => self.windows.into_iter().map(|(_, _, window)| window).collect(),
        };
        QueryVectors::new(units, aggregation).ok_or(SearchError::Internal("the query has no vector"))
    }

    /// The vectors as an answer.
    pub fn into_embedding(self, space: &LoadedSpace) -> Embedding {
        let vector = self.vector.values().to_vec();
        let window = |(start_token, end_token, unit): (usize, usize, UnitVector)| EmbeddedWindow {
            start_token,
            end_token,
            values: unit.values().to_vec(),
        };
        let mut vectors: Vec<EmbeddedWindow> = self.windows.into_iter().map(window).collect();
        if vectors.is_empty() {
            vectors.push(EmbeddedWindow { start_token: 0, end_token: 0, values: vector.clone() });
        }
        let (space, norm, query_info) = (space.space.name.clone(), self.norm, self.info);
        Embedding { space, vectors, vector, norm, query_info }
    }
}

/// The error of a query clip, with a pointer to what it is about. `at` is the clip's JSON pointer in the request.
fn located(error: SearchError, clip: &Query, at: &str) -> SearchError {
    match error {
        SearchError::Video { error: outside @ VideoError::EmptySpan { .. }, .. } => {
            SearchError::invalid(&format!("{at}{}", time_range(clip)), outside.to_string())
        }
        SearchError::Video { error, .. } => SearchError::Video { pointer: named(clip, at), error },
        SearchError::NotFound { what, id, .. } => {
            SearchError::NotFound { pointer: named(clip, at), what, id }
        }
        other => other,
    }
}

/// The JSON pointer to what names a query clip's video, or the part of the request that is its file.
fn named(clip: &Query, at: &str) -> String {
    let member = match clip {
        Query::Image(Image::Upload { .. }) | Query::Upload { .. } => return "file".to_owned(),
        Query::Image(Image::Stored { .. }) => "/image/video_id",
        Query::Range { .. } => "/clip/video_id",
        Query::Clip(_) => "/clip_id",
        Query::Text(_) | Query::Examples(_) => "",
    };
    format!("{at}{member}")
}

/// The member that gives a query clip its time range, as a JSON pointer.
fn time_range(clip: &Query) -> &'static str {
    match clip {
        Query::Text(_) => "/text",
        Query::Examples(_) => "",
        Query::Range { .. } => "/clip",
        Query::Clip(_) => "/clip_id",
        Query::Upload { .. } => "/start",
        Query::Image(_) => "/image/at",
    }
}

/// A single frame as often as the sampler takes one: the frame on the screen of a range in which none begins makes the same
/// vector as that of the range in which it begins.
fn repeated<T: Clone>(frames: Vec<T>, sampler: &Sampler) -> Vec<T> {
    if let [only] = &frames[..] {
        return vec![only.clone(); sampler.pick(&[0], 0).len().max(1)];
    }
    frames
}

fn known_probe(video: &Video) -> Option<Probe> {
    let facts = video.facts.as_ref()?;
    serde_json::from_value(facts.probe.clone()).ok()
}

/// A time range of a file, in milliseconds.
struct FootageFile {
    path: PathBuf,
    /// Facts from an earlier probe.
    probe: Option<Probe>,
    range: Range<i64>,
    /// Decode from the start instead of seeking.
    in_order: bool,
}

/// The tokenizer of a space, for the text at this JSON pointer in the request.
pub(super) fn tokenizer<'a>(
    space: &'a LoadedSpace,
    at: &str,
) -> Result<&'a reprise_encoders::text::Tokenizer, SearchError> {
    let none = || SearchError::cannot(at, format!("space {} takes no text", space.space.name));
    space.tokenizer.as_deref().ok_or_else(none)
}

pub(super) fn too_long(pointer: &str, error: &TextError) -> SearchError {
    SearchError::invalid(pointer, error.to_string())
}

pub(super) fn unit(raw: &[f32]) -> Result<(UnitVector, f32), SearchError> {
    let failed = || EncodeError::Failed("the query's vector is zero or not finite".into());
    Ok(UnitVector::from_raw(raw).ok_or_else(failed)?)
}

fn one(raw: Vec<Vec<f32>>) -> Result<Vec<f32>, SearchError> {
    let none = || SearchError::Internal("the encoder gave no vector");
    raw.into_iter().next().ok_or_else(none)
}

impl QueryInfo {
    /// Facts about a text query or a modification text.
    pub fn of_text(kind: SearchKind, windows: &Windows) -> QueryInfo {
        QueryInfo {
            kind,
            tokens_total: windows.tokens_total,
            tokens_used: windows.tokens_used,
            windows: windows.windows.len(),
            truncated: windows.truncated,
            frames: 0,
            fusion: None,
            weights: Weights { visual: Some(1.0), ..Weights::default() },
        }
    }

    /// Facts about a clip query. `frames` is 0 if a stored vector was used.
    pub fn of_clip(frames: usize) -> QueryInfo {
        QueryInfo {
            kind: SearchKind::Clip,
            tokens_total: 0,
            tokens_used: 0,
            windows: 0,
            truncated: false,
            frames,
            fusion: None,
            weights: Weights { visual: Some(1.0), ..Weights::default() },
        }
    }
}
