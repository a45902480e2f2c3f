//! Compares stored files with their rows and hashes, and vectors with their spans. Mends what can be made again.
//!
//! A server may be running: what it is about to store or remove is no fault.

mod files;
mod fix;
mod vectors;

use std::fmt;
use std::io;
use std::sync::Arc;

use serde::Serialize;
use uuid::Uuid;

use crate::catalog::{BadVector, Catalog, CatalogError};
use crate::storage::{Derived, Storage};
use crate::terms::SpanKey;

pub use fix::fix;

/// What to compare.
pub struct Library<'a> {
    /// The rows.
    pub catalog: Arc<Catalog>,
    /// The files.
    pub storage: &'a Storage,
    /// Receives the numbers of files that are read and of all.
    pub report: &'a (dyn Fn(u64, u64) + Sync),
}

/// A fault of the library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// The file of a video is gone.
    FileMissing {
        /// The video.
        video: Uuid,
        /// Its file, as the catalog names it.
        file: String,
    },
    /// The file of a video has other bytes than when it was added.
    FileDamaged {
        /// The video.
        video: Uuid,
        /// Its file, as the catalog names it.
        file: String,
    },
    /// The file of an export is gone, or has other bytes than when it was made.
    ExportLost {
        /// The export.
        export: Uuid,
        /// Its file, as the catalog names it.
        file: String,
    },
    /// A file beside the stored ones that no video or export names.
    FileForeign {
        /// Its name in the data folder.
        file: String,
    },
    /// A derived file of a video or span that is gone.
    DerivedForeign {
        /// The kind of file: thumbnail, preview, rendition or features.
        of: &'static str,
        /// Id of the video or span.
        id: Uuid,
    },
    /// Spans of a video lack vectors.
    VectorsMissing {
        /// The video.
        video: Uuid,
        /// Key of the space; none if the video has no vectors at all.
        space: Option<u32>,
        /// Number of spans.
        spans: i64,
    },
    /// A vector without a span, of a wrong dimension, not finite, or not of norm 1.
    VectorBad {
        /// Key of the space.
        space: u32,
        /// Key of the span.
        span: SpanKey,
        /// The span's video; none without a span.
        video: Option<Uuid>,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::FileMissing { video, file } => write!(formatter, "video {video}: its file {file} is gone"),
            Fault::FileDamaged { video, file } => {
                write!(formatter, "video {video}: its file {file} has other bytes than when it was added")
            }
            Fault::ExportLost { export, file } => {
                write!(formatter, "export {export}: its file {file} is gone or damaged")
            }
            Fault::FileForeign { file } => write!(formatter, "{file}: no video or export names this file"),
            Fault::DerivedForeign { of, id } => write!(formatter, "{of} {id}: its video or clip is gone"),
            Fault::VectorsMissing { video, space: Some(space), spans } => {
                write!(formatter, "video {video}: {spans} spans lack a vector in space {space}")
            }
            Fault::VectorsMissing { video, space: None, .. } => {
                write!(formatter, "video {video}: it has no vectors")
            }
            Fault::VectorBad { space, span, why, .. } => {
                write!(formatter, "vector of span {span} in space {space}: {why}")
            }
        }
    }
}

impl From<BadVector> for Fault {
    fn from(bad: BadVector) -> Fault {
        Fault::VectorBad { space: bad.space, span: bad.span, video: bad.video, why: bad.why }
    }
}

/// Why a library can't be verified or mended.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The disk failed.
    #[error("a file or folder can't be read")]
    Disk(#[from] io::Error),
    /// A task panicked; an internal fault.
    #[error("a task of the check panicked")]
    Panicked(#[from] tokio::task::JoinError),
}

/// Compares everything, and returns all faults. Reads every stored file and every vector; changes nothing.
///
/// # Errors
/// [`VerifyError`] if something can't be read at all.
pub async fn verify(library: &Library<'_>) -> Result<Vec<Fault>, VerifyError> {
    let mut faults = files::of_videos(library).await?;
    faults.extend(files::of_exports(library).await?);
    faults.extend(files::foreign(library).await?);
    faults.extend(vectors::bad(library).await?);
    faults.extend(vectors::missing(library).await?);
    Ok(faults)
}

/// The name of a kind of derived files.
fn name_of(kind: Derived) -> &'static str {
    match kind {
        Derived::Thumbnail => "thumbnail",
        Derived::Preview => "preview",
        Derived::Rendition => "rendition",
        Derived::Sprites => "sprites",
    }
}
