//! Stores the thumbnails that an ingest made, under the ids that the clips got when they were stored.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use reprise_encoders::Cause;
use reprise_encoders::video::thumbnails::Thumbnails;
use uuid::Uuid;

use crate::app::App;
use crate::catalog::Visibility;
use crate::storage::Derived;

/// Ids per read.
const IDS_PER_READ: usize = 1000;

/// Stores the thumbnails of a video and of its found clips, once their spans are stored. What can't be stored is made at its
/// first request.
pub async fn keep_thumbnails(app: &App, video: Uuid, made: Thumbnails) {
    if let Err(error) = keep(app, video, made).await {
        tracing::warn!(%error, %video, "the thumbnails of a video could not be stored");
    }
}

async fn keep(app: &App, video: Uuid, made: Thumbnails) -> Result<(), Cause> {
    let clips = app.catalog.view(&Visibility::All).clips(video, None, u32::MAX).await?;
    let found = clips.iter().filter(|clip| !clip.given);
    let ids: BTreeMap<_, _> = found.map(|clip| ((clip.start_ms, clip.end_ms), clip.id)).collect();
    let id_of = |start_ms, end_ms| ids.get(&(start_ms, end_ms)).copied();
    let of_clips = made.clips.iter().map(|it| (id_of(it.range.start_ms, it.range.end_ms), &it.jpeg));
    let of_video = made.video.iter().map(|jpeg| (Some(video), jpeg));
    let mut kept = Vec::new();
    for (id, jpeg) in of_video.chain(of_clips).filter_map(|(id, jpeg)| Some((id?, jpeg))) {
        write(app, id, jpeg).await?;
        kept.push(id);
    }
    // A purge in between did not know these files.
    for some in kept.chunks(IDS_PER_READ) {
        let known = app.catalog.kept_ids(some).await?;
        for id in some.iter().filter(|id| !known.contains(id)) {
            app.storage.remove_derived(Derived::Thumbnail, *id).await?;
        }
    }
    Ok(())
}

async fn write(app: &App, id: Uuid, jpeg: &[u8]) -> io::Result<()> {
    let write = async |path: PathBuf| {
        reprise_faults::at("thumbnails: write")?;
        tokio::fs::write(path, jpeg).await
    };
    app.storage.derived(Derived::Thumbnail, id, write).await.map(drop)
}
