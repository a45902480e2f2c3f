//! What follows from work in the library: webhooks that are told of it, and alerts that ask every new video.

pub mod alerts;
pub mod signature;
pub mod webhooks;
