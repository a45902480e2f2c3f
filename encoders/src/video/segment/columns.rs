//! Scales rows of pixels horizontally, as OpenCV's linear interpolation does.

#[cfg(target_arch = "x86_64")]
use super::shuffled::Shuffled;
use super::taps::{Place, Tap};

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
