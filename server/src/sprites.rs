//! Sprite sheets of a video in one file: a line of JSON that describes them, then the JPEGs one after the other.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use reprise_encoders::video::sprites::{SpriteCollector, Sprites};
use reprise_encoders::video::{self, Event, Limits, Probe, Request, VideoError};
use serde::{Deserialize, Serialize};

/// Width in pixels of the shot detector's frames. The pictures are made from them.
pub const FRAME_WIDTH: u32 = 256;
/// Longest description, in bytes.
const LONGEST_LINE: u64 = 64 << 10;
/// Largest sheet, in bytes: more than the RGB of its pictures.
const LARGEST_SHEET: u64 = 16 << 20;

/// A description of sprite sheets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpriteFacts {
    /// Width of a picture, in pixels.
    pub tile_width: u32,
    /// Height of a picture, in pixels.
    pub tile_height: u32,
    /// Pictures in a row of a sheet.
    pub columns: usize,
    /// Rows of a sheet.
    pub rows: usize,
    /// Milliseconds from one picture to the next.
    pub interval_ms: i64,
    /// Number of pictures.
    pub tiles: usize,
    /// Bytes of each sheet.
    pub sheets: Vec<u64>,
}

/// The file with these sheets.
///
/// # Errors
/// They can't be described.
pub fn to_file(sprites: &Sprites) -> io::Result<Vec<u8>> {
    let facts = SpriteFacts {
        tile_width: sprites.tile_width,
        tile_height: sprites.tile_height,
        columns: sprites.columns,
        rows: sprites.rows,
        interval_ms: sprites.interval_ms,
        tiles: sprites.tiles,
        sheets: sprites.sheets.iter().map(|sheet| sheet.len() as u64).collect(),
    };
    let mut bytes = serde_json::to_vec(&facts)?;
    bytes.push(b'\n');
    sprites.sheets.iter().for_each(|sheet| bytes.extend_from_slice(sheet));
    Ok(bytes)
}

/// Reads the description in a file. Blocks.
///
/// # Errors
/// The file can't be read, or holds no sprite sheets.
pub fn facts(path: &Path) -> io::Result<SpriteFacts> {
    Ok(described(path)?.0)
}

/// Reads a sheet, counted from 0. Blocks. `None` if there is none with this number.
///
/// # Errors
/// As [`facts`].
pub fn sheet(path: &Path, number: usize) -> io::Result<Option<Vec<u8>>> {
    let (facts, mut file, begin) = described(path)?;
    let Some(length) = facts.sheets.get(number).copied() else { return Ok(None) };
    if length > LARGEST_SHEET {
        return Err(io::Error::other("a sheet is too large"));
    }
    let before: u64 = facts.sheets.iter().take(number).fold(begin, |sum, it| sum.saturating_add(*it));
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(Some(bytes)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The description, the file, and the place of the first sheet.
fn described(path: &Path) -> io::Result<(SpriteFacts, File, u64)> {
    let file = File::open(path)?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(file).take(LONGEST_LINE);
    reader.read_until(b'\n', &mut line)?;
    let facts = serde_json::from_slice(&line)?;
    Ok((facts, reader.into_inner().into_inner(), line.len() as u64))
}

/// Decodes a whole video for its sprite sheets alone, and returns their file. Blocks.
///
/// # Errors
/// [`VideoError`] if it can't be decoded, or has no frame.
pub fn of_video(path: &Path, probe: &Probe, limits: &Limits) -> Result<Vec<u8>, VideoError> {
    let request = Request { detect_width: Some(FRAME_WIDTH), outputs: Vec::new() };
    let mut collector = SpriteCollector::new(probe);
    let mut decoder = video::decode(path, probe, request, limits)?;
    for event in &mut decoder {
        if let Event::Detect(frame) = event? {
            collector.push(&frame);
        }
    }
    let duration_ms = decoder.summary().duration_ms;
    drop(decoder);
    let sprites = collector.finish(duration_ms)?;
    let sprites = sprites.ok_or_else(|| VideoError::NotVideo("no picture in it could be decoded".into()))?;
    to_file(&sprites).map_err(|error| VideoError::Ffmpeg(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_come_out_as_they_went_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sheets");
        let sprites = Sprites {
            tile_width: 160,
            tile_height: 90,
            columns: 10,
            rows: 10,
            interval_ms: 1000,
            tiles: 101,
            sheets: vec![b"one\n".to_vec(), b"{two}".to_vec()],
        };
        std::fs::write(&path, to_file(&sprites).unwrap()).unwrap();
        assert_eq!(facts(&path).unwrap().sheets, [4, 5]);
        assert_eq!(sheet(&path, 0).unwrap().unwrap(), b"one\n");
        assert_eq!(sheet(&path, 1).unwrap().unwrap(), b"{two}");
        assert_eq!(sheet(&path, 2).unwrap(), None);
        let whole = std::fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 1], b"", b"\n", b"{}\n", b"no line"] {
            std::fs::write(&path, damaged).unwrap();
            assert!(sheet(&path, 1).is_err(), "{damaged:?}");
        }
    }
}
