//! The documents: their length, and the files that they name.

use std::fs;

use reprise_house::workspace;

use super::files;

/// Largest number of words in ARCHITECTURE.md.
const WORDS_MOST: usize = 1_800;
/// Largest number of words in the page of a decision: one page.
const PAGE_WORDS_MOST: usize = 500;
/// Folders at the start of a path in a document.
const FOLDERS: [&str; 9] =
    ["docs/", "encoders/", "index/", "migrations/", "research/", "scripts/", "server/", "static/", "tests/"];

fn document(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The paths between backticks or as targets of links. A path with `NAME` or `NNNN` is cut before that part.
fn paths(text: &str) -> Vec<String> {
    let code = text.split('`').skip(1).step_by(2);
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let named = code.chain(links).filter(|named| FOLDERS.iter().any(|folder| named.starts_with(folder)));
    named
        .filter(|named| !named.contains([' ', '*', '{']))
        .map(|named| match named.split('/').position(|part| part.contains("NAME") || part.contains("NNNN")) {
            Some(at) => named.split('/').take(at).collect::<Vec<_>>().join("/"),
            None => named.to_owned(),
        })
        .collect()
}

#[test]
fn the_architecture_can_be_read_in_one_sitting() {
    let count = words(&document("ARCHITECTURE.md"));
    assert!(count <= WORDS_MOST, "ARCHITECTURE.md has {count} words, {WORDS_MOST} at most");
}

#[test]
fn a_decision_fills_one_page() {
    for (path, text) in files("docs/decisions", &["md"]) {
        assert!(
            words(&text) <= PAGE_WORDS_MOST,
            "{path} has {} words, {PAGE_WORDS_MOST} at most",
            words(&text)
        );
        assert!(text.starts_with("# "), "{path} has no title");
    }
}

#[test]
fn files_that_the_documents_name_exist() {
    let mut documents = files("docs/decisions", &["md"]);
    documents.extend(["ARCHITECTURE.md", "CONTRIBUTING.md"].map(|path| (path.to_owned(), document(path))));
    let named = documents
        .iter()
        .flat_map(|(document, text)| paths(text).into_iter().map(move |path| (document, path)));
    let missing: Vec<String> = named
        .filter(|(_, path)| !workspace().join(path).exists())
        .map(|(document, path)| format!("{document} names {path}"))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn paths_of_a_document_are_found() {
    let cases = [
        ("see `server/src/app.rs`.", &["server/src/app.rs"][..]),
        ("[a](docs/decisions) and `tests/NAME/x`", &["tests", "docs/decisions"]),
        ("`server/src/{a,b}.rs`, `cargo test -p tests/it`, `search`", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(paths(text), expected, "{text}");
    }
}
