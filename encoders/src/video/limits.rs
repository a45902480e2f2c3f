//! Limits of one run of ffmpeg or ffprobe.

use std::time::Duration;

/// Limits of one run of ffmpeg or ffprobe.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest run; then the process is killed.
    pub wall_clock: Duration,
    /// Longest time in which the process may neither read nor write; then it is killed. Time in which its reader makes it
    /// wait does not count.
    pub stall: Duration,
    /// Longest video; longer ones are refused.
    pub longest: Duration,
    /// Largest address space of the process, in bytes.
    pub memory_bytes: u64,
    /// Largest number of pixels of a picture; larger ones are refused.
    pub max_pixels: u64,
}

impl Limits {
    /// The same limits for a reader that makes ffmpeg wait, for days if it is slow. A stall is still found.
    pub(crate) fn for_slow_reader(&self) -> Limits {
        Limits { wall_clock: self.wall_clock.max(Duration::from_secs(30 * 24 * 3600)), ..*self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            wall_clock: Duration::from_secs(4 * 3600),
            stall: Duration::from_secs(10),
            longest: Duration::from_secs(24 * 3600),
            memory_bytes: 4 << 30,
            max_pixels: 8192 * 8192,
        }
    }
}
