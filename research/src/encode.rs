//! Encodes many clips and texts with the server's decoder, samplers and encoders.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Context;
pub use reprise_encoders::corpus::inputs;
use reprise_encoders::corpus::{self, mean_direction};
use reprise_encoders::sample::Sampler;
use reprise_encoders::text::{Overflow, Window};
use reprise_encoders::video::{self, Limits};
use reprise_encoders::{Clip, Embedder, Frame, Input, Scaling};
use reprise_index::UnitVector;

use crate::rows::{Rows, RowsError};

/// Decoded clips in memory at a time.
pub const CLIPS_AT_ONCE: usize = 32;
/// Longer than any video.
pub const LONGEST_MS: i64 = 10_000_000_000;
/// Texts tokenized per block, before their windows are encoded.
const TEXTS_AT_ONCE: usize = 32;

/// A part of a video file that is decoded as one clip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The file.
    pub file: PathBuf,
    /// Milliseconds from the first frame. An end beyond the last frame means the last frame.
    pub span_ms: Range<i64>,
    /// Whether to decode from the beginning instead of seeking. Some files give wrong pictures after a seek.
    pub in_order: bool,
}

impl Stretch {
    /// The whole file.
    pub fn whole(file: &Path) -> Stretch {
        Stretch { file: file.to_owned(), span_ms: 0..LONGEST_MS, in_order: true }
    }
}

/// The unit vector of a plain text, equal to the answer of `POST /v1/embeddings`.
///
/// # Errors
/// A text that the tokenizer cannot encode, or a model that fails.
pub fn text(model: &mut Embedder, text: &str) -> anyhow::Result<UnitVector> {
    let raw = corpus::text(model, text)?;
    let (unit, _) = UnitVector::from_raw(&raw).context("the text's vector is zero or not finite")?;
    Ok(unit)
}

/// Raw vectors of all `clips` from each of `models`: `[model][clip]`. Calls `done` with the number of clips that one
/// model has just encoded.
///
/// Decodes a clip once for all models that sample the same frames.
///
/// # Errors
/// A clip can't be decoded, or a model fails.
pub fn clips(
    models: &mut [Embedder],
    clips: &[PathBuf],
    done: &dyn Fn(u64),
) -> anyhow::Result<Vec<Vec<Vec<f32>>>> {
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

/// Finds the file of a video, with or without the ending `.mp4` in `name`.
///
/// # Errors
/// No such file exists.
pub fn file_of(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let candidates = [folder.join(name), folder.join(format!("{name}.mp4"))];
    let found = candidates.into_iter().find(|path| path.is_file());
    found.with_context(|| format!("{} has no video {name}", folder.display()))
}

/// Decodes stretches into inputs of an encoder.
///
/// # Errors
/// See [`frames`].
pub fn decoded(stretches: &[Stretch], sampler: Sampler, scaling: Scaling) -> anyhow::Result<Vec<Input>> {
    let frames = frames(stretches, sampler, scaling)?;
    Ok(frames.into_iter().map(|frames| Input::Frames(Clip { frames })).collect())
}

/// The sampled frames of each stretch, in order. Decodes on all processors.
///
/// # Errors
/// A video can't be decoded, or a stretch lies outside its video.
pub fn frames(stretches: &[Stretch], sampler: Sampler, scaling: Scaling) -> anyhow::Result<Vec<Vec<Frame>>> {
    picked_frames(stretches, scaling, &|_, times_ms, start_ms| sampler.pick(times_ms, start_ms))
}

/// A sampling rule. Arguments: the stretch's index in the list, the times of its frames and its start, both in
/// milliseconds. Returns the indices of the frames to keep.
pub type Pick<'a> = &'a (dyn Fn(usize, &[i64], i64) -> Vec<usize> + Sync);

/// Like [`frames`], with any sampling rule.
///
/// # Errors
/// See [`frames`].
pub fn picked_frames(
    stretches: &[Stretch],
    scaling: Scaling,
    pick: Pick<'_>,
) -> anyhow::Result<Vec<Vec<Frame>>> {
    side_by_side(stretches, &|number, Stretch { file, span_ms, in_order }| {
        let named = || format!("{} can't be decoded", file.display());
        let limits = Limits::default();
        let probe = video::probe(file, &limits).with_context(named)?;
        let pick = |times_ms: &[i64], start_ms: i64| pick(number, times_ms, start_ms);
        video::picked_frames_of_span(
            video::VideoFile { path: file, probe: &probe, in_order: *in_order, limits: &limits },
            span_ms.clone(),
            &pick,
            scaling,
        )
        .with_context(named)
    })
}

/// Applies `work` to each item and its index on all processors. Results keep the order of the items.
///
/// # Errors
/// The error of the first failed item.
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
    // If a thread panics, the scope panics too. So every item is done here.
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(take))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Unit vectors of texts that may exceed the model's limit.
pub struct LongTexts {
    /// All windows, one row each, text after text.
    pub windows: Rows,
    /// Number of windows per text, at least 1.
    pub counts: Vec<usize>,
    /// Normalised mean of each text's windows, one row per text.
    pub means: Rows,
    /// Each text truncated at the model's limit, as in the papers, one row per text.
    pub truncated: Rows,
}

/// Encodes texts of any length. Calls `done` with the number of texts just encoded.
///
/// # Errors
/// The model takes no text or fails, or can't read a text.
pub fn long_texts(model: &mut Embedder, texts: &[String], done: &dyn Fn(u64)) -> anyhow::Result<LongTexts> {
    let tokenizer = model.tokenizer.clone().context("the model takes no text")?;
    let (mut windows, mut counts, mut means, mut truncated) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for chunk in texts.chunks(TEXTS_AT_ONCE) {
        let cut = |overflow: Overflow| -> anyhow::Result<Vec<Vec<Input>>> {
            let of = |text: &String| Ok(texts_of(tokenizer.windows(text, overflow, usize::MAX)?.windows));
            chunk.iter().map(of).collect()
        };
        for of_text in cut(Overflow::Window)? {
            let raw = inputs(model, &of_text)?;
            counts.push(raw.len());
            means.extend(mean_direction(&raw).context("a text's vector is zero or not finite")?);
            windows.extend(raw.concat());
        }
        truncated.extend(inputs(model, &cut(Overflow::Truncate)?.concat())?.concat());
        done(chunk.len() as u64);
    }
    let dim = model.space.dim;
    let units = |values: Vec<f32>| -> Result<Rows, RowsError> { Rows::new(values, dim)?.into_units() };
    Ok(LongTexts { windows: units(windows)?, counts, means: units(means)?, truncated: units(truncated)? })
}

fn texts_of(windows: Vec<Window>) -> Vec<Input> {
    windows.into_iter().map(|window| Input::Text(window.tokens)).collect()
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
        let mut model = reprise_encoders::load(&"builtin:tiny".parse().unwrap(), 1).unwrap();
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
}
