//! Sprite sheets: small pictures of a whole video at even distances, in a few JPEGs, for filmstrips and for scrubbing.
//!
//! They are made of the frames that a decode yields anyway, so a video is not decoded for them again.

use super::jpeg::{Quality, jpeg};
use super::{Probe, VideoError};
use crate::Frame;
use crate::resize::{Pixels, Resampling, resize};

/// Most pictures of a video.
pub const MOST_TILES: usize = 600;
/// Least time between two pictures, in milliseconds.
const LEAST_INTERVAL_MS: i64 = 500;
/// The longer side of a picture, in pixels.
const TILE_SIDE: u32 = 160;
/// Pictures in a row of a sheet, and most rows.
const SHEET_SIDE: usize = 10;
const QUALITY: Quality = Quality(80);

/// The sprite sheets of a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sprites {
    /// Width of a picture, in pixels.
    pub tile_width: u32,
    /// Height of a picture, in pixels.
    pub tile_height: u32,
    /// Pictures in a row of a sheet.
    pub columns: usize,
    /// Rows of a sheet. The last sheet may be filled up with black.
    pub rows: usize,
    /// Time from one picture to the next, in milliseconds. Picture `n` is on screen at `n * interval_ms`.
    pub interval_ms: i64,
    /// Number of pictures, 1 to [`MOST_TILES`].
    pub tiles: usize,
    /// The sheets as JPEGs, in order.
    pub sheets: Vec<Vec<u8>>,
}

/// Collects the pictures of a video while it is decoded: at most 46 MB.
pub struct SpriteCollector {
    tile: Pixels,
    interval_ms: i64,
    /// RGB of each picture.
    tiles: Vec<Vec<u8>>,
    /// The frame on screen.
    last: Option<Frame>,
}

impl SpriteCollector {
    /// Starts with the distance that the probed duration gives. If the video is longer than that, the distance doubles as
    /// often as needed.
    pub fn new(probe: &Probe) -> SpriteCollector {
        let most = i64::try_from(MOST_TILES).unwrap_or(i64::MAX);
        let interval_ms = probe.duration_ms.max(0).saturating_add(most - 1) / most;
        let interval_ms = interval_ms.max(LEAST_INTERVAL_MS);
        SpriteCollector { tile: tile_of(probe), interval_ms, tiles: Vec::new(), last: None }
    }

    /// Takes the next frame, in order of time. Frames of another size are fine; an empty one is skipped.
    pub fn push(&mut self, frame: &Frame) {
        let whole = 3 * u64::from(frame.width) * u64::from(frame.height);
        if whole == 0 || frame.rgb.len() as u64 != whole {
            return;
        }
        self.fill_until(frame.time_ms);
        self.last = Some(frame.clone());
    }

    /// Encodes the pictures up to the end of the video. Blocks. `None` if no frame came.
    ///
    /// # Errors
    /// [`VideoError::OverLimit`] if the pictures of a row do not fit into a JPEG.
    pub fn finish(mut self, duration_ms: i64) -> Result<Option<Sprites>, VideoError> {
        self.fill_until(duration_ms);
        if self.tiles.is_empty() {
            let Some(frame) = self.last.take() else { return Ok(None) };
            let tile = self.scaled(&frame);
            self.tiles.push(tile);
        }
        let tiles = self.tiles.len();
        let columns = tiles.min(SHEET_SIDE);
        let rows = tiles.div_ceil(columns).min(SHEET_SIDE);
        let Pixels { width, height } = self.tile;
        let sheet = Pixels { width: width * columns as u32, height: height * rows as u32 };
        let mut sheets = Vec::new();
        // The pictures of a sheet are freed before the next one is made.
        while !self.tiles.is_empty() {
            let rest = self.tiles.split_off(self.tiles.len().min(columns * rows));
            let tiles = std::mem::replace(&mut self.tiles, rest);
            sheets.push(jpeg(&self.sheet(&tiles, columns, sheet), sheet, QUALITY)?);
        }
        let interval_ms = self.interval_ms;
        Ok(Some(Sprites {
            tile_width: width,
            tile_height: height,
            columns,
            rows,
            interval_ms,
            tiles,
            sheets,
        }))
    }

    /// Adds the pictures of the times before `time_ms`, at which the last frame is on screen.
    fn fill_until(&mut self, time_ms: i64) {
        let Some(frame) = self.last.clone() else { return };
        let mut scaled: Option<Vec<u8>> = None;
        while self.next_ms() < time_ms {
            if self.tiles.len() == MOST_TILES {
                self.thin_out();
                continue;
            }
            let tile = scaled.get_or_insert_with(|| self.scaled(&frame)).clone();
            self.tiles.push(tile);
        }
    }

    /// The time of the next picture.
    fn next_ms(&self) -> i64 {
        i64::try_from(self.tiles.len()).unwrap_or(i64::MAX).saturating_mul(self.interval_ms)
    }

    /// Drops every second picture.
    fn thin_out(&mut self) {
        let mut keep = false;
        self.tiles.retain(|_| {
            keep = !keep;
            keep
        });
        self.interval_ms = self.interval_ms.saturating_mul(2);
    }

    fn scaled(&self, frame: &Frame) -> Vec<u8> {
        let from = Pixels { width: frame.width, height: frame.height };
        resize(&frame.rgb, from, self.tile, Resampling::Bilinear)
    }

    /// The RGB of a sheet with these pictures.
    fn sheet(&self, tiles: &[Vec<u8>], columns: usize, sheet: Pixels) -> Vec<u8> {
        let (row_bytes, tile_bytes) = (3 * sheet.width as usize, 3 * self.tile.width as usize);
        let mut rgb = vec![0; row_bytes * sheet.height as usize];
        for (number, tile) in tiles.iter().enumerate() {
            let top = number / columns * self.tile.height as usize;
            let left = number % columns * tile_bytes;
            for (line, pixels) in tile.chunks_exact(tile_bytes).enumerate() {
                let at = (top + line) * row_bytes + left;
                if let Some(target) = rgb.get_mut(at..at + tile_bytes) {
                    target.copy_from_slice(pixels);
                }
            }
        }
        rgb
    }
}

/// The size of a picture: as the video is shown, with even sides of at most [`TILE_SIDE`].
fn tile_of(probe: &Probe) -> Pixels {
    let (width, height) = (probe.width.max(1), probe.height.max(1));
    let scale = (f64::from(TILE_SIDE) / f64::from(width.max(height))).min(1.0);
    let side = |full: u32| ((f64::from(full) * scale).round() as u32 & !1).clamp(2, TILE_SIDE);
    Pixels { width: side(width), height: side(height) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::video) fn probe(width: u32, height: u32, duration_ms: i64) -> Probe {
        Probe {
            duration_ms,
            frame_rate: 25.0,
            width,
            height,
            codec: String::new(),
            matrix: None,
            pixel_format: String::new(),
            container: String::new(),
            variable_frame_rate: false,
            media_offset_ms: 0,
            has_audio: false,
            plays_in_browsers: false,
            stream: 0,
            clock: crate::video::clock::Clock { num: 1, den: 1, origin: 0 },
            subtitles: Vec::new(),
            packet_times: None,
        }
    }

    /// A grey frame, as bright as its number.
    fn frame(time_ms: i64, grey: u8) -> Frame {
        Frame { time_ms, width: 4, height: 2, rgb: vec![grey; 24].into() }
    }

    /// Collects frames of `probed` milliseconds and checks the brightness of the pictures, which are half a second apart.
    #[track_caller]
    fn check(probed: i64, frames: &[(i64, u8)], duration_ms: i64, expected: &[u8]) {
        let mut collector = SpriteCollector::new(&probe(64, 32, probed));
        frames.iter().for_each(|(time_ms, grey)| collector.push(&frame(*time_ms, *grey)));
        collector.fill_until(duration_ms);
        let shown: Vec<u8> = collector.tiles.iter().map(|tile| tile[0]).collect();
        assert_eq!((collector.interval_ms, shown.as_slice()), (500, expected));
    }

    #[test]
    fn each_picture_is_on_screen_at_its_time() {
        check(2000, &[(0, 1), (400, 2), (900, 3), (1000, 4)], 2000, &[1, 2, 4, 4]);
        check(2000, &[(0, 1), (1, 2), (499, 3), (500, 4), (501, 5)], 502, &[1, 4]);
        check(0, &[(0, 7)], 40, &[7]);
        check(0, &[], 1000, &[]);
        // The first frame of a broken file may come late: it stands for the time before it too.
        check(1000, &[(700, 9)], 1000, &[9, 9]);
    }

    #[test]
    fn a_video_that_is_longer_than_it_said_gets_a_larger_distance() {
        let frames: Vec<(i64, u8)> = (0..1201).map(|number| (number * 500, (number % 251) as u8)).collect();
        let mut collector = SpriteCollector::new(&probe(64, 32, 0));
        frames.iter().for_each(|(time_ms, grey)| collector.push(&frame(*time_ms, *grey)));
        collector.fill_until(600_500);
        assert_eq!((collector.interval_ms, collector.tiles.len()), (2000, 301));
        assert!(collector.tiles.iter().enumerate().all(|(n, tile)| usize::from(tile[0]) == n * 4 % 251));
        // No time is so far away that this takes long.
        collector.fill_until(i64::MAX);
        assert!(collector.tiles.len() <= MOST_TILES);
    }

    #[test]
    fn distances_grow_with_the_length_and_sizes_keep_the_shape() {
        for (duration_ms, expected) in [(0, 500), (299_000, 500), (600_000, 1000), (7_200_001, 12_001)] {
            let collector = SpriteCollector::new(&probe(64, 32, duration_ms));
            assert_eq!(collector.interval_ms, expected);
        }
        for (width, height, expected) in
            [(1920, 1080, (160, 90)), (1080, 1920, (90, 160)), (3, 5, (2, 4)), (9000, 10, (160, 2))]
        {
            let Pixels { width, height } = tile_of(&probe(width, height, 0));
            assert_eq!((width, height), expected);
        }
    }

    #[test]
    fn sheets_are_jpegs_with_the_pictures_in_rows() {
        let mut collector = SpriteCollector::new(&probe(64, 32, 0));
        (0..23).for_each(|number| collector.push(&frame(number * 500, 10 * number as u8)));
        let sprites = collector.finish(23 * 500).unwrap().unwrap();
        assert_eq!((sprites.tile_width, sprites.tile_height, sprites.interval_ms), (64, 32, 500));
        assert_eq!((sprites.columns, sprites.rows, sprites.tiles, sprites.sheets.len()), (10, 3, 23, 1));
        let jpeg = &sprites.sheets[0];
        assert!(jpeg.starts_with(&[0xff, 0xd8, 0xff]) && jpeg.ends_with(&[0xff, 0xd9]));
        let mut many = SpriteCollector::new(&probe(64, 32, 0));
        (0..201).for_each(|number| many.push(&frame(number * 500, 0)));
        let sprites = many.finish(201 * 500).unwrap().unwrap();
        assert_eq!((sprites.rows, sprites.tiles, sprites.sheets.len()), (10, 201, 3));
        let none = SpriteCollector::new(&probe(64, 32, 0)).finish(1000);
        assert_eq!(none.unwrap(), None);
    }
}
