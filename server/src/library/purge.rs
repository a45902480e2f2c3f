//! Frees files and rows of deleted videos in the background, and sweeps stray files.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::LibraryError;
use crate::app::App;
use crate::catalog::DeletedVideo;
use crate::storage::{Derived, StoredFile};

/// Interval of the search for stray files, for videos whose time in the trash is over, and for those that another process
/// has deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// Interval of the checks whether a backup has ended, while deleted videos wait for it.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Ids of videos and spans per read.
const IDS_PER_READ: usize = 100;
/// Videos per read.
const VIDEOS_PER_READ: u32 = 1000;

/// Purges deleted videos and expired exports at the start and after each deletion, and sweeps stray files and
/// old entries of the audit log, old refusals and evaluations every hour, until `closing`. While a backup is being made, no stored file is removed.
pub async fn tend(app: Arc<App>, closing: CancellationToken) {
    let mut next_sweep = Instant::now();
    while !closing.is_cancelled() {
        let purged = purge(&app, &closing).await;
        if let Err(error) = &purged {
            tracing::warn!(%error, "deleted videos can't be listed to purge them");
        }
        let waits = matches!(purged, Ok(Purged::Waits));
        if let Err(error) = purge_exports(&app).await {
            tracing::warn!(%error, "expired exports can't be removed yet");
        }
        if next_sweep <= Instant::now() {
            next_sweep = Instant::now() + SWEEP_EVERY;
            let swept = [
                sweep_incoming(&app).await,
                sweep(&app).await,
                sweep_exports(&app).await,
                forget_audit(&app).await,
                forget_refusals(&app).await,
                sweep_uploads(&app).await,
                forget_evaluations(&app).await,
            ];
            for swept in swept {
                if let Err(error) = swept {
                    tracing::warn!(%error, "the stored files can't be swept");
                }
            }
        }
        tokio::select! {
            () = closing.cancelled() => {}
            () = app.deleted.notified() => {}
            () = sleep_until(next_sweep) => {}
            () = sleep(LOOK_EVERY), if waits => {}
        }
    }
}

/// Deletes old entries of the audit log.
async fn forget_audit(app: &App) -> Result<(), LibraryError> {
    let days = i64::from(app.config.audit_days);
    app.catalog.forget_audit(days * 24 * 3600 * 1000).await?;
    Ok(())
}

/// Deletes old refusals.
async fn forget_refusals(app: &App) -> Result<(), LibraryError> {
    app.catalog.forget_refusals(app.config.refusals_last()).await?;
    Ok(())
}

/// Deletes expired uploads, and the files that no unfinished upload needs. A file that somebody writes to stays.
async fn sweep_uploads(app: &Arc<App>) -> Result<(), LibraryError> {
    app.catalog.forget_uploads().await?;
    let listing = Arc::clone(app);
    for id in tokio::task::spawn_blocking(move || listing.storage.part_ids()).await?? {
        let Ok(_held) = app.storage.part(id).await else { continue };
        if !app.catalog.needs_part(id).await? {
            app.storage.remove_part(id).await?;
        }
    }
    Ok(())
}

/// Deletes evaluations that have expired.
async fn forget_evaluations(app: &App) -> Result<(), LibraryError> {
    app.catalog.forget_evaluations().await?;
    Ok(())
}

/// How a purge ended.
enum Purged {
    /// Every deleted video was tried.
    All,
    /// A backup needs the files of deleted videos.
    Waits,
}

/// Frees files and rows of all deleted videos whose time in the trash is over. A second call changes nothing. A video that
/// fails is left for later.
async fn purge(app: &App, closing: &CancellationToken) -> Result<Purged, LibraryError> {
    app.catalog.empty_trash(app.config.trash_lasts()).await?;
    let mut after = None;
    while let Some(deleted) = app.catalog.next_deleted(after).await? {
        if closing.is_cancelled() {
            return Ok(Purged::All);
        }
        // Asked after the video was marked: a backup that begins later leaves it out.
        if app.catalog.is_backed_up().await? {
            return Ok(Purged::Waits);
        }
        after = Some(deleted.id);
        match purge_one(app, &deleted).await {
            Ok(()) => tracing::debug!(video = %deleted.id, "a deleted video was purged"),
            Err(error) => tracing::warn!(%error, video = %deleted.id, "a deleted video can't be purged yet"),
        }
    }
    Ok(Purged::All)
}

/// Removes the files first: while the row exists, an interrupted purge is repeated.
async fn purge_one(app: &App, deleted: &DeletedVideo) -> Result<(), LibraryError> {
    app.storage.remove(&StoredFile::of(&deleted.file)).await?;
    app.storage.remove_derived_of_video(deleted.id).await?;
    for clip in &deleted.clips {
        app.storage.remove_pictures(*clip).await?;
    }
    app.catalog.purge_video(deleted.id).await?;
    Ok(())
}

/// Removes the files and rows of exports that nobody can read any more. Backups do not need them.
async fn purge_exports(app: &App) -> Result<(), LibraryError> {
    for expired in app.catalog.expired_exports(app.config.export_lasts()).await? {
        if let Some(file) = &expired.file {
            app.storage.remove(&StoredFile::of(file)).await?;
        }
        app.catalog.purge_export(expired.id).await?;
    }
    Ok(())
}

/// Removes files of exports that no row names: a crash between keeping a file and storing its row leaves such files.
async fn sweep_exports(app: &Arc<App>) -> Result<(), LibraryError> {
    let listing = Arc::clone(app);
    // Files first: whatever has a row by then is named below.
    let stored = tokio::task::spawn_blocking(move || listing.storage.old_exports()).await??;
    let named = app.catalog.export_files().await?;
    for file in stored.iter().filter(|file| !named.contains(*file)) {
        app.storage.remove(&StoredFile::of(file)).await?;
    }
    Ok(())
}

/// Removes stored files of unknown videos: a crash between keeping a file and inserting its row leaves such files.
async fn sweep(app: &Arc<App>) -> Result<(), LibraryError> {
    let mut known: HashSet<Uuid> = HashSet::new();
    let mut after = None;
    loop {
        let videos = app.catalog.kept_videos(after, VIDEOS_PER_READ).await?;
        let Some(last) = videos.last().map(|video| video.id) else { break };
        after = Some(last);
        known.extend(videos.into_iter().map(|video| video.id));
    }
    // Asked after the videos were listed: a backup that begins later names no others but young ones.
    if app.catalog.is_backed_up().await? {
        return Ok(());
    }
    let sweeping = Arc::clone(app);
    let swept = tokio::task::spawn_blocking(move || sweeping.storage.sweep(&|id| known.contains(&id)));
    let removed = swept.await?? + sweep_pictures(app).await?;
    if removed > 0 {
        tracing::info!(removed, "removed files that no video names");
    }
    Ok(())
}

/// Removes thumbnails, previews and renditions of videos and spans that are gone: a render may end after a purge.
async fn sweep_pictures(app: &Arc<App>) -> Result<u64, LibraryError> {
    let mut removed = 0;
    for kind in Derived::ALL {
        let listing = Arc::clone(app);
        let ids = tokio::task::spawn_blocking(move || listing.storage.derived_ids(kind)).await??;
        for some in ids.chunks(IDS_PER_READ) {
            let known = app.catalog.kept_ids(some).await?;
            for id in some.iter().filter(|id| !known.contains(id)) {
                app.storage.remove_derived(kind, *id).await?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

async fn sweep_incoming(app: &Arc<App>) -> Result<(), LibraryError> {
    let sweeping = Arc::clone(app);
    let removed = tokio::task::spawn_blocking(move || sweeping.storage.sweep_incoming()).await??;
    if removed > 0 {
        tracing::info!(removed, "removed temporary files that a crash left");
    }
    Ok(())
}
