//! The analysis on small sources: one string holds several files, each after a line `//- path`.

use std::collections::BTreeMap;

use crate::circles::file_circles;
use crate::imports::Imports;
use crate::parameters::faulty_fns;
use crate::tree::{CrateSource, Tree};

/// A crate `house` of these files; the first file is its root.
fn tree(text: &str) -> Tree {
    let files: BTreeMap<&str, &str> =
        text.split("//- ").skip(1).filter_map(|file| file.split_once('\n')).collect();
    let read = |path: &str| files.get(path).map(|text| (*text).to_owned());
    let mut tree = Tree::default();
    let source =
        CrateSource { library: Some("house".to_owned()), root: "src/lib.rs".to_owned(), text: &read };
    tree.read_crate(&source).unwrap();
    tree
}

/// The imports between files as `a -> b`, without folder and extension.
fn imports(text: &str) -> Vec<String> {
    let name = |path: &str| path.trim_start_matches("src/").trim_end_matches(".rs").to_owned();
    let found = Imports::of(&tree(text)).files;
    let mut shown: Vec<_> =
        found.iter().map(|import| format!("{} -> {}", name(&import.from), name(&import.to))).collect();
    shown.dedup();
    shown
}

#[track_caller]
fn check_imports(text: &str, expected: &[&str]) {
    assert_eq!(imports(text), expected, "{text}");
}

const ROOT: &str = "//- src/lib.rs\nmod a; mod b;\n";

#[test]
fn uses_and_paths_lead_to_the_file_that_defines_the_item() {
    let b = "//- src/b.rs\npub struct Item; pub fn call() {} pub enum Kind { One }\n";
    let cases = [
        ("use crate::b::Item;", &["a -> b"][..]),
        ("use super::b::{self, Item};", &["a -> b"]),
        ("use house::b::Item as Other;", &["a -> b"]),
        ("use crate::b::*;", &["a -> b"]),
        ("fn own(_: crate::b::Item) {}", &["a -> b"]),
        ("use crate::b; fn own() { b::call() }", &["a -> b"]),
        ("fn own() { use crate::b::call; call() }", &["a -> b"]),
        ("fn own() { dbg!(crate::b::call()); }", &["a -> b"]),
        ("use crate::b::Kind; fn own() { let _ = Kind::One; }", &["a -> b"]),
        ("#[derive(crate::b::Item)] struct Own;", &["a -> b"]),
        ("use crate::b;", &[]),
        ("fn own() { let call = 1; drop(call); }", &[]),
        ("#[cfg(test)] mod tests { use crate::b::Item; }", &[]),
        ("#[cfg(all(test, unix))] fn own() { crate::b::call() }", &[]),
        ("#[test] fn own() { crate::b::call() }", &[]),
        ("#[cfg(not(test))] fn own() { crate::b::call() }", &["a -> b"]),
        ("mod inner { pub fn own() { super::super::b::call() } }", &["a -> b"]),
        ("mod b { pub fn call() {} } fn own() { b::call() }", &[]),
    ];
    for (a, expected) in cases {
        check_imports(&format!("{ROOT}//- src/a.rs\n{a}\n{b}"), expected);
    }
}

#[test]
fn reexports_are_followed() {
    let files = "//- src/a.rs\npub use crate::b::deep::Item;\n//- src/b.rs\npub mod deep;\n\
        //- src/b/deep.rs\npub struct Item;\n//- src/c.rs\n";
    let cases = [
        ("use crate::a::Item;", &["a -> b/deep", "c -> b/deep", "star -> a"][..]),
        ("use crate::Item;", &["a -> b/deep", "c -> b/deep", "star -> a"]),
        ("fn own(_: crate::Item) {}", &["a -> b/deep", "c -> b/deep", "star -> a"]),
        ("use crate::star::Item;", &["a -> b/deep", "c -> b/deep", "star -> a"]),
    ];
    for (c, expected) in cases {
        let root = "//- src/lib.rs\nmod a; mod b; mod c; mod star; pub use a::Item;\n";
        check_imports(&format!("{root}{files}{c}\n//- src/star.rs\npub use crate::a::*;\n"), expected);
    }
}

#[test]
fn reexports_that_name_each_other_end() {
    check_imports(
        &format!(
            "{ROOT}//- src/a.rs\npub use crate::b::*; fn own(_: Item) {{}}\n//- src/b.rs\npub use crate::a::*;\n"
        ),
        &["a -> b", "b -> a"],
    );
}

#[test]
fn circles_are_named_with_all_their_files() {
    let cases = [
        ("use crate::b::B; pub struct A;", "use crate::a::A; pub struct B;", &["src/a.rs", "src/b.rs"][..]),
        ("use crate::b::B; pub struct A;", "pub struct B;", &[]),
        // A parent may use its children, and the children may use it.
        ("mod c; pub struct A; fn own(_: c::C) {}", "pub struct B;", &[]),
        // No circle through the child: b -> a, a/c -> b, but nothing leads from a to its child.
        ("mod c; pub struct A;", "use crate::a::A; pub struct B;", &[]),
        (
            "mod c; use crate::b::B; pub struct A;",
            "use crate::a::A; pub struct B;",
            &["src/a.rs", "src/b.rs"],
        ),
    ];
    for (a, b, expected) in cases {
        let text = format!(
            "{ROOT}//- src/a.rs\n{a}\n//- src/a/c.rs\nuse super::A; use crate::b::B; pub struct C;\n//- src/b.rs\n{b}\n"
        );
        let found = file_circles(&Imports::of(&tree(&text)).files);
        let members: Vec<_> = found.iter().flat_map(|circle| &circle.members).collect();
        assert_eq!(members, expected, "{text}");
    }
}

#[test]
fn functions_with_tuples_or_too_many_parameters_are_found() {
    let cases = [
        ("fn own(a: (u8, u8)) {}", &["src/lib.rs own: tuple"][..]),
        ("fn own((a, b): Pair) {}", &["src/lib.rs own: tuple"]),
        ("fn own(a: &mut (u8, u8)) {}", &["src/lib.rs own: tuple"]),
        ("impl S { fn own(&self, a: (u8,)) {} }", &["src/lib.rs S::own: tuple"]),
        ("impl T for S { fn own(&self, a: (u8,)) {} }", &[]),
        ("trait T { fn own(a: (u8, u8)); }", &["src/lib.rs T::own: tuple"]),
        ("fn own() { fn inner(a: (u8, u8)) {} }", &["src/lib.rs inner: tuple"]),
        ("fn own(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {}", &["src/lib.rs own: too many"]),
        ("impl S { fn own(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {} }", &[]),
        ("fn own(a: (), b: &[(u8, u8)]) -> (u8, u8) { (1, 2) }", &[]),
        ("fn own() { let _ = |(a, b): (u8, u8)| a + b; }", &[]),
        ("#[cfg(test)] mod tests { fn own(a: (u8, u8)) {} }", &[]),
    ];
    for (code, expected) in cases {
        let found: Vec<_> =
            faulty_fns(&tree(&format!("//- src/lib.rs\n{code}\n"))).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{code}");
    }
}
