//! The rows of the catalog as types of the service, one file per topic.

mod cue;
mod job;
mod key;
mod reel;
mod span;
mod upload;
mod vector;
mod video;

pub use cue::*;
pub use job::*;
pub use key::*;
pub use reel::*;
pub use span::*;
pub use upload::*;
pub use vector::*;
pub use video::*;
