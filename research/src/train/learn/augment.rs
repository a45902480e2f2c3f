//! Chooses the frames of one training example. It moves clip boundaries and adds foreign frames at the ends, as
//! search windows cut a longer routine.

use super::Random;
use reprise_encoders::sample::spread;

/// One frame of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClipFrame {
    /// Index of the source clip.
    pub clip: usize,
    /// Index of the frame in that clip.
    pub frame: usize,
}

/// How much examples differ from their clips.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Augment {
    /// Probability of a boundary moved inwards.
    pub cropped: f32,
    /// Largest fraction of the clip cut off at either end.
    pub most_cropped: f32,
    /// Probability of foreign frames before or after the clip.
    pub padded: f32,
    /// Largest fraction of the example that is padding.
    pub most_padded: f32,
}

impl Augment {
    /// No changes: the clip exactly as labelled.
    pub const NONE: Augment = Augment { cropped: 0.0, most_cropped: 0.0, padded: 0.0, most_padded: 0.0 };
    /// The settings of the built-in model.
    pub const USUAL: Augment = Augment { cropped: 0.4, most_cropped: 0.07, padded: 0.35, most_padded: 0.45 };

    /// Samples `wanted` frames of `clip` with its padding. `frames` gives the length of each clip. Padding
    /// holds the clip's first or last frame, or is taken from `neighbour`: its last frames before the clip, its
    /// first ones after.
    pub fn places(
        &self,
        clip: usize,
        neighbour: usize,
        frames: &dyn Fn(usize) -> usize,
        wanted: usize,
        random: &mut Random,
    ) -> Vec<ClipFrame> {
        let (count, strange) = (frames(clip).max(1), frames(neighbour).max(1));
        let (mut start, mut end) = (0, count);
        if random.chance(self.cropped) {
            let most = (count as f32 * self.most_cropped).round() as usize;
            start = random.below(most + 1);
            end = count - random.below(most + 1).min(count - 1 - start.min(count - 1));
        }
        let end = end.max(start + 1).min(count);
        let mut padding = 0;
        if random.chance(self.padded) {
            let part = random.between(0.0, self.most_padded).min(0.9);
            padding = (part / (1.0 - part) * (end - start) as f32).round() as usize;
        }
        let before = random.below(padding + 1);
        let (after, held) = (padding - before, random.chance(0.4));
        let early = (0..before).map(|at| match held {
            true => ClipFrame { clip, frame: start },
            false => ClipFrame { clip: neighbour, frame: strange - 1 - (before - 1 - at) % strange },
        });
        let late = (0..after).map(|at| match held {
            true => ClipFrame { clip, frame: end - 1 },
            false => ClipFrame { clip: neighbour, frame: at % strange },
        });
        let own = (start..end).map(|frame| ClipFrame { clip, frame });
        let all: Vec<ClipFrame> = early.chain(own).chain(late).collect();
        spread(all.len(), wanted).into_iter().map(|at| all[at]).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_augmentation_an_example_is_what_the_sampler_picks() {
        let places = Augment::NONE.places(3, 4, &|_| 40, 16, &mut Random::new(&[1]));
        let frames: Vec<usize> = places.iter().map(|it| it.frame).collect();
        assert_eq!(frames, spread(40, 16));
        assert!(places.iter().all(|it| it.clip == 3));
    }

    proptest! {
        #[test]
        fn every_place_exists_and_most_are_of_the_clip_in_order(
            count in 1_usize..60, strange in 1_usize..60, seed in 0_u64..10_000,
        ) {
            let frames = |clip| if clip == 0 { count } else { strange };
            let places = Augment::USUAL.places(0, 1, &frames, 16, &mut Random::new(&[seed]));
            prop_assert_eq!(places.len(), 16);
            prop_assert!(places.iter().all(|it| it.frame < frames(it.clip)));
            let own: Vec<usize> = places.iter().filter(|it| it.clip == 0).map(|it| it.frame).collect();
            prop_assert!(own.len() >= 6, "{:?}", places);
            prop_assert!(own.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
