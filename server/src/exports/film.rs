//! Films of ranges. Every function blocks.

use std::fs::File;
use std::io;

use reprise_encoders::video::excerpt::{
    Encode, Form, Join, Part, PictureSize, Sound, Written, copy, encode, join, key_range,
};
use reprise_encoders::video::{FrameRate, VideoError};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::error::ExportError;
use super::pace::Pace;
use super::request::{Cut, Files, LeftOut, MadeRange, plain_name};
use super::sources::Source;
use crate::app::App;
use crate::storage::Scratch;

/// What to film.
pub(super) struct Film<'a> {
    pub(super) app: &'a App,
    pub(super) sources: &'a [Source],
    /// The rate of a film of all ranges; films of one range keep their own.
    pub(super) rate: FrameRate,
    pub(super) cut: Cut,
    pub(super) files: Files,
}

/// A film in a temporary file.
pub(super) struct Filmed {
    pub(super) file: Scratch,
    pub(super) ranges: Vec<MadeRange>,
    pub(super) left_out: Vec<LeftOut>,
}

/// One range in a temporary file.
struct Shot {
    file: Scratch,
    range: MadeRange,
    /// Its frames, if it was encoded.
    frames: Option<i64>,
}

/// How a range is encoded.
#[derive(Clone, Copy)]
struct Shape {
    rate: FrameRate,
    size: PictureSize,
    sound: Sound,
    form: Form,
}

/// Makes the film, or the zip of films.
///
/// # Errors
/// [`ExportError`]; nothing is left.
pub(super) fn film(film: &Film<'_>, pace: &mut Pace) -> Result<Filmed, ExportError> {
    pace.stage("film");
    match film.files {
        Files::Each => zipped(film, pace),
        Files::One => joined(film, pace),
    }
}

/// A film for each range, in a zip without compression: films don't get smaller.
fn zipped(film: &Film<'_>, pace: &mut Pace) -> Result<Filmed, ExportError> {
    let file = film.app.storage.scratch(".zip")?;
    let mut zip = ZipWriter::new(File::options().write(true).open(file.path())?);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    let (mut ranges, mut left_out) = (Vec::new(), Vec::new());
    for (place, source) in film.sources.iter().enumerate() {
        match shot(film, source, own_shape(source), pace)? {
            Ok(shot) => {
                let name = format!("{:03} {}.mp4", place + 1, plain_name(&source.clip.media.title));
                zip.start_file(name, options).map_err(io::Error::from)?;
                io::copy(&mut File::open(shot.file.path())?, &mut zip)?;
                ranges.push(shot.range);
            }
            Err(missing) => left_out.push(missing),
        }
        pace.check()?;
    }
    if ranges.is_empty() {
        return Err(nothing_left(&left_out));
    }
    zip.finish().map_err(io::Error::from)?;
    Ok(Filmed { file, ranges, left_out })
}

/// One film of all ranges.
fn joined(film: &Film<'_>, pace: &mut Pace) -> Result<Filmed, ExportError> {
    let (mut shots, mut left_out) = (Vec::new(), Vec::new());
    for source in film.sources {
        match shot(film, source, common_shape(film, source), pace)? {
            Ok(shot) => shots.push(shot),
            Err(missing) => left_out.push(missing),
        }
    }
    let ranges = shots.iter().map(|shot| shot.range.clone()).collect();
    // A film of one range is complete, unless it was made as a part.
    if film.sources.len() == 1
        && let Some(shot) = shots.pop()
    {
        return Ok(Filmed { file: shot.file, ranges, left_out });
    }
    if shots.is_empty() {
        return Err(nothing_left(&left_out));
    }
    pace.last_step("join");
    let file = film.app.storage.scratch(".mp4")?;
    let part = |shot: &Shot| Part { path: shot.file.path().to_owned(), frames: shot.frames };
    let parts: Vec<Part> = shots.iter().map(part).collect();
    let task = Join { parts: &parts, rate: film.rate, has_sound: has_sound(film) };
    let limits = pace.limits()?;
    let written = join(&task, file.path(), &limits, &mut |written| pace.watch(Written { ms: 0, ..written }));
    match written.map_err(|error| pace.error_of(0, error))? {
        Some(_) => Ok(Filmed { file, ranges, left_out }),
        None => Err(ended(pace)),
    }
}

/// Makes one range, or says why it is left out.
fn shot(
    film: &Film<'_>,
    source: &Source,
    shape: Shape,
    pace: &mut Pace,
) -> Result<Result<Shot, LeftOut>, ExportError> {
    let limits = pace.limits()?;
    let extension = if shape.form == Form::Part && film.cut == Cut::Exact { ".mov" } else { ".mp4" };
    let file = film.app.storage.scratch(extension)?;
    let (clip, video) = (&source.clip, source.file(&limits));
    let span = clip.start_ms..clip.end_ms;
    let made = |start_ms, end_ms| MadeRange { range: clip.range, video: clip.media.video, start_ms, end_ms };
    let done = match film.cut {
        Cut::Exact => {
            let Shape { rate, size, sound, form } = shape;
            let frames = rate.frames_of(&span);
            let first = frames.start;
            let task = Encode { file: video, frames, rate, size, sound, form };
            encode(&task, file.path(), &mut |written| pace.watch(written)).map(|written| {
                let range = |it: Written| made(rate.ms(first), rate.ms(first + it.frames));
                written.map(|it| (range(it), Some(it.frames)))
            })
        }
        Cut::Copy => key_range(video, &span).and_then(|keys| {
            let copied = copy(video, &keys, file.path(), &mut |written| pace.watch(written))?;
            Ok(copied.map(|_| (made(keys.start_ms, keys.end_ms), None)))
        }),
    };
    match done {
        Ok(Some((range, frames))) => {
            pace.finish_part(span.end - span.start, std::fs::metadata(file.path())?.len());
            Ok(Ok(Shot { file, range, frames }))
        }
        Ok(None) => Err(ended(pace)),
        // The fault of this file: the rest is made.
        Err(error @ (VideoError::NotVideo(_) | VideoError::EmptySpan { .. })) => {
            Ok(Err(LeftOut { range: clip.range, video: clip.media.video, why: error.to_string() }))
        }
        Err(error) => Err(pace.error_of(clip.range, error)),
    }
}

/// The error of an export without ranges, with the first reason.
pub(super) fn nothing_left(left_out: &[LeftOut]) -> ExportError {
    let first = left_out.first().map_or_else(|| "there was none".to_owned(), |it| it.why.clone());
    ExportError::NothingLeft(first)
}

/// Why a watched run has ended.
fn ended(pace: &Pace) -> ExportError {
    let stopped = || ExportError::Stopped(crate::ingest::Stop::Lost);
    pace.check().err().unwrap_or_else(stopped)
}

/// A range for itself keeps its size and its rate.
fn own_shape(source: &Source) -> Shape {
    let sound = if source.probe().has_audio { Sound::Own } else { Sound::None };
    let rate = source.clip.media.rate;
    let rate = if source.clip.media.is_variable { rate.for_editing() } else { rate };
    Shape { rate, size: PictureSize::of(source.probe()), sound, form: Form::Whole }
}

/// Ranges of one film have the size of the first.
fn common_shape(film: &Film<'_>, source: &Source) -> Shape {
    let first = film.sources.first().unwrap_or(source);
    let sound = match (has_sound(film), source.probe().has_audio) {
        (false, _) => Sound::None,
        (true, true) => Sound::Own,
        (true, false) => Sound::Silence,
    };
    let form = if film.sources.len() == 1 { Form::Whole } else { Form::Part };
    Shape { rate: film.rate, size: PictureSize::of(first.probe()), sound, form }
}

fn has_sound(film: &Film<'_>) -> bool {
    film.sources.iter().any(|source| source.probe().has_audio)
}
