//! Rules of the source tree, as tests: the allowed dependencies between its parts (see ARCHITECTURE.md).

mod imports;
mod words;

use std::collections::BTreeSet;
use std::fs;

use reprise_house::{Package, packages, workspace};

/// Longest source file, in lines.
const LINES_MOST: usize = 600;
/// Module names without meaning.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "helper", "helpers", "misc"];

/// All files in `folder` with one of `extensions`, as (path relative to the workspace's root, text).
fn files(folder: &str, extensions: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![workspace().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            let has_extension =
                path.extension().is_some_and(|got| extensions.iter().any(|wanted| got == *wanted));
            if path.is_dir() {
                folders.push(path);
            } else if has_extension {
                let root = workspace();
                let relative = path.strip_prefix(&root).expect("under the root");
                let relative = relative.to_string_lossy().replace('\\', "/");
                found.push((relative, fs::read_to_string(&path).expect("readable text")));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no {extensions:?} files: this test looks in the wrong place");
    found.sort();
    found
}

/// The sources of all packages except the tests, which may use anything.
fn source() -> Vec<(String, String)> {
    let packages = packages(&workspace()).expect("the packages");
    let product = packages.iter().filter(|package| package.name != "reprise-tests");
    let roots = product.flat_map(Package::product).filter_map(|target| target.src_path.rsplit_once('/'));
    let folders: BTreeSet<&str> = roots.map(|(folder, _)| folder).collect();
    folders.iter().flat_map(|folder| files(folder, &["rs"])).collect()
}

/// Whether a line of code, without comments, contains `word` as a whole path or name.
fn mentions(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(is_name) && !code[at + word.len()..].starts_with(is_name))
}

/// Names of the dependencies of the package in `folder`, without test dependencies.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let packages = packages(&workspace()).expect("the packages");
    let package = packages.iter().find(|package| package.folder == folder).expect("the package");
    package.needs().map(str::to_owned).collect()
}

#[test]
fn the_crates_depend_on_each_other_one_way() {
    let cases: [(&str, &[&str]); 9] = [
        ("faults", &[]),
        ("sandbox", &[]),
        ("encoders", &["reprise-sandbox"]),
        ("index", &["reprise-faults"]),
        ("tests/house", &[]),
        ("server", &["reprise-encoders", "reprise-faults", "reprise-index"]),
        ("research", &["reprise-encoders", "reprise-index"]),
        (
            "server/cli",
            &["reprise-encoders", "reprise-index", "reprise-research", "reprise-sandbox", "reprise-server"],
        ),
        ("tests", &["reprise-encoders", "reprise-index", "reprise-research", "reprise-server"]),
    ];
    for (package, expected) in cases {
        let own: Vec<_> =
            dependencies(package).into_iter().filter(|name| name.starts_with("reprise")).collect();
        assert_eq!(own, expected, "of {package}");
    }
}

#[test]
fn encoders_know_no_web_and_no_sql_and_the_index_knows_no_async() {
    let cases: [(&str, &[&str]); 3] = [
        ("encoders", &["axum", "sqlx", "tower", "tower-http", "reqwest", "utoipa"]),
        ("index", &["axum", "sqlx", "tokio", "futures-util", "async-trait", "candle-core", "reqwest"]),
        ("server", &["candle-core", "candle-nn", "memmap2", "simsimd", "ffmpeg-sidecar", "tokenizers"]),
    ];
    for (package, strangers) in cases {
        let found: Vec<_> =
            dependencies(package).into_iter().filter(|name| strangers.contains(&name.as_str())).collect();
        assert!(found.is_empty(), "{package} depends on {found:?}");
    }
}

#[test]
fn every_module_has_a_name_that_says_what_is_inside() {
    for (path, text) in source() {
        let named_in_path = path.split(['/', '.']).any(|part| EMPTY_NAMES.contains(&part));
        assert!(!named_in_path, "{path} says nothing");
        for name in EMPTY_NAMES {
            let declared = text.lines().any(|line| mentions(line, &format!("mod {name}")));
            assert!(!declared, "{path} declares a module {name}");
        }
    }
}

#[test]
fn every_file_can_be_read_in_one_sitting() {
    let folders = ["index/benches", "tests/it", "tests/web"];
    let rust = source().into_iter().chain(folders.iter().flat_map(|folder| files(folder, &["rs"])));
    let all = rust.chain(files("static", &["js", "css", "html"])).chain(files("migrations", &["sql"]));
    let long: Vec<_> = all
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MOST)
        .map(|(path, lines)| format!("{path} has {lines} lines"))
        .collect();
    assert!(long.is_empty(), "more than {LINES_MOST} lines:\n{}", long.join("\n"));
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent: Vec<_> = source()
        .into_iter()
        .filter(|(path, text)| !path.ends_with("/tests.rs") && !text.trim_start().starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "no `//!` at the top of:\n{}", silent.join("\n"));
}

#[test]
fn both_databases_have_the_same_migrations() {
    let names = |folder| -> Vec<String> {
        let strip = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        files(folder, &["sql"]).iter().map(|(path, _)| strip(path)).collect()
    };
    assert_eq!(names("migrations/sqlite"), names("migrations/postgres"));
}

#[test]
fn every_integration_test_is_listed_and_so_runs() {
    for folder in ["tests/it", "tests/web"] {
        let all = files(folder, &["rs"]);
        let main = &all.iter().find(|(path, _)| path.ends_with("/main.rs")).expect("a main.rs").1;
        for (path, _) in &all {
            let below = path.strip_prefix(folder).expect("in it").trim_start_matches('/');
            let name = below.split(['/', '.']).next().expect("a name");
            let listed = name == "main" || main.lines().any(|line| line.trim_end() == format!("mod {name};"));
            assert!(listed, "{path} is not listed in {folder}/main.rs");
        }
    }
}

#[test]
fn no_test_waits_by_the_clock_for_its_result() {
    let unit_tests = source().into_iter().filter(|(path, _)| path.ends_with("/tests.rs"));
    let sleeping: Vec<String> = unit_tests
        .flat_map(|(path, text)| {
            let lines = text.lines().filter(|line| mentions(line, "sleep"));
            lines.map(|line| format!("{path}: {}", line.trim())).collect::<Vec<_>>()
        })
        .collect();
    assert!(sleeping.is_empty(), "wait for the event instead:\n{}", sleeping.join("\n"));
}
