//! The size of the page's own scripts: what a screen loads before it shows anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most bytes, uncompressed, of the scripts that one screen needs: the page's start and the screen itself.
const MOST_FOR_A_SCREEN: usize = 180_000;

/// The screen that may have more: it also loads the player and the timeline, after its first lines are drawn.
const LARGER: (&str, &str, usize) = ("watch.js", "watch/viewer.js", 200_000);

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
fn no_screen_loads_many_scripts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../static/js").canonicalize().expect("the page");
    let screens = std::fs::read_dir(root.join("screens")).expect("screens");
    let screens: Vec<_> = screens.map(|it| it.expect("an entry").path()).filter(|it| it.is_file()).collect();
    assert!(screens.len() > 5, "{screens:?}");
    let mut too_large = Vec::new();
    for screen in screens {
        let name = screen.file_name().expect("a name").to_string_lossy().into_owned();
        let (larger, later, most) = LARGER;
        let is_larger = name == larger;
        let later = is_larger.then(|| root.join("screens").join(later).canonicalize().expect("it exists"));
        let most = if is_larger { most } else { MOST_FOR_A_SCREEN };
        let scripts: Vec<_> = [root.join("main.js"), screen].into_iter().chain(later).collect();
        let all = needed(&scripts);
        let sum: usize = all.values().sum();
        println!("{sum:7} bytes in {:2} scripts: {name}", all.len());
        if sum >= most {
            let largest = all.iter().map(|(file, bytes)| format!("  {bytes:7} {}", file.display()));
            too_large.push(format!("{name}: {sum} bytes\n{}", largest.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(too_large.is_empty(), "{}", too_large.join("\n"));
}
