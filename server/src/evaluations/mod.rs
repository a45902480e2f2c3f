//! Asks several spaces the same queries, and compares how early each finds what is relevant.
//!
//! Independent of jobs and http: a job runs [`run()`], and the routes store [`Settings`] and read [`Report`].

mod figures;
mod judge;
mod run;
mod settings;

pub use figures::{Comparison, Cutoff, Report, SpaceFigures};
pub use judge::{Change, Found, change};
pub use run::{EvaluationError, run};
pub use settings::{AskedSpace, Settings, kind_of};
