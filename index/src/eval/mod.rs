//! How good rankings are: average precision, recall and their means over queries, on ids or scores alone.
//!
//! Knows no files or models: a ranking comes in as ids, best first, as the scores of all rows, or, for all queries of a
//! benchmark against its whole gallery, as vectors ([`ranks`]). What TF-CoVR's released code (arXiv 2506.05274) computes
//! otherwise than its paper means is [`Protocol::Compat`].

mod figures;
mod gallery;
mod precision;
mod product;
mod rank;
mod recall;

pub use figures::{CUTOFFS, Figures, Judged};
pub use gallery::{Join, Vectors, VectorsError, ranks};
pub use precision::{average_precision, passes, recall};
pub use rank::{Protocol, rank};
pub use recall::{ReBias, first_right, recall_at};
