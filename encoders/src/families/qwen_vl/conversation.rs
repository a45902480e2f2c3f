//! Qwen-VL as a [`Generator`]: conversations with pictures and videos to prompts, and prompts to texts.

use std::sync::Arc;

use super::grid::{Visual, VisualKind};
use super::model::Sequence;
use super::patches::Patching;
use super::prompt::expanded;
use super::template::{ChatTemplate, Piece, Turn};
use super::writer::Writer;
use crate::generator::{Conversation, Generated, Generator, Message, OnText, Part, Sampling};
use crate::resize::Pixels;
use crate::{EncodeError, Frame};

/// A model that writes, with what makes its prompts.
#[derive(Clone)]
pub(super) struct QwenVlGenerator {
    pub(super) writer: Arc<Writer>,
    pub(super) template: ChatTemplate,
    pub(super) patching: Patching,
    pub(super) sampling: Sampling,
}

impl QwenVlGenerator {
    fn prompt(&self, conversation: &Conversation) -> Result<Sequence, EncodeError> {
        let mut visuals = Vec::new();
        let turns = conversation.messages.iter().map(|message| self.turn(message, &mut visuals));
        let turns: Vec<Turn> = turns.collect::<Result<_, _>>()?;
        if turns.is_empty() {
            return Err(EncodeError::BadInput("a conversation without messages".into()));
        }
        let config = &self.writer.model.config;
        let text = expanded(&self.template.render(&turns)?, &visuals, config)?;
        Sequence::new(self.writer.tokenizer.ids(&text)?, visuals, config)
    }

    fn turn(&self, message: &Message, visuals: &mut Vec<Visual>) -> Result<Turn, EncodeError> {
        let piece = |part: &Part| {
            Ok(match part {
                Part::Text(text) => Piece::Text(self.writer.tokenizer.plain(text)),
                Part::Picture(frame) => {
                    visuals.push(self.patching.picture(frame)?);
                    Piece::Visual(VisualKind::Picture)
                }
                Part::Video { frames, per_second } => {
                    visuals.push(self.video(frames, *per_second)?);
                    Piece::Visual(VisualKind::Video)
                }
            })
        };
        let pieces = message.parts.iter().map(piece).collect::<Result<_, EncodeError>>()?;
        Ok(Turn { role: message.role, pieces })
    }

    fn video(&self, frames: &[Frame], per_second: f64) -> Result<Visual, EncodeError> {
        if !(per_second > 0.0 && per_second.is_finite()) {
            return Err(EncodeError::BadInput("a video's frames per second must be over 0".into()));
        }
        self.fits(frames)?;
        let first = frames.first().map_or(0, |frame| frame.time_ms);
        let times = frames.iter().map(|frame| (frame.time_ms - first) as f64 / 1000.0).collect();
        self.patching.video(&frames.iter().collect::<Vec<_>>(), times, per_second)
    }
}

impl QwenVlGenerator {
    /// Whether a video leaves room in the model's context. Checked before its frames become patches, which take several
    /// times their memory.
    fn fits(&self, frames: &[Frame]) -> Result<(), EncodeError> {
        let Some(first) = frames.first() else { return Ok(()) };
        let from = Pixels { width: first.width, height: first.height };
        let config = &self.writer.model.config;
        let tokens = self.patching.video_grid(frames.len(), from)?.tokens(config.vision.merge);
        let (count, longest) = (frames.len(), config.text.longest);
        match tokens < longest {
            true => Ok(()),
            false => Err(EncodeError::BadInput(
                format!("{count} frames take {tokens} tokens and the model reads {longest}: give fewer or smaller ones")
                    .into(),
            )),
        }
    }
}

impl Generator for QwenVlGenerator {
    fn longest(&self) -> usize {
        self.writer.model.config.text.longest
    }

    fn sampling(&self) -> Sampling {
        self.sampling
    }

    fn generate(
        &mut self,
        conversations: &[Conversation],
        on_text: &mut OnText<'_>,
    ) -> Result<Vec<Generated>, EncodeError> {
        let prompts = conversations.iter().map(|conversation| self.prompt(conversation));
        let prompts: Vec<Sequence> = prompts.collect::<Result<_, _>>()?;
        let samplings: Vec<Sampling> = conversations.iter().map(|it| it.sampling).collect();
        let written = self.writer.write(&prompts, &samplings, on_text)?;
        prompts.iter().zip(written).map(|(prompt, written)| self.writer.generated(prompt, written)).collect()
    }
}
