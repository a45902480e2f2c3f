//! What must survive: killed servers, lost leases, cancelled jobs, damaged files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod bed;
mod files;
mod jobs;
mod kills;
mod snapshots;
