//! Speed at which this machine reads memory: the bound of a decoder, which reads its weights once a token.

use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;

/// Values of 8 bytes that are read: 512 MiB, more than a cache holds.
const VALUES: usize = 64 << 20;
/// Values that a thread reads at a time.
const AT_ONCE: usize = 1 << 16;
const ROUNDS: usize = 5;

/// Bytes per second that all threads together read, at best of a few rounds.
pub(super) fn bytes_per_second() -> f64 {
    let values = vec![1_u64; VALUES];
    let round = |_| {
        let began = Instant::now();
        let sum: u64 = values.par_chunks(AT_ONCE).map(|some| some.iter().sum::<u64>()).sum();
        black_box(sum);
        began.elapsed().as_secs_f64()
    };
    (VALUES * size_of::<u64>()) as f64 / (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}
