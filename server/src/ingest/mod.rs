//! One job, file to searchable spans: the runner that leases jobs, and what a job does.

mod assemble;
mod embed;
mod job;
mod moments;
mod pass;
mod runner;
mod segmentation;
mod thin;
mod watch;

pub use runner::run_forever;
pub use segmentation::segmenter_settings;
