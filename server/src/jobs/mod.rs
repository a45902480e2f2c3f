//! Background jobs: leasing, running and retrying them. The work itself lies elsewhere, e.g. in [`crate::ingest`].

mod error;
mod kind;
mod kinds;
mod need;
mod retry;
mod runner;

pub use error::JobError;
pub use kind::{JobKind, Work};
pub use kinds::KINDS;
pub use need::{MetNeeds, Need};
pub use runner::{Duty, run_forever};
