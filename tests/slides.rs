//! Films of slides on which only text changes, and a pointer that moves over them.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::film::ffmpeg;

const WIDTH: usize = 320;
const HEIGHT: usize = 180;
/// Longest and shortest display time of a slide, in seconds.
const LONGEST: usize = 65;
const SHORTEST: usize = 5;

/// A splitmix64 generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// The slide changes of a film.
#[derive(Debug)]
pub struct Slides {
    /// Times of the slide changes, in milliseconds.
    pub changes: Vec<i64>,
    /// The largest share of the picture that a change affects, 0 to 1.
    pub largest: f64,
}

/// Renders `seconds` of slides at one frame per second, 320x180 pixels, H.264 in the container of `path`'s extension.
///
/// # Panics
/// If ffmpeg fails.
pub fn slides(path: &Path, seconds: usize, seed: u64) -> Slides {
    let mut encoder = ffmpeg();
    let size = format!("{WIDTH}x{HEIGHT}");
    encoder
        .args(["-f", "rawvideo", "-pix_fmt", "gray", "-s", &size, "-r", "1", "-i", "-"])
        .args(["-c:v", "libx264", "-preset", "ultrafast", "-crf", "28", "-pix_fmt", "yuv420p"])
        .arg(path)
        .stdin(Stdio::piped());
    let mut child = encoder.spawn().expect("ffmpeg is installed");
    let mut pipe = child.stdin.take().expect("stdin is piped");
    let mut random = Random(seed);
    let mut page = vec![240; WIDTH * HEIGHT];
    page[..24 * WIDTH].fill(60);
    (0..10).for_each(|line| write_line(&mut page, line, &mut random));
    let (mut changes, mut largest, mut left) = (Vec::new(), 0.0_f64, 20);
    for second in 0..seconds {
        if left == 0 {
            let before = page.clone();
            let (lines, first) = (1 + random.below(6), random.below(10));
            (first..first + lines).for_each(|line| write_line(&mut page, line % 10, &mut random));
            let differing = page.iter().zip(&before).filter(|(a, b)| a != b).count();
            largest = largest.max(differing as f64 / page.len() as f64);
            changes.push(second as i64 * 1000);
            left = SHORTEST + random.below(LONGEST - SHORTEST);
        }
        left -= 1;
        let mut shown = page.clone();
        if second % 7 < 3 {
            let (x, y) = (random.below(WIDTH - 4), random.below(HEIGHT - 6));
            (y..y + 6).for_each(|y| shown[y * WIDTH + x..][..4].fill(0));
        }
        pipe.write_all(&shown).expect("ffmpeg reads");
    }
    drop(pipe);
    assert!(child.wait().expect("ffmpeg ends").success(), "{}", path.display());
    Slides { changes, largest }
}

/// Replaces a line of the page with new letter-like shapes.
fn write_line(page: &mut [u8], line: usize, random: &mut Random) {
    let top = 30 + line * 14;
    for y in top..top + 12 {
        page[y * WIDTH + 20..(y + 1) * WIDTH - 20].fill(240);
    }
    let letters = 12 + random.below(24);
    for letter in 0..letters {
        let (left, shape) = (22 + letter * 7, random.below(1 << 15));
        for (row, column) in (0..5).flat_map(|row| (0..3).map(move |column| (row, column))) {
            if shape >> (row * 3 + column) & 1 == 1 {
                let at = (top + 1 + row * 2) * WIDTH + left + column * 2;
                [at, at + 1, at + WIDTH, at + WIDTH + 1].into_iter().for_each(|at| page[at] = 25);
            }
        }
    }
}
