//! How many threads decode a video.
//!
//! Threads of a decoder work on one frame each and wait for parts of each other's, so each frame costs more processor
//! time than with one thread. BENCHMARKS.md has the figures. ffmpeg keeps its threads until its end: a long decode that
//! begins beside others does not take their cores later.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// ffmpeg's own limit: each thread holds pictures in memory.
const MOST: usize = 16;
/// Pixels of a frame up to which several threads are no faster than one.
const SMALL: u64 = 320 * 240;
/// Pixels of a frame up to which filters, conversion and shot detection occupy another core meanwhile.
const MEDIUM: u64 = 1280 * 720;

/// The cores that the decodes of this process share.
static CORES: LazyLock<Cores> =
    LazyLock::new(|| Cores::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// Cores, and the decodes that run on them now.
#[derive(Debug)]
struct Cores {
    count: usize,
    decodes: AtomicUsize,
}

/// A decode that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Decoding<'a> {
    cores: &'a Cores,
    threads: usize,
}

impl Decoding<'static> {
    /// Counts a decode as running. A frame has `pixels` pixels.
    pub(super) fn begin(pixels: u64) -> Self {
        CORES.begin(pixels)
    }
}

impl Decoding<'_> {
    /// Threads for its decoder.
    pub(super) fn threads(&self) -> usize {
        self.threads
    }
}

impl Drop for Decoding<'_> {
    fn drop(&mut self) {
        self.cores.decodes.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Cores {
    fn new(count: usize) -> Self {
        Cores { count, decodes: AtomicUsize::new(0) }
    }

    fn begin(&self, pixels: u64) -> Decoding<'_> {
        let decodes = self.decodes.fetch_add(1, Ordering::Relaxed) + 1;
        let share = self.count.div_ceil(decodes);
        let threads = if pixels <= SMALL {
            1
        } else if pixels <= MEDIUM {
            share.saturating_sub(1)
        } else {
            share
        };
        Decoding { cores: self, threads: threads.clamp(1, MOST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the threads of decodes that begin one after the other. `decodes` has the pixels of each one's frames. The
    /// second round shows that ended decodes leave their cores.
    #[track_caller]
    fn check(cores: usize, decodes: &[u64], expected: &[usize]) {
        let cores = Cores::new(cores);
        for _ in 0..2 {
            let begun: Vec<_> = decodes.iter().map(|&pixels| cores.begin(pixels)).collect();
            assert_eq!(begun.iter().map(Decoding::threads).collect::<Vec<_>>(), expected);
        }
    }

    const FULL_HD: u64 = 1920 * 1080;

    #[test]
    fn small_frames_take_one_thread_and_large_ones_all_cores() {
        for (cores, small, medium, large) in [(1, 1, 1, 1), (2, 1, 1, 2), (8, 1, 7, 8), (64, 1, 16, 16)] {
            for pixels in [0, 320 * 240] {
                check(cores, &[pixels], &[small]);
            }
            for pixels in [320 * 240 + 1, 1280 * 720] {
                check(cores, &[pixels], &[medium]);
            }
            for pixels in [1280 * 720 + 1, FULL_HD, u64::MAX] {
                check(cores, &[pixels], &[large]);
            }
        }
    }

    #[test]
    fn decodes_that_run_at_once_share_the_cores() {
        check(2, &[FULL_HD; 3], &[2, 1, 1]);
        check(8, &[FULL_HD; 4], &[8, 4, 3, 2]);
        check(8, &[1280 * 720; 4], &[7, 3, 2, 1]);
        check(8, &[0, FULL_HD], &[1, 4]);
    }
}
