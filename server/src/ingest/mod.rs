//! One job, file to searchable spans: the runner that leases jobs, and what a job does.

mod assemble;
mod embed;
mod runner;
mod watch;

pub use runner::{Runner, run_forever};
