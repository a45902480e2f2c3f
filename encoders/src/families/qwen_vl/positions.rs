//! Positions of tokens, as in Qwen's training code (QwenLM/Qwen3-VL, qwenvl/data/rope2d.py). Text counts up on all
//! axes. A visual token counts from the start of its span: time, row, column. The token after a span is one behind the
//! largest position of any axis.
//!
//! transformers 5 goes on by the larger side instead, and so shortens long videos; models were not trained so.

use super::config::{Config, Generation};
use super::grid::{Grid, Visual, VisualKind};
use super::rotary::Position;
use crate::EncodeError;

/// Positions of a prompt's tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Positions {
    /// Of each token.
    pub(crate) of_tokens: Vec<Position>,
    /// Of the first token after them, on all axes.
    pub(crate) next: u32,
}

impl Positions {
    /// 0, 1, 2 ... on all axes. GME was trained so: its released code gives the decoder no positions of its own.
    pub(crate) fn counted(tokens: usize) -> Positions {
        Positions { of_tokens: (0..tokens as u32).map(|at| [at; 3]).collect(), next: tokens as u32 }
    }

    /// Positions of `ids`, where `visuals` are what the pads of pictures and videos stand for, in order.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] if pads and visuals do not match.
    pub(crate) fn of(ids: &[u32], visuals: &[Visual], config: &Config) -> Result<Positions, EncodeError> {
        let mut counter = Counter { config, of_tokens: Vec::with_capacity(ids.len()), next: 0 };
        let mut spans = visuals.iter().flat_map(|visual| spans(visual, config));
        let mut at = 0;
        while at < ids.len() {
            let Some(kind) = kind(ids[at], config) else {
                counter.text();
                at += 1;
                continue;
            };
            let span = spans.next().filter(|span| span.kind == kind).ok_or_else(mismatch)?;
            let end = at + span.grid.tokens(config.vision.merge);
            if !ids.get(at..end).is_some_and(|pads| pads.iter().all(|pad| *pad == ids[at])) {
                return Err(mismatch());
            }
            counter.span(&span);
            at = end;
        }
        match spans.next() {
            None => Ok(Positions { of_tokens: counter.of_tokens, next: counter.next }),
            Some(_) => Err(mismatch()),
        }
    }
}

fn mismatch() -> EncodeError {
    EncodeError::BadInput("the prompt's places for pictures and videos do not match those given".into())
}

/// What a pad stands for; `None` for tokens of text.
pub(super) fn kind(id: u32, config: &Config) -> Option<VisualKind> {
    match id {
        id if id == config.ids.picture => Some(VisualKind::Picture),
        id if id == config.ids.video => Some(VisualKind::Video),
        _ => None,
    }
}

/// Consecutive visual tokens that count from one start.
struct Span {
    kind: VisualKind,
    grid: Grid,
    /// Positions of time for each temporal patch.
    pace: Pace,
}

/// How time positions grow.
#[derive(Clone, Copy)]
enum Pace {
    One,
    /// The temporal patch's number times seconds times positions a second, rounded down, in f32.
    Seconds {
        step: f32,
        per_second: f32,
    },
}

impl Pace {
    fn time(self, patch: usize) -> u32 {
        match self {
            Pace::One => patch as u32,
            Pace::Seconds { step, per_second } => (patch as f32 * step * per_second) as u32,
        }
    }
}

/// Qwen3-VL: a span for each temporal patch. Others: one.
fn spans(visual: &Visual, config: &Config) -> Vec<Span> {
    let Visual { kind, grid, step, .. } = *visual;
    let per_second = config.vision.tokens_per_second;
    let pace = match (config.generation, kind) {
        (Generation::TwoFive, VisualKind::Video) => Pace::Seconds { step: step as f32, per_second },
        _ => Pace::One,
    };
    match config.generation {
        Generation::Three => {
            let one = || Span { kind, grid: Grid { frames: 1, ..grid }, pace };
            std::iter::repeat_with(one).take(grid.frames).collect()
        }
        Generation::Two | Generation::TwoFive => vec![Span { kind, grid, pace }],
    }
}

struct Counter<'a> {
    config: &'a Config,
    of_tokens: Vec<Position>,
    next: u32,
}

impl Counter<'_> {
    fn text(&mut self) {
        self.of_tokens.push([self.next; 3]);
        self.next += 1;
    }

    fn span(&mut self, span: &Span) {
        let (start, merge) = (self.next, self.config.vision.merge);
        for patch in 0..span.grid.frames {
            let time = span.pace.time(patch);
            for row in 0..(span.grid.rows / merge) as u32 {
                for column in 0..(span.grid.columns / merge) as u32 {
                    let place = [time, row, column].map(|at| start.saturating_add(at));
                    self.next = place.into_iter().fold(self.next, |next, at| next.max(at.saturating_add(1)));
                    self.of_tokens.push(place);
                }
            }
        }
    }
}

/// The time positions of a video's temporal patches, for the reference's table.
#[cfg(test)]
pub(super) fn times(step: f64, per_second: f32, patches: usize) -> Vec<u32> {
    let pace = Pace::Seconds { step: step as f32, per_second };
    (0..patches).map(|patch| pace.time(patch)).collect()
}
