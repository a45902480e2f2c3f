//! Video files to frames: probing, decoding, segmentation, sampling, thumbnails and previews.
//!
//! Times are milliseconds since the first presented frame of the video, rounded down. A frame belongs to a span if and
//! only if `start_ms <= time_ms < end_ms`.

mod answer;
pub mod audio;
pub mod clock;
pub mod colour;
pub mod decode;
mod error;
pub mod excerpt;
pub mod ffmpeg;
mod frame_rate;
mod installed;
pub mod joined;
mod jpeg;
mod limits;
mod luma;
mod nut;
mod pass;
pub mod probe;
pub mod rendition;
mod run;
mod running;
mod sandbox;
pub mod seek;
pub mod segment;
pub mod span;
mod spare;
pub mod sprites;
mod still;
mod subtitles;
mod tesseract;
mod threads;
pub mod thumbnails;
mod watchdog;

pub use crate::sample;
pub use answer::SubtitleStream;
pub use decode::{Decoder, Event, Output, Request, Summary, decode};
pub use error::VideoError;
pub use frame_rate::FrameRate;
pub use installed::{InstalledProgram, LackingPart, installed_ffmpeg, installed_ffprobe, lacking_parts};
pub use limits::Limits;
pub use luma::{LumaPicture, LumaPictures, luma_pictures};
pub use probe::{Probe, probe};
pub use sandbox::use_sandbox;
pub use seek::{References, seek_agrees_with, seek_is_safe};
pub use span::{Pick, VideoFile, count_frames, frames_of_span, picked_frames_of_span};
pub use still::decode_still;
pub use subtitles::{is_text, subtitles_as_vtt};
pub use tesseract::{InstalledTesseract, Tesseract, TesseractError, installed_tesseract};
