//! Many clips and texts to vectors, by the decoder, samplers and encoders that ingest and search use.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, anyhow, ensure};
use reprise_encoders::text::Overflow;
use reprise_encoders::video::{self, Limits, sample::Sampler};
use reprise_encoders::{Clip, Frame, FrameSize, Input, Loaded};
use reprise_index::UnitVector;

use crate::config::MAX_WINDOWS;
use crate::search::text_vectors;

/// Clips that are held decoded at a time, and inputs that are encoded at a time.
pub(super) const CLIPS_AT_ONCE: usize = 32;
const INPUTS_AT_ONCE: usize = 16;
/// Longer than any video.
pub(super) const LONGEST_MS: i64 = 10_000_000_000;

/// What is decoded as one clip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The file.
    pub(super) file: PathBuf,
    /// Milliseconds since its first frame; an end beyond the last frame stands for it.
    pub(super) span_ms: Range<i64>,
    /// Decode from the beginning instead of seeking: for files whose seek yields wrong pictures.
    pub(super) in_order: bool,
}

impl Stretch {
    /// All of a file.
    pub(super) fn whole(file: &Path) -> Stretch {
        Stretch { file: file.to_owned(), span_ms: 0..LONGEST_MS, in_order: true }
    }
}

/// The raw vectors of all `clips` by each of `models`, in order: `[model][clip]`. Clips are decoded once for models
/// that want the same frames. `done` is told how many more clips one model has seen.
///
/// # Errors
/// A clip that can't be decoded, a model that fails.
pub(super) fn clips(
    models: &mut [Loaded],
    clips: &[PathBuf],
    done: &dyn Fn(u64),
) -> anyhow::Result<Vec<Vec<Vec<f32>>>> {
    let mut vectors: Vec<Vec<Vec<f32>>> = models.iter().map(|_| Vec::with_capacity(clips.len())).collect();
    for wanted in distinct(models.iter().map(|model| (model.space.sampler, model.space.frame_size))) {
        for files in clips.chunks(CLIPS_AT_ONCE) {
            let whole: Vec<Stretch> = files.iter().map(|file| Stretch::whole(file)).collect();
            let decoded: Vec<Input> = decoded(&whole, wanted.0, wanted.1)?;
            for (model, vectors) in models.iter_mut().zip(&mut vectors) {
                if (model.space.sampler, model.space.frame_size) == wanted {
                    vectors.extend(inputs(model, &decoded)?);
                    done(files.len() as u64);
                }
            }
        }
    }
    Ok(vectors)
}

/// A video's file: its name, or with the ending that TF-CoVR's tables leave out.
///
/// # Errors
/// There is none in the folder.
pub(super) fn file_of(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let candidates = [folder.join(name), folder.join(format!("{name}.mp4"))];
    let file = candidates.into_iter().find(|path| path.is_file());
    file.with_context(|| format!("{} has no video {name}", folder.display()))
}

/// Stretches as what goes into an encoder.
///
/// # Errors
/// As [`frames`].
pub(super) fn decoded(
    stretches: &[Stretch],
    sampler: Sampler,
    size: FrameSize,
) -> anyhow::Result<Vec<Input>> {
    let frames = frames(stretches, sampler, size)?;
    Ok(frames.into_iter().map(|frames| Input::Frames(Clip { frames })).collect())
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for item in items {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}

/// The raw vectors of any inputs, in order.
///
/// # Errors
/// A model that fails.
pub(super) fn inputs(model: &mut Loaded, inputs: &[Input]) -> anyhow::Result<Vec<Vec<f32>>> {
    let name = model.space.name.clone();
    let encoder = model.encoders.first_mut().context("the model has no encoder")?;
    let mut vectors = Vec::with_capacity(inputs.len());
    for batch in inputs.chunks(INPUTS_AT_ONCE) {
        vectors.extend(encoder.encode(batch).with_context(|| name.clone())?);
    }
    ensure!(vectors.len() == inputs.len(), "{name} gave fewer vectors than inputs");
    Ok(vectors)
}

/// The vector of a plain text of any length, as a search makes it.
///
/// # Errors
/// A text that the model can't read.
pub(super) fn text(model: &mut Loaded, text: &str) -> anyhow::Result<UnitVector> {
    let tokenizer = model.tokenizer.clone().context("the model takes no text")?;
    let windows = tokenizer.windows(text, Overflow::Window, MAX_WINDOWS)?.windows;
    let windows: Vec<Input> = windows.into_iter().map(|window| Input::Text(window.tokens)).collect();
    let (_, vector, _) = text_vectors(&inputs(model, &windows)?)?;
    Ok(vector)
}

/// The sampled frames of stretches, in order; decoded by as many threads as there are processors.
///
/// # Errors
/// A file that can't be decoded, a stretch outside its video.
pub(super) fn frames(
    stretches: &[Stretch],
    sampler: Sampler,
    size: FrameSize,
) -> anyhow::Result<Vec<Vec<Frame>>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(stretches.len())));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(stretch) = stretches.get(at) else { return };
            let frames = decode(stretch, sampler, size);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, frames));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(stretches.len());
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    ensure!(done.len() == stretches.len(), "a thread ended early");
    done.into_iter().map(|(_, frames)| frames).collect()
}

fn decode(stretch: &Stretch, sampler: Sampler, size: FrameSize) -> anyhow::Result<Vec<Frame>> {
    let Stretch { file, span_ms, in_order } = stretch;
    let named = |error: video::VideoError| anyhow!("{}: {error}", file.display());
    let limits = Limits::default();
    let probe = video::probe(file, &limits).map_err(named)?;
    video::frames_of_span(file, &probe, span_ms.clone(), &sampler, size, *in_order, &limits).map_err(named)
}
