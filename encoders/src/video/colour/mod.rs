//! Converts luma and chroma to RGB with the rounding of ffmpeg's scaler (libswscale/yuv2rgb.c).
//!
//! Small pictures cross the pipe as YUV 4:2:2, two bytes per pixel, and become RGB here. ffmpeg's scaler looks up every
//! byte in a table, which takes more than a tenth of the time of decoding the frame.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::wide::Wide;

/// The weights of red and blue in a video's luma.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matrix {
    /// ITU-R BT.601, also for videos that name no matrix.
    Bt601,
    /// ITU-R BT.709.
    Bt709,
    /// BT.2020, with or without constant luminance.
    Bt2020,
    /// FCC, Title 47.
    Fcc,
    /// SMPTE 240M.
    Smpte240m,
}

impl Matrix {
    /// The matrix for ffprobe's `name`, chosen as in ffmpeg's scaler.
    pub(super) fn named(name: &str) -> Matrix {
        match name {
            "bt709" => Matrix::Bt709,
            "bt2020nc" | "bt2020c" => Matrix::Bt2020,
            "fcc" => Matrix::Fcc,
            "smpte240m" => Matrix::Smpte240m,
            _ => Matrix::Bt601,
        }
    }

    /// The weights of red and blue; green has the rest.
    fn weights(self) -> (f64, f64) {
        match self {
            Matrix::Bt601 => (0.299, 0.114),
            Matrix::Bt709 => (0.2126, 0.0722),
            Matrix::Bt2020 => (0.2627, 0.0593),
            Matrix::Fcc => (0.30, 0.11),
            Matrix::Smpte240m => (0.212, 0.087),
        }
    }
}

/// Converts pictures of one video to RGB.
#[derive(Debug)]
pub(super) struct ToRgb {
    wide: Wide,
    steps: Steps,
}

impl ToRgb {
    pub(super) fn new(matrix: Matrix) -> ToRgb {
        ToRgb { wide: Wide::detect(), steps: Steps::of(matrix) }
    }

    /// The RGB pixels of a picture, or `None` if the number of bytes does not fit. Planes follow each other: luma, blue
    /// and red chroma, 8 bits in video range. Chroma has all rows and half the columns, rounded up.
    pub(super) fn picture(&self, width: u32, height: u32, planes: &[u8]) -> Option<Arc<[u8]>> {
        let (width, height) = (width as usize, height as usize);
        let half = width.div_ceil(2);
        if width == 0 || planes.len() != (width + 2 * half).checked_mul(height)? {
            return None;
        }
        let (luma, chroma) = planes.split_at(width * height);
        let (blue, red) = chroma.split_at(half * height);
        let mut rgb: Arc<[u8]> = std::iter::repeat_n(0, 3 * width * height).collect();
        let rows = Arc::get_mut(&mut rgb)?
            .chunks_exact_mut(3 * width)
            .zip(luma.chunks_exact(width))
            .zip(blue.chunks_exact(half).zip(red.chunks_exact(half)));
        self.wide.run(
            #[inline(always)]
            || {
                let mut scratch = Scratch::new();
                for ((rgb, luma), (blue, red)) in rows {
                    let luma = luma.chunks(CHUNK);
                    let chroma = blue.chunks(CHUNK / 2).zip(red.chunks(CHUNK / 2));
                    for ((rgb, luma), (blue, red)) in rgb.chunks_mut(3 * CHUNK).zip(luma).zip(chroma) {
                        scratch.convert(self.steps, luma, blue, red, rgb);
                    }
                }
            },
        );
        Some(rgb)
    }
}

/// The change of a colour, in steps of luma, per step of chroma; fixed point with 16 fractional bits.
#[derive(Debug, Clone, Copy)]
struct Steps {
    red_by_red: i32,
    green_by_blue: i32,
    green_by_red: i32,
    blue_by_blue: i32,
}

/// One step of luma (of 219) on the scale of 8-bit colours; fixed point with 16 fractional bits.
const LUMA: i32 = (255 << 16) / 219;
/// Start value of the scaler's tables, 326 steps before the zero offset, plus one half for rounding.
const BLACK: i32 = 326 * LUMA - ((384 + 16) << 16) + (1 << 15);

impl Steps {
    fn of(matrix: Matrix) -> Steps {
        let (red, blue) = matrix.weights();
        let green = 1.0 - red - blue;
        let steps = |by: f64| {
            // 224 steps of chroma cover the whole range.
            let of_colour = (by * 2.0 * 255.0 / 224.0 * 65_536.0).round() as i64;
            ((of_colour * 65_536 + 32_768) / i64::from(LUMA)) as i32
        };
        Steps {
            red_by_red: steps(1.0 - red),
            green_by_blue: steps(-blue * (1.0 - blue) / green),
            green_by_red: steps(-red * (1.0 - red) / green),
            blue_by_blue: steps(1.0 - blue),
        }
    }
}

/// Pixels converted at a time; even.
const CHUNK: usize = 256;

/// Intermediate values of one chunk, by red, green and blue; overwritten by the next chunk.
struct Scratch {
    shifts: [[i16; CHUNK]; 3],
    planes: [[u8; CHUNK]; 3],
}

impl Scratch {
    fn new() -> Scratch {
        Scratch { shifts: [[0; CHUNK]; 3], planes: [[0; CHUNK]; 3] }
    }

    /// Several loops of one kind each, so that the compiler vectorises them.
    #[inline(always)]
    fn convert(&mut self, steps: Steps, luma: &[u8], blue: &[u8], red: &[u8], rgb: &mut [u8]) {
        let [to_red, to_green, to_blue] = &mut self.shifts;
        let pairs = to_red.chunks_exact_mut(2).zip(to_green.chunks_exact_mut(2));
        let pairs = pairs.zip(to_blue.chunks_exact_mut(2));
        for (((to_red, to_green), to_blue), (blue, red)) in pairs.zip(blue.iter().zip(red)) {
            let green = shift(*blue, steps.green_by_blue).wrapping_add(shift(*red, steps.green_by_red));
            [to_red[0], to_red[1]] = [shift(*red, steps.red_by_red); 2];
            [to_green[0], to_green[1]] = [green; 2];
            [to_blue[0], to_blue[1]] = [shift(*blue, steps.blue_by_blue); 2];
        }
        for (plane, shifts) in self.planes.iter_mut().zip(&self.shifts) {
            for ((colour, shift), luma) in plane.iter_mut().zip(shifts).zip(luma) {
                let steps = i32::from(*luma).wrapping_add(i32::from(*shift));
                *colour = (steps.wrapping_mul(LUMA).wrapping_add(BLACK) >> 16).clamp(0, 255) as u8;
            }
        }
        let [red, green, blue] = &self.planes;
        for (((pixel, red), green), blue) in rgb.chunks_exact_mut(3).zip(red).zip(green).zip(blue) {
            [pixel[0], pixel[1], pixel[2]] = [*red, *green, *blue];
        }
    }
}

/// The steps of luma by which a chroma value changes a colour; 128 is grey. Floored term by term, as the scaler does.
#[inline(always)]
fn shift(chroma: u8, step: i32) -> i16 {
    (i32::from(chroma).wrapping_mul(step) >> 16).wrapping_sub(step >> 9) as i16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Two frames of noise in all colours, scaled down as for the shot detector.
    fn made_by_ffmpeg(width: u32, height: u32, matrix: &str, format: &str) -> Vec<u8> {
        let source = format!(
            "color=gray:s={}x{}:d=2:r=1,format=yuv420p,noise=alls=100:all_seed=7:allf=t,\
             setparams=range=tv:colorspace={matrix},scale={width}:{height}:flags=neighbor,format={format}",
            3 * width,
            3 * height
        );
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-f", "lavfi", "-i", &source, "-f", "rawvideo", "-"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// The scaler's SIMD code, on processors that have some, may differ by one.
    #[track_caller]
    fn check(width: u32, height: u32, matrix: &str) {
        let planes = made_by_ffmpeg(width, height, matrix, "yuv422p");
        let expected = made_by_ffmpeg(width, height, matrix, "rgb24");
        let of_frame = planes.len() / 2;
        let to_rgb = ToRgb::new(Matrix::named(matrix));
        let found: Vec<u8> = planes
            .chunks_exact(of_frame)
            .flat_map(|frame| to_rgb.picture(width, height, frame).unwrap().to_vec())
            .collect();
        assert_eq!(found.len(), expected.len());
        let most = found.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(most <= Some(1), "{width}x{height} {matrix}: {most:?}");
        assert!(found.iter().max() > Some(&250) && found.iter().min() < Some(&5));
    }

    #[test]
    fn colours_are_those_of_ffmpeg_whatever_the_matrix() {
        for matrix in ["unknown", "smpte170m", "bt709", "bt2020nc", "fcc", "smpte240m"] {
            check(256, 144, matrix);
        }
    }

    #[test]
    fn pictures_of_any_size_are_taken() {
        for (width, height) in [(2, 2), (34, 7), (256, 3), (258, 3), (700, 4)] {
            check(width, height, "bt709");
        }
    }

    /// ffmpeg itself changes to another rule for these sizes.
    #[test]
    fn an_odd_width_leaves_out_half_a_pair() {
        let planes = made_by_ffmpeg(258, 1, "bt709", "yuv422p");
        let (planes, to_rgb) = (&planes[..2 * 258], ToRgb::new(Matrix::Bt709));
        let even = to_rgb.picture(258, 1, planes).unwrap();
        let odd = to_rgb.picture(257, 1, &[&planes[..257], &planes[258..]].concat()).unwrap();
        assert_eq!(odd[..], even[..3 * 257]);
    }

    #[test]
    fn planes_of_another_size_are_no_picture() {
        let to_rgb = ToRgb::new(Matrix::Bt709);
        for (width, height, bytes) in [(0, 4, 0), (4, 4, 31), (4, 4, 48), (3, 1, 6)] {
            assert_eq!(to_rgb.picture(width, height, &vec![0; bytes]), None, "{width}x{height}");
        }
    }
}
