//! The loops that turn rows of luma and chroma into RGB by a rule.

/// The arithmetic of one conversion.
pub(super) trait Rule: Copy {
    /// What the chroma of a pair of pixels adds to its red, green and blue.
    fn shifts(self, blue: u8, red: u8) -> [i16; 3];

    /// Red, green or blue of a pixel, from its luma and what chroma adds to this colour.
    fn colour(self, luma: u8, shift: i16) -> u8;

    /// Converts the first pixels of a row in a faster way, if there is one. Returns their number, which is even.
    #[inline(always)]
    fn begin(self, row: Row<'_>, rgb: &mut [u8]) -> usize {
        let _ = (row, rgb);
        0
    }
}

/// One row of a picture: luma, and a value of blue and of red chroma for each pair of pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) luma: &'a [u8],
    pub(super) blue: &'a [u8],
    pub(super) red: &'a [u8],
}

/// Pixels converted at a time; even.
const CHUNK: usize = 256;

/// Intermediate values of one chunk, by red, green and blue; overwritten by the next chunk.
pub(super) struct Scratch {
    shifts: [[i16; CHUNK]; 3],
    planes: [[u8; CHUNK]; 3],
}

impl Scratch {
    pub(super) fn new() -> Scratch {
        Scratch { shifts: [[0; CHUNK]; 3], planes: [[0; CHUNK]; 3] }
    }

    /// Writes a row's pixels to `rgb`, three bytes each.
    #[inline(always)]
    pub(super) fn convert(&mut self, rule: impl Rule, row: Row<'_>, rgb: &mut [u8]) {
        let begun = rule.begin(row, rgb);
        let (luma, rgb) = (&row.luma[begun..], &mut rgb[3 * begun..]);
        let (blue, red) = (&row.blue[begun / 2..], &row.red[begun / 2..]);
        let chroma = blue.chunks(CHUNK / 2).zip(red.chunks(CHUNK / 2));
        let chunks = luma.chunks(CHUNK).zip(chroma).zip(rgb.chunks_mut(3 * CHUNK));
        for ((luma, (blue, red)), rgb) in chunks {
            self.convert_chunk(rule, Row { luma, blue, red }, rgb);
        }
    }

    /// Several loops of one kind each, so that the compiler vectorises them.
    #[inline(always)]
    fn convert_chunk(&mut self, rule: impl Rule, row: Row<'_>, rgb: &mut [u8]) {
        let [to_red, to_green, to_blue] = &mut self.shifts;
        let pairs = to_red.chunks_exact_mut(2).zip(to_green.chunks_exact_mut(2));
        let pairs = pairs.zip(to_blue.chunks_exact_mut(2));
        for (((to_red, to_green), to_blue), (blue, red)) in pairs.zip(row.blue.iter().zip(row.red)) {
            let [by_red, by_green, by_blue] = rule.shifts(*blue, *red);
            [to_red[0], to_red[1]] = [by_red; 2];
            [to_green[0], to_green[1]] = [by_green; 2];
            [to_blue[0], to_blue[1]] = [by_blue; 2];
        }
        for (plane, shifts) in self.planes.iter_mut().zip(&self.shifts) {
            for ((colour, shift), luma) in plane.iter_mut().zip(shifts).zip(row.luma) {
                *colour = rule.colour(*luma, *shift);
            }
        }
        let [red, green, blue] = &self.planes;
        for (((pixel, red), green), blue) in rgb.chunks_exact_mut(3).zip(red).zip(green).zip(blue) {
            [pixel[0], pixel[1], pixel[2]] = [*red, *green, *blue];
        }
    }
}
