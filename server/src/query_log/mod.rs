//! The log of searches: what was asked, and what it showed.
//!
//! A search hands its pages to [`QueryLog::add`], which never waits. One task writes them in batches.

mod privacy;
mod queue;
mod writer;

pub use privacy::{AskedExamples, AskedQuery, QueryLogMode, plain};
pub use queue::QueryLog;
