//! The index on disk, so that a start need not read every vector from the catalog.
//!
//! A snapshot is a folder of its own: a manifest, the manifest's checksum, and one file of keys and one of vectors a
//! (space, level). It is written under another name, synced and then renamed, so that there is never half of one.
//! Graphs are not stored: they are built again in the background after a load, while brute force answers.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::collection::{Collection, View};
use crate::{Index, Settings, SpaceExpectation, SpaceLevel, UnitVector};

/// The only format that this version writes and reads.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
const MANIFEST_CHECKSUM: &str = "manifest.sha256";
/// How the folder of a snapshot that is being written begins.
const PARTIAL: &str = ".partial-";

/// Why there is no snapshot to use. In every case but [`SnapshotError::Io`] while saving, the remedy is the same:
/// fill a new index from the catalog.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// None was ever saved there. Nobody's fault.
    #[error("there is no snapshot in {0}")]
    Missing(PathBuf),
    /// Written by another version of the program.
    #[error("the snapshot has format {found}, this version reads {FORMAT}")]
    Version {
        /// The snapshot's format.
        found: u32,
    },
    /// The disk's fault, or somebody edited the file.
    #[error("the snapshot is damaged: {file}: {reason}")]
    Damaged {
        /// Which file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It belongs to another catalog or to another model.
    #[error("the snapshot is of other spaces: {0}")]
    Foreign(String),
    /// A space was never declared: the caller's fault, and nothing was written.
    #[error(
        "space {0} has vectors but was never declared: its snapshot could not be told from a foreign one"
    )]
    Undeclared(u32),
    /// The disk is full or not readable: the operator's to fix.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    seq: u64,
    generation: u64,
    spaces: Vec<SpaceExpectation>,
    levels: Vec<StoredLevel>,
}

#[derive(Serialize, Deserialize)]
struct StoredLevel {
    at: SpaceLevel,
    count: u32,
    keys: StoredFile,
    vectors: StoredFile,
}

#[derive(Serialize, Deserialize)]
struct StoredFile {
    name: String,
    bytes: u64,
    sha256: String,
}

/// Only the format: what any version can read.
#[derive(Deserialize)]
struct Header {
    format: u32,
}

impl Index {
    /// Writes all live vectors to a new snapshot under `dir` and removes older ones. `seq` is the last change of the
    /// catalog that the caller has applied; changes applied meanwhile may be in it too, which does no harm: applying
    /// a change twice changes nothing.
    pub fn save(&self, dir: &Path, seq: u64) -> Result<(), SnapshotError> {
        let _saving = self.saving.lock();
        fs::create_dir_all(dir).map_err(io_at(dir))?;
        let spaces = self.declared()?;
        let number = numbered(dir)?.last().map_or(1, |(number, _)| number + 1);
        let partial = dir.join(format!("{PARTIAL}{number}"));
        remove_folder(&partial)?;
        fs::create_dir(&partial).map_err(io_at(&partial))?;

        let levels = self.all().into_iter().map(|(at, held)| (at, held.view())).collect::<Vec<_>>();
        let levels = levels
            .into_iter()
            .filter(|(_, view)| !view.live.is_empty())
            .map(|(at, view)| write_level(&partial, at, &view))
            .collect::<Result<Vec<_>, _>>()?;
        let manifest = Manifest { format: FORMAT, seq, generation: self.generation(), spaces, levels };
        let text = serde_json::to_vec_pretty(&manifest)
            .map_err(|error| damaged(MANIFEST, format!("can't be written: {error}")))?;
        write_synced(&partial.join(MANIFEST_CHECKSUM), hex(&Sha256::digest(&text)).as_bytes())?;
        write_synced(&partial.join(MANIFEST), &text)?;
        sync_folder(&partial)?;

        let place = dir.join(format!("{number:020}"));
        fs::rename(&partial, &place).map_err(io_at(&place))?;
        sync_folder(dir)?;
        for (older, path) in numbered(dir)? {
            if older < number {
                remove_folder(&path)?;
            }
        }
        Ok(())
    }

    /// Reads the newest snapshot under `dir` and the last change that it holds. It is refused unless every file is
    /// whole and every space in it is one of `expected`; a space that is expected and not in it is declared, empty.
    ///
    /// The index answers at once, by brute force; its graphs are built in the background.
    pub fn load(dir: &Path, expected: &[SpaceExpectation]) -> Result<(Index, u64), SnapshotError> {
        Index::load_with_settings(dir, expected, Settings::default())
    }

    /// [`Index::load`] into an index with other settings than the usual.
    pub fn load_with_settings(
        dir: &Path,
        expected: &[SpaceExpectation],
        settings: Settings,
    ) -> Result<(Index, u64), SnapshotError> {
        let found = if dir.is_dir() { numbered(dir)?.pop() } else { None };
        let (_, folder) = found.ok_or_else(|| SnapshotError::Missing(dir.to_owned()))?;
        let manifest = read_manifest(&folder)?;
        if let Some(strange) = manifest.spaces.iter().find(|space| !expected.contains(space)) {
            return Err(SnapshotError::Foreign(format!(
                "it holds space {} as {} of {} values, which the catalog doesn't",
                strange.key, strange.id, strange.dim
            )));
        }
        let index = Index::at_generation(manifest.generation.saturating_add(1), settings);
        for space in expected {
            index.declare(space).map_err(|error| SnapshotError::Foreign(error.to_string()))?;
        }
        for level in &manifest.levels {
            let dim = manifest.spaces.iter().find(|space| space.key == level.at.space).map(|space| space.dim);
            let dim = dim.ok_or_else(|| damaged(MANIFEST, "a level of a space that it doesn't list"))?;
            read_level(&folder, level, &index.collection_or_new(level.at, dim))?;
        }
        for (_, collection) in index.all() {
            collection.rebuild_if_due();
        }
        Ok((index, manifest.seq))
    }

    /// The spaces by number.
    fn declared(&self) -> Result<Vec<SpaceExpectation>, SnapshotError> {
        let held: HashSet<u32> = self.levels().into_iter().map(|at| at.space).collect();
        let mut spaces = Vec::new();
        for (&key, space) in self.spaces.read().iter() {
            match &space.id {
                Some(id) => spaces.push(SpaceExpectation { key, id: id.clone(), dim: space.dim }),
                None if held.contains(&key) => return Err(SnapshotError::Undeclared(key)),
                None => {}
            }
        }
        spaces.sort_by_key(|space| space.key);
        Ok(spaces)
    }
}

fn write_level(folder: &Path, at: SpaceLevel, view: &View) -> Result<StoredLevel, SnapshotError> {
    let name = format!("{}-{:?}", at.space, at.level).to_lowercase();
    let keys = write_file(folder, format!("{name}.keys"), |to| {
        view.live.iter().try_for_each(|ordinal| to.write_all(&view.rows.key(ordinal).to_le_bytes()))
    })?;
    let vectors = write_file(folder, format!("{name}.f32"), |to| {
        let mut row = Vec::with_capacity(view.rows.dimension() * 4);
        view.live.iter().try_for_each(|ordinal| {
            row.clear();
            row.extend(view.rows.vector(ordinal).iter().flat_map(|value| value.to_le_bytes()));
            to.write_all(&row)
        })
    })?;
    let count = u32::try_from(view.live.len()).map_err(|_| damaged(&name, "more than 2^32 vectors"))?;
    Ok(StoredLevel { at, count, keys, vectors })
}

fn write_file(
    folder: &Path,
    name: String,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<StoredFile, SnapshotError> {
    let path = folder.join(&name);
    let write_all = || -> io::Result<(u64, String)> {
        let mut hashing = Hashing { inner: File::create(&path)?, hash: Sha256::new(), bytes: 0 };
        let mut buffered = BufWriter::with_capacity(1 << 20, &mut hashing);
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        hashing.inner.sync_all()?;
        Ok((hashing.bytes, hex(&hashing.hash.finalize())))
    };
    let (bytes, sha256) = write_all().map_err(io_at(&path))?;
    Ok(StoredFile { name, bytes, sha256 })
}

fn read_manifest(folder: &Path) -> Result<Manifest, SnapshotError> {
    let text = read_part(folder, MANIFEST)?;
    let checksum = read_part(folder, MANIFEST_CHECKSUM)?;
    // The format before the checksum: another version may have another way of checking.
    let header: Header =
        serde_json::from_slice(&text).map_err(|error| damaged(MANIFEST, format!("unreadable: {error}")))?;
    if header.format != FORMAT {
        return Err(SnapshotError::Version { found: header.format });
    }
    if checksum != hex(&Sha256::digest(&text)).as_bytes() {
        return Err(damaged(MANIFEST, "its checksum is another"));
    }
    serde_json::from_slice(&text).map_err(|error| damaged(MANIFEST, format!("unreadable: {error}")))
}

fn read_part(folder: &Path, name: &str) -> Result<Vec<u8>, SnapshotError> {
    let path = folder.join(name);
    fs::read(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => damaged(name, "is missing"),
        _ => SnapshotError::Io { path, source },
    })
}

/// Reads a level's rows into an empty collection.
fn read_level(folder: &Path, level: &StoredLevel, into: &Arc<Collection>) -> Result<(), SnapshotError> {
    let (count, row_bytes) = (u64::from(level.count), into.dimension() * 4);
    let mut keys = open_part(folder, &level.keys, count * 4)?;
    let mut vectors = open_part(folder, &level.vectors, count * row_bytes as u64)?;
    let mut seen = HashSet::with_capacity(level.count as usize);
    let (mut key, mut row) = ([0; 4], vec![0; row_bytes]);
    for _ in 0..count {
        keys.read(&level.keys, &mut key)?;
        vectors.read(&level.vectors, &mut row)?;
        let key = u32::from_le_bytes(key);
        let values =
            row.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let vector = UnitVector::from_unit(values.collect()).ok_or_else(|| {
            damaged(&level.vectors.name, format!("the vector of key {key} is not of norm 1"))
        })?;
        if !seen.insert(key) {
            return Err(damaged(&level.keys.name, format!("key {key} occurs twice")));
        }
        into.fill(key, vector.values());
    }
    keys.finish(&level.keys)?;
    vectors.finish(&level.vectors)
}

/// A file that is hashed while it is read.
struct Part(BufReader<Hashing<File>>);

fn open_part(folder: &Path, stored: &StoredFile, bytes: u64) -> Result<Part, SnapshotError> {
    if stored.name.contains(['/', '\\']) {
        return Err(damaged(MANIFEST, "a file name that is a path"));
    }
    let path = folder.join(&stored.name);
    let file = File::open(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => damaged(&stored.name, "is missing"),
        _ => SnapshotError::Io { path: path.clone(), source },
    })?;
    let length = file.metadata().map_err(io_at(&path))?.len();
    if length != bytes || stored.bytes != bytes {
        return Err(damaged(&stored.name, format!("has {length} bytes, not {bytes}")));
    }
    let hashing = Hashing { inner: file, hash: Sha256::new(), bytes: 0 };
    Ok(Part(BufReader::with_capacity(1 << 20, hashing)))
}

impl Part {
    fn read(&mut self, stored: &StoredFile, buffer: &mut [u8]) -> Result<(), SnapshotError> {
        self.0.read_exact(buffer).map_err(|error| damaged(&stored.name, error.to_string()))
    }

    fn finish(self, stored: &StoredFile) -> Result<(), SnapshotError> {
        if hex(&self.0.into_inner().hash.finalize()) == stored.sha256 {
            return Ok(());
        }
        Err(damaged(&stored.name, "its checksum is another"))
    }
}

/// A file and the hash of what went through it.
struct Hashing<F> {
    inner: F,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashing<File> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Read for Hashing<File> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The finished snapshots under `dir`, oldest first.
fn numbered(dir: &Path) -> Result<Vec<(u64, PathBuf)>, SnapshotError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(io_at(dir))? {
        let entry = entry.map_err(io_at(dir))?;
        if let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            found.push((number, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn write_synced(path: &Path, content: &[u8]) -> Result<(), SnapshotError> {
    let write = || -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(io_at(path))
}

/// Makes the names in a folder survive a power cut. Only Unix lets one sync a folder.
fn sync_folder(path: &Path) -> Result<(), SnapshotError> {
    if cfg!(unix) {
        File::open(path).and_then(|folder| folder.sync_all()).map_err(io_at(path))
    } else {
        Ok(())
    }
}

fn remove_folder(path: &Path) -> Result<(), SnapshotError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at(path)(error)),
        _ => Ok(()),
    }
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    let path = path.to_owned();
    move |source| SnapshotError::Io { path, source }
}

fn damaged(file: &str, reason: impl Into<String>) -> SnapshotError {
    SnapshotError::Damaged { file: file.to_owned(), reason: reason.into() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, Level, Mode};

    const AT: SpaceLevel = SpaceLevel { space: 3, level: Level::Clip };

    fn spaces() -> Vec<SpaceExpectation> {
        vec![
            SpaceExpectation { key: 3, id: "a-space".into(), dim: 3 },
            SpaceExpectation { key: 4, id: "another-space".into(), dim: 2 },
        ]
    }

    fn unit(raw: &[f32]) -> UnitVector {
        UnitVector::from_raw(raw).unwrap().0
    }

    fn saved() -> (tempfile::TempDir, Index) {
        let index = Index::new();
        for space in spaces() {
            index.declare(&space).unwrap();
        }
        for key in 0..40 {
            index.insert(AT, key, &unit(&[1.0, key as f32, 2.0])).unwrap();
            index
                .insert(SpaceLevel { space: 4, level: Level::Video }, key, &unit(&[1.0, key as f32]))
                .unwrap();
        }
        index.remove(AT, 7);
        let folder = tempfile::tempdir().unwrap();
        index.save(folder.path(), 99).unwrap();
        (folder, index)
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let (_, snapshot) = numbered(folder).unwrap().pop().unwrap();
        let mut files: Vec<_> = fs::read_dir(snapshot).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// Rewrites the manifest as somebody would who knows about its checksum.
    fn rewrite(folder: &Path, change: impl FnOnce(&mut serde_json::Value)) {
        let path = files(folder).into_iter().find(|path| path.ends_with(MANIFEST)).unwrap();
        let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut manifest);
        let text = serde_json::to_vec(&manifest).unwrap();
        fs::write(&path, &text).unwrap();
        fs::write(path.with_file_name(MANIFEST_CHECKSUM), hex(&Sha256::digest(&text))).unwrap();
    }

    #[track_caller]
    fn check(result: Result<(Index, u64), SnapshotError>, expected: &str) {
        let message = result.err().expect("is refused").to_string();
        assert!(message.contains(expected), "the reason was: {message}");
    }

    #[test]
    fn what_was_saved_comes_back() {
        let (folder, index) = saved();
        let (loaded, seq) = Index::load(folder.path(), &spaces()).unwrap();
        assert_eq!(seq, 99);
        assert_eq!(loaded.generation(), index.generation() + 1);
        assert_eq!(loaded.levels(), index.levels());
        for at in index.levels() {
            assert_eq!(loaded.keys(at), index.keys(at));
            for key in index.keys(at) {
                assert_eq!(loaded.vector(at, key), index.vector(at, key));
            }
        }
        let hits =
            loaded.search(AT, &unit(&[1.0, 5.0, 2.0]), 1, &Filter::default(), Mode::Auto).unwrap().hits;
        assert_eq!(hits[0].key, 5);
    }

    #[test]
    fn the_newest_snapshot_is_the_only_one_kept() {
        let (folder, index) = saved();
        index.remove(AT, 8);
        fs::create_dir(folder.path().join(".partial-2")).unwrap();
        fs::write(folder.path().join(".partial-2/manifest.json"), "half").unwrap();
        index.save(folder.path(), 100).unwrap();
        let (loaded, seq) = Index::load(folder.path(), &spaces()).unwrap();
        assert_eq!((seq, loaded.live(AT)), (100, 38));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_snapshot_that_was_never_finished_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        check(Index::load(folder.path(), &spaces()), "there is no snapshot");
        check(Index::load(&folder.path().join("nowhere"), &spaces()), "there is no snapshot");
        fs::create_dir(folder.path().join(".partial-1")).unwrap();
        check(Index::load(folder.path(), &spaces()), "there is no snapshot");
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let (folder, _) = saved();
        for path in files(folder.path()) {
            let whole = fs::read(&path).unwrap();
            for at in (0..whole.len()).step_by(7) {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << (at % 8);
                fs::write(&path, flipped).unwrap();
                assert!(Index::load(folder.path(), &spaces()).is_err(), "byte {at} of {}", path.display());
            }
            fs::write(&path, whole).unwrap();
        }
        Index::load(folder.path(), &spaces()).unwrap();
    }

    #[test]
    fn a_file_that_is_cut_longer_or_missing_is_noticed() {
        let (folder, _) = saved();
        for path in files(folder.path()) {
            let whole = fs::read(&path).unwrap();
            for length in [0, 1, whole.len() / 2, whole.len() - 1] {
                fs::write(&path, &whole[..length]).unwrap();
                check(Index::load(folder.path(), &spaces()), "damaged");
            }
            fs::write(&path, [whole.as_slice(), b" "].concat()).unwrap();
            check(Index::load(folder.path(), &spaces()), "damaged");
            fs::remove_file(&path).unwrap();
            check(Index::load(folder.path(), &spaces()), "is missing");
            fs::write(&path, whole).unwrap();
        }
    }

    #[test]
    fn a_snapshot_of_other_spaces_is_refused() {
        let (folder, _) = saved();
        let change = |change: fn(&mut SpaceExpectation)| {
            let mut expected = spaces();
            change(&mut expected[0]);
            expected
        };
        check(
            Index::load(folder.path(), &change(|space| space.id = "other-weights".into())),
            "of other spaces",
        );
        check(Index::load(folder.path(), &change(|space| space.dim = 4)), "of other spaces");
        check(Index::load(folder.path(), &change(|space| space.key = 30)), "of other spaces");
        check(Index::load(folder.path(), &spaces()[..1]), "of other spaces");
    }

    #[test]
    fn a_space_that_came_later_is_expected_and_empty() {
        let (folder, _) = saved();
        let later = SpaceExpectation { key: 5, id: "later".into(), dim: 8 };
        let (loaded, _) = Index::load(folder.path(), &[spaces(), vec![later.clone()]].concat()).unwrap();
        loaded.declare(&later).unwrap();
        assert!(loaded.declare(&SpaceExpectation { dim: 9, ..later }).is_err());
    }

    #[test]
    fn a_manifest_that_lies_is_refused() {
        type Lie = fn(&mut serde_json::Value);
        let lies: [(&str, Lie); 5] = [
            ("format 2", |manifest| manifest["format"] = 2.into()),
            ("bytes, not", |manifest| manifest["levels"][0]["count"] = 38.into()),
            ("bytes, not", |manifest| manifest["levels"][0]["count"] = u32::MAX.into()),
            ("that is a path", |manifest| manifest["levels"][0]["keys"]["name"] = "../1/3-clip.keys".into()),
            ("doesn't list", |manifest| manifest["levels"][0]["at"]["space"] = 9.into()),
        ];
        for (expected, lie) in lies {
            let (folder, _) = saved();
            rewrite(folder.path(), lie);
            check(Index::load(folder.path(), &spaces()), expected);
        }
    }

    #[test]
    fn a_space_without_an_id_is_not_saved() {
        let index = Index::new();
        index.insert(AT, 1, &unit(&[1.0])).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(index.save(folder.path(), 1), Err(SnapshotError::Undeclared(3))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
