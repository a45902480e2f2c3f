//! Qwen-VL as an [`Encoder`]: the hidden state of a prompt's last token.
//!
//! GME reads pictures: a clip's raw vector is the mean of its frames' unit vectors. The others read videos: a clip's raw
//! vector is the hidden state. A composed query is one prompt of picture or video and text.

use std::sync::Arc;

use super::embedding::EmbeddingKind;
use super::grid::Visual;
use super::instructions::{PromptIds, Prompts};
use super::model::{QwenVl, Sequence};
use super::patches::Patching;
use super::positions::Positions;
use super::prompt::PromptTokenizer;
use crate::blocks::checks::{check_features, failed};
use crate::resize::Pixels;
use crate::{Clip, EncodeError, Encoder, Frame, Input, Source, Space};

/// Default cost of one pass, in tokens of the decoder: bounds memory for any batch.
const TOKENS_PER_PASS: usize = 4096;

/// Most frames of a video in one prompt; longer clips are thinned evenly.
pub(super) const MOST_FRAMES: usize = 64;

/// The parts that all encoders of a device share.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) model: QwenVl,
    pub(super) tokenizer: PromptTokenizer,
    pub(super) patching: Patching,
    pub(super) prompts: Prompts,
    pub(super) ids: PromptIds,
}

/// An embedder on Qwen-VL.
#[derive(Clone)]
pub(super) struct QwenVlEncoder {
    reader: Arc<Reader>,
    space: Space,
    tokens_per_pass: usize,
}

/// How the vectors of an input's prompts become one.
#[derive(Clone, Copy)]
enum Fold {
    /// The hidden state of one prompt.
    Raw,
    /// The unit vector of one prompt.
    Unit,
    /// The mean of the unit vectors of this number of prompts.
    MeanOfUnits(usize),
    /// The mean of the input's own features; no prompt.
    Features,
}

impl QwenVlEncoder {
    pub(super) fn new(reader: Arc<Reader>, space: Space) -> Self {
        QwenVlEncoder { reader, space, tokens_per_pass: TOKENS_PER_PASS }
    }

    fn unsupported(&self, what: &'static str) -> EncodeError {
        EncodeError::Unsupported { space: self.space.name.clone(), what }
    }

    /// Appends the prompts of an input.
    fn prompts(&self, input: &Input, prompts: &mut Vec<Sequence>) -> Result<Fold, EncodeError> {
        let reader = &self.reader;
        match input {
            Input::Text(tokens) => {
                prompts.push(reader.sequence(reader.ids.of_text(&tokens.ids), Vec::new())?);
                Ok(Fold::Raw)
            }
            Input::Frame(_) | Input::Features(_) if self.space.frame_stage.is_none() => {
                Err(self.unsupported("frames one by one"))
            }
            Input::Frame(frame) => {
                prompts.push(reader.document(reader.patching.picture(frame)?)?);
                Ok(Fold::Unit)
            }
            Input::Features(rows) => check_features(rows, self.space.dim).map(|()| Fold::Features),
            Input::Frames(clip) if reader.prompts.reads_pictures() => {
                for frame in &clip.frames {
                    prompts.push(reader.document(reader.patching.picture(frame)?)?);
                }
                match clip.frames.len() {
                    0 => Err(EncodeError::BadInput("a clip without frames".into())),
                    frames => Ok(Fold::MeanOfUnits(frames)),
                }
            }
            Input::Frames(clip) => {
                prompts.push(reader.document(reader.video(clip)?)?);
                Ok(Fold::Raw)
            }
            Input::Composed { query: Source::Raw(_), .. } => {
                Err(self.unsupported("composed queries whose clip is a vector"))
            }
            Input::Composed { query: Source::Frames(clip), modification } => {
                prompts.push(reader.composed(clip, &modification.ids)?);
                Ok(Fold::Raw)
            }
        }
    }

    /// The hidden state behind each prompt, in passes of at most `tokens_per_pass` tokens.
    fn hidden(&self, prompts: &[Sequence], pause: &dyn Fn()) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut vectors = Vec::with_capacity(prompts.len());
        let mut rest = prompts;
        while let Some(first) = rest.first() {
            let mut tokens = first.ids().len();
            let more = rest[1..].iter().take_while(|prompt| {
                tokens += prompt.ids().len();
                tokens <= self.tokens_per_pass
            });
            let (pass, behind) = rest.split_at(1 + more.count());
            let rows = self.reader.model.last_hidden(&pass.iter().collect::<Vec<_>>(), pause);
            vectors.extend(rows.and_then(|rows| rows.to_vec2::<f32>()).map_err(failed)?);
            rest = behind;
        }
        Ok(vectors)
    }
}

impl Reader {
    pub(super) fn sequence(&self, ids: Vec<u32>, visuals: Vec<Visual>) -> Result<Sequence, EncodeError> {
        let sequence = Sequence::new(ids, visuals, &self.model.config)?;
        Ok(match self.prompts.kind {
            EmbeddingKind::Gme => {
                let tokens = sequence.ids().len();
                sequence.with_positions(Positions::counted(tokens))
            }
            EmbeddingKind::Qwen3 | EmbeddingKind::Care => sequence,
        })
    }

    pub(super) fn document(&self, visual: Visual) -> Result<Sequence, EncodeError> {
        let ids = self.ids.document(&visual, &self.tokenizer, &self.model.config)?;
        self.sequence(ids, vec![visual])
    }

    fn composed(&self, clip: &Clip, text: &[u32]) -> Result<Sequence, EncodeError> {
        let visual = match self.prompts.reads_pictures() {
            true => {
                let middle = clip.frames.get(clip.frames.len() / 2);
                let frame = middle.ok_or_else(|| EncodeError::BadInput("a clip without frames".into()))?;
                self.patching.picture(frame)?
            }
            false => self.video(clip)?,
        };
        self.composed_of(visual, text)
    }

    /// The prompt of a picture or video and the ids of a text with its prompt.
    pub(super) fn composed_of(&self, visual: Visual, text: &[u32]) -> Result<Sequence, EncodeError> {
        let ids = self.ids.composed(&visual, text, &self.tokenizer, &self.model.config)?;
        self.sequence(ids, vec![visual])
    }

    /// A clip as a video. Times count from its first frame.
    fn video(&self, clip: &Clip) -> Result<Visual, EncodeError> {
        let picked = thinned(&clip.frames);
        let first = picked.first().ok_or_else(|| EncodeError::BadInput("a clip without frames".into()))?;
        let second = |frame: &Frame| (frame.time_ms - first.time_ms) as f64 / 1000.0;
        let last = picked.last().map_or(0.0, |frame| second(frame));
        // Frames stand for equal parts of the clip.
        let per_second = if last > 0.0 { (picked.len() - 1) as f64 / last } else { 1.0 };
        let frames: Vec<&Frame> = match self.prompts.kind {
            EmbeddingKind::Care => picked.iter().flat_map(|frame| [*frame, *frame]).collect(),
            EmbeddingKind::Gme | EmbeddingKind::Qwen3 => picked,
        };
        let times = frames.iter().map(|frame| second(frame)).collect();
        self.patching.video(&frames, times, per_second)
    }

    /// Tokens of a frame or clip, prompt excluded; 0 for frames that the model refuses.
    fn tokens(&self, frames: &[Frame]) -> usize {
        let Some(first) = frames.first() else { return 0 };
        let from = Pixels { width: first.width, height: first.height };
        let merge = self.model.config.vision.merge;
        let count = frames.len().min(MOST_FRAMES);
        let grid = match self.prompts.kind {
            EmbeddingKind::Gme => self.patching.picture_grid(from),
            EmbeddingKind::Qwen3 => self.patching.video_grid(count, from),
            EmbeddingKind::Care => self.patching.video_grid(2 * count, from),
        };
        let once = grid.map_or(0, |grid| grid.tokens(merge));
        if self.prompts.reads_pictures() { once.saturating_mul(frames.len()) } else { once }
    }
}

/// At most [`MOST_FRAMES`] frames, evenly.
fn thinned(frames: &[Frame]) -> Vec<&Frame> {
    let count = frames.len();
    match count <= MOST_FRAMES {
        true => frames.iter().collect(),
        false => crate::sample::spread(count, MOST_FRAMES).into_iter().map(|at| &frames[at]).collect(),
    }
}

fn unit(vector: Vec<f32>) -> Result<Vec<f32>, EncodeError> {
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    match norm > 0.0 && norm.is_finite() {
        true => Ok(vector.into_iter().map(|value| value / norm).collect()),
        false => Err(EncodeError::Failed(format!("a vector of norm {norm}").into())),
    }
}

fn mean(rows: impl ExactSizeIterator<Item = Vec<f32>>, width: usize) -> Vec<f32> {
    let (count, mut sum) = (rows.len() as f32, vec![0f32; width]);
    for row in rows {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    sum.iter_mut().for_each(|sum| *sum /= count);
    sum
}

impl Encoder for QwenVlEncoder {
    fn space(&self) -> &Space {
        &self.space
    }

    fn cost(&self, input: &Input) -> usize {
        let prompt = self.reader.ids.text.len();
        match input {
            Input::Text(tokens) => tokens.ids.len(),
            Input::Frame(frame) => prompt + self.reader.tokens(std::slice::from_ref(frame)),
            Input::Frames(clip) => prompt + self.reader.tokens(&clip.frames),
            Input::Features(_) => 1,
            Input::Composed { query: Source::Frames(clip), modification } => {
                let frames = if self.reader.prompts.reads_pictures() { 1 } else { clip.frames.len() };
                modification.ids.len() + self.reader.tokens(&clip.frames[..frames.min(clip.frames.len())])
            }
            Input::Composed { modification, .. } => modification.ids.len(),
        }
    }

    fn bound_pass(&mut self, cost: usize) {
        self.tokens_per_pass = cost.max(1);
    }

    fn share(&self) -> Box<dyn Encoder> {
        Box::new(self.clone())
    }

    fn encode(&mut self, batch: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError> {
        self.encode_pausing(batch, &|| {})
    }

    fn encode_pausing(&mut self, batch: &[Input], pause: &dyn Fn()) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut prompts = Vec::new();
        let folds = batch.iter().map(|input| self.prompts(input, &mut prompts));
        let folds: Vec<Fold> = folds.collect::<Result<_, _>>()?;
        let mut hidden = self.hidden(&prompts, pause)?.into_iter();
        let (width, mut vectors) = (self.space.dim, Vec::with_capacity(batch.len()));
        let mut next = || match hidden.next() {
            Some(mut state) => {
                state.truncate(width);
                Ok(state)
            }
            None => Err(EncodeError::Failed("fewer vectors than prompts".into())),
        };
        for (input, fold) in batch.iter().zip(folds) {
            vectors.push(match (fold, input) {
                (Fold::Raw, _) => next()?,
                (Fold::Unit, _) => unit(next()?)?,
                (Fold::MeanOfUnits(count), _) => {
                    let units = (0..count).map(|_| unit(next()?)).collect::<Result<Vec<_>, _>>()?;
                    mean(units.into_iter(), width)
                }
                (Fold::Features, Input::Features(rows)) => mean(rows.iter().map(|row| row.to_vec()), width),
                (Fold::Features, _) => return Err(EncodeError::Failed("features without rows".into())),
            });
        }
        Ok(vectors)
    }
}
