//! Shot boundaries by the change of hue, saturation and value between consecutive frames.
//!
//! Computes what PySceneDetect's ContentDetector computes (weights 1, 1, 1, edges 0), on frames that
//! are already small (about 256 pixels wide).

use super::flash::{Cut, FlashFilter};
use crate::Frame;

/// Shortest scene, in frames or milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MinSceneLen {
    /// In frames.
    Frames(u64),
    /// In milliseconds.
    Millis(i64),
}

/// Settings of [`ContentDetector`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContentSettings {
    /// A cut where the score reaches this; 27.0 as in PySceneDetect.
    pub threshold: f64,
    /// Cuts closer than this are merged; 15 frames as in PySceneDetect.
    pub min_scene_len: MinSceneLen,
}

impl Default for ContentSettings {
    fn default() -> Self {
        ContentSettings { threshold: 27.0, min_scene_len: MinSceneLen::Frames(15) }
    }
}

/// The detector: takes frames in order, says where scenes begin.
#[derive(Debug)]
pub struct ContentDetector {
    threshold: f64,
    filter: FlashFilter,
    frames: u64,
    score: f64,
    last: Planes,
    current: Planes,
}

/// Hue (0 to 179), saturation and value of a frame.
#[derive(Debug, Default)]
struct Planes {
    hue: Vec<u8>,
    saturation: Vec<u8>,
    value: Vec<u8>,
}

impl ContentDetector {
    /// A detector that has seen nothing.
    #[must_use]
    pub fn new(settings: ContentSettings) -> Self {
        ContentDetector {
            threshold: settings.threshold,
            filter: FlashFilter::new(settings.min_scene_len),
            frames: 0,
            score: 0.0,
            last: Planes::default(),
            current: Planes::default(),
        }
    }

    /// Takes the next frame; returns the first frame of a new scene once it is certain, which may be
    /// up to the minimum scene length later.
    pub fn push(&mut self, frame: &Frame) -> Option<Cut> {
        self.current.fill(&frame.rgb);
        self.score = self.last.difference(&self.current);
        std::mem::swap(&mut self.last, &mut self.current);
        let at = Cut { frame: self.frames, time_ms: frame.time_ms };
        self.frames += 1;
        self.filter.push(at, self.score >= self.threshold)
    }

    /// Score of the last frame against the one before it, 0 to 255; 0 for the first.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.score
    }
}

impl Planes {
    fn fill(&mut self, rgb: &[u8]) {
        let pixels = rgb.len() / 3;
        for plane in [&mut self.hue, &mut self.saturation, &mut self.value] {
            plane.resize(pixels, 0);
        }
        let planes = self.hue.iter_mut().zip(&mut self.saturation).zip(&mut self.value);
        for (((hue, saturation), value), pixel) in planes.zip(rgb.chunks_exact(3)) {
            [*hue, *saturation, *value] = hsv(pixel[0], pixel[1], pixel[2]);
        }
    }

    /// Mean over the three planes of their mean absolute differences; 0 between frames of different size.
    fn difference(&self, other: &Planes) -> f64 {
        let pixels = self.hue.len();
        if pixels == 0 || pixels != other.hue.len() {
            return 0.0;
        }
        let mean = |a: &[u8], b: &[u8]| distance(a, b) as f64 / pixels as f64;
        let (hue, saturation) = (mean(&self.hue, &other.hue), mean(&self.saturation, &other.saturation));
        (hue + saturation + mean(&self.value, &other.value)) / 3.0
    }
}

/// Rows of bytes are summed in 32 bits, which the compiler turns into vector code.
fn distance(a: &[u8], b: &[u8]) -> u64 {
    let row = |(a, b): (&[u8], &[u8])| {
        u64::from(a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b))).sum::<u32>())
    };
    a.chunks(4096).zip(b.chunks(4096)).map(row).sum()
}

/// OpenCV's fixed-point reciprocals: 255 / v, and 180 / (6 d) for half degrees.
const SHIFT: u32 = 12;
const BY_VALUE: [i32; 256] = reciprocals(255 << SHIFT);
const BY_RANGE: [i32; 256] = reciprocals(30 << SHIFT);

const fn reciprocals(of: i32) -> [i32; 256] {
    let mut table = [0; 256];
    let mut i = 1;
    while i < 256 {
        table[i] = (2 * of + i as i32) / (2 * i as i32);
        i += 1;
    }
    table
}

/// 8-bit HSV as OpenCV rounds it.
#[inline]
fn hsv(red: u8, green: u8, blue: u8) -> [u8; 3] {
    let value = red.max(green).max(blue);
    let range = value - red.min(green).min(blue);
    let (r, g, b, d) = (i32::from(red), i32::from(green), i32::from(blue), i32::from(range));
    let half = 1 << (SHIFT - 1);
    let saturation = (d * BY_VALUE[usize::from(value)] + half) >> SHIFT;
    let sector = if value == red {
        g - b
    } else if value == green {
        b - r + 2 * d
    } else {
        r - g + 4 * d
    };
    let hue = (sector * BY_RANGE[usize::from(range)] + half) >> SHIFT;
    let hue = if hue < 0 { hue + 180 } else { hue };
    [hue as u8, saturation as u8, value]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of cv2.cvtColor(..., COLOR_BGR2HSV).
    #[test]
    fn colours_convert_as_in_opencv() {
        for (rgb, expected) in [
            ([0, 0, 0], [0, 0, 0]),
            ([255, 255, 255], [0, 0, 255]),
            ([255, 0, 0], [0, 255, 255]),
            ([0, 255, 0], [60, 255, 255]),
            ([0, 0, 255], [120, 255, 255]),
            ([255, 255, 0], [30, 255, 255]),
            ([255, 0, 255], [150, 255, 255]),
            ([128, 64, 32], [10, 191, 128]),
            ([200, 10, 20], [178, 242, 200]),
        ] {
            assert_eq!(hsv(rgb[0], rgb[1], rgb[2]), expected, "{rgb:?}");
        }
    }

    fn flat(rgb: [u8; 3], time_ms: i64) -> Frame {
        Frame { time_ms, width: 8, height: 4, rgb: rgb.iter().copied().cycle().take(96).collect() }
    }

    #[test]
    fn the_score_is_the_mean_of_the_three_differences() {
        let mut detector = ContentDetector::new(ContentSettings::default());
        detector.push(&flat([255, 0, 0], 0));
        assert!(detector.score().abs() < 1e-12);
        detector.push(&flat([0, 0, 128], 40));
        assert!((detector.score() - (120.0 + 0.0 + 127.0) / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_cut_is_the_first_frame_of_the_new_scene() {
        let mut detector = ContentDetector::new(ContentSettings::default());
        let cuts: Vec<Cut> = (0..60)
            .filter_map(|i| detector.push(&flat(if i < 30 { [200, 30, 30] } else { [10, 40, 220] }, i * 40)))
            .collect();
        assert_eq!(cuts, [Cut { frame: 30, time_ms: 1200 }]);
    }

    proptest! {
        #[test]
        fn hue_and_saturation_are_within_one_of_the_real_ones(red: u8, green: u8, blue: u8) {
            let [hue, saturation, value] = hsv(red, green, blue);
            let (r, g, b) = (f64::from(red), f64::from(green), f64::from(blue));
            let v = r.max(g).max(b);
            let d = v - r.min(g).min(b);
            prop_assert_eq!(f64::from(value), v);
            prop_assert!(hue < 180);
            if v > 0.0 {
                prop_assert!((f64::from(saturation) - 255.0 * d / v).abs() <= 0.6);
            }
            if d > 0.0 {
                let degrees = if v == r { 60.0 * (g - b) / d } else if v == g { 120.0 + 60.0 * (b - r) / d } else { 240.0 + 60.0 * (r - g) / d };
                let half = degrees.rem_euclid(360.0) / 2.0;
                let off = (f64::from(hue) - half).abs();
                prop_assert!(off.min(180.0 - off) <= 0.6, "{} {}", hue, half);
            }
        }
    }
}
