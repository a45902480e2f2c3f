//! Tags and folders: written with a video, counted over the visible videos, and changed for many videos at once.

use std::collections::HashMap;

use uuid::Uuid;

use super::database::{Row, Sql, Tx, values};
use super::error::CatalogError;
use super::tables::videos::{lock, read};
use super::tables::{listed, stored};
use super::types::*;
use super::view::View;
use crate::terms::SpanKey;

/// Folders per read, when those below a folder are counted.
const FOLDERS_PER_READ: u32 = 1000;

/// The result of a [`LabelChange`].
#[derive(Debug, Clone, PartialEq)]
pub enum Labelled {
    /// The videos after the change, in order of id.
    Done(Vec<Video>),
    /// There is no such video, or the caller may not see it. Nothing changed.
    Missing(Uuid),
    /// The video would have more than [`MOST_TAGS`] tags. Nothing changed.
    TooManyTags(Uuid),
}

/// Replaces the tags of a video.
pub(super) async fn set_tags(tx: &mut Tx, video: Uuid, tags: &Tags) -> Result<(), CatalogError> {
    tx.execute("DELETE FROM video_tags WHERE video = $1", values![video]).await?;
    let row = |tag: &Tag| values![video, tag.key().to_vec(), tag.text()];
    tx.insert("INSERT INTO video_tags (video, key, tag)", tags.iter().map(row).collect(), "").await?;
    Ok(())
}

/// Moves a video into a folder.
pub(super) async fn set_folder(tx: &mut Tx, video: Uuid, folder: &Folder) -> Result<(), CatalogError> {
    let sql = "UPDATE videos SET folder = $2, folder_key = $3 WHERE id = $1";
    tx.execute(sql, values![video, folder.path(), folder.key().to_vec()]).await?;
    Ok(())
}

impl View<'_> {
    /// Tags of visible videos that begin with `prefix` (without case), in order of key, after the key `after`.
    pub async fn tag_counts(
        &self,
        prefix: Option<&Tag>,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Vec<TagCount>, CatalogError> {
        let first = prefix.map_or(&[][..], Tag::key);
        // No UTF-8 text holds 255.
        let end: Vec<u8> = first.iter().copied().chain([u8::MAX]).collect();
        let sql = "SELECT g.key, min(g.tag) AS tag, count(*) AS videos FROM video_tags g \
                   JOIN visible_videos v ON v.id = g.video \
                   WHERE g.key >= $1 AND g.key < $2 AND g.key > $3 GROUP BY g.key ORDER BY g.key LIMIT $4";
        let after = after.unwrap_or_default().to_vec();
        let rows = self.rows(sql, values![first.to_vec(), end, after, limit]).await?;
        let count = |row: &Row| {
            Ok(TagCount { tag: row.get("tag")?, key: row.get("key")?, videos: row.get("videos")? })
        };
        rows.iter().map(count).collect()
    }

    /// The folders directly in `parent` with the visible videos in and below them, in order of key, after the folder
    /// with the key `after`. Reads on over the folders below them, a thousand at a time.
    pub async fn folder_counts(
        &self,
        parent: &Folder,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Vec<FolderCount>, CatalogError> {
        let (depth, end) = (parent.depth() + 1, parent.end());
        let inside: Vec<u8> = parent.key().iter().copied().chain([0]).collect();
        let mut from = after.map(Folder::end_of).unwrap_or_default().max(inside);
        let mut found: Vec<FolderCount> = Vec::new();
        loop {
            let rows = self.rows(FOLDERS, values![from.clone(), end.clone(), FOLDERS_PER_READ]).await?;
            for row in &rows {
                let at = Folder::stored(row.get("folder")?, row.get("folder_key")?);
                if !FolderCount::add(&mut found, at, depth, row.get("videos")?)
                    && found.len() > limit as usize
                {
                    found.truncate(limit as usize);
                    return Ok(found);
                }
            }
            match rows.last() {
                Some(last) if rows.len() == FOLDERS_PER_READ as usize => {
                    from = last.get::<Vec<u8>>("folder_key")?;
                    from.push(0);
                }
                _ => return Ok(found),
            }
        }
    }

    /// Folder and tags of the visible videos of these spans.
    pub async fn labels_of(&self, spans: &[SpanKey]) -> Result<HashMap<Uuid, Labels>, CatalogError> {
        let mut found = HashMap::new();
        for row in self.rows(FOLDERS_OF, vec![stored::keys(spans)]).await? {
            let folder = Folder::stored(row.get("folder")?, row.get("folder_key")?);
            found.insert(row.get("id")?, Labels { folder, tags: Vec::new() });
        }
        for row in self.rows(TAGS_OF, vec![stored::keys(spans)]).await? {
            let labels: &mut Labels = found.entry(row.get("video")?).or_default();
            labels.tags.push(Tag::stored(row.get("tag")?, row.get("key")?));
        }
        Ok(found)
    }

    /// Number of visible videos in a folder itself, not below it.
    pub async fn videos_in_folder(&self, folder: &Folder) -> Result<i64, CatalogError> {
        let sql = "SELECT count(*) AS videos FROM visible_videos v WHERE v.folder_key = $1";
        let row = self.row(sql, values![folder.key().to_vec()]).await?;
        row.map_or(Ok(0), |row| row.get("videos"))
    }

    /// Changes tags and folders of many videos, all of them or none.
    ///
    /// # Errors
    /// [`CatalogError::Outside`] if the caller would not see one of them any more.
    pub async fn label_videos(&self, change: &LabelChange) -> Result<Labelled, CatalogError> {
        let mut tx = self.begin().await?;
        let mut labelled = Vec::new();
        // In order of id, so that two changes of the same videos do not deadlock.
        let mut ids = change.videos.clone();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            if !lock(&mut tx, id).await? {
                return Ok(Labelled::Missing(id));
            }
            if !label(&mut tx, id, change).await? {
                return Ok(Labelled::TooManyTags(id));
            }
            listed::index(&mut tx, id).await?;
            tx.must_see(id).await?;
            labelled.extend(read(&mut tx, id).await?);
        }
        tx.commit().await?;
        Ok(Labelled::Done(labelled))
    }
}

/// Changes a locked video. False if it would have more than [`MOST_TAGS`] tags.
async fn label(tx: &mut Tx, id: Uuid, change: &LabelChange) -> Result<bool, CatalogError> {
    for tag in change.remove.iter() {
        let sql = "DELETE FROM video_tags WHERE video = $1 AND key = $2";
        tx.execute(sql, values![id, tag.key().to_vec()]).await?;
    }
    let row = |tag: &Tag| values![id, tag.key().to_vec(), tag.text()];
    let rows = change.add.iter().map(row).collect();
    let tail = "ON CONFLICT (video, key) DO UPDATE SET tag = excluded.tag";
    tx.insert("INSERT INTO video_tags (video, key, tag)", rows, tail).await?;
    if let Some(folder) = &change.folder {
        set_folder(tx, id, folder).await?;
    }
    let row = tx.row("SELECT count(*) AS tags FROM video_tags WHERE video = $1", values![id]).await?;
    let tags: i64 = row.map_or(Ok(0), |row| row.get("tags"))?;
    Ok(usize::try_from(tags).is_ok_and(|tags| tags <= MOST_TAGS))
}

macro_rules! folders_of {
    ($keys:literal) => {
        concat!(
            "SELECT v.id, v.folder, v.folder_key FROM visible_videos v \
             WHERE v.id IN (SELECT s.video FROM spans s WHERE s.key ",
            $keys,
            ")"
        )
    };
}

macro_rules! tags_of {
    ($keys:literal) => {
        concat!(
            "SELECT g.video, g.key, g.tag FROM video_tags g JOIN visible_videos v ON v.id = g.video \
             WHERE g.video IN (SELECT s.video FROM spans s WHERE s.key ",
            $keys,
            ") ORDER BY g.key"
        )
    };
}

/// $1 keys of spans.
const FOLDERS_OF: Sql = Sql::Each {
    sqlite: folders_of!("IN (SELECT value FROM json_each($1))"),
    postgres: folders_of!("= ANY($1)"),
};
/// $1 keys of spans.
const TAGS_OF: Sql =
    Sql::Each { sqlite: tags_of!("IN (SELECT value FROM json_each($1))"), postgres: tags_of!("= ANY($1)") };

/// $1 the first key, $2 the key after the last.
const FOLDERS: &str = "SELECT v.folder_key, min(v.folder) AS folder, count(*) AS videos FROM visible_videos v \
                       WHERE v.folder_key >= $1 AND v.folder_key < $2 \
                       GROUP BY v.folder_key ORDER BY v.folder_key LIMIT $3";

impl FolderCount {
    /// Counts the videos of a folder for its ancestor at `depth`. False if that begins a new entry.
    fn add(found: &mut Vec<FolderCount>, at: Folder, depth: usize, videos: i64) -> bool {
        let ancestor = at.ancestor(depth);
        let is_known = found.last().is_some_and(|last| last.folder.key() == ancestor.key());
        if !is_known {
            found.push(FolderCount { folder: ancestor, videos: 0, total: 0, has_folders: false });
        }
        if let Some(last) = found.last_mut() {
            last.total += videos;
            if at.depth() == depth {
                last.videos += videos;
            } else {
                last.has_folders = true;
            }
        }
        is_known
    }
}
