//! Many clips and texts to raw vectors, with the decoder, samplers and encoders that a server uses.
//!
//! For work outside a server: commands, evaluation, research.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::rows::{Rows, RowsError};
use crate::sample::Sampler;
use crate::text::{MAX_WINDOWS, Overflow, TextError, Window};
use crate::video::{self, Limits, VideoError};
use crate::{Clip, Embedder, EncodeError, Frame, Input, Scaling};

/// Clips that are held decoded at a time.
pub const CLIPS_AT_ONCE: usize = 32;
/// Longer than any video.
pub const LONGEST_MS: i64 = 10_000_000_000;
/// Inputs of one batch, unless the device does best with another number.
const INPUTS_AT_ONCE: usize = 16;
/// Texts that are tokenized before their windows are encoded.
const TEXTS_AT_ONCE: usize = 32;

/// A part of a video file that is decoded as one clip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The file.
    pub file: PathBuf,
    /// Milliseconds since the first frame. An end beyond the last frame stands for that frame.
    pub span_ms: Range<i64>,
    /// Decode from the beginning instead of seeking. Needed for files in which a seek yields wrong pictures.
    pub in_order: bool,
}

impl Stretch {
    /// The whole file.
    pub fn whole(file: &Path) -> Stretch {
        Stretch { file: file.to_owned(), span_ms: 0..LONGEST_MS, in_order: true }
    }
}

/// Why a corpus was not encoded.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The folder lacks a video that a table names.
    #[error("{} has no video {name}", folder.display())]
    NoVideo {
        /// The folder.
        folder: PathBuf,
        /// The video's name in the table.
        name: String,
    },
    /// A video can't be decoded.
    #[error("{} can't be decoded", file.display())]
    Video {
        /// The video.
        file: PathBuf,
        /// The decoder's reason.
        source: VideoError,
    },
    /// The model refused an input or failed.
    #[error("{space} did not encode the inputs")]
    Encode {
        /// Readable name of the model's space.
        space: String,
        /// The encoder's reason.
        source: EncodeError,
    },
    /// The encoder gave another number of vectors than it got inputs; a fault of the program.
    #[error("{space} gave {vectors} vectors for {inputs} inputs")]
    Count {
        /// Readable name of the model's space.
        space: String,
        /// Inputs of all batches.
        inputs: usize,
        /// Vectors that came back.
        vectors: usize,
    },
    /// The model has no text tower.
    #[error("{space} takes no text; choose a model that does")]
    NoText {
        /// Readable name of the model's space.
        space: String,
    },
    /// The tokenizer refused a text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The vectors of a text have no direction.
    #[error("the vector of a text is zero or not finite; check the model's weights")]
    NoDirection,
    /// The vectors do not form a table.
    #[error(transparent)]
    Rows(#[from] RowsError),
}

/// The raw vectors of all `clips` by each of `models`: `[model][clip]`. `done` gets the number of clips that one model has
/// just encoded.
///
/// A clip is decoded once for all models that want the same frames.
///
/// # Errors
/// [`CorpusError::Video`], [`CorpusError::Encode`].
pub fn clips(
    models: &mut [Embedder],
    clips: &[PathBuf],
    done: &dyn Fn(u64),
) -> Result<Vec<Vec<Vec<f32>>>, CorpusError> {
    let mut vectors: Vec<Vec<Vec<f32>>> = models.iter().map(|_| Vec::with_capacity(clips.len())).collect();
    for wanted in distinct(models.iter().map(|model| (model.space.sampler, model.space.scaling))) {
        for files in clips.chunks(CLIPS_AT_ONCE) {
            let whole: Vec<Stretch> = files.iter().map(|file| Stretch::whole(file)).collect();
            let decoded = decoded(&whole, wanted.0, wanted.1)?;
            for (model, vectors) in models.iter_mut().zip(&mut vectors) {
                if (model.space.sampler, model.space.scaling) == wanted {
                    vectors.extend(inputs(model, &decoded)?);
                    done(files.len() as u64);
                }
            }
        }
    }
    Ok(vectors)
}

/// The file of a video that a table names with or without the ending `.mp4`.
///
/// # Errors
/// [`CorpusError::NoVideo`].
pub fn file_of(folder: &Path, name: &str) -> Result<PathBuf, CorpusError> {
    let candidates = [folder.join(name), folder.join(format!("{name}.mp4"))];
    let missing = || CorpusError::NoVideo { folder: folder.to_owned(), name: name.to_owned() };
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(missing)
}

/// Stretches as inputs of an encoder.
///
/// # Errors
/// As [`frames`].
pub fn decoded(stretches: &[Stretch], sampler: Sampler, scaling: Scaling) -> Result<Vec<Input>, CorpusError> {
    let frames = frames(stretches, sampler, scaling)?;
    Ok(frames.into_iter().map(|frames| Input::Frames(Clip { frames })).collect())
}

/// The raw vectors of any inputs, in order, by the model's first encoder.
///
/// # Errors
/// [`CorpusError::Encode`], [`CorpusError::Count`].
pub fn inputs(model: &mut Embedder, inputs: &[Input]) -> Result<Vec<Vec<f32>>, CorpusError> {
    let space = &model.space.name;
    let at_once = model.limits.map_or(INPUTS_AT_ONCE, |limits| limits.inputs.max(1));
    let mut vectors = Vec::with_capacity(inputs.len());
    // A model without an encoder gives no vectors, so the count below is wrong.
    for encoder in model.encoders.iter_mut().take(1) {
        for batch in inputs.chunks(at_once) {
            let encoded = encoder.encode(batch);
            vectors.extend(encoded.map_err(|source| CorpusError::Encode { space: space.clone(), source })?);
        }
    }
    match vectors.len() == inputs.len() {
        true => Ok(vectors),
        false => {
            let (inputs, vectors) = (inputs.len(), vectors.len());
            Err(CorpusError::Count { space: space.clone(), inputs, vectors })
        }
    }
}

/// The raw vector of a plain text; of a text over the model's limit the mean direction of its windows.
///
/// `POST /v1/embeddings` answers the direction of this vector. A search compares every window instead.
///
/// # Errors
/// [`CorpusError::NoText`], [`CorpusError::Text`], [`CorpusError::Encode`].
pub fn text(model: &mut Embedder, text: &str) -> Result<Vec<f32>, CorpusError> {
    let tokenizer = model.tokenizer.clone().ok_or_else(|| no_text(model))?;
    let windows = tokenizer.windows(text, Overflow::Window, MAX_WINDOWS)?.windows;
    mean_direction(&inputs(model, &texts_of(windows))?).ok_or(CorpusError::NoDirection)
}

/// One raw vector for the windows of one text: that of a single window as it is, else the mean of the windows' unit
/// vectors. `None` if a vector is zero or not finite.
pub fn mean_direction(raw: &[Vec<f32>]) -> Option<Vec<f32>> {
    let units = raw.iter().map(|raw| unit(raw)).collect::<Option<Vec<_>>>()?;
    if let [only] = raw {
        return Some(only.clone());
    }
    let mut sum = vec![0.0; units.first()?.len()];
    for unit in &units {
        sum.iter_mut().zip(unit).for_each(|(sum, value)| *sum += value);
    }
    let count = units.len() as f32;
    sum.iter_mut().for_each(|value| *value /= count);
    Some(sum)
}

/// The sampled frames of stretches, in order; decoded by as many threads as there are processors.
///
/// # Errors
/// [`CorpusError::Video`], also for a stretch outside its video.
pub fn frames(
    stretches: &[Stretch],
    sampler: Sampler,
    scaling: Scaling,
) -> Result<Vec<Vec<Frame>>, CorpusError> {
    picked_frames(stretches, scaling, &|_, times_ms, start_ms| sampler.pick(times_ms, start_ms))
}

/// A sampling rule: takes a stretch's position in the list, the times of its frames and its start, both in milliseconds.
/// It gives the positions of the frames to keep.
pub type Pick<'a> = &'a (dyn Fn(usize, &[i64], i64) -> Vec<usize> + Sync);

/// As [`frames`], by any rule.
///
/// # Errors
/// As [`frames`].
pub fn picked_frames(
    stretches: &[Stretch],
    scaling: Scaling,
    pick: Pick<'_>,
) -> Result<Vec<Vec<Frame>>, CorpusError> {
    side_by_side(stretches, &|number, Stretch { file, span_ms, in_order }| {
        let named = |source: VideoError| CorpusError::Video { file: file.clone(), source };
        let limits = Limits::default();
        let probe = video::probe(file, &limits).map_err(named)?;
        let pick = |times_ms: &[i64], start_ms: i64| pick(number, times_ms, start_ms);
        video::picked_frames_of_span(file, &probe, span_ms.clone(), &pick, scaling, *in_order, &limits)
            .map_err(named)
    })
}

/// Applies `work` to each item and its position, on as many threads as there are processors. Results in order.
///
/// # Errors
/// The first failed item's.
pub fn side_by_side<I: Sync, T: Send, E: Send>(
    items: &[I],
    work: &(dyn Fn(usize, &I) -> Result<T, E> + Sync),
) -> Result<Vec<T>, E> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let take = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let made = work(at, item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, made));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    // A thread that panics has the scope panic: after it, every item is done.
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(take))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Unit vectors of texts that may be longer than a model's limit.
pub struct LongTexts {
    /// All windows, text after text, a row each.
    pub windows: Rows,
    /// Windows per text, at least one.
    pub counts: Vec<usize>,
    /// The mean direction of a text's windows, a row a text.
    pub means: Rows,
    /// Each text cut at the model's limit, as the papers do it, a row a text.
    pub truncated: Rows,
}

/// The vectors of texts of any length. `done` gets the number of texts that were just encoded.
///
/// # Errors
/// [`CorpusError::NoText`], [`CorpusError::Text`], [`CorpusError::Encode`].
pub fn long_texts(
    model: &mut Embedder,
    texts: &[String],
    done: &dyn Fn(u64),
) -> Result<LongTexts, CorpusError> {
    let tokenizer = model.tokenizer.clone().ok_or_else(|| no_text(model))?;
    let (mut windows, mut counts, mut means, mut truncated) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for chunk in texts.chunks(TEXTS_AT_ONCE) {
        let cut = |overflow: Overflow| -> Result<Vec<Vec<Input>>, CorpusError> {
            let of = |text: &String| Ok(texts_of(tokenizer.windows(text, overflow, usize::MAX)?.windows));
            chunk.iter().map(of).collect()
        };
        for of_text in cut(Overflow::Window)? {
            let raw = inputs(model, &of_text)?;
            counts.push(raw.len());
            means.extend(mean_direction(&raw).ok_or(CorpusError::NoDirection)?);
            windows.extend(raw.concat());
        }
        truncated.extend(inputs(model, &cut(Overflow::Truncate)?.concat())?.concat());
        done(chunk.len() as u64);
    }
    let dim = model.space.dim;
    let units = |values: Vec<f32>| Rows::new(values, dim)?.into_units();
    Ok(LongTexts { windows: units(windows)?, counts, means: units(means)?, truncated: units(truncated)? })
}

fn texts_of(windows: Vec<Window>) -> Vec<Input> {
    windows.into_iter().map(|window| Input::Text(window.tokens)).collect()
}

fn no_text(model: &Embedder) -> CorpusError {
    CorpusError::NoText { space: model.space.name.clone() }
}

/// The direction of `raw`; `None` if it has none.
fn unit(raw: &[f32]) -> Option<Vec<f32>> {
    let norm = raw.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let has_direction = norm.is_finite() && norm > 0.0;
    has_direction.then(|| raw.iter().map(|value| (f64::from(*value) / norm) as f32).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_text_is_all_that_fits_and_not_its_first_sentence() {
        let mut model = crate::load(&"builtin:tiny".parse().unwrap(), 1).unwrap();
        let long =
            |second: &str, last: &str| format!("a dog runs. {second}. {}{last}.", "it runs on. ".repeat(60));
        let texts = [long("a cat sits", "far"), long("a cat sits", "near"), long("a red house", "far")];
        let vectors = long_texts(&mut model, &texts, &|_| ()).unwrap();
        let row = |rows: &Rows, at: usize| rows.iter().nth(at).unwrap().to_vec();
        let truncated = [0, 1, 2].map(|at| row(&vectors.truncated, at));
        assert_eq!(truncated[0], truncated[1], "what does not fit does not count");
        assert_ne!(truncated[0], truncated[2], "what fits does");
        assert_ne!(row(&vectors.means, 0), row(&vectors.means, 1), "every window counts");
        assert!(vectors.counts.iter().all(|windows| *windows > 50), "{:?}", vectors.counts);
        assert_eq!(vectors.windows.len(), vectors.counts.iter().sum::<usize>());
    }

    #[track_caller]
    fn check(raw: &[&[f32]], expected: Option<&[f32]>) {
        let raw: Vec<Vec<f32>> = raw.iter().map(|it| it.to_vec()).collect();
        assert_eq!(mean_direction(&raw).as_deref(), expected);
    }

    #[test]
    fn a_mean_direction_weighs_windows_alike() {
        check(&[&[3.0, 4.0]], Some(&[3.0, 4.0]));
        check(&[&[5.0, 0.0], &[0.0, 1.0]], Some(&[0.5, 0.5]));
        check(&[&[5.0, 0.0], &[0.0, 0.0]], None);
        check(&[&[f32::NAN, 0.0]], None);
        check(&[], None);
    }
}
