//! One video to spans: a decode pass, batches through the models, the feature cache, and how far all that is.
//!
//! Knows nothing of jobs: whoever runs it stores its result.

mod assemble;
mod embed;
mod error;
mod feature_cache;
mod flow;
mod missing;
mod moments;
mod pass;
mod passages;
mod progress;
mod raw_vectors;
mod source;
mod subsample;
mod subtitles;
mod whole;

pub use error::IngestError;
pub use missing::{enqueue_new_spaces, missing};
pub(crate) use passages::enqueue as enqueue_passages;
pub use progress::{JobProgress, Stop};
pub use source::Source;
pub use whole::{found_clips, whole};
