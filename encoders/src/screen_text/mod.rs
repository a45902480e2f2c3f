//! Text that is written on screen: slides, score boards, tickers.
//!
//! Two pictures a second of a video's luma are compared block by block (`watch`). Where text-like blocks show something
//! new and have come to rest, or where only a part of the picture keeps changing, that region is read by Tesseract, many
//! regions in one process. What is read is followed (`follow`) until its blocks show something else, and lines that are
//! alike are joined (`lines`).

mod blocks;
mod follow;
mod lines;
mod page;
mod regions;
mod table;
mod watch;

use std::path::Path;

use serde::Serialize;

pub use crate::video::{InstalledTesseract, Tesseract, TesseractError, installed_tesseract};
use crate::video::{Limits, Probe, VideoError, luma_pictures};

use follow::Follower;
use watch::Watcher;

/// Pictures compared per second of video.
const PER_SECOND: f64 = 2.0;
/// Time from one compared picture to the next, in milliseconds.
const STEP_MS: i64 = 500;

/// A line of text on screen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScreenLine {
    /// When it is first seen, in milliseconds since the first frame. It came up to half a second before.
    pub start_ms: i64,
    /// When it is no longer seen, in milliseconds since the first frame.
    pub end_ms: i64,
    /// The text, in one line.
    pub text: String,
    /// Tesseract's confidence, from 0 to 1.
    pub confidence: f32,
    /// Where it stands.
    #[serde(rename = "box")]
    pub region: TextBox,
}

/// A rectangle as fractions of the picture, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TextBox {
    /// The left edge.
    pub left: f32,
    /// The upper edge.
    pub top: f32,
    /// The width.
    pub width: f32,
    /// The height.
    pub height: f32,
}

/// What was read in a video.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScreenText {
    /// The lines, by their start, then from top to bottom.
    pub lines: Vec<ScreenLine>,
    /// The video's length, in milliseconds.
    pub duration_ms: i64,
    /// Pictures that were compared.
    pub pictures: u64,
    /// Regions that were read.
    pub regions: u64,
    /// Runs of Tesseract.
    pub runs: u64,
    /// Faults of the file that did not stop the reading, in plain words.
    pub warnings: Vec<String>,
}

/// Why a video's text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadTextError {
    /// The video can't be decoded.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// Tesseract is missing, or failed.
    #[error(transparent)]
    Tesseract(#[from] TesseractError),
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

/// Whether to read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Read on.
    Go,
    /// Stop with [`ReadTextError::Stopped`].
    Stop,
}

/// Reads the text of a video in a decode pass of its own. Calls `at` with the time of each picture, in milliseconds. Blocks
/// the thread until the end.
///
/// Memory and the number of readings are bounded, whatever the video shows. A video without text gives no lines.
///
/// # Errors
/// [`ReadTextError`].
pub fn read_text(
    path: &Path,
    probe: &Probe,
    tesseract: &Tesseract,
    limits: &Limits,
    mut at: impl FnMut(i64) -> Next,
) -> Result<ScreenText, ReadTextError> {
    let mut pictures = luma_pictures(path, probe, PER_SECOND, &limits.for_slow_reader())?;
    let mut reader = Reader { watcher: Watcher::default(), follower: Follower::default(), tesseract };
    let mut count = 0;
    for picture in &mut pictures {
        let picture = picture?;
        if at(picture.time_ms) == Next::Stop {
            return Err(ReadTextError::Stopped);
        }
        count += 1;
        reader.watcher.push(&picture);
        reader.look(false)?;
    }
    let summary = pictures.summary();
    reader.look(true)?;
    reader.read_waiting()?;
    let Reader { watcher, mut follower, .. } = reader;
    follower.finish(|block| watcher.differs_ms(block), summary.duration_ms);
    Ok(ScreenText {
        regions: follower.regions(),
        runs: follower.runs(),
        lines: lines::joined(follower.sightings()),
        duration_ms: summary.duration_ms,
        pictures: count,
        warnings: summary.warnings,
    })
}

struct Reader<'a> {
    watcher: Watcher,
    follower: Follower,
    tesseract: &'a Tesseract,
}

impl Reader<'_> {
    /// Looks for regions to read. Reads the waiting ones once enough of them wait, and all of them after the last picture
    /// (`is_end`).
    fn look(&mut self, is_end: bool) -> Result<(), TesseractError> {
        if self.watcher.needs_answers(is_end) {
            self.read_waiting()?;
        }
        self.watcher.look(is_end, &mut self.follower);
        if self.follower.is_full(self.watcher.now_ms()) { self.read_waiting() } else { Ok(()) }
    }

    fn read_waiting(&mut self) -> Result<(), TesseractError> {
        let pages = self.follower.waiting_pages();
        if pages.is_empty() {
            return Ok(());
        }
        let count = pages.len();
        let answer = self.tesseract.table(page::tiff(&pages))?;
        let verdicts = self.follower.answered(table::lines(&answer, count));
        verdicts.into_iter().for_each(|it| self.watcher.answered(it));
        Ok(())
    }
}
