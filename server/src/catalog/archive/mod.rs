//! All rows that a backup holds, in a form that is the same for both databases.
//!
//! Left out: videos that are being purged, and what follows from other rows (values for filters, counts of words, the change log),
//! and what is true only for running servers (leases).

mod layout;
mod restore;
mod snapshot;

pub use layout::{LIBRARY, OF_VIDEO, Table};
pub use restore::Restoring;
pub use snapshot::{ArchivedVideo, Positions, Snapshot};
