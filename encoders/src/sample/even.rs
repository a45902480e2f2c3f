//! Chooses the frames of a video that a model reads: an even number, evenly spaced from the first to the last. As
//! qwen-vl-utils 0.0.14.

/// Frames are taken in pairs.
const PAIR: usize = 2;

/// How many frames to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FrameCount {
    /// Frames at a rate: at least 4 in all, and `at_most`.
    PerSecond {
        /// Frames per second of video.
        rate: f64,
        /// The most frames.
        at_most: usize,
    },
    /// A number, which is rounded to an even one.
    Exactly(usize),
}

/// Fewest frames of [`FrameCount::PerSecond`].
const FEWEST: usize = 4;

impl FrameCount {
    /// The number of frames to take of `total` at `fps`; `None` if the video has fewer than two frames or than asked
    /// for.
    pub fn of(self, total: usize, fps: f64) -> Option<usize> {
        let count = match self {
            FrameCount::Exactly(count) => round_to_even_multiple(count),
            FrameCount::PerSecond { rate, at_most } => {
                let even = |count: usize| count / PAIR * PAIR;
                let most = even(at_most).min(total).max(FEWEST) as f64;
                let wanted = (total as f64 / fps * rate).clamp(FEWEST as f64, most);
                even((wanted.min(total as f64) as usize).max(PAIR))
            }
        };
        (count >= PAIR && count <= total).then_some(count)
    }
}

/// Halves go to the even multiple, as Python's round does.
fn round_to_even_multiple(count: usize) -> usize {
    let pairs = (count as f64 / PAIR as f64).round_ties_even();
    pairs as usize * PAIR
}

/// `count` indices from 0 to `total - 1`: `linspace(0, total - 1, count).round()` in f32, as PyTorch computes it.
pub fn indices(total: usize, count: usize) -> Vec<usize> {
    let last = total.saturating_sub(1) as f32;
    let step = if count > 1 { last / (count - 1) as f32 } else { 0.0 };
    let value = |at: usize| match at < count / 2 || count < 2 {
        true => step * at as f32,
        false => last - step * (count - 1 - at) as f32,
    };
    (0..count).map(|at| value(at).round_ties_even() as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn videos_of_fewer_than_two_frames_give_none() {
        for total in [0, 1] {
            assert_eq!(FrameCount::PerSecond { rate: 2.0, at_most: 64 }.of(total, 25.0), None);
            assert_eq!(FrameCount::Exactly(2).of(total, 25.0), None);
        }
        assert_eq!(FrameCount::PerSecond { rate: 2.0, at_most: 64 }.of(3, 25.0), Some(2));
    }

    #[test]
    fn the_first_and_the_last_frame_are_taken() {
        assert_eq!(indices(75, 4), [0, 25, 49, 74]);
        assert_eq!(indices(9, 1), [0]);
        assert!(indices(0, 0).is_empty());
    }
}
