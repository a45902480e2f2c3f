//! Samplers: rules that select the frames of a span to encode.

use serde::{Deserialize, Serialize};

use grid::{Grid, Rate};

pub mod even;
pub(crate) mod grid;

/// A rule that picks frames of a span by their times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampler {
    /// `frames` frames at interval middles; short spans repeat the list cyclically (TF-CoVR's rule, arXiv 2506.05274).
    Middles {
        /// Number of frames.
        frames: usize,
    },
    /// The frames at the middles of `frames` equal parts of the span, in order. Short spans repeat a frame in place, so
    /// that time never runs backwards.
    Spread {
        /// Number of frames.
        frames: usize,
    },
    /// `frames` frames evenly from the span's first to its last, rounded down: `linspace(0, count - 1, frames)`, as
    /// LanguageBind's released code (languagebind/video/processing_video.py).
    Ends {
        /// Number of frames.
        frames: usize,
    },
    /// Every (count / `frames`)-th frame, the step rounded down, up to `frames` frames. As VideoCLIP-XL's released
    /// code (demo.py), which refuses spans of fewer frames. Here [`Sampler::Ends`] samples those.
    Steps {
        /// Number of frames.
        frames: usize,
    },
    /// Every `frames`-th frame, from the span's first.
    Stride {
        /// The stride.
        frames: usize,
    },
    /// The frame on screen at each interval middle start + (i + 0.5) / rate: the last frame whose time lies before it.
    /// Each frame is taken once; long spans are subsampled evenly to `at_most` frames.
    PerSecond {
        /// Frames per second of video, 0.01 to 240.
        rate: f64,
        /// Largest number of frames.
        at_most: usize,
    },
}

impl Sampler {
    /// Indices into `times_ms`, the ascending times of the span's frames; the span starts at `start_ms`. At least one
    /// index if there is a frame.
    #[must_use]
    pub fn pick(&self, times_ms: &[i64], start_ms: i64) -> Vec<usize> {
        match *self {
            Sampler::Middles { frames } => middles(times_ms.len(), frames.max(1)),
            Sampler::Spread { frames } => spread(times_ms.len(), frames.max(1)),
            Sampler::Ends { frames } => ends(times_ms.len(), frames.max(1)),
            Sampler::Steps { frames } => steps(times_ms.len(), frames.max(1)),
            Sampler::Stride { frames } => (0..times_ms.len()).step_by(frames.max(1)).collect(),
            Sampler::PerSecond { rate, at_most } => {
                thinned(per_second(times_ms, start_ms, rate), at_most.max(1))
            }
        }
    }
}

/// Computed in f64, as the paper's code does: integers would differ in rounding.
fn middles(count: usize, wanted: usize) -> Vec<usize> {
    let intervals = wanted.min(count);
    let width = count as f64 / intervals.max(1) as f64;
    let edge = |i: usize| (i as f64 * width).floor() as i64;
    let once: Vec<usize> =
        (0..intervals).map(|i| (edge(i) + edge(i + 1) - 1).div_euclid(2).max(0) as usize).collect();
    once.iter().copied().cycle().take(if count == 0 { 0 } else { wanted }).collect()
}

/// The indices of `count` frames at the middles of `wanted` equal parts; empty without frames.
pub fn spread(count: usize, wanted: usize) -> Vec<usize> {
    let parts = if count == 0 { 0 } else { wanted };
    (0..parts).map(|part| (2 * part + 1) * count / (2 * wanted)).collect()
}

/// Computed in f64, as numpy does.
fn ends(count: usize, wanted: usize) -> Vec<usize> {
    let Some(last) = count.checked_sub(1) else { return Vec::new() };
    let step = last as f64 / (wanted.max(2) - 1) as f64;
    let mut picked: Vec<usize> = (0..wanted).map(|at| (at as f64 * step).floor() as usize).collect();
    if let (Some(end), true) = (picked.last_mut(), wanted > 1) {
        *end = last;
    }
    picked
}

fn steps(count: usize, wanted: usize) -> Vec<usize> {
    if count < wanted { ends(count, wanted) } else { (0..wanted).map(|at| at * (count / wanted)).collect() }
}

fn per_second(times_ms: &[i64], start_ms: i64, rate: f64) -> Vec<usize> {
    let mut grid = Grid::new(Rate::new(rate));
    let mut picked: Vec<usize> =
        times_ms.iter().filter_map(|&time| grid.push(time - start_ms)).map(|t| t.index).collect();
    picked.extend(grid.end().map(|t| t.index));
    picked
}

/// Subsamples a list: the entries at the middles of `at_most` equal parts.
fn thinned(picked: Vec<usize>, at_most: usize) -> Vec<usize> {
    let count = picked.len();
    if count <= at_most {
        return picked;
    }
    (0..at_most).map(|i| picked[(2 * i + 1) * count / (2 * at_most)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(sampler: Sampler, frames: i64, expected: &[usize]) {
        let times: Vec<i64> = (0..frames).map(|i| i * 40).collect();
        assert_eq!(sampler.pick(&times, 0), expected);
    }

    #[test]
    fn middles_are_the_papers() {
        let twelve = Sampler::Middles { frames: 12 };
        check(twelve, 0, &[]);
        check(twelve, 1, &[0; 12]);
        check(twelve, 2, &[0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        check(twelve, 5, &[0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
        check(twelve, 30, &[0, 3, 5, 8, 10, 13, 15, 18, 20, 23, 25, 28]);
        check(twelve, 100, &[3, 11, 20, 28, 36, 45, 53, 61, 70, 78, 86, 95]);
        check(twelve, 725, &[29, 89, 150, 210, 271, 331, 391, 452, 512, 573, 633, 694]);
    }

    #[test]
    fn a_spread_keeps_the_order_of_time() {
        check(Sampler::Spread { frames: 4 }, 8, &[1, 3, 5, 7]);
        check(Sampler::Spread { frames: 4 }, 30, &[3, 11, 18, 26]);
        check(Sampler::Spread { frames: 4 }, 3, &[0, 1, 1, 2]);
        check(Sampler::Spread { frames: 4 }, 1, &[0, 0, 0, 0]);
        check(Sampler::Spread { frames: 4 }, 0, &[]);
    }

    #[test]
    fn both_ends_are_taken_as_released() {
        let eight = Sampler::Ends { frames: 8 };
        check(eight, 40, &[0, 5, 11, 16, 22, 27, 33, 39]);
        check(eight, 4, &[0, 0, 0, 1, 1, 2, 2, 3]);
        check(eight, 1, &[0; 8]);
        check(eight, 0, &[]);
        check(Sampler::Ends { frames: 1 }, 9, &[0]);
    }

    #[test]
    fn steps_are_whole_as_released() {
        let eight = Sampler::Steps { frames: 8 };
        check(eight, 40, &[0, 5, 10, 15, 20, 25, 30, 35]);
        check(eight, 47, &[0, 5, 10, 15, 20, 25, 30, 35]);
        check(eight, 8, &[0, 1, 2, 3, 4, 5, 6, 7]);
        check(eight, 4, &[0, 0, 0, 1, 1, 2, 2, 3]);
        check(eight, 0, &[]);
    }

    #[test]
    fn a_stride_begins_at_the_first_frame() {
        check(Sampler::Stride { frames: 10 }, 25, &[0, 10, 20]);
        check(Sampler::Stride { frames: 10 }, 7, &[0]);
        check(Sampler::Stride { frames: 0 }, 3, &[0, 1, 2]);
        check(Sampler::Stride { frames: 10 }, 0, &[]);
    }

    #[test]
    fn per_second_takes_what_is_on_the_screen_at_interval_middles() {
        check(Sampler::PerSecond { rate: 5.0, at_most: 100 }, 11, &[2, 7]);
        check(Sampler::PerSecond { rate: 25.0, at_most: 100 }, 4, &[0, 1, 2, 3]);
        check(Sampler::PerSecond { rate: 100.0, at_most: 100 }, 4, &[0, 1, 2, 3]);
        check(Sampler::PerSecond { rate: 0.1, at_most: 100 }, 4, &[3]);
        check(Sampler::PerSecond { rate: 25.0, at_most: 2 }, 8, &[2, 6]);
        let moved = Sampler::PerSecond { rate: 1.0, at_most: 9 }
            .pick(&[10_000, 10_400, 10_800, 11_200, 11_600], 10_000);
        assert_eq!(moved, [1, 3]);
    }

    fn any_sampler() -> impl Strategy<Value = Sampler> {
        prop_oneof![
            (0_usize..70).prop_map(|frames| Sampler::Middles { frames }),
            (0_usize..70).prop_map(|frames| Sampler::Spread { frames }),
            (0_usize..70).prop_map(|frames| Sampler::Stride { frames }),
            (0_usize..70).prop_map(|frames| Sampler::Ends { frames }),
            (0_usize..70).prop_map(|frames| Sampler::Steps { frames }),
            (0.001_f64..300.0, 0_usize..70).prop_map(|(rate, at_most)| Sampler::PerSecond { rate, at_most }),
        ]
    }

    proptest! {
        #[test]
        fn at_least_one_frame_is_picked_and_all_exist(
            sampler in any_sampler(), gaps in prop::collection::vec(0_i64..5000, 1..200), start in 0_i64..100_000,
        ) {
            let mut time = start;
            let times: Vec<i64> = gaps.iter().map(|gap| { time += gap; time }).collect();
            let picked = sampler.pick(&times, start);
            prop_assert!(!picked.is_empty());
            prop_assert!(picked.iter().all(|&i| i < times.len()));
            if let Sampler::PerSecond { at_most, .. } = sampler {
                prop_assert!(picked.len() <= at_most.max(1));
                prop_assert!(picked.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
