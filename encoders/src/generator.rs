//! The interface of models that write texts: requests, sampling, results.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::{EncodeError, Frame};

/// Who a message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions for all that follows.
    System,
    /// The user.
    User,
    /// The model, in an earlier turn.
    Assistant,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text. Special tokens of the model in it are read as ordinary letters.
    Text(String),
    /// A picture.
    Picture(Frame),
    /// Frames of a video, all of one size, in order of time.
    Video {
        /// At least one frame.
        frames: Vec<Frame>,
        /// Sampled frames per second of video, over 0.
        per_second: f64,
    },
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// Its parts, in order.
    pub parts: Vec<Part>,
}

/// How tokens are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Most new tokens, at least 1.
    pub max_tokens: usize,
    /// Divides scores, 0 to 100; 0 takes the best token always.
    pub temperature: f32,
    /// Keeps this many of the likeliest tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps the likeliest tokens that together have this probability; over 0, 1 keeps all.
    pub top_p: f32,
    /// Makes tokens of prompt and answer less likely, over 0; 1 changes nothing (arXiv 1909.05858).
    pub repetition_penalty: f32,
    /// Seed of the random numbers; the same seed gives the same text.
    pub seed: u64,
}

impl Default for Sampling {
    /// Greedy, 512 tokens.
    fn default() -> Self {
        Sampling { max_tokens: 512, temperature: 0.0, top_k: 0, top_p: 1.0, repetition_penalty: 1.0, seed: 0 }
    }
}

impl Sampling {
    /// # Errors
    /// [`EncodeError::BadInput`] for a value outside its range.
    pub fn check(&self) -> Result<(), EncodeError> {
        let why = match self {
            Sampling { max_tokens: 0, .. } => "max_tokens must be at least 1",
            it if !(0.0..=100.0).contains(&it.temperature) => "temperature must be between 0 and 100",
            it if !(it.top_p > 0.0 && it.top_p <= 1.0) => "top_p must be over 0 and at most 1",
            it if !(it.repetition_penalty > 0.0 && it.repetition_penalty.is_finite()) => {
                "repetition_penalty must be over 0"
            }
            _ => return Ok(()),
        };
        Err(EncodeError::BadInput(why.into()))
    }
}

/// A conversation to continue.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The messages, the last from the user.
    pub messages: Vec<Message>,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

/// Why a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model ended it.
    Stop,
    /// It reached the most tokens, of the request or of the model.
    Length,
    /// The caller cancelled it.
    Cancelled,
}

/// A generated text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Generated {
    /// The text, without special tokens.
    pub text: String,
    /// Tokens of the prompt, those of pictures and videos included.
    pub prompt_tokens: usize,
    /// Generated tokens.
    pub tokens: usize,
    /// Why it ended.
    pub finish: Finish,
}

/// Gets the text of conversation `usize` as it grows, after every token; the text may be empty. A break cancels this
/// conversation.
pub type OnText<'a> = dyn FnMut(usize, &str) -> ControlFlow<()> + 'a;

/// A model that writes texts on one device; one thread owns it.
pub trait Generator: Send {
    /// Longest prompt and answer together, in tokens.
    fn longest(&self) -> usize;

    /// How the model's folder says that tokens are chosen; greedy if it does not.
    fn sampling(&self) -> Sampling;

    /// One text per conversation, in order. The texts of one call are written together.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for a conversation that the model can't read; [`EncodeError::Failed`] if the device
    /// fails.
    fn generate(
        &mut self,
        conversations: &[Conversation],
        on_text: &mut OnText<'_>,
    ) -> Result<Vec<Generated>, EncodeError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl Fn(&mut Sampling), is_right: bool) {
        let mut sampling = Sampling::default();
        change(&mut sampling);
        assert_eq!(sampling.check().is_ok(), is_right, "{sampling:?}");
    }

    #[test]
    fn values_outside_their_range_are_refused() {
        check(|_| {}, true);
        check(|it| it.max_tokens = 0, false);
        check(|it| it.temperature = -0.1, false);
        check(|it| it.temperature = f32::NAN, false);
        check(|it| it.top_p = 0.0, false);
        check(|it| it.top_p = 1.1, false);
        check(|it| it.top_p = 0.001, true);
        check(|it| it.repetition_penalty = 0.0, false);
        check(|it| it.repetition_penalty = f32::INFINITY, false);
    }
}
