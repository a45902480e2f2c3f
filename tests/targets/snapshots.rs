//! Files of the index: snapshots and segments.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use reprise_index::{Codes, Collection, Filter, Index, Level, Mode, Settings, SpaceInfo, UnitVector};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const AT: Collection = Collection { space: 3, level: Level::Clip };
const SETTINGS: Settings =
    Settings { segment_from: 50, seal_from: 1 << 40, codes: Codes::Int8, memory: None, build_threads: 1 };

fn spaces() -> Vec<SpaceInfo> {
    vec![SpaceInfo { key: 3, id: "a-space".to_owned(), dim: 3 }]
}

fn vector(key: u64) -> UnitVector {
    UnitVector::from_raw(&[1.0, key as f32, 2.0]).expect("it has a direction").0
}

/// A segment of 79 rows, and 20 growing rows.
pub(super) fn saved() -> &'static TempDir {
    static SAVED: OnceLock<TempDir> = OnceLock::new();
    SAVED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let index = Index::in_folder(folder.path(), SETTINGS);
        spaces().iter().for_each(|space| {
            index.declare(space).expect("a space");
        });
        let fill = |key| index.fill(AT, key, &vector(key)).expect("a vector of the space");
        (0..80).for_each(fill);
        index.seal(AT);
        index.remove(AT, 7);
        (80..100).for_each(fill);
        index.save(folder.path(), 99).expect("the folder can be written");
        folder
    })
}

/// The files of a snapshot, in order, relative to its folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in std::fs::read_dir(next).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(relative) = path.strip_prefix(folder) {
                found.push(relative.to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Replaces a file of a snapshot: the first byte chooses which. The checksums of a manifest and of a segment's header are
/// made right, so that their contents are read.
fn replace(folder: &Path, bytes: &[u8]) -> Option<()> {
    let (first, content) = bytes.split_first()?;
    let names = files(saved().path());
    let name = &names[usize::from(*first) % names.len()];
    for other in names.iter().filter(|other| *other != name) {
        std::fs::create_dir_all(folder.join(other).parent()?).ok()?;
        std::fs::copy(saved().path().join(other), folder.join(other)).ok()?;
    }
    std::fs::create_dir_all(folder.join(name).parent()?).ok()?;
    let mut content = content.to_vec();
    if name.ends_with("manifest.json") {
        let sum: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(folder.join(name).with_file_name("manifest.sha256"), sum).ok()?;
    }
    sign_header(&mut content);
    std::fs::write(folder.join(name), content).ok()
}

/// Writes the checksum of a segment's header.
fn sign_header(segment: &mut [u8]) {
    let Some(length) = segment.get(8..12).and_then(|it| it.try_into().ok()).map(u32::from_le_bytes) else {
        return;
    };
    let Some(sum) = segment.get(16..16 + length as usize).map(crc32fast::hash) else { return };
    if segment.starts_with(b"reprise") {
        segment[12..16].copy_from_slice(&sum.to_le_bytes());
    }
}

/// What was damaged is refused or left out; what is left can be searched, and has no wrong score.
pub(super) fn run(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if replace(folder.path(), bytes).is_none() {
        return;
    }
    let Ok(loaded) = Index::load(folder.path(), &spaces(), SETTINGS) else { return };
    let index = loaded.index;
    index.verify();
    for mode in [Mode::Auto, Mode::Exact] {
        let Ok(found) = index.search(AT, &vector(3), 200, &Filter::default(), mode) else { continue };
        assert!(found.hits.is_sorted_by(|one, next| one.score >= next.score));
        for hit in found.hits {
            assert!(hit.score.is_finite() && hit.score.abs() <= 1.001, "{hit:?}");
            assert!(index.contains(AT, hit.key));
        }
    }
}
