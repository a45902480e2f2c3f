//! Prompts as text and tokens: the places of pictures and videos become as many pads as they have tokens.

use tokenizers::Tokenizer as Inner;

use super::config::{Config, FRAMES_PER_PATCH, Generation, VisualIds};
use super::grid::{Visual, VisualKind};
use crate::text;
use crate::{EncodeError, LoadError};

const START: &str = "<|vision_start|>";
const END: &str = "<|vision_end|>";
const PICTURE: &str = "<|image_pad|>";
const VIDEO: &str = "<|video_pad|>";

/// What a picture or video is in a prompt's text before it is expanded.
pub(super) fn placeholder(kind: VisualKind) -> String {
    format!("{START}{}{END}", pad(kind))
}

fn pad(kind: VisualKind) -> &'static str {
    match kind {
        VisualKind::Picture => PICTURE,
        VisualKind::Video => VIDEO,
    }
}

/// A picture or video in an expanded prompt. Qwen3-VL marks each temporal patch of a video with its time.
pub(super) fn block(visual: &Visual, config: &Config) -> String {
    let pads = |frames: usize| {
        let grid = super::grid::Grid { frames, ..visual.grid };
        format!("{START}{}{END}", pad(visual.kind).repeat(grid.tokens(config.vision.merge)))
    };
    match (config.generation, visual.kind) {
        (Generation::Three, VisualKind::Video) => {
            let times = visual.times.chunks(FRAMES_PER_PATCH);
            times.map(|times| format!("{}{}", seconds(times), pads(1))).collect()
        }
        _ => pads(visual.grid.frames),
    }
}

/// The time of a temporal patch, the mean of its frames' times.
pub(super) fn seconds(times: &[f64]) -> String {
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    format!("<{mean:.1} seconds>")
}

/// A prompt's text with its placeholders expanded. A placeholder is a pad, with or without its markers.
///
/// # Errors
/// [`EncodeError::BadInput`] if placeholders and `visuals` do not match.
pub(super) fn expanded(prompt: &str, visuals: &[Visual], config: &Config) -> Result<String, EncodeError> {
    let mismatch = |why: &str| EncodeError::BadInput(why.to_owned().into());
    let (mut rest, mut text) = (prompt, String::with_capacity(prompt.len()));
    for visual in visuals {
        let found = [PICTURE, VIDEO].into_iter().filter_map(|pad| rest.find(pad)).min();
        let at = found
            .ok_or_else(|| mismatch("the prompt has fewer places for pictures and videos than given"))?;
        let (before, behind) = rest.split_at(at);
        let behind = behind.strip_prefix(pad(visual.kind)).ok_or_else(|| {
            mismatch("the prompt has places for pictures and videos in another order than they are given")
        })?;
        let marked = before.strip_suffix(START).zip(behind.strip_prefix(END));
        let (before, behind) = marked.unwrap_or((before, behind));
        text.push_str(before);
        text.push_str(&block(visual, config));
        rest = behind;
    }
    if rest.contains(PICTURE) || rest.contains(VIDEO) {
        return Err(mismatch("the prompt has more places for pictures and videos than given"));
    }
    text.push_str(rest);
    Ok(text)
}

/// The tokenizer of prompts, in which special tokens may be written out.
#[derive(Debug, Clone)]
pub(crate) struct PromptTokenizer {
    inner: Inner,
    /// The special tokens, which texts of users must not contain.
    specials: Vec<String>,
}

impl PromptTokenizer {
    /// # Errors
    /// [`LoadError::Tokenizer`] for an unreadable file, [`LoadError::Unsupported`] if its special tokens are not those
    /// of config.json.
    pub(crate) fn from_json(json: &[u8], config: &Config) -> Result<PromptTokenizer, LoadError> {
        let inner = text::file::read(json)?;
        let VisualIds { picture, video, start, end } = config.ids;
        for (token, id) in [(PICTURE, picture), (VIDEO, video), (START, start), (END, end)] {
            if inner.token_to_id(token) != Some(id) {
                let why = format!("tokenizer.json does not give {token} the id {id} of config.json");
                return Err(LoadError::Unsupported(why.into()));
            }
        }
        let bound = inner.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        if bound > config.text.vocabulary {
            let rows = config.text.vocabulary;
            let why = format!("tokenizer.json gives {bound} ids, the model has {rows} tokens");
            return Err(LoadError::Unsupported(why.into()));
        }
        let added = inner.get_added_tokens_decoder().into_values();
        let specials = added.filter(|token| token.special).map(|token| token.content).collect();
        Ok(PromptTokenizer { inner, specials })
    }

    /// The ids of a prompt; its special tokens count as such.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for what the tokenizer can't read.
    pub(crate) fn ids(&self, prompt: &str) -> Result<Vec<u32>, EncodeError> {
        let encoding = self.inner.encode_fast(prompt, false);
        Ok(encoding.map_err(|error| EncodeError::BadInput(error.into()))?.get_ids().to_vec())
    }

    /// The id of one token.
    pub(crate) fn id_of(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The text of generated ids, without special tokens.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] for ids that the tokenizer can't turn into text.
    pub(crate) fn text(&self, ids: &[u32]) -> Result<String, EncodeError> {
        self.inner.decode(ids, true).map_err(|error| EncodeError::Failed(error.into()))
    }

    /// A user's text for a prompt: special tokens in it are broken up, so that they are read as ordinary letters.
    pub(crate) fn plain(&self, text: &str) -> String {
        let mut plain = text.to_owned();
        for token in &self.specials {
            let mut letters = token.chars();
            if let Some(first) = letters.next().filter(|_| plain.contains(token.as_str())) {
                plain = plain.replace(token.as_str(), &format!("{first} {}", letters.as_str()));
            }
        }
        plain
    }
}
