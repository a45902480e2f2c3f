//! Import circles, tuple parameters and walls: the faults that are left are listed, and the lists only shrink.
//!
//! `cargo run -p reprise-house` shows every circle with the lines that make it; `tests/house/src/imports.rs` says what
//! counts as an import.

use std::fs;

use reprise_house::{Imports, LISTS, PICTURE, Tree, empty_walls, packages, picture, unlisted, workspace};

fn tree() -> Tree {
    let packages = packages(&workspace()).expect("the packages");
    let product = packages.iter().filter(|package| package.name != "reprise-tests");
    Tree::of_packages(&workspace(), product).expect("the source")
}

#[test]
fn every_engine_runs_the_conformance_suite() {
    let read = |path: &str| std::fs::read_to_string(workspace().join(path)).expect("a source file");
    let (open, suite) = (read("server/src/vectors/open.rs"), read("tests/it/vector_index.rs"));
    let kinds = open.split("pub enum EngineKind {").nth(1).and_then(|rest| rest.split('}').next());
    let is_name = |line: &&str| line.ends_with(',') && line.starts_with(char::is_uppercase);
    let lines = kinds.expect("the kinds of engine").lines().map(str::trim);
    let kinds: Vec<&str> = lines.filter(is_name).map(|line| line.trim_end_matches(',')).collect();
    assert!(kinds.contains(&"Builtin"), "{kinds:?}");
    for kind in kinds {
        let runs = format!("EngineKind::{kind}, $($check)");
        assert!(suite.contains(&runs), "tests/it/vector_index.rs does not run {kind}");
    }
}

#[test]
fn families_and_job_kinds_are_listed() {
    let tree = tree();
    let unlisted = unlisted(&tree, &Imports::of(&tree));
    assert!(unlisted.is_empty(), "{}", unlisted.join("\n"));
}

#[test]
fn walls_stand_around_rooms_that_exist() {
    let tree = tree();
    let empty = empty_walls(&tree, &Imports::of(&tree));
    assert!(empty.is_empty(), "{}", empty.join("\n"));
}

#[test]
fn the_picture_of_the_house_is_current() {
    let tree = tree();
    let drawn = picture(&tree, &Imports::of(&tree));
    let kept = fs::read_to_string(workspace().join(PICTURE)).expect("the picture");
    assert!(drawn == kept, "run `cargo run -p reprise-house -- draw` and look at {PICTURE}");
}

#[test]
fn circles_and_tuple_parameters_are_those_listed() {
    let tree = tree();
    let imports = Imports::of(&tree);
    let differences = LISTS.iter().flat_map(|list| list.differences(&workspace(), &tree, &imports));
    let differences: Vec<String> = differences.collect();
    assert!(differences.is_empty(), "see `cargo run -p reprise-house`:\n{}", differences.join("\n"));
}
