//! Decodes many short clips, several per run of ffmpeg: starting a process takes longer than decoding a clip.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::TrainError;
use reprise_encoders::video::joined::decode_joined;
use reprise_encoders::video::{self, Event, Limits, Output, Request, VideoError};
use reprise_encoders::{Frame, FrameSize};

/// A clip's file and its number of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footage {
    /// The video file; all clips of one call have the same format.
    pub path: PathBuf,
    /// Number of frames.
    pub frames: usize,
}

/// Clips per run of ffmpeg.
const CLIPS_PER_RUN: usize = 64;

/// Decodes whole clips at `side` by `side` pixels with `workers` parallel runs. Calls `visit` once per clip, in
/// any order. Blocks.
///
/// # Errors
/// [`TrainError::Data`] if a clip has another number of frames than stated; [`TrainError::Video`] if decoding
/// fails; any error of `visit`.
pub fn decode_all(
    clips: &[Footage],
    side: u32,
    workers: usize,
    visit: &mut dyn FnMut(usize, Vec<Frame>) -> Result<(), TrainError>,
) -> Result<(), TrainError> {
    let runs: Vec<(usize, &[Footage])> =
        clips.chunks(CLIPS_PER_RUN).enumerate().map(|(run, clips)| (run * CLIPS_PER_RUN, clips)).collect();
    let (next, (sender, receiver)) = (AtomicUsize::new(0), mpsc::sync_channel(2 * workers.max(1)));
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            let (sender, next, runs) = (sender.clone(), &next, &runs);
            scope.spawn(move || {
                while let Some((first, clips)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let failed = match decode_run(clips, side) {
                        Ok(decoded) => sender.send(Ok((*first, decoded))).is_err(),
                        Err(error) => sender.send(Err(error)).is_ok(),
                    };
                    if failed {
                        return;
                    }
                }
            });
        }
        drop(sender);
        // Leaving early drops the receiver, which ends the workers.
        for run in receiver {
            let (first, decoded) = run?;
            for (number, frames) in decoded.into_iter().enumerate() {
                visit(first + number, frames)?;
            }
        }
        Ok(())
    })
}

fn decode_run(clips: &[Footage], side: u32) -> Result<Vec<Vec<Frame>>, TrainError> {
    let paths: Vec<&Path> = clips.iter().map(|clip| clip.path.as_path()).collect();
    if let Some(frames) = joined(&paths, clips.iter().map(|clip| clip.frames).sum(), side)? {
        let mut frames = frames.into_iter();
        return Ok(clips.iter().map(|clip| frames.by_ref().take(clip.frames).collect()).collect());
    }
    clips.iter().map(|clip| alone(clip, side)).collect()
}

/// Frames of all clips in order; `None` if their number differs from `expected`.
fn joined(paths: &[&Path], expected: usize, side: u32) -> Result<Option<Vec<Frame>>, TrainError> {
    let mut pixels = vec![0; side as usize * side as usize * 3];
    let mut frames = Vec::with_capacity(expected);
    decode_joined(paths, side, |stdout| {
        let mut stdout = BufReader::with_capacity(1 << 18, stdout);
        while frames.len() <= expected && stdout.read_exact(&mut pixels).is_ok() {
            frames.push(Frame { time_ms: 0, width: side, height: side, rgb: Arc::from(&pixels[..]) });
        }
    })?;
    Ok((frames.len() == expected).then_some(frames))
}

/// Decodes one clip with the regular decoder.
fn alone(clip: &Footage, side: u32) -> Result<Vec<Frame>, TrainError> {
    let limits = Limits::default();
    let probe = video::probe(&clip.path, &limits)?;
    let output = Output { scaling: FrameSize::Exact { width: side, height: side }.into(), per_second: None };
    let request = Request { detect_width: None, outputs: vec![output] };
    let frames = video::decode(&clip.path, &probe, request, &limits)?.filter_map(|event| match event {
        Ok(Event::Sampled { frame, .. }) => Some(Ok(frame)),
        Ok(Event::Detect(_)) => None,
        Err(error) => Some(Err(error)),
    });
    let frames: Vec<Frame> = frames.collect::<Result<_, VideoError>>()?;
    if frames.len() != clip.frames {
        let (path, found, expected) = (clip.path.display(), frames.len(), clip.frames);
        return Err(TrainError::Data(format!("{path} has {found} frames, its labels {expected}").into()));
    }
    Ok(frames)
}
