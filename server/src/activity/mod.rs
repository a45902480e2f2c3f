//! Work that follows from changes of the library: sending events to webhooks, and asking new videos stored searches.

pub mod alerts;
pub mod signature;
pub mod webhooks;
