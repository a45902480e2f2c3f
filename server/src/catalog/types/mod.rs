//! The rows of the catalog as types of the service, one file per topic.

mod cue;
mod job;
mod key;
mod reel;
mod search;
mod span;
mod vector;
mod video;

pub use cue::*;
pub use job::*;
pub use key::*;
pub use reel::*;
pub use search::*;
pub use span::*;
pub use vector::*;
pub use video::*;
