//! The rows of the catalog as types of the service, one file per topic.

mod alert;
mod cue;
mod evaluation;
mod insight;
mod job;
mod key;
mod map;
mod reel;
mod search;
mod span;
mod tags;
mod transcription;
mod upload;
mod vector;
mod video;
pub(in crate::catalog) mod video_list;
mod webhook;

pub use alert::*;
pub use cue::*;
pub use evaluation::*;
pub use insight::*;
pub use job::*;
pub use key::*;
pub use map::*;
pub use reel::*;
pub use search::*;
pub use span::*;
pub use tags::*;
pub use transcription::*;
pub use upload::*;
pub use vector::*;
pub use video::*;
pub use video_list::{ListedWord, MOST_LISTED_WORDS, PlaceKey, VideoList, VideoOrder, VideoPlace};
pub use webhook::*;
