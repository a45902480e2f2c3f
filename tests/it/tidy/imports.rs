//! No import circles, no tuple parameters: what is left of them is listed, and the lists only shrink.
//!
//! `cargo run -p reprise-house` shows every circle with the lines that make it; `tests/house/src/imports.rs` says what
//! counts as an import.

use reprise_house::{Imports, LISTS, Tree, packages, workspace};

#[test]
fn circles_and_tuple_parameters_are_those_listed() {
    let packages = packages(&workspace()).expect("the packages");
    let product = packages.iter().filter(|package| package.name != "reprise-tests");
    let tree = Tree::of_packages(&workspace(), product).expect("the source");
    let imports = Imports::of(&tree);
    let differences = LISTS.iter().flat_map(|list| list.differences(&workspace(), &tree, &imports));
    let differences: Vec<String> = differences.collect();
    assert!(differences.is_empty(), "see `cargo run -p reprise-house`:\n{}", differences.join("\n"));
}
