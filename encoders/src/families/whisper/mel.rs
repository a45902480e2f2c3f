//! Log-mel spectrograms: what the encoder hears. Computed in f64, as the reference's filters are.

use std::f64::consts::PI;

use crate::transcriber::SAMPLE_RATE;

/// Samples of a frame of the spectrum: 25 ms.
const FRAME: usize = 400;
/// Samples between two frames: 10 ms.
pub(super) const HOP: usize = 160;
/// Frequencies from 0 to half the sample rate.
const BINS: usize = FRAME / 2 + 1;
/// Least power whose logarithm is taken.
const LEAST: f64 = 1e-10;
/// Powers of ten below the loudest value at which the spectrogram ends.
const RANGE: f64 = 8.0;

/// Turns samples into log-mel spectrograms with a fixed number of bands.
#[derive(Debug)]
pub(super) struct LogMel {
    window: Vec<f64>,
    /// `exp(-2 pi i k / FRAME)`.
    turns: Vec<Complex>,
    bands: Vec<Band>,
}

/// A filter: its first frequency, and its weights from there on.
#[derive(Debug, Clone, PartialEq)]
struct Band {
    first: usize,
    weights: Vec<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    fn times(self, other: Complex) -> Complex {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }

    fn plus(self, other: Complex) -> Complex {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl LogMel {
    /// A spectrogram of `bands` bands between 0 and 8 kHz.
    pub(super) fn new(bands: usize) -> LogMel {
        let angle = |at: usize| 2.0 * PI * at as f64 / FRAME as f64;
        LogMel {
            window: (0..FRAME).map(|at| 0.5 - 0.5 * angle(at).cos()).collect(),
            turns: (0..FRAME).map(|at| Complex { re: angle(at).cos(), im: -angle(at).sin() }).collect(),
            bands: filters(bands),
        }
    }

    /// `frames` frames of all bands, frame by frame, of samples that are followed by silence.
    pub(super) fn of(&self, samples: &[f32], frames: usize) -> Vec<f32> {
        let mut logs = Vec::with_capacity(frames * self.bands.len());
        let length = frames * HOP;
        for at in (0..frames).step_by(2) {
            // Two frames at once, as real and imaginary parts.
            let spectrum = self.spectrum(samples, length, at);
            for half in 0..2.min(frames - at) {
                let power = powers(&spectrum, half == 1);
                logs.extend(self.bands.iter().map(|band| band.of(&power).max(LEAST).log10()));
            }
        }
        let floor = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max) - RANGE;
        logs.into_iter().map(|log| ((log.max(floor) + 4.0) / 4.0) as f32).collect()
    }

    /// The transform of frame `at` plus i times that of the next.
    fn spectrum(&self, samples: &[f32], length: usize, at: usize) -> [Complex; FRAME] {
        let mut input = [Complex::default(); FRAME];
        for (offset, (value, weight)) in input.iter_mut().zip(&self.window).enumerate() {
            let sample = |at: usize| {
                let place = reflected((at * HOP + offset) as i64 - (FRAME / 2) as i64, length);
                f64::from(samples.get(place).copied().unwrap_or(0.0)) * weight
            };
            *value = Complex { re: sample(at), im: sample(at + 1) };
        }
        let mut output = [Complex::default(); FRAME];
        self.transform(&input, 1, &mut output);
        output
    }

    /// The discrete Fourier transform of every `stride`-th value of `input`, as many as `output` has: that of each
    /// residue by the smallest factor, joined.
    fn transform(&self, input: &[Complex], stride: usize, output: &mut [Complex]) {
        let count = output.len();
        if count == 1 {
            output[0] = input[0];
            return;
        }
        let factor = if count.is_multiple_of(2) { 2 } else { 5 };
        let part = count / factor;
        for residue in 0..factor {
            let own = &mut output[residue * part..(residue + 1) * part];
            self.transform(&input[residue * stride..], stride * factor, own);
        }
        let turn = |steps: usize| self.turns[steps * (FRAME / count) % FRAME];
        for at in 0..part {
            let mut parts = [Complex::default(); 5];
            for residue in 0..factor {
                parts[residue] = output[residue * part + at].times(turn(residue * at));
            }
            for row in 0..factor {
                let joined = (0..factor).map(|residue| parts[residue].times(turn(residue * row * part)));
                output[row * part + at] = joined.fold(Complex::default(), Complex::plus);
            }
        }
    }
}

/// Squares of the absolute values of one of two transforms that were made at once.
fn powers(spectrum: &[Complex; FRAME], is_second: bool) -> [f64; BINS] {
    let mut powers = [0.0; BINS];
    for (at, power) in powers.iter_mut().enumerate() {
        let (one, other) = (spectrum[at], spectrum[(FRAME - at) % FRAME]);
        let (re, im) = match is_second {
            false => (one.re + other.re, one.im - other.im),
            true => (one.im + other.im, other.re - one.re),
        };
        *power = (re * re + im * im) / 4.0;
    }
    powers
}

/// A place before the start or behind the end, mirrored into `0..length`.
fn reflected(place: i64, length: usize) -> usize {
    let last = length as i64 - 1;
    let inside = if place < 0 { -place } else { place };
    (if inside > last { 2 * last - inside } else { inside }).max(0) as usize
}

impl Band {
    fn of(&self, power: &[f64; BINS]) -> f64 {
        self.weights.iter().zip(&power[self.first..]).map(|(weight, power)| weight * power).sum()
    }
}

/// Triangles of equal area on Slaney's mel scale: linear below 1 kHz, logarithmic above.
fn filters(bands: usize) -> Vec<Band> {
    let half = SAMPLE_RATE as f64 / 2.0;
    let top = mel(half);
    let edges: Vec<f64> = (0..bands + 2).map(|at| hertz(top * at as f64 / (bands + 1) as f64)).collect();
    let bin = |at: usize| half * at as f64 / (BINS - 1) as f64;
    let filter = |edges: &[f64]| {
        let weight = |at: usize| {
            let rising = (bin(at) - edges[0]) / (edges[1] - edges[0]);
            let falling = (edges[2] - bin(at)) / (edges[2] - edges[1]);
            rising.min(falling).max(0.0) * 2.0 / (edges[2] - edges[0])
        };
        let all: Vec<f64> = (0..BINS).map(weight).collect();
        let first = all.iter().position(|weight| *weight > 0.0).unwrap_or(0);
        let last = all.iter().rposition(|weight| *weight > 0.0).map_or(first, |last| last + 1);
        Band { first, weights: all[first..last].to_vec() }
    };
    edges.windows(3).map(filter).collect()
}

/// Mels in a kilohertz, below which the scale is linear.
const MELS_OF_1000: f64 = 15.0;
/// Mels by which a frequency becomes 6.4 times as high.
const MELS_OF_STEP: f64 = 27.0;

fn mel(hertz: f64) -> f64 {
    match hertz < 1000.0 {
        true => hertz * MELS_OF_1000 / 1000.0,
        false => MELS_OF_1000 + (hertz / 1000.0).ln() * MELS_OF_STEP / 6.4_f64.ln(),
    }
}

fn hertz(mel: f64) -> f64 {
    match mel < MELS_OF_1000 {
        true => mel * 1000.0 / MELS_OF_1000,
        false => 1000.0 * ((mel - MELS_OF_1000) * 6.4_f64.ln() / MELS_OF_STEP).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_the_sum_that_defines_it() {
        let mel = LogMel::new(80);
        let input: Vec<Complex> =
            (0..FRAME).map(|at| Complex { re: (at * at % 97) as f64, im: (at * 31 % 89) as f64 }).collect();
        let mut output = vec![Complex::default(); FRAME];
        mel.transform(&input, 1, &mut output);
        for row in [0, 1, 7, 200, 399] {
            let terms = (0..FRAME).map(|at| input[at].times(mel.turns[at * row % FRAME]));
            let sum = terms.fold(Complex::default(), Complex::plus);
            assert!((sum.re - output[row].re).abs() + (sum.im - output[row].im).abs() < 1e-7, "{row}");
        }
    }

    #[test]
    fn a_tone_is_loudest_in_the_band_of_its_frequency() {
        for bands in [80, 128] {
            let mel = LogMel::new(bands);
            for frequency in [200.0, 1000.0, 3000.0, 7000.0] {
                let sine = |at: usize| (2.0 * PI * frequency * at as f64 / 16_000.0).sin() as f32;
                let samples: Vec<f32> = (0..16_000).map(sine).collect();
                let frame = &mel.of(&samples, 100)[50 * bands..51 * bands];
                let loudest = (0..bands).max_by(|a, b| frame[*a].total_cmp(&frame[*b])).unwrap();
                let edge = |at: usize| hertz(super::mel(8000.0) * at as f64 / (bands + 1) as f64);
                let range = edge(loudest)..edge(loudest + 2);
                assert!(range.contains(&frequency), "{frequency}: {range:?}");
            }
        }
    }

    #[test]
    fn silence_is_even_and_short_sound_is_followed_by_it() {
        let mel = LogMel::new(80);
        assert!(mel.of(&[], 7).iter().all(|value| *value == -1.5));
        assert_eq!(mel.of(&[0.5; 10], 3).len(), 3 * 80);
    }
}
