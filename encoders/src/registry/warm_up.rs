//! Encodes a new model's first inputs: reveals faults before traffic, and on a GPU measures the fastest batch size.

use std::time::Instant;

use super::budget::best_batch;
use crate::batch::Limits;
use crate::loading::Embedder;
use crate::text::{Overflow, Tokenizer, Tokens};
use crate::{Clip, EncodeError, Frame, FrameSize, Input, Source};

/// Largest batch tried.
const MOST_INPUTS: usize = 256;

/// Encodes a short text and a small picture on every encoder. Faults and, on a GPU, the compilation of kernels come
/// before traffic. Blocks.
///
/// # Errors
/// The first encoder's error.
pub(super) fn warm_up(embedder: &mut Embedder) -> Result<(), EncodeError> {
    let mut inputs = Vec::new();
    if let Some(tokenizer) = embedder.tokenizer.as_ref().filter(|_| embedder.space.can.text) {
        inputs.extend(text(tokenizer, "a")?.map(Input::Text));
    }
    let clip = Clip { frames: vec![small_picture(embedder.space.scaling.size)] };
    if let Some(tokenizer) = embedder.tokenizer.as_ref().filter(|_| embedder.space.can.composed) {
        let windows = tokenizer.modification("a");
        let windows = windows.map_err(|error| EncodeError::Failed(error.into()))?;
        let query = Source::Frames(clip.clone());
        inputs.extend(
            windows
                .windows
                .into_iter()
                .map(|window| Input::Composed { query: query.clone(), modification: window.tokens }),
        );
    }
    if embedder.space.can.frames {
        inputs.push(Input::Frames(clip));
    }
    for encoder in &mut embedder.encoders {
        for vector in encoder.encode(&inputs)? {
            if !vector.iter().all(|value| value.is_finite()) || vector.iter().all(|value| *value == 0.0) {
                return Err(EncodeError::Failed("a vector that is not finite or has norm 0".into()));
            }
        }
    }
    Ok(())
}

/// Measures the fastest batch size of each encoder for its usual input, and sets its pass size and the `limits`. Blocks
/// for some seconds.
///
/// # Errors
/// The error of a single input.
pub(super) fn find_limits(embedder: &mut Embedder) -> Result<(), EncodeError> {
    let Some(input) = usual_input(embedder)? else { return Ok(()) };
    for encoder in &mut embedder.encoders {
        let cost = encoder.cost(&input).max(1);
        let inputs = best_batch(MOST_INPUTS, |inputs| {
            encoder.bound_pass(inputs * cost);
            let batch = vec![input.clone(); inputs];
            // The first batch of its size also allocates memory.
            encoder.encode(&batch)?;
            let start = Instant::now();
            encoder.encode(&batch)?;
            Ok(start.elapsed().as_secs_f64())
        })?;
        encoder.bound_pass(inputs * cost);
        let found = Limits { inputs, cost: inputs * cost };
        // Any encoder may get any batch, so the smallest limits apply.
        embedder.limits = Some(embedder.limits.filter(|known| known.cost < found.cost).unwrap_or(found));
    }
    Ok(())
}

/// A frame or clip, or the longest text if the model takes no pictures.
fn usual_input(embedder: &Embedder) -> Result<Option<Input>, EncodeError> {
    let frame = picture(embedder.space.scaling.size);
    if embedder.space.frame_stage.is_some() {
        return Ok(Some(Input::Frame(frame)));
    }
    if embedder.space.can.frames {
        return Ok(Some(Input::Frames(Clip { frames: vec![frame] })));
    }
    let Some(tokenizer) = &embedder.tokenizer else { return Ok(None) };
    Ok(text(tokenizer, &"a ".repeat(embedder.space.max_text_tokens))?.map(Input::Text))
}

/// The tokens of `text`, truncated to the model's limit.
fn text(tokenizer: &Tokenizer, text: &str) -> Result<Option<Tokens>, EncodeError> {
    let windows = tokenizer.windows(text, Overflow::Truncate, 1);
    let windows = windows.map_err(|error| EncodeError::Failed(error.into()))?;
    Ok(windows.windows.into_iter().next().map(|window| window.tokens))
}

/// Side in pixels of a small picture; a model that takes areas enlarges it to its least.
const SMALL: u32 = 64;

fn small_picture(size: FrameSize) -> Frame {
    match size {
        FrameSize::Area(_) => noisy(SMALL, SMALL),
        FrameSize::ShortEdge(_) | FrameSize::Exact { .. } => picture(size),
    }
}

fn picture(size: FrameSize) -> Frame {
    match size {
        FrameSize::ShortEdge(side) => noisy(side, side),
        FrameSize::Exact { width, height } => noisy(width, height),
        FrameSize::Area(rule) => {
            let (width, height) = rule.usual();
            noisy(width, height)
        }
    }
}

/// A picture that is not uniform.
fn noisy(width: u32, height: u32) -> Frame {
    let bytes = width as usize * height as usize * 3;
    Frame { time_ms: 0, width, height, rgb: (0..bytes).map(|at| (at % 251) as u8).collect() }
}

#[cfg(test)]
mod tests {
    use super::find_limits;
    use crate::loading::Embedder;
    use crate::registry::load;
    use crate::{EncodeError, Encoder, Input, Space};

    /// An encoder that fails on passes above `room`; [`Encoder::bound_pass`] must set its pass size.
    #[derive(Clone)]
    struct Small {
        space: Space,
        room: usize,
        pass: usize,
    }

    impl Encoder for Small {
        fn space(&self) -> &Space {
            &self.space
        }

        fn cost(&self, _: &Input) -> usize {
            10
        }

        fn bound_pass(&mut self, cost: usize) {
            self.pass = cost;
        }

        fn share(&self) -> Box<dyn Encoder> {
            Box::new(self.clone())
        }

        fn encode(&mut self, batch: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError> {
            assert!(batch.len() * 10 <= self.pass, "more than a pass may hold");
            match self.pass <= self.room {
                true => Ok(vec![vec![1.0]; batch.len()]),
                false => Err(EncodeError::Failed("out of memory".into())),
            }
        }
    }

    /// Checks the largest batch of encoders with this much room each, in inputs.
    #[track_caller]
    fn check(rooms: &[usize], most: Option<usize>) {
        let tiny = load(&"builtin:tiny".parse().unwrap(), 1).unwrap();
        let encoder = |room: &usize| {
            Box::new(Small { space: tiny.space.clone(), room: *room, pass: 0 }) as Box<dyn Encoder>
        };
        let mut loaded =
            Embedder { encoders: rooms.iter().map(encoder).collect(), space: tiny.space.clone(), ..tiny };
        let found = find_limits(&mut loaded).ok().and(loaded.limits);
        assert_eq!(found.is_some(), most.is_some(), "{rooms:?}");
        for (found, most) in found.into_iter().zip(most) {
            assert!(found.inputs <= most && found.cost == 10 * found.inputs, "{found:?}, {rooms:?}");
        }
    }

    #[test]
    fn a_batch_is_no_larger_than_there_is_room_for() {
        check(&[45], Some(4));
        check(&[10], Some(1));
        check(&[45, 25], Some(2));
        check(&[9], None);
    }
}
