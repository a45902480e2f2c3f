//! Retrieval metrics on ids or scores alone: average precision, recall at K, and their means over queries.
//!
//! The module reads no files and no models. A ranking is a list of ids, best first, or the scores of all rows.
//! [`ranks`] takes the vectors of a benchmark's queries and of its whole gallery. [`Protocol::Compat`] follows
//! TF-CoVR's released code (arXiv 2506.05274) where it differs from the paper.

mod auroc;
mod figures;
mod gallery;
mod precision;
mod product;
mod rank;
mod recall;

pub use auroc::auroc;
pub use figures::{CUTOFFS, Figures, Judged};
pub use gallery::{Join, Vectors, VectorsError, ranks};
pub use precision::{average_precision, average_precision_as_listed, passes, recall};
pub use rank::{Protocol, rank};
pub use recall::{ReBias, first_right, recall_at};
