//! Many clips and texts to vectors, by the decoder, samplers and encoders that ingest and search use.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, anyhow, ensure};
use reprise_encoders::rows::Rows;
use reprise_encoders::text::{Overflow, Window};
use reprise_encoders::video::{self, Limits, sample::Sampler};
use reprise_encoders::{Clip, Frame, Input, Loaded, Scaling};
use reprise_index::UnitVector;

use reprise_server::config::MAX_WINDOWS;
use reprise_server::search::text_vectors;

/// Clips that are held decoded at a time, and inputs that are encoded at a time where no device does best with another
/// number.
pub const CLIPS_AT_ONCE: usize = 32;
const INPUTS_AT_ONCE: usize = 16;
/// Longer than any video.
pub const LONGEST_MS: i64 = 10_000_000_000;

/// What is decoded as one clip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The file.
    pub file: PathBuf,
    /// Milliseconds since its first frame; an end beyond the last frame stands for it.
    pub span_ms: Range<i64>,
    /// Decode from the beginning instead of seeking: for files whose seek yields wrong pictures.
    pub in_order: bool,
}

impl Stretch {
    /// All of a file.
    pub fn whole(file: &Path) -> Stretch {
        Stretch { file: file.to_owned(), span_ms: 0..LONGEST_MS, in_order: true }
    }
}

/// The raw vectors of all `clips` by each of `models`, in order: `[model][clip]`. Clips are decoded once for models
/// that want the same frames. `done` is told how many more clips one model has seen.
///
/// # Errors
/// A clip that can't be decoded, a model that fails.
pub fn clips(
    models: &mut [Loaded],
    clips: &[PathBuf],
    done: &dyn Fn(u64),
) -> anyhow::Result<Vec<Vec<Vec<f32>>>> {
    let mut vectors: Vec<Vec<Vec<f32>>> = models.iter().map(|_| Vec::with_capacity(clips.len())).collect();
    for wanted in distinct(models.iter().map(|model| (model.space.sampler, model.space.scaling))) {
        for files in clips.chunks(CLIPS_AT_ONCE) {
            let whole: Vec<Stretch> = files.iter().map(|file| Stretch::whole(file)).collect();
            let decoded: Vec<Input> = decoded(&whole, wanted.0, wanted.1)?;
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

/// A video's file: its name, or with the ending that TF-CoVR's tables leave out.
///
/// # Errors
/// There is none in the folder.
pub fn file_of(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let candidates = [folder.join(name), folder.join(format!("{name}.mp4"))];
    let file = candidates.into_iter().find(|path| path.is_file());
    file.with_context(|| format!("{} has no video {name}", folder.display()))
}

/// Stretches as what goes into an encoder.
///
/// # Errors
/// As [`frames`].
pub fn decoded(stretches: &[Stretch], sampler: Sampler, scaling: Scaling) -> anyhow::Result<Vec<Input>> {
    let frames = frames(stretches, sampler, scaling)?;
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
pub fn inputs(model: &mut Loaded, inputs: &[Input]) -> anyhow::Result<Vec<Vec<f32>>> {
    let name = model.space.name.clone();
    let at_once = model.limits.map_or(INPUTS_AT_ONCE, |limits| limits.inputs.max(1));
    let encoder = model.encoders.first_mut().context("the model has no encoder")?;
    let mut vectors = Vec::with_capacity(inputs.len());
    for batch in inputs.chunks(at_once) {
        vectors.extend(encoder.encode(batch).with_context(|| name.clone())?);
    }
    ensure!(vectors.len() == inputs.len(), "{name} gave fewer vectors than inputs");
    Ok(vectors)
}

/// The vector of a plain text: of one that is over the model's limit the mean over its windows, as `POST /v1/embeddings`
/// answers it. (A search compares every window.)
///
/// # Errors
/// A text that the model can't read.
pub fn text(model: &mut Loaded, text: &str) -> anyhow::Result<UnitVector> {
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
pub fn frames(stretches: &[Stretch], sampler: Sampler, scaling: Scaling) -> anyhow::Result<Vec<Vec<Frame>>> {
    picked_frames(stretches, scaling, &|_, times_ms, start_ms| sampler.pick(times_ms, start_ms))
}

/// Which frames of which stretch: its number, the times of its frames and its start, in milliseconds.
pub type PickOf<'a> = &'a (dyn Fn(usize, &[i64], i64) -> Vec<usize> + Sync);

/// As [`frames`], by any rule.
///
/// # Errors
/// As [`frames`].
pub fn picked_frames(
    stretches: &[Stretch],
    scaling: Scaling,
    pick: PickOf<'_>,
) -> anyhow::Result<Vec<Vec<Frame>>> {
    side_by_side(stretches, &|number, Stretch { file, span_ms, in_order }| {
        let named = |error: video::VideoError| anyhow!("{}: {error}", file.display());
        let limits = Limits::default();
        let probe = video::probe(file, &limits).map_err(named)?;
        let pick = |times_ms: &[i64], start_ms: i64| pick(number, times_ms, start_ms);
        video::picked_frames_of_span(file, &probe, span_ms.clone(), &pick, scaling, *in_order, &limits)
            .map_err(named)
    })
}

/// What `work` makes of each item and its number, in order; on as many threads as there are processors.
///
/// # Errors
/// The first item's that failed.
pub fn side_by_side<I: Sync, T: Send>(
    items: &[I],
    work: &(dyn Fn(usize, &I) -> anyhow::Result<T> + Sync),
) -> anyhow::Result<Vec<T>> {
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
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(take))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    ensure!(done.len() == items.len(), "a thread ended early");
    done.into_iter().map(|(_, made)| made).collect()
}

/// Vectors of texts that may be longer than a model's limit.
pub struct LongTexts {
    /// All windows, text after text, a row each.
    pub windows: Rows,
    /// How many windows each text has; at least one.
    pub counts: Vec<usize>,
    /// The mean over a text's windows, as `POST /v1/embeddings` answers it, a row a text.
    pub means: Rows,
    /// What is left of a text that is cut at the model's limit, as the papers do it, a row a text.
    pub truncated: Rows,
}

/// Texts that are cut into windows before those are encoded.
const TEXTS_AT_ONCE: usize = 32;

/// The vectors of texts of any length. `done` is told how many more texts are through.
///
/// # Errors
/// A text that the model can't read, a model that fails.
pub fn long_texts(model: &mut Loaded, texts: &[String], done: &dyn Fn(u64)) -> anyhow::Result<LongTexts> {
    let tokenizer = model.tokenizer.clone().context("the model takes no text")?;
    let (mut windows, mut counts, mut means, mut truncated) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for chunk in texts.chunks(TEXTS_AT_ONCE) {
        let cut = |overflow: Overflow| -> anyhow::Result<Vec<Vec<Input>>> {
            let of = |text: &String| Ok(tokenizer.windows(text, overflow, usize::MAX)?.windows);
            let all = chunk.iter().map(of).collect::<anyhow::Result<Vec<_>>>()?;
            let inputs =
                |of_text: Vec<Window>| of_text.into_iter().map(|it| Input::Text(it.tokens)).collect();
            Ok(all.into_iter().map(inputs).collect())
        };
        for of_text in cut(Overflow::Window)? {
            let (units, mean, _) = text_vectors(&inputs(model, &of_text)?)?;
            counts.push(units.len());
            units.iter().for_each(|unit| windows.extend_from_slice(unit.values()));
            means.extend_from_slice(mean.values());
        }
        for raw in inputs(model, &cut(Overflow::Truncate)?.concat())? {
            let (first, _) = UnitVector::from_raw(&raw).context("a text's vector is zero or not finite")?;
            truncated.extend_from_slice(first.values());
        }
        done(chunk.len() as u64);
    }
    let dim = model.space.dim;
    let rows = |values: Vec<f32>| Rows::new(values, dim);
    Ok(LongTexts { windows: rows(windows)?, counts, means: rows(means)?, truncated: rows(truncated)? })
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
