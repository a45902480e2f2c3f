//! Fault tests: killed servers, lost leases, cancelled jobs, damaged files.

pub(crate) mod bed;
mod files;
mod jobs;
mod kills;
mod snapshots;
mod tracks;
mod trash;
mod walk;
