//! Where a video is cut into clips: one file a detector, [`policy`] for the rules on top.

pub mod content;
pub mod flash;
pub mod policy;

pub use content::{ContentDetector, ContentSettings, MinSceneLen};
pub use flash::Cut;
pub use policy::{ClipRange, Segmenter, SegmenterSettings};
