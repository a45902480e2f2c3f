//! Converts RGB to planes of hue, saturation, value and luma with OpenCV's rounding, and compares planes.
//!
//! All loops are written so that the compiler vectorises them for the processor's widest registers ([`Wide`] picks at
//! run time).

use crate::wide::Wide;

/// Pixels converted at a time: their planes stay in the L1 cache.
const CHUNK: usize = 1024;

/// One frame as planes, one byte per pixel.
#[derive(Debug, Default, Clone)]
pub(super) struct Planes {
    /// 0 to 179.
    pub(super) hue: Vec<u8>,
    pub(super) saturation: Vec<u8>,
    /// The largest of red, green and blue.
    pub(super) value: Vec<u8>,
    /// (red + 2 green + blue) / 4.
    pub(super) luma: Vec<u8>,
    /// The mean of all RGB bytes.
    pub(super) brightness: f64,
}

/// Mean absolute differences of two frames' planes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Differences {
    pub(super) hue: f64,
    pub(super) saturation: f64,
    pub(super) value: f64,
}

impl Planes {
    /// Converts a frame; returns its differences from the planes of `before`, or zeros if the sizes differ.
    pub(super) fn fill(&mut self, wide: Wide, rgb: &[u8], before: &Planes) -> Differences {
        let pixels = rgb.len() / 3;
        for plane in [&mut self.hue, &mut self.saturation, &mut self.value, &mut self.luma] {
            plane.resize(pixels, 0);
        }
        let comparable = pixels > 0 && before.hue.len() == pixels;
        let sums = wide.run(
            #[inline(always)]
            || self.fill_chunks(rgb, comparable.then_some(before)),
        );
        self.brightness = sums.bytes as f64 / (3 * pixels).max(1) as f64;
        let mean = |sum: u64| sum as f64 / pixels.max(1) as f64;
        Differences { hue: mean(sums.hue), saturation: mean(sums.saturation), value: mean(sums.value) }
    }

    #[inline(always)]
    fn fill_chunks(&mut self, rgb: &[u8], before: Option<&Planes>) -> Sums {
        let mut sums = Sums::default();
        let mut scratch = Scratch::new();
        let chunks = self
            .hue
            .chunks_mut(CHUNK)
            .zip(self.saturation.chunks_mut(CHUNK))
            .zip(self.value.chunks_mut(CHUNK))
            .zip(self.luma.chunks_mut(CHUNK));
        for (index, (((hue, saturation), value), luma)) in chunks.enumerate() {
            let from = index * CHUNK;
            let pixels = &rgb[3 * from..3 * (from + hue.len())];
            sums.bytes += convert(&mut scratch, pixels, [&mut *hue, &mut *saturation, &mut *value, luma]);
            if let Some(before) = before {
                let until = from + hue.len();
                sums.hue += distance(hue, &before.hue[from..until]);
                sums.saturation += distance(saturation, &before.saturation[from..until]);
                sums.value += distance(value, &before.value[from..until]);
            }
        }
        sums
    }
}

#[derive(Default)]
struct Sums {
    hue: u64,
    saturation: u64,
    value: u64,
    bytes: u64,
}

/// Intermediate values of one chunk; overwritten by the next chunk.
struct Scratch {
    red: [u8; CHUNK],
    green: [u8; CHUNK],
    blue: [u8; CHUNK],
    range: [u8; CHUNK],
    sector: [i16; CHUNK],
}

impl Scratch {
    fn new() -> Scratch {
        Scratch {
            red: [0; CHUNK],
            green: [0; CHUNK],
            blue: [0; CHUNK],
            range: [0; CHUNK],
            sector: [0; CHUNK],
        }
    }
}

/// Parallel 16-bit sums: [`CHUNK`] bytes cannot overflow them.
const LANES: usize = 32;

/// Sums the absolute differences of at most [`CHUNK`] bytes.
#[inline(always)]
fn distance(a: &[u8], b: &[u8]) -> u64 {
    let mut sums = [0_u16; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a.remainder().iter().zip(b.remainder()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            let difference = a[lane].max(b[lane]).wrapping_sub(a[lane].min(b[lane]));
            sums[lane] = sums[lane].wrapping_add(u16::from(difference));
        }
    }
    rest + sums.iter().map(|it| u64::from(*it)).sum::<u64>()
}

/// OpenCV's fixed point: 12 fractional bits.
const SHIFT: u32 = 12;
/// 255 / value and 180 / (6 range, for half degrees), in fixed point.
const BY_VALUE: f32 = (255 << SHIFT) as f32;
const BY_RANGE: f32 = (30 << SHIFT) as f32;

/// Converts at most [`CHUNK`] pixels; returns the sum of their bytes. All slices hold the same number of pixels.
///
/// Several loops, each with numbers of one width: the width decides how many fit into a register.
#[inline(always)]
fn convert(scratch: &mut Scratch, rgb: &[u8], [hue, saturation, value, luma]: [&mut [u8]; 4]) -> u64 {
    let count = hue.len().min(CHUNK);
    let (red, green) = (&mut scratch.red[..count], &mut scratch.green[..count]);
    let (blue, range) = (&mut scratch.blue[..count], &mut scratch.range[..count]);
    let sector = &mut scratch.sector[..count];
    let (hue, saturation) = (&mut hue[..count], &mut saturation[..count]);
    let (value, luma) = (&mut value[..count], &mut luma[..count]);
    for (((pixel, red), green), blue) in
        rgb.chunks_exact(3).zip(red.iter_mut()).zip(green.iter_mut()).zip(blue.iter_mut())
    {
        [*red, *green, *blue] = [pixel[0], pixel[1], pixel[2]];
    }
    for at in 0..count {
        let (r, g, b) = (red[at], green[at], blue[at]);
        value[at] = r.max(g).max(b);
        range[at] = value[at].wrapping_sub(r.min(g).min(b));
    }
    for at in 0..count {
        let (r, g, b) = (u16::from(red[at]), u16::from(green[at]), u16::from(blue[at]));
        luma[at] = (r.wrapping_add(g.wrapping_mul(2)).wrapping_add(b) / 4) as u8;
    }
    for at in 0..count {
        let [r, g, b, v, d] = [red[at], green[at], blue[at], value[at], range[at]].map(i16::from);
        let of_blue = r.wrapping_sub(g).wrapping_add(d.wrapping_mul(4));
        let of_green = b.wrapping_sub(r).wrapping_add(d.wrapping_mul(2));
        let of_rest = if v == g { of_green } else { of_blue };
        sector[at] = if v == r { g.wrapping_sub(b) } else { of_rest };
    }
    const HALF: i32 = 1 << (SHIFT - 1);
    for at in 0..count {
        let (v, d) = (value[at], range[at]);
        let by_value = nearest(BY_VALUE / f32::from(v.max(1)));
        saturation[at] = (i32::from(d).wrapping_mul(by_value).wrapping_add(HALF) >> SHIFT) as u8;
    }
    for at in 0..count {
        let by_range = nearest(BY_RANGE / f32::from(range[at].max(1)));
        let h = i32::from(sector[at]).wrapping_mul(by_range).wrapping_add(HALF) >> SHIFT;
        hue[at] = h.wrapping_add(if h < 0 { 180 } else { 0 }) as u8;
    }
    const DARK: [u8; CHUNK] = [0; CHUNK];
    distance(red, &DARK[..count]) + distance(green, &DARK[..count]) + distance(blue, &DARK[..count])
}

/// The integer nearest to a number from 0 to 2^22. Adding 2^23 leaves a float no fractional bits; a cast would check
/// each pixel for infinity. The quotients above are integers, or differ from a half by at least 1/510 of their size,
/// more than a float's rounding error.
#[inline(always)]
fn nearest(number: f32) -> i32 {
    const WHOLE: f32 = 8_388_608.0;
    ((number + WHOLE).to_bits() & 0x7F_FFFF) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rgb: [u8; 3], expected: [u8; 3]) {
        let mut planes = Planes::default();
        planes.fill(Wide::detect(), &rgb, &Planes::default());
        assert_eq!([planes.hue[0], planes.saturation[0], planes.value[0]], expected, "{rgb:?}");
    }

    /// Expected values of cv2.cvtColor(..., COLOR_BGR2HSV).
    #[test]
    fn colours_convert_as_in_opencv() {
        check([0, 0, 0], [0, 0, 0]);
        check([255, 255, 255], [0, 0, 255]);
        check([255, 0, 0], [0, 255, 255]);
        check([0, 255, 0], [60, 255, 255]);
        check([0, 0, 255], [120, 255, 255]);
        check([255, 255, 0], [30, 255, 255]);
        check([255, 0, 255], [150, 255, 255]);
        check([128, 64, 32], [10, 191, 128]);
        check([200, 10, 20], [178, 242, 200]);
    }

    /// OpenCV's tables, computed in integers.
    #[test]
    fn reciprocals_are_those_of_the_tables() {
        for of in [255 << SHIFT, 30 << SHIFT] {
            for by in 1..256 {
                assert_eq!(nearest(of as f32 / by as f32), (2 * of + by) / (2 * by), "{of} / {by}");
            }
        }
    }

    #[test]
    fn hue_and_saturation_are_within_one_of_the_real_ones() {
        let colours: Vec<u8> =
            (0..1_u32 << 24).step_by(37).flat_map(|it| it.to_be_bytes()[1..].to_vec()).collect();
        let mut planes = Planes::default();
        planes.fill(Wide::detect(), &colours, &Planes::default());
        for (at, colour) in colours.chunks_exact(3).enumerate() {
            let [red, green, blue] = [colour[0], colour[1], colour[2]];
            let (hue, saturation, value) = (planes.hue[at], planes.saturation[at], planes.value[at]);
            let (r, g, b) = (f64::from(red), f64::from(green), f64::from(blue));
            let v = r.max(g).max(b);
            let d = v - r.min(g).min(b);
            assert!(f64::from(value) == v && hue < 180, "{red} {green} {blue}");
            if v > 0.0 {
                assert!((f64::from(saturation) - 255.0 * d / v).abs() <= 0.6, "{red} {green} {blue}");
            }
            if d > 0.0 {
                let sixth = if v == r {
                    (g - b) / d
                } else if v == g {
                    2.0 + (b - r) / d
                } else {
                    4.0 + (r - g) / d
                };
                let off = (f64::from(hue) - (60.0 * sixth).rem_euclid(360.0) / 2.0).abs();
                assert!(off.min(180.0 - off) <= 0.7, "{red} {green} {blue}");
            }
        }
    }

    #[test]
    fn differences_are_means_over_all_pixels_whatever_their_number() {
        for pixels in [1, 7, 1024, 1025, 5000] {
            let of = |rgb: [u8; 3]| rgb.repeat(pixels);
            let (mut first, mut second) = (Planes::default(), Planes::default());
            assert_eq!(
                first.fill(Wide::detect(), &of([255, 0, 0]), &Planes::default()),
                Differences::default()
            );
            let differences = second.fill(Wide::detect(), &of([0, 0, 128]), &first);
            assert_eq!(differences, Differences { hue: 120.0, saturation: 0.0, value: 127.0 });
            assert!((second.brightness - 128.0 / 3.0).abs() < 1e-12);
            assert_eq!((first.luma[pixels - 1], second.luma[0]), (63, 32));
        }
    }
}
