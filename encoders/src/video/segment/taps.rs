//! Where scaled pixels come from in OpenCV's linear interpolation.

/// The two source pixels of a target pixel, and their weights in units of 1 / 2048.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) of_first: i16,
    pub(super) of_second: i16,
}

/// Where a row has the two source bytes of a target byte, and their weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) bytes: [usize; 2],
    pub(super) weights: [i16; 2],
}

const ONE: f32 = 2048.0;

impl Tap {
    /// The place of the byte of this colour: 0, 1 or 2.
    pub(super) fn place(&self, colour: usize) -> Place {
        Place {
            bytes: [self.first, self.second].map(|pixel| 3 * pixel + colour),
            weights: [self.of_first, self.of_second],
        }
    }
}

/// The taps of a side of `from` pixels that becomes one of `to`. Computed in OpenCV's steps and integer widths.
pub(super) fn taps(from: usize, to: usize) -> Vec<Tap> {
    let scale = 1.0 / (to as f64 / from as f64);
    let weight = |part: f32| (part * ONE).round_ties_even() as i16;
    let tap = |at: usize| {
        let place = ((at as f64 + 0.5) * scale - 0.5) as f32;
        let place = place.clamp(0.0, (from - 1) as f32);
        let (first, part) = (place as usize, place - place.floor());
        let second = (first + 1).min(from - 1);
        Tap { first, second, of_first: weight(1.0 - part), of_second: weight(part) }
    };
    (0..to).map(tap).collect()
}
