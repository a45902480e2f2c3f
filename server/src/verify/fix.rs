//! Mends faults. Removes only what can be made again, and never what a user made.

use super::{Fault, Library, VerifyError, name_of};
use crate::catalog::BadVector;
use crate::storage::Derived;

/// Most vectors that one transaction deletes.
const VECTORS_AT_ONCE: usize = 1000;

/// Mends the faults that can be mended, and returns what was done, one line each.
///
/// Bad vectors are deleted, and jobs are queued that make missing ones. Derived files of what is gone are removed. A
/// video without its file gets a failed job with the reason. Other faults are left to the operator.
///
/// # Errors
/// [`VerifyError`]; what was mended until then stays mended.
pub async fn fix(library: &Library<'_>, faults: &[Fault]) -> Result<Vec<String>, VerifyError> {
    let mut done = delete_bad_vectors(library, faults).await?;
    for fault in faults {
        done.extend(fix_one(library, fault).await?);
    }
    Ok(done)
}

async fn delete_bad_vectors(library: &Library<'_>, faults: &[Fault]) -> Result<Vec<String>, VerifyError> {
    let bad = |fault: &Fault| match fault.clone() {
        Fault::VectorBad { space, span, video, why } => Some(BadVector { space, span, video, why }),
        _ => None,
    };
    let bad: Vec<BadVector> = faults.iter().filter_map(bad).collect();
    for some in bad.chunks(VECTORS_AT_ONCE) {
        library.catalog.delete_vectors(some).await?;
    }
    Ok(if bad.is_empty() { Vec::new() } else { vec![format!("deleted {} bad vectors", bad.len())] })
}

async fn fix_one(library: &Library<'_>, fault: &Fault) -> Result<Option<String>, VerifyError> {
    match fault {
        Fault::FileMissing { video, .. } | Fault::FileDamaged { video, .. } => {
            // A video in the trash is not marked: nobody reads its file before a restore.
            let is_marked = library.catalog.mark_file_lost(*video, &fault.to_string()).await?;
            Ok(is_marked.then(|| format!("video {video}: a failed job says that its file is lost")))
        }
        Fault::ExportLost { export, .. } => {
            library.catalog.expire_export(*export).await?;
            Ok(Some(format!("export {export}: it has expired, and can be made again")))
        }
        Fault::VectorsMissing { video, .. } | Fault::VectorBad { video: Some(video), .. } => {
            let is_new = library.catalog.enqueue_fill(*video).await?;
            Ok(is_new.then(|| format!("video {video}: queued a job that makes its missing vectors")))
        }
        Fault::DerivedForeign { of, id } => {
            match Derived::ALL.into_iter().find(|kind| name_of(*kind) == *of) {
                Some(kind) => library.storage.remove_derived(kind, *id).await?,
                None => library.storage.remove_derived_of_video(*id).await?,
            }
            Ok(Some(format!("{of} {id}: removed")))
        }
        Fault::FileForeign { .. } | Fault::VectorBad { video: None, .. } => Ok(None),
    }
}
