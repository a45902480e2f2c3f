//! Turns a video into spans with vectors: one decode pass, batches through the models, the feature cache and progress.
//!
//! Independent of jobs: the caller stores the result.

mod assemble;
mod embed;
mod error;
mod feature_cache;
mod flow;
mod missing;
mod moments;
mod pace;
mod pass;
mod passages;
mod pictures;
mod progress;
mod raw_vectors;
mod screen_text;
mod source;
mod spaces;
mod subsample;
mod subtitles;
mod thumbnails;
mod whole;

pub use error::{IngestError, Stop};
pub use missing::{enqueue_lacking, enqueue_new_spaces, missing};
pub use pace::seconds_a_clip;
pub(crate) use passages::enqueue as enqueue_passages;
pub use progress::JobProgress;
pub use screen_text::{text_on_screen, text_reader};
pub use source::Source;
pub use spaces::fillable;
pub use thumbnails::keep_thumbnails;
pub use whole::{Whole, found_clips, whole};
