//! One (space, level) of a snapshot: the names of its segments, their live rows, and the growing rows.

use std::io;
use std::path::Path;
use std::sync::Arc;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::files::{StoredFile, damaged, io_at, open_part, read_whole, write_file};
use crate::home;
use crate::part::{Body, Part};
use crate::sealed::{Sealed, SegmentError};
use crate::segment_set::{SegmentSet, View};
use crate::{Collection, SpanKey, UnitVector};

#[derive(Serialize, Deserialize)]
pub(super) struct StoredLevel {
    pub(super) at: Collection,
    growing: StoredRows,
    pub(super) segments: Vec<StoredSegment>,
}

#[derive(Serialize, Deserialize)]
struct StoredRows {
    count: u32,
    keys: StoredFile,
    vectors: StoredFile,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredSegment {
    pub(super) name: String,
    /// The checksum of the segment's checksums.
    checksum: u32,
    live: StoredFile,
}

/// Writes a level to the unfinished snapshot in `partial`, and its missing segments to `folder`.
pub(super) fn write(
    folder: &Path,
    partial: &Path,
    at: Collection,
    view: &View,
) -> Result<StoredLevel, SnapshotError> {
    let name = format!("{}-{:?}", at.space, at.level).to_lowercase();
    let mut segments = Vec::new();
    for part in &view.parts {
        if let Body::Sealed(sealed) = &part.body {
            let live_name = format!("{name}-{}.live", segments.len());
            segments.push(write_segment(folder, partial, sealed, live_name, &part.live)?);
        }
    }
    Ok(StoredLevel { at, growing: write_growing(partial, &name, view)?, segments })
}

fn write_segment(
    folder: &Path,
    partial: &Path,
    sealed: &Sealed,
    live_name: String,
    live: &RoaringBitmap,
) -> Result<StoredSegment, SnapshotError> {
    let stored = home::stored_under(folder, sealed).map_err(|(path, source)| io_at(&path)(source))?;
    let live = write_file(partial, live_name, |to| live.serialize_into(to))?;
    let name = stored.path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    Ok(StoredSegment { name, checksum: stored.checksum, live })
}

fn write_growing(partial: &Path, name: &str, view: &View) -> Result<StoredRows, SnapshotError> {
    let growing = || {
        let parts = view.parts.iter().filter_map(|part| match &part.body {
            Body::Growing(rows) => Some((rows, &part.live)),
            Body::Sealed(_) => None,
        });
        parts.flat_map(|(rows, live)| live.iter().map(move |row| (rows.key(row), rows.vector(row))))
    };
    let keys = write_file(partial, format!("{name}.keys"), |to| {
        growing().try_for_each(|(key, _)| to.write_all(&key.to_le_bytes()))
    })?;
    let vectors = write_file(partial, format!("{name}.f32"), |to| {
        let mut row = Vec::new();
        growing().try_for_each(|(_, vector)| {
            row.clear();
            row.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
            to.write_all(&row)
        })
    })?;
    let count = u32::try_from(growing().count()).map_err(|_| damaged(name, "more than 2^32 vectors"))?;
    Ok(StoredRows { count, keys, vectors })
}

/// Reads a level into an empty collection; damaged parts are left out and reported.
pub(super) fn read(
    folder: &Path,
    snapshot: &Path,
    level: &StoredLevel,
    into: &Arc<SegmentSet>,
) -> Vec<SnapshotError> {
    let mut left_out = Vec::new();
    for segment in &level.segments {
        if let Err(error) = adopt_segment(folder, snapshot, segment, into) {
            left_out.push(error);
        }
    }
    match read_growing(snapshot, &level.growing, into) {
        Ok(rows) => rows.iter().for_each(|(key, vector)| {
            // Never refused: a collection of this dimension wrote these rows.
            let _ = into.fill(*key, vector.values());
        }),
        Err(error) => left_out.push(error),
    }
    left_out
}

fn adopt_segment(
    folder: &Path,
    snapshot: &Path,
    segment: &StoredSegment,
    into: &SegmentSet,
) -> Result<(), SnapshotError> {
    if segment.name.contains(['/', '\\']) {
        return Err(damaged(&segment.name, "a file name that is a path"));
    }
    let bytes = read_whole(snapshot, &segment.live)?;
    let live = RoaringBitmap::deserialize_from(bytes.as_slice())
        .map_err(|error| damaged(&segment.live.name, error))?;
    let path = home::path_of(folder, &segment.name);
    let sealed = Sealed::open(&path, into.dimension, &into.home.budget).map_err(|error| match error {
        SegmentError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            damaged(&segment.name, "is missing")
        }
        error => damaged(&segment.name, error.to_string()),
    })?;
    if sealed.stored().is_none_or(|stored| stored.checksum != segment.checksum) {
        return Err(damaged(&segment.name, "it is another segment"));
    }
    if live.max().is_some_and(|row| row >= sealed.len()) {
        return Err(damaged(&segment.live.name, "a row that the segment doesn't have"));
    }
    let part = Part { body: Body::Sealed(Arc::new(sealed)), live: Arc::new(live) };
    if into.adopt(part) { Ok(()) } else { Err(damaged(&segment.name, "a key that is in another segment")) }
}

fn read_growing(
    snapshot: &Path,
    stored: &StoredRows,
    into: &SegmentSet,
) -> Result<Vec<(SpanKey, UnitVector)>, SnapshotError> {
    let (count, row_bytes) = (u64::from(stored.count), into.dimension * 4);
    let mut keys = open_part(snapshot, &stored.keys, count * 8)?;
    let mut vectors = open_part(snapshot, &stored.vectors, count * row_bytes as u64)?;
    let mut seen = into.keys().as_ref().clone();
    let (mut key, mut row) = ([0; 8], vec![0; row_bytes]);
    let mut rows = Vec::new();
    for _ in 0..count {
        keys.read(&stored.keys, &mut key)?;
        vectors.read(&stored.vectors, &mut row)?;
        let key = SpanKey::from_le_bytes(key);
        let values = row.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
        let vector = UnitVector::from_unit(values.collect()).ok_or_else(|| {
            damaged(&stored.vectors.name, format!("the vector of key {key} is not of norm 1"))
        })?;
        if !seen.insert(key) {
            return Err(damaged(&stored.keys.name, format!("key {key} occurs twice")));
        }
        rows.push((key, vector));
    }
    keys.finish(&stored.keys)?;
    vectors.finish(&stored.vectors)?;
    Ok(rows)
}
