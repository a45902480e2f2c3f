//! Ranges of videos as files for others: films, edit lists of editing programs, tables and chapters.
//!
//! A job calls [`make`]. It reads the videos as they are then: one whose file is gone is named in the report and left out.

mod edl;
mod error;
mod fcpxml;
mod film;
mod lists;
mod make;
mod otio;
mod pace;
mod request;
mod sources;
mod timecode;
mod timeline;

pub use edl::MOST_EVENTS;
pub use error::ExportError;
pub use make::{Made, make};
pub use request::{Cut, ExportRequest, Files, Format, LeftOut, MadeRange, Report};
