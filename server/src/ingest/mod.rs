//! One job, file to searchable spans: the runner that leases jobs, and what a job does.

mod assemble;
mod embed;
mod flow;
mod job;
mod kept;
mod moments;
mod pass;
mod passages;
mod runner;
mod segmentation;
mod subtitles;
mod thin;
mod watch;

pub(crate) use passages::enqueue as enqueue_passages;
pub use runner::run_forever;
pub use segmentation::segmenter_settings;
