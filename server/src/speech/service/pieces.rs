//! Where a piece of sound ends: where it is quiet.

use reprise_encoders::transcriber::SAMPLE_RATE;

/// Length of what is compared: 0.3 s, the shortest pause between words that a speaker hears.
const QUIET: usize = SAMPLE_RATE * 3 / 10;
/// Steps between candidates: 20 ms.
const STEP: usize = SAMPLE_RATE / 50;

/// The end of a piece that begins with `samples`: all of them, or, if the sound goes on, the middle of the quietest 0.3 s of
/// their last quarter. Of equally quiet places, the last.
pub(super) fn end(samples: &[f32], goes_on: bool) -> usize {
    let from = samples.len() / 4 * 3;
    if !goes_on || samples.len() < from + QUIET {
        return samples.len();
    }
    let energy = |part: &[f32]| part.iter().map(|it| f64::from(*it) * f64::from(*it)).sum::<f64>();
    let steps: Vec<f64> = samples[from..].chunks(STEP).map(energy).collect();
    let wide = QUIET / STEP;
    let mut best = (f64::INFINITY, samples.len());
    for (at, window) in steps.windows(wide).enumerate() {
        let loudness: f64 = window.iter().sum();
        if loudness <= best.0 {
            best = (loudness, from + at * STEP + QUIET / 2);
        }
    }
    best.1.min(samples.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sound of 40 s that is quiet in these parts, in seconds; the end in seconds.
    #[track_caller]
    fn check(quiet: &[(f64, f64)], goes_on: bool, expected: f64) {
        let mut samples: Vec<f32> =
            (0..40 * SAMPLE_RATE).map(|at| if at % 2 == 0 { 0.5 } else { -0.5 }).collect();
        for (from, to) in quiet {
            let place = |seconds: f64| (seconds * SAMPLE_RATE as f64) as usize;
            samples[place(*from)..place(*to)].fill(0.0);
        }
        let got = end(&samples, goes_on) as f64 / SAMPLE_RATE as f64;
        assert!((got - expected).abs() < 0.05, "{quiet:?}: {got}");
    }

    #[test]
    fn pieces_end_in_the_last_pause() {
        check(&[(32.0, 32.3)], true, 32.15);
        check(&[(31.0, 31.4), (36.0, 36.3)], true, 36.15);
        check(&[(10.0, 12.0), (33.0, 33.3)], true, 33.15);
        check(&[(32.0, 32.3)], false, 40.0);
        check(&[], true, 39.85);
        assert_eq!(end(&[], true), 0);
        assert_eq!(end(&[0.0; 100], true), 100);
    }
}
