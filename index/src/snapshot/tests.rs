//! Tests of complete, damaged, foreign and unfinished snapshots.

use super::*;
use crate::unfinished::Unfinished;
use crate::{Codes, Collection, Filter, Level, Mode, UnitVector};

const AT: Collection = Collection { space: 3, level: Level::Clip };
/// Segments from 50 rows on.
const SMALL: Settings =
    Settings { segment_from: 50, seal_from: 1 << 40, codes: Codes::Int4, memory: None, build_threads: 1 };

fn spaces() -> Vec<SpaceInfo> {
    vec![
        SpaceInfo { key: 3, id: "a-space".into(), dim: 3 },
        SpaceInfo { key: 4, id: "another-space".into(), dim: 2 },
    ]
}

fn unit(raw: &[f32]) -> UnitVector {
    UnitVector::from_raw(raw).unwrap().0
}

fn vector_of(key: u64) -> UnitVector {
    unit(&[1.0, key as f32, 2.0])
}

fn load(folder: &Path) -> Result<Loaded, SnapshotError> {
    Index::load(folder, &spaces(), SMALL)
}

/// A segment of 79 live rows, 40 growing rows, and another space.
fn saved() -> (tempfile::TempDir, Index) {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::in_folder(folder.path(), SMALL);
    for space in spaces() {
        index.declare(&space).unwrap();
    }
    (0..80).for_each(|key| index.fill(AT, key, &vector_of(key)).unwrap());
    index.seal(AT);
    index.remove(AT, 7);
    (80..120).for_each(|key| index.fill(AT, key, &vector_of(key)).unwrap());
    for key in 0..40 {
        let at = Collection { space: 4, level: Level::Video };
        index.insert(at, key, &unit(&[1.0, key as f32])).unwrap();
    }
    index.save(folder.path(), 99).unwrap();
    (folder, index)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let (_, snapshot) = numbered(folder).unwrap().pop().unwrap();
    let mut files: Vec<_> = fs::read_dir(snapshot).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.extend(segments(folder));
    files.sort();
    files
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder.join("segments")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Changes the manifest and its checksum.
fn rewrite(folder: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let path = files(folder).into_iter().find(|path| path.ends_with(MANIFEST)).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    let text = serde_json::to_vec(&manifest).unwrap();
    fs::write(&path, &text).unwrap();
    fs::write(path.with_file_name(MANIFEST_CHECKSUM), hex(&Sha256::digest(&text))).unwrap();
}

#[track_caller]
fn check(result: Result<Loaded, SnapshotError>, expected: &str) {
    let message = match result {
        Err(error) => error.to_string(),
        Ok(loaded) => loaded.left_out.first().expect("is refused or left out").to_string(),
    };
    assert!(message.contains(expected), "the reason was: {message}");
}

/// Checks that a damaged snapshot returns no wrong vector or score, and that every missing key is reported, with links and
/// codes in memory and mapped.
#[track_caller]
fn check_damaged(folder: &Path, what: &str) {
    for memory in [None, Some(0)] {
        if let Ok(loaded) = Index::load(folder, &spaces(), Settings { memory, ..SMALL }) {
            check_loaded(loaded, what);
        }
    }
}

#[track_caller]
fn check_loaded(loaded: Loaded, what: &str) {
    let index = loaded.index;
    let before = index.search(AT, &vector_of(3), 200, &Filter::default(), Mode::Auto).unwrap();
    let unreadable: Vec<u64> = index.verify().into_iter().flat_map(|(_, keys)| keys).collect();
    assert!(!loaded.left_out.is_empty() || !unreadable.is_empty(), "{what}: nobody noticed");
    let after = index.search(AT, &vector_of(3), 200, &Filter::default(), Mode::Exact).unwrap();
    assert_eq!(after.unreadable.len(), unreadable.len(), "{what}");
    assert_eq!(after.hits.len() + unreadable.len(), index.live(AT) as usize, "{what}");
    for hit in before.hits.iter().chain(&after.hits) {
        let expected = vector_of(hit.key).dot(&vector_of(3));
        assert!((hit.score - expected).abs() < 1e-6, "{what}: key {} has a wrong score", hit.key);
    }
    // A seal before the repair loses no key: each is found or still reported as unreadable.
    index.seal(AT);
    let sealed = index.search(AT, &vector_of(3), 200, &Filter::default(), Mode::Exact).unwrap();
    assert_eq!(sealed.hits.len() + sealed.unreadable.len(), index.live(AT) as usize, "{what}");
    // The catalog's vectors repair it.
    (0..120).filter(|&key| key != 7).for_each(|key| index.insert(AT, key, &vector_of(key)).unwrap());
    let mended = index.search(AT, &vector_of(3), 200, &Filter::default(), Mode::Exact).unwrap();
    assert_eq!((mended.hits.len(), mended.unreadable.len()), (119, 0), "{what}");
    index.seal(AT);
    assert_eq!(index.live(AT), 119, "{what}");
}

#[test]
fn what_was_saved_comes_back() {
    let (folder, index) = saved();
    let Loaded { index: loaded, seq, left_out } = load(folder.path()).unwrap();
    assert_eq!((seq, left_out.len()), (99, 0));
    assert_eq!(loaded.generation(), index.generation() + 1);
    assert_eq!(loaded.levels(), index.levels());
    assert!(loaded.has_graph(AT));
    assert!(loaded.verify().is_empty());
    for at in index.levels() {
        assert_eq!(loaded.keys(at), index.keys(at));
        for key in index.keys(at) {
            assert_eq!(loaded.vector(at, key), index.vector(at, key));
        }
    }
    let hits = loaded.search(AT, &vector_of(5), 1, &Filter::default(), Mode::Auto).unwrap().hits;
    assert_eq!(hits[0].key, 5);
}

#[test]
fn the_newest_snapshot_is_the_only_one_kept() {
    let (folder, index) = saved();
    index.remove(AT, 8);
    fs::create_dir(folder.path().join(".partial-2")).unwrap();
    fs::write(folder.path().join(".partial-2/manifest.json"), "half").unwrap();
    index.save(folder.path(), 100).unwrap();
    let loaded = load(folder.path()).unwrap();
    assert_eq!((loaded.seq, loaded.index.live(AT)), (100, 118));
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, [".writer", "00000000000000000002", "segments"]);
}

#[test]
fn servers_that_share_a_folder_write_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for server in 0..4_u64 {
            let folder = folder.path();
            scope.spawn(move || {
                let index = Index::in_folder(folder, SMALL);
                spaces().iter().for_each(|space| assert!(index.declare(space).unwrap()));
                (0..80).for_each(|key| index.fill(AT, key, &vector_of(key)).unwrap());
                for seq in 0..5 {
                    index.insert(AT, 100 + seq, &vector_of(100 + seq)).unwrap();
                    index.seal(AT);
                    index.save(folder, 10 * seq + server).unwrap();
                }
            });
        }
    });
    let Loaded { index, left_out, .. } = load(folder.path()).unwrap();
    assert_eq!((index.live(AT), left_out.len(), index.verify().len()), (85, 0, 0));
}

#[test]
fn segments_are_shared_by_snapshots_and_go_when_nobody_needs_them() {
    let (folder, index) = saved();
    let first = segments(folder.path());
    assert_eq!(first.len(), 1);
    index.save(folder.path(), 100).unwrap();
    assert_eq!(segments(folder.path()), first);
    index.seal(AT);
    assert_eq!(segments(folder.path()).len(), 2, "the snapshot still needs the first one");
    index.save(folder.path(), 101).unwrap();
    assert_eq!(segments(folder.path()).len(), 1);
    assert_ne!(segments(folder.path()), first);
    assert_eq!(load(folder.path()).unwrap().index.keys(AT), index.keys(AT));
}

#[test]
fn a_snapshot_that_was_never_finished_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    check(load(folder.path()), "there is no snapshot");
    check(load(&folder.path().join("nowhere")), "there is no snapshot");
    fs::create_dir(folder.path().join(".partial-1")).unwrap();
    check(load(folder.path()), "there is no snapshot");
}

#[test]
fn any_flipped_bit_is_noticed() {
    let (folder, _) = saved();
    for path in files(folder.path()) {
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(101) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, flipped).unwrap();
            check_damaged(folder.path(), &format!("byte {at} of {}", path.display()));
        }
        fs::write(&path, whole).unwrap();
    }
    assert!(load(folder.path()).unwrap().left_out.is_empty());
}

#[test]
fn a_file_that_is_cut_longer_or_missing_is_noticed() {
    let (folder, _) = saved();
    for path in files(folder.path()) {
        let whole = fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(1_000).chain([1, whole.len() - 1]) {
            fs::write(&path, &whole[..length]).unwrap();
            check(load(folder.path()), "damaged");
            check_damaged(folder.path(), &format!("{length} bytes of {}", path.display()));
        }
        fs::write(&path, [whole.as_slice(), b" "].concat()).unwrap();
        check(load(folder.path()), "damaged");
        fs::remove_file(&path).unwrap();
        check(load(folder.path()), "is missing");
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_set_that_shrank_and_is_damaged_is_not_rewritten_without_what_is_damaged() {
    let (folder, index) = saved();
    (0..100).filter(|key| key % 10 > 0).for_each(|key| index.remove(AT, key));
    index.save(folder.path(), 100).unwrap();
    drop(index);
    let path = segments(folder.path()).pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // The vectors are the pages before the checksums.
    let at = bytes.len() - 4_096;
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let index = load(folder.path()).unwrap().index;
    index.seal(AT);
    let found = index.search(AT, &vector_of(3), 200, &Filter::default(), Mode::Exact).unwrap();
    assert!(!found.unreadable.is_empty());
    assert_eq!(found.hits.len() + found.unreadable.len(), index.live(AT) as usize);
}

#[test]
fn a_snapshot_of_other_spaces_is_refused() {
    let (folder, _) = saved();
    let change = |change: fn(&mut SpaceInfo)| {
        let mut expected = spaces();
        change(&mut expected[0]);
        expected
    };
    check(
        Index::load(folder.path(), &change(|space| space.id = "other-weights".into()), SMALL),
        "of other spaces",
    );
    check(Index::load(folder.path(), &change(|space| space.dim = 4), SMALL), "of other spaces");
    check(Index::load(folder.path(), &change(|space| space.key = 30), SMALL), "of other spaces");
    check(Index::load(folder.path(), &spaces()[..1], SMALL), "of other spaces");
}

#[test]
fn a_space_that_came_later_is_expected_and_empty() {
    let (folder, _) = saved();
    let later = SpaceInfo { key: 5, id: "later".into(), dim: 8 };
    let expected = [spaces(), vec![later.clone()]].concat();
    let loaded = Index::load(folder.path(), &expected, SMALL).unwrap().index;
    loaded.declare(&later).unwrap();
    assert!(loaded.declare(&SpaceInfo { dim: 9, ..later }).is_err());
}

#[test]
fn a_manifest_that_lies_is_refused() {
    type Lie = fn(&mut serde_json::Value);
    let lies: [(&str, Lie); 5] = [
        ("format 2", |manifest| manifest["format"] = 2.into()),
        ("bytes, not", |manifest| manifest["levels"][0]["growing"]["count"] = 38.into()),
        ("bytes, not", |manifest| manifest["levels"][0]["growing"]["count"] = u32::MAX.into()),
        ("that is a path", |manifest| {
            manifest["levels"][0]["growing"]["keys"]["name"] = "../1/3-clip.keys".into()
        }),
        ("doesn't list", |manifest| manifest["levels"][0]["at"]["space"] = 9.into()),
    ];
    for (expected, lie) in lies {
        let (folder, _) = saved();
        rewrite(folder.path(), lie);
        check(load(folder.path()), expected);
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

#[test]
fn a_segment_that_another_server_is_writing_is_left_alone() {
    let (folder, index) = saved();
    let writing = Unfinished::begin(&folder.path().join("segments/9-a.segment")).unwrap();
    fs::write(folder.path().join("segments/9-b.partial"), "half").unwrap();
    index.remove(AT, 8);
    index.save(folder.path(), 100).unwrap();
    assert_eq!(segments(folder.path()).len(), 2);
    writing.finish(&folder.path().join("segments/9-a.segment")).unwrap();
}

#[test]
fn a_process_that_is_killed_leaves_the_old_snapshot_or_the_new_one() {
    let change = |index: &Index, folder: &Path| {
        index.remove(AT, 9);
        index.fill(AT, 500, &vector_of(500)).unwrap();
        index.seal(AT);
        let _ = index.save(folder, 100);
    };
    let mut steps = 0;
    loop {
        let (folder, index) = saved();
        let before = index.keys(AT);
        let is_killed = disk::killed_after(steps, || change(&index, folder.path()));
        let after = index.keys(AT);
        drop(index);
        let loaded = load(folder.path()).unwrap();
        let expected = if loaded.seq == 99 { before } else { after };
        assert_eq!(loaded.index.keys(AT), expected, "killed after {steps} steps");
        assert!(loaded.left_out.is_empty() && loaded.index.verify().is_empty(), "killed after {steps} steps");
        // The next save works as if nothing had happened, and removes the files that no server is still writing.
        change(&loaded.index, folder.path());
        assert_eq!(load(folder.path()).unwrap().seq, 100, "killed after {steps} steps");
        assert_eq!(segments(folder.path()).len(), 1, "killed after {steps} steps");
        if !is_killed {
            break;
        }
        steps += 1;
    }
    assert!(steps > 30, "only {steps} steps were taken");
}

/// Checks which codes a segment of 400 rows gets with this much memory, and how much of it it takes, after the second of two
/// seals and after a start. Answers are right in either case.
#[track_caller]
fn check_memory(wanted: Codes, memory: u64, codes: Codes, taken: u64) {
    let (folder, dim) = (tempfile::tempdir().unwrap(), 256);
    let settings = Settings { codes: wanted, memory: Some(memory), ..SMALL };
    let space = SpaceInfo { key: 3, id: "wide".into(), dim };
    let vector = |key: u64| {
        unit(&(0..dim as u64).map(|at| ((at * 31 + key * 97) % 409) as f32 - 200.0).collect::<Vec<_>>())
    };
    let check = |index: &Index| {
        assert_eq!(index.memory(), taken);
        assert_eq!(index.bytes(AT), crate::sealed::core_bytes(codes, dim, 400) + 400 * dim as u64 * 4);
        for key in 0..200 {
            let hits = index.search(AT, &vector(key), 1, &Filter::default(), Mode::Auto).unwrap().hits;
            assert_eq!(hits.first().map(|hit| hit.key), Some(key), "{wanted:?}, {memory} bytes");
        }
    };
    let index = Index::in_folder(folder.path(), settings);
    index.declare(&space).unwrap();
    for keys in [0..300, 300..400] {
        keys.for_each(|key| index.fill(AT, key, &vector(key)).unwrap());
        index.seal(AT);
    }
    check(&index);
    index.save(folder.path(), 1).unwrap();
    drop(index);
    check(&Index::load(folder.path(), &[space], settings).unwrap().index);
}

#[test]
fn links_and_codes_take_no_more_memory_than_they_may() {
    use Codes::{F16, F32, Int4, Int8};
    let size = |codes| crate::sealed::core_bytes(codes, 256, 400);
    for codes in Codes::ALL {
        check_memory(codes, 1 << 40, codes, size(codes));
    }
    check_memory(F32, size(F32), F32, size(F32));
    check_memory(F32, size(F32) - 1, F16, size(F16));
    check_memory(F32, size(F16) - 1, Int8, size(Int8));
    check_memory(Int8, size(Int8) - 1, Int4, size(Int4));
    check_memory(Int4, size(Int4) - 1, Int4, 0);
    check_memory(F32, 0, Int4, 0);
}
