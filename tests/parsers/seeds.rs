//! Good inputs of each target: the files in `fuzz/seeds`, and larger ones that are made here.

use std::fs;
use std::path::{Path, PathBuf};

use reprise_tests::targets::{TARGETS, made};

/// Largest made seed that is kept as a file, for the fuzzers.
const KEPT_MOST: usize = 20_000;

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target)
}

/// The seeds of a target, in order of their names; made ones last.
pub(crate) fn of(target: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder(target)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let files = paths.into_iter().map(|path| fs::read(path).unwrap());
    files.chain(made(target).into_iter().map(|(_, bytes)| bytes)).collect()
}

/// `REPRISE_WRITE_SEEDS=1` writes the made seeds, after a change of a format.
#[test]
fn every_target_has_seeds_and_a_fuzzer() {
    let writes = std::env::var_os("REPRISE_WRITE_SEEDS").is_some();
    for target in TARGETS {
        let folder = folder(target.name);
        for (name, bytes) in made(target.name).into_iter().filter(|(_, bytes)| bytes.len() <= KEPT_MOST) {
            if writes {
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(&name), bytes).unwrap();
            }
            assert!(folder.join(&name).is_file(), "{}: {name} is not written", target.name);
        }
        assert!(fs::read_dir(&folder).is_ok_and(|mut files| files.next().is_some()), "{}", target.name);
        let fuzzer = folder.join("../../fuzz_targets").join(target.name).with_extension("rs");
        let text = fs::read_to_string(fuzzer).unwrap();
        assert!(text.contains(&format!("named({:?})", target.name)), "{}", target.name);
    }
}
