//! How many threads decode a video.
//!
//! Threads of a decoder work on one frame each and wait for parts of each other's, so each frame costs more processor
//! time than with one thread. BENCHMARKS.md has the figures.

use std::sync::atomic::{AtomicUsize, Ordering};

/// ffmpeg's own limit: each thread holds pictures in memory.
const MOST: usize = 16;
/// Pixels of a frame up to which several threads are no faster than one.
const SMALL: u64 = 320 * 240;
/// Pixels of a frame up to which filters, conversion and shot detection occupy another core meanwhile.
const MEDIUM: u64 = 1280 * 720;

/// The decodes that this process runs now.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A decode that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Decoding {
    threads: usize,
}

impl Decoding {
    /// Begins to decode frames of so many pixels.
    pub(super) fn begin(pixels: u64) -> Decoding {
        let running = RUNNING.fetch_add(1, Ordering::Relaxed) + 1;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Decoding { threads: threads(pixels, cores.div_ceil(running)) }
    }

    /// Threads for its decoder.
    pub(super) fn threads(&self) -> usize {
        self.threads
    }
}

impl Drop for Decoding {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Threads for frames of so many pixels on these cores.
fn threads(pixels: u64, cores: usize) -> usize {
    let threads = match pixels {
        ..=SMALL => 1,
        ..=MEDIUM => cores.saturating_sub(1),
        _ => cores,
    };
    threads.clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pixels: u64, expected_by_cores: &[(usize, usize)]) {
        for &(cores, expected) in expected_by_cores {
            assert_eq!(threads(pixels, cores), expected, "{pixels} pixels, {cores} cores");
        }
    }

    #[test]
    fn small_frames_take_one_thread_and_large_ones_all_cores() {
        check(0, &[(1, 1), (64, 1)]);
        check(320 * 240, &[(1, 1), (2, 1), (64, 1)]);
        check(640 * 360, &[(1, 1), (2, 1), (8, 7), (17, 16), (64, 16)]);
        check(1280 * 720, &[(1, 1), (2, 1), (4, 3), (64, 16)]);
        check(1920 * 1080, &[(1, 1), (2, 2), (8, 8), (64, 16)]);
        check(u64::MAX, &[(1, 1), (2, 2), (64, 16)]);
    }
}
