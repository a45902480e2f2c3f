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
