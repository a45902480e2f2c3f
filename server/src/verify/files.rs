//! Compares the files of the data folder with the rows.

use std::collections::HashSet;
use std::io;

use uuid::Uuid;

use super::{Fault, Library, VerifyError, name_of};
use crate::catalog::{KeptVideo, Visibility};
use crate::storage::{Derived, StoredFile, fingerprint};

/// Videos or ids per read.
const ROWS_PER_READ: u32 = 500;

/// Compares the file of each video, those in the trash too, with its hash. Holds one piece of a file at a time.
pub(super) async fn of_videos(library: &Library<'_>) -> Result<Vec<Fault>, VerifyError> {
    let (mut faults, mut after, mut done) = (Vec::new(), None, 0);
    let counts = library.catalog.view(&Visibility::All).counts().await?;
    let all = u64::try_from(counts.videos + counts.videos_trashed).unwrap_or_default();
    loop {
        let videos = library.catalog.kept_videos(after, ROWS_PER_READ).await?;
        let Some(last) = videos.last() else { return Ok(faults) };
        after = Some(last.id);
        for video in &videos {
            let fault = of_video(library, video).await?;
            // A video that is purged meanwhile may have lost its file.
            if fault.is_some() && !library.catalog.kept_ids(&[video.id]).await?.is_empty() {
                faults.extend(fault);
            }
            done += 1;
            (library.report)(done, all.max(done));
        }
    }
}

async fn of_video(library: &Library<'_>, video: &KeptVideo) -> Result<Option<Fault>, VerifyError> {
    let missing = || Some(Fault::FileMissing { video: video.id, file: video.file.clone() });
    let found = match library.storage.local(&StoredFile::of(&video.file)).await {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(missing()),
        Err(error) => return Err(error.into()),
    };
    let read = tokio::task::spawn_blocking(move || fingerprint(found.path())).await?;
    match read {
        Ok(found) if found.content_hash == video.content_hash => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(missing()),
        // A disk that can't read a file has damaged it.
        _ => Ok(Some(Fault::FileDamaged { video: video.id, file: video.file.clone() })),
    }
}

/// Compares the file of each made export with its hash.
pub(super) async fn of_exports(library: &Library<'_>) -> Result<Vec<Fault>, VerifyError> {
    let (mut faults, mut before) = (Vec::new(), None);
    let view = library.catalog.view(&Visibility::All);
    loop {
        let exports = view.exports(before, ROWS_PER_READ).await?;
        let Some(last) = exports.last() else { return Ok(faults) };
        before = Some(last.job.id);
        for export in &exports {
            let Some(made) = &export.made else { continue };
            let is_whole = match library.storage.local(&StoredFile::of(&made.file)).await {
                Ok(found) => {
                    let read = tokio::task::spawn_blocking(move || fingerprint(found.path())).await?;
                    read.is_ok_and(|found| found.content_hash == made.content_hash)
                }
                Err(_) => false,
            };
            // An export that has ended meanwhile may have lost its file.
            if !is_whole && view.export(export.job.id).await?.is_some() {
                faults.push(Fault::ExportLost { export: export.job.id, file: made.file.clone() });
            }
        }
    }
}

/// Files that belong to nothing. Young files are left out: their rows may be about to be stored.
pub(super) async fn foreign(library: &Library<'_>) -> Result<Vec<Fault>, VerifyError> {
    // Files first: whatever has a row by then is named below.
    let mut stored = library.storage.old_files()?;
    stored.extend(library.storage.old_exports()?);
    let mut derived: Vec<(&'static str, Uuid)> = Vec::new();
    for kind in Derived::ALL {
        derived.extend(library.storage.derived_ids(kind)?.into_iter().map(|id| (name_of(kind), id)));
    }
    derived.extend(library.storage.feature_ids()?.into_iter().map(|id| ("features", id)));
    let named = Named::read(library).await?;
    let mut faults = Vec::new();
    for file in stored.into_iter().filter(|file| !named.files.contains(file)) {
        if library.storage.local(&StoredFile::of(&file)).await.is_ok() {
            faults.push(Fault::FileForeign { file });
        }
    }
    for some in derived.chunks(ROWS_PER_READ as usize) {
        let ids: Vec<Uuid> = some.iter().map(|(_, id)| *id).collect();
        let known = library.catalog.kept_ids(&ids).await?;
        let lost = some.iter().filter(|(_, id)| !known.contains(id) && !named.deleted.contains(id));
        faults.extend(lost.map(|(of, id)| Fault::DerivedForeign { of, id: *id }));
    }
    Ok(faults)
}

/// The files that rows name.
struct Named {
    files: HashSet<String>,
    /// Ids of the videos that are being purged, and of their clips.
    deleted: HashSet<Uuid>,
}

impl Named {
    async fn read(library: &Library<'_>) -> Result<Named, VerifyError> {
        let (mut files, mut deleted) = (library.catalog.export_files().await?, HashSet::new());
        let mut after = None;
        while let Some(video) = library.catalog.next_deleted(after).await? {
            after = Some(video.id);
            files.insert(video.file);
            deleted.insert(video.id);
            deleted.extend(video.clips);
        }
        let mut after = None;
        loop {
            let videos = library.catalog.kept_videos(after, ROWS_PER_READ).await?;
            let Some(last) = videos.last() else { return Ok(Named { files, deleted }) };
            after = Some(last.id);
            files.extend(videos.into_iter().map(|video| video.file));
        }
    }
}
