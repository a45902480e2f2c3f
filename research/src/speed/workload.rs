//! The workload of speed measurements: random inputs in the model's own sizes, equal in every run.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use anyhow::{Context, bail};
use reprise_encoders::text::Overflow;
use reprise_encoders::{Clip, Embedder, Frame, FrameSize, Input, Space};
use serde::Serialize;

/// The default batches.
const PICTURES: [usize; 3] = [1, 8, 32];
const TOKENS: [usize; 3] = [16, 77, 248];

/// Side of a square of one colour, in pixels.
const SQUARE: u32 = 16;

/// The source video of a clip: 4 s at 25 frames per second.
const CLIP_FRAMES: Range<i64> = 0..100;
const FRAME_MS: i64 = 40;

/// The kind of a batch's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Pictures,
    Clips,
    Texts,
}

impl Display for What {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::Pictures => "pictures",
            What::Clips => "clips",
            What::Texts => "texts",
        })
    }
}

/// Inputs of one kind and length, encoded together.
pub(super) struct Batch {
    pub(super) what: What,
    /// Frames of a clip, or tokens of a text.
    pub(super) length: Option<usize>,
    pub(super) inputs: Vec<Input>,
}

/// The default batches that the model accepts.
///
/// # Errors
/// The tokenizer fails.
pub(super) fn usual(loaded: &Embedder) -> anyhow::Result<Vec<Batch>> {
    let space = &loaded.space;
    let mut batches = Vec::new();
    if takes_pictures(space) {
        batches.extend(PICTURES.into_iter().filter_map(|batch| pictures(space, batch).ok()));
    }
    if space.can.frames {
        batches.push(clips(space, 1)?);
    }
    if space.can.text {
        for tokens in TOKENS.into_iter().filter(|tokens| *tokens <= space.max_text_tokens) {
            batches.push(text(loaded, tokens)?);
        }
    }
    Ok(batches)
}

/// Whether the model encodes single frames.
fn takes_pictures(space: &Space) -> bool {
    space.can.frames && (space.frame_stage.is_some() || !space.temporal)
}

/// A batch of `batch` pictures.
///
/// # Errors
/// The model does not encode single pictures.
pub(super) fn pictures(space: &Space, batch: usize) -> anyhow::Result<Batch> {
    if !takes_pictures(space) {
        bail!("{} takes no single pictures: leave --batch out", space.name);
    }
    let frames = (0..batch).map(|number| noise(number, space.scaling.size));
    let inputs = frames.map(|frame| match space.frame_stage {
        Some(_) => Input::Frame(frame),
        None => Input::Frames(Clip { frames: vec![frame] }),
    });
    Ok(Batch { what: What::Pictures, length: None, inputs: inputs.collect() })
}

/// A batch of `batch` clips, each of as many frames as the model samples.
///
/// # Errors
/// The model takes no frames.
pub(super) fn clips(space: &Space, batch: usize) -> anyhow::Result<Batch> {
    if !space.can.frames {
        bail!("{} takes no frames: leave --clips out", space.name);
    }
    let times: Vec<i64> = CLIP_FRAMES.map(|frame| frame * FRAME_MS).collect();
    let frames = space.sampler.pick(&times, 0).len();
    let clip = |number: usize| {
        let numbers = number * frames..(number + 1) * frames;
        Input::Frames(Clip { frames: numbers.map(|number| noise(number, space.scaling.size)).collect() })
    };
    Ok(Batch { what: What::Clips, length: Some(frames), inputs: (0..batch).map(clip).collect() })
}

/// One text of `tokens` tokens, including special ones. Fewer if no number of words gives exactly that number.
///
/// # Errors
/// The model takes no text, or none of that length.
pub(super) fn text(loaded: &Embedder, tokens: usize) -> anyhow::Result<Batch> {
    let Embedder { space, tokenizer, .. } = loaded;
    let tokenizer = tokenizer.as_ref().filter(|_| space.can.text);
    let tokenizer = tokenizer.with_context(|| format!("{} takes no text: leave --tokens out", space.name))?;
    if tokens > space.max_text_tokens {
        bail!("{} reads texts of at most {} tokens", space.name, space.max_text_tokens);
    }
    let mut longest = None;
    for words in 1..=tokens {
        let window = tokenizer.windows(&vec!["a"; words].join(" "), Overflow::Truncate, 1)?;
        match window.windows.into_iter().next() {
            Some(window) if window.tokens.ids.len() <= tokens => longest = Some(window.tokens),
            _ => break,
        }
        if longest.as_ref().is_some_and(|it| it.ids.len() == tokens) {
            break;
        }
    }
    let text = longest.with_context(|| format!("no text of {} has as few as {tokens} tokens", space.name))?;
    Ok(Batch { what: What::Texts, length: Some(text.ids.len()), inputs: vec![Input::Text(text)] })
}

/// Squares of random colours: pictures with edges and areas, unlike noise per pixel.
pub(super) fn noise(number: usize, size: FrameSize) -> Frame {
    let (width, height) = match size {
        FrameSize::ShortEdge(side) => (side, side),
        FrameSize::Exact { width, height } => (width, height),
        FrameSize::Area(rule) => rule.usual(),
    };
    let (rows, columns) = (u64::from(height.div_ceil(SQUARE)), u64::from(width.div_ceil(SQUARE)));
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for y in 0..height {
        let row = number as u64 * rows + u64::from(y / SQUARE);
        for x in 0..width {
            let square = row * columns + u64::from(x / SQUARE);
            rgb.extend((0..3).map(|channel| (split_mix(square * 3 + channel) >> 56) as u8));
        }
    }
    Frame { time_ms: number as i64 * FRAME_MS, width, height, rgb: rgb.into() }
}

/// SplitMix64 (Steele, Lea and Flood 2014), a hash of a number.
fn split_mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs for seed 0: the state grows by the constant before each output.
    #[test]
    fn the_mixer_is_the_published_one() {
        let first = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([0, 1, 2].map(split_mix), first);
    }

    #[track_caller]
    fn check(tokens: usize, expected: Option<usize>) {
        let loaded = reprise_encoders::load(&"builtin:tiny".parse().unwrap(), 1).unwrap();
        assert_eq!(text(&loaded, tokens).ok().and_then(|batch| batch.length), expected, "{tokens}");
    }

    #[test]
    fn texts_have_the_length_that_was_asked_for() {
        check(3, Some(3));
        check(16, Some(16));
        check(77, Some(77));
        check(78, None);
        check(2, None);
    }
}
