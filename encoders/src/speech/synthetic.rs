//! The sound of the fixtures: tests/parity/whisper.py computes the same.

/// Samples of all of it: ten minutes.
pub(crate) const ALL: usize = 600 * 16_000;

/// Noise and square waves whose loudness and pitch change eight times a second: `count` samples from sample `first` on.
pub(crate) fn sound(first: usize, count: usize) -> Vec<f32> {
    let sample = |at: usize| {
        let mut x = (at as u32).wrapping_mul(2_654_435_761);
        x ^= x >> 16;
        x = x.wrapping_mul(2_246_822_519);
        x ^= x >> 13;
        let noise = f64::from(x >> 8) / f64::from(1 << 23) - 1.0;
        let part = at / 2000;
        let (level, tone) = ((part * 7919 % 11) as f64 / 32.0, (part * 31 % 7) as f64 / 32.0);
        let square = 1.0 - 2.0 * (at / (10 + part * 104_729 % 90) % 2) as f64;
        (level * noise + tone * square) as f32
    };
    (first..(first + count).min(ALL)).map(sample).collect()
}
