//! The index on disk, so that a start need not read every vector from the catalog.
//!
//! A snapshot is a folder with a manifest and the manifest's checksum. For each (space, level), it holds the live rows
//! of the segments, and the keys and vectors of growing rows. It is written under another name, synced and renamed, so
//! it never exists half written. The segments lie beside it and never change, so snapshots share them.
//!
//! Damaged parts are left out and reported, because the catalog has their vectors. [`crate::Index::verify`] reports
//! damage that loading does not find.

mod files;
mod levels;

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::disk;
use crate::home;
use crate::{Index, Settings, SpaceInfo};
use files::{damaged, hex, io_at, numbered, read_part, remove_folder, sync_folder, write_synced};
use levels::StoredLevel;

/// The format that this version writes and reads.
const FORMAT: u32 = 3;
const MANIFEST: &str = "manifest.json";
const MANIFEST_CHECKSUM: &str = "manifest.sha256";
/// The name prefix of an unfinished snapshot's folder.
const PARTIAL: &str = ".partial-";

/// Why there is no usable snapshot. Except for [`SnapshotError::Io`] while saving, the remedy is to fill a new index
/// from the catalog.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// No snapshot was ever saved there, as at a first start.
    #[error("there is no snapshot in {0}")]
    Missing(PathBuf),
    /// Another version of the program wrote it.
    #[error("the snapshot has format {found}, this version reads {FORMAT}")]
    Version {
        /// The snapshot's format.
        found: u32,
    },
    /// The file is damaged: a disk fault, or a manual edit.
    #[error("the snapshot is damaged: {file}: {reason}")]
    Damaged {
        /// The file's name.
        file: String,
        /// The damage.
        #[source]
        reason: Box<dyn Error + Send + Sync>,
    },
    /// The snapshot belongs to another catalog or another model.
    #[error("the snapshot is of other spaces: {0}")]
    Foreign(#[source] Box<dyn Error + Send + Sync>),
    /// A space was not declared: the caller's fault. Nothing was written.
    #[error(
        "space {0} has vectors but was never declared: its snapshot could not be distinguished from a foreign one"
    )]
    Undeclared(u32),
    /// The disk is full or not readable: the operator must fix it.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    seq: u64,
    generation: u64,
    spaces: Vec<SpaceInfo>,
    levels: Vec<StoredLevel>,
}

/// A loaded snapshot.
pub struct Loaded {
    /// The index; from now on it stores its segments beside the snapshot.
    pub index: Index,
    /// The sequence number of the last catalog change in it.
    pub seq: u64,
    /// Damaged parts that were left out: their keys are missing, and the catalog has their vectors.
    pub left_out: Vec<SnapshotError>,
}

/// The format number alone, which every version can read.
#[derive(Deserialize)]
struct Header {
    format: u32,
}

impl Index {
    /// Writes all live vectors to a new snapshot under `dir` and removes older ones. `seq` is the last catalog change
    /// that the caller has applied. Changes applied meanwhile may be in it too: applying a change twice has no effect.
    pub fn save(&self, dir: &Path, seq: u64) -> Result<(), SnapshotError> {
        let _saving = self.saving.lock();
        fs::create_dir_all(dir).map_err(io_at(dir))?;
        let spaces = self.declared()?;
        let _alone = files::only_writer(dir)?;
        let number = numbered(dir)?.last().map_or(1, |(number, _)| number + 1);
        let partial = dir.join(format!("{PARTIAL}{number}"));
        remove_folder(&partial)?;
        disk::step().map_err(io_at(&partial))?;
        fs::create_dir(&partial).map_err(io_at(&partial))?;

        let levels = {
            let _changing = self.home.hold();
            let views = self.all().into_iter().map(|(at, held)| (at, held.view()));
            views
                .filter(|(_, view)| !view.keys.is_empty())
                .map(|(at, view)| levels::write(dir, &partial, at, &view))
                .collect::<Result<Vec<_>, _>>()?
        };
        let names = levels.iter().flat_map(|level| level.segments.iter().map(|one| one.name.clone()));
        let mut needed: HashSet<String> = names.collect();
        let manifest = Manifest { format: FORMAT, seq, generation: self.generation(), spaces, levels };
        let text = serde_json::to_vec_pretty(&manifest)
            .map_err(|error| damaged(MANIFEST, format!("can't be written: {error}")))?;
        write_synced(&partial.join(MANIFEST_CHECKSUM), hex(&Sha256::digest(&text)).as_bytes())?;
        write_synced(&partial.join(MANIFEST), &text)?;
        sync_folder(&partial)?;

        let place = dir.join(format!("{number:020}"));
        disk::step().map_err(io_at(&place))?;
        fs::rename(&partial, &place).map_err(io_at(&place))?;
        sync_folder(dir)?;
        for (older, path) in numbered(dir)? {
            if older < number {
                remove_folder(&path)?;
            }
        }
        let _changing = self.home.hold();
        needed.extend(self.segments_under(dir));
        home::remove_others(dir, &needed);
        Ok(())
    }

    /// The names of the searched segments that are stored under a folder.
    fn segments_under(&self, dir: &Path) -> Vec<String> {
        let parts = self.all().into_iter().flat_map(|(_, held)| held.view().parts);
        let paths = parts.filter_map(|part| part.stored().map(|stored| stored.path.clone()));
        let inside = paths.filter(|path| path.starts_with(dir));
        inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
    }

    /// Reads the newest snapshot under `dir`. Refuses it unless its manifest is undamaged and all its spaces are in
    /// `expected`. Expected spaces that it lacks are declared, empty. Other damaged parts are left out.
    ///
    /// Links and keys are verified now, vectors when first read or by [`Index::verify`]. Loading changes nothing under
    /// `dir` and starts no seal.
    pub fn load(dir: &Path, expected: &[SpaceInfo], settings: Settings) -> Result<Loaded, SnapshotError> {
        let _nobody_writes = files::no_writer(dir);
        let found = if dir.is_dir() { numbered(dir)?.pop() } else { None };
        let (_, folder) = found.ok_or_else(|| SnapshotError::Missing(dir.to_owned()))?;
        let manifest = read_manifest(&folder)?;
        if let Some(strange) = manifest.spaces.iter().find(|space| !expected.contains(space)) {
            return Err(SnapshotError::Foreign(
                format!(
                    "it holds space {} as {} of {} values, which the catalog doesn't",
                    strange.key, strange.id, strange.dim
                )
                .into(),
            ));
        }
        let index = Index::at_generation(manifest.generation.saturating_add(1), settings, Some(dir));
        for space in expected {
            index.declare(space).map_err(|error| SnapshotError::Foreign(error.into()))?;
        }
        let mut left_out = Vec::new();
        for level in &manifest.levels {
            let dim = manifest.spaces.iter().find(|space| space.key == level.at.space).map(|space| space.dim);
            let dim = dim.ok_or_else(|| damaged(MANIFEST, "a level of a space that it doesn't list"))?;
            left_out.extend(levels::read(dir, &folder, level, &index.collection_or_new(level.at, dim)));
        }
        Ok(Loaded { index, seq: manifest.seq, left_out })
    }

    /// The declared spaces, by number.
    fn declared(&self) -> Result<Vec<SpaceInfo>, SnapshotError> {
        let held: HashSet<u32> = self.levels().into_iter().map(|at| at.space).collect();
        let mut spaces = Vec::new();
        for (&key, space) in self.spaces.read().iter() {
            match &space.id {
                Some(id) => spaces.push(SpaceInfo { key, id: id.clone(), dim: space.dim }),
                None if held.contains(&key) => return Err(SnapshotError::Undeclared(key)),
                None => {}
            }
        }
        spaces.sort_by_key(|space| space.key);
        Ok(spaces)
    }
}

fn read_manifest(folder: &Path) -> Result<Manifest, SnapshotError> {
    let text = read_part(folder, MANIFEST)?;
    let checksum = read_part(folder, MANIFEST_CHECKSUM)?;
    // The format comes before the checksum: another version may compute it differently.
    let header: Header = serde_json::from_slice(&text).map_err(|error| damaged(MANIFEST, error))?;
    if header.format != FORMAT {
        return Err(SnapshotError::Version { found: header.format });
    }
    if checksum != hex(&Sha256::digest(&text)).as_bytes() {
        return Err(damaged(MANIFEST, "its checksum is another"));
    }
    serde_json::from_slice(&text).map_err(|error| damaged(MANIFEST, error))
}

#[cfg(test)]
mod tests;
