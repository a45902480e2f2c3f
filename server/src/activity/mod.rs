//! What callers do with the library: the log of their searches.
//!
//! A search hands its pages to [`QueryLog::add`], which never waits. One task writes them in batches.

mod privacy;
mod query_log;
mod writer;

pub use privacy::{AskedQuery, QueryLogMode};
pub use query_log::QueryLog;
