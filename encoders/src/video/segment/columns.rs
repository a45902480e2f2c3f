//! Scales rows of pixels horizontally, as OpenCV's linear interpolation does.

#[cfg(target_arch = "x86_64")]
use super::shuffled::Shuffled;

/// The two source pixels of a target pixel, and their weights in units of 1 / 2048.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) of_first: i16,
    pub(super) of_second: i16,
}

/// The columns of pictures of one width.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// One for each byte of a target row.
    places: Vec<Place>,
    /// The same for vector instructions.
    #[cfg(target_arch = "x86_64")]
    shuffled: Option<Shuffled>,
    /// The source bytes of a row, a pair for each target byte, so that the compiler vectorises their products.
    pairs: Vec<[u8; 2]>,
}

/// Where a row has the two source bytes of a target byte, and their weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) bytes: [usize; 2],
    pub(super) weights: [i16; 2],
}

impl Columns {
    /// `width` is that of the source, in pixels; `taps` has one entry for each target pixel.
    pub(super) fn new(width: usize, taps: &[Tap]) -> Columns {
        let places: Vec<Place> =
            taps.iter().flat_map(|tap| [0, 1, 2].map(|colour| tap.place(colour))).collect();
        Columns {
            #[cfg(target_arch = "x86_64")]
            shuffled: Shuffled::new(3 * width, &places),
            pairs: vec![[0; 2]; places.len()],
            places,
        }
    }

    /// Scales as processors without AVX2 do, from now on.
    #[cfg(test)]
    pub(super) fn forget_shuffles(&mut self) {
        #[cfg(target_arch = "x86_64")]
        {
            self.shuffled = None;
        }
    }

    /// Pixels of a target row.
    pub(super) fn width(&self) -> usize {
        self.places.len() / 3
    }

    /// Writes each target byte of a source row with 7 fractional bits. `values` grows to at least as many.
    #[inline(always)]
    pub(super) fn scale(&mut self, row: &[u8], values: &mut Vec<i16>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(shuffled) = &self.shuffled {
            return shuffled.scale(row, values);
        }
        for (pair, place) in self.pairs.iter_mut().zip(&self.places) {
            *pair = [row[place.bytes[0]], row[place.bytes[1]]];
        }
        values.resize(self.places.len(), 0);
        for ((value, pair), place) in values.iter_mut().zip(&self.pairs).zip(&self.places) {
            let part = |which: usize| i32::from(pair[which]) * i32::from(place.weights[which]);
            *value = ((part(0) + part(1)) >> 4) as i16;
        }
    }
}

impl Tap {
    fn place(&self, colour: usize) -> Place {
        Place {
            bytes: [self.first, self.second].map(|pixel| 3 * pixel + colour),
            weights: [self.of_first, self.of_second],
        }
    }
}
