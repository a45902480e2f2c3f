//! The size of the page's own scripts: what a screen loads before it shows anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most bytes, uncompressed, of the scripts that the search needs: the page's start and the screen.
const MOST_FOR_SEARCH: usize = 180_000;

/// The scripts that a script imports in its head.
fn imports(file: &Path) -> Vec<PathBuf> {
    let source = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let named = source.lines().filter(|line| line.starts_with("import ") || line.starts_with("} from "));
    let paths = named.filter_map(|line| line.split('\'').nth(1));
    let folder = file.parent().expect("a script lies in a folder");
    paths
        .map(|path| folder.join(path).canonicalize().unwrap_or_else(|_| panic!("{path} is missing")))
        .collect()
}

/// A script and all that it needs, with their sizes.
fn needed(scripts: &[PathBuf]) -> BTreeMap<PathBuf, usize> {
    let mut sizes = BTreeMap::new();
    let mut left = scripts.to_vec();
    while let Some(file) = left.pop() {
        if !sizes.contains_key(&file) {
            sizes.insert(file.clone(), std::fs::metadata(&file).expect("a script").len() as usize);
            left.extend(imports(&file));
        }
    }
    sizes
}

#[test]
fn the_search_loads_few_scripts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../static/js").canonicalize().expect("the page");
    let main = root.join("main.js");
    let screens = std::fs::read_dir(root.join("screens")).expect("screens");
    let mut screens: Vec<_> =
        screens.map(|it| it.expect("an entry").path()).filter(|it| it.is_file()).collect();
    screens.sort();
    for screen in &screens {
        let all = needed(&[main.clone(), screen.clone()]);
        let sum: usize = all.values().sum();
        println!(
            "{:7} bytes in {:2} scripts: {}",
            sum,
            all.len(),
            screen.file_name().expect("a name").display()
        );
    }
    let search = needed(&[main, root.join("screens/search.js")]);
    for (file, bytes) in &search {
        println!("{bytes:7} {}", file.strip_prefix(&root).expect("inside").display());
    }
    let sum: usize = search.values().sum();
    assert!(sum < MOST_FOR_SEARCH, "{sum} bytes");
}
