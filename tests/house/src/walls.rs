//! Forbidden imports between files, and the files allowed to use each large dependency.

use std::collections::BTreeSet;

use crate::imports::Imports;
use crate::tree::Tree;

/// Files that must not import others; each is a prefix of paths.
struct Wall {
    rooms: &'static [&'static str],
    never: &'static [&'static str],
}

/// A crate that only some files may name.
struct KnownIn {
    name: &'static str,
    files: &'static [&'static str],
}

const WALLS: [Wall; 13] = [
    Wall { rooms: &["encoders/"], never: &["index/", "server/", "research/"] },
    Wall { rooms: &["index/"], never: &["encoders/", "server/", "research/"] },
    Wall { rooms: &["research/"], never: &["server/"] },
    Wall { rooms: &["server/src/"], never: &["server/cli/", "research/"] },
    Wall {
        rooms: &["server/src/catalog/"],
        never: &[
            "server/src/models/",
            "server/src/vectors/",
            "server/src/search/",
            "server/src/ingest/",
            "server/src/http/",
            "server/src/app",
        ],
    },
    Wall {
        rooms: &["server/src/vectors/"],
        never: &[
            "server/src/search/",
            "server/src/ingest/",
            "server/src/http/",
            "server/src/catalog/filter/",
        ],
    },
    Wall {
        rooms: &["server/src/search/", "server/src/ingest/"],
        never: &[
            "server/src/jobs/",
            "server/src/http/",
            "server/src/vectors/builtin/",
            "server/src/vectors/hnsw_rs.rs",
        ],
    },
    Wall { rooms: &["server/src/search/"], never: &["server/src/ingest/"] },
    Wall { rooms: &["server/src/ingest/"], never: &["server/src/search/"] },
    Wall {
        rooms: &["server/src/exports/"],
        never: &["server/src/jobs/", "server/src/http/", "server/src/search/"],
    },
    Wall { rooms: &["server/src/activity/"], never: &["server/src/http/", "server/src/jobs/"] },
    Wall { rooms: &["server/src/jobs/"], never: &["server/src/http/", "server/src/search/"] },
    Wall { rooms: &["server/src/subtitles/", "server/src/terms.rs"], never: &["server/src/catalog/"] },
];

const KNOWN_IN: [KnownIn; 13] = [
    KnownIn { name: "axum", files: &["server/src/http/"] },
    KnownIn { name: "utoipa", files: &["server/src/http/"] },
    KnownIn { name: "utoipa_axum", files: &["server/src/http/"] },
    KnownIn { name: "sqlx", files: &["server/src/catalog/", "server/src/vectors/pgvector/"] },
    KnownIn { name: "milvus", files: &["server/src/vectors/milvus/"] },
    KnownIn {
        name: "candle_core",
        files: &["encoders/src/", "research/src/train/", "research/src/synth/check/"],
    },
    KnownIn {
        name: "candle_nn",
        files: &["encoders/src/", "research/src/train/", "research/src/synth/check/"],
    },
    KnownIn { name: "ffmpeg_sidecar", files: &["encoders/src/video/"] },
    KnownIn { name: "memmap2", files: &["index/src/memory.rs"] },
    KnownIn { name: "simsimd", files: &["index/src/vector.rs"] },
    KnownIn { name: "hnsw_rs", files: &["server/src/vectors/hnsw_rs.rs", "research/src/speed/index/"] },
    KnownIn {
        name: "reprise_index",
        files: &[
            "server/src/terms.rs",
            "server/src/vectors/builtin/",
            "research/",
            "server/cli/src/broadcast.rs",
        ],
    },
    KnownIn { name: "tokenizers", files: &["encoders/src/"] },
];

/// A forbidden import.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// Path of the importing file.
    pub from: String,
    /// The forbidden file or crate.
    pub to: String,
    /// Line in `from`.
    pub line: usize,
    /// The path as written in the code.
    pub text: String,
}

/// Finds every forbidden import.
pub fn breaches(imports: &Imports) -> Vec<Breach> {
    let mut found = Vec::new();
    for Wall { rooms, never } in &WALLS {
        for import in imports.files.iter().filter(|import| begins(&import.from, rooms)) {
            let (from, line, text) = (import.from.clone(), import.line, import.text.clone());
            if let Some(to) = [&import.to, &import.named].into_iter().find(|to| begins(to, never)) {
                found.push(Breach { from, to: to.clone(), line, text });
            }
        }
    }
    for KnownIn { name, files } in &KNOWN_IN {
        for import in imports.crates.iter().filter(|import| import.name == *name) {
            let (from, line, text) = (import.from.clone(), import.line, import.text.clone());
            if !begins(&import.from, files) {
                found.push(Breach { from, to: (*name).to_owned(), line, text });
            }
        }
    }
    found.sort();
    found
}

/// A folder of modules, and the list that must name each of them.
struct Slots {
    folder: &'static str,
    list: &'static str,
}

const SLOTS: [Slots; 2] = [
    Slots { folder: "encoders/src/families/", list: "encoders/src/registry/list.rs" },
    Slots { folder: "server/src/jobs/kinds/", list: "server/src/jobs/kinds/mod.rs" },
];

/// Modules of such a folder that its list does not name.
pub fn unlisted(tree: &Tree, imports: &Imports) -> Vec<String> {
    let mut found = BTreeSet::new();
    for Slots { folder, list } in &SLOTS {
        let modules = tree.paths().into_iter().filter_map(|path| path.strip_prefix(folder));
        // The files beside mod.rs, and the mod.rs of each subfolder.
        let roots =
            modules.filter(|path| !path.contains('/') && *path != "mod.rs" || path.ends_with("/mod.rs"));
        for root in roots {
            let inside = format!("{folder}{}", root.trim_end_matches("mod.rs"));
            let is_listed =
                imports.files.iter().any(|import| import.from == *list && import.to.starts_with(&inside));
            if !is_listed {
                found.insert(format!("{list} does not name {inside}"));
            }
        }
    }
    found.into_iter().collect()
}

/// Names in these rules that the source lacks: a rule about nothing forbids nothing.
pub fn empty_walls(tree: &Tree, imports: &Imports) -> Vec<String> {
    let paths = tree.paths();
    let rooms = WALLS.iter().flat_map(|wall| wall.rooms.iter().chain(wall.never));
    let files = KNOWN_IN.iter().flat_map(|known| known.files);
    let named: BTreeSet<&str> = rooms.chain(files).copied().collect();
    let missing = named.iter().filter(|room| !paths.iter().any(|path| path.starts_with(**room)));
    let missing = missing.map(|room| format!("no file lies at {room}"));
    let unnamed =
        KNOWN_IN.iter().filter(|known| !imports.crates.iter().any(|import| import.name == known.name));
    missing.chain(unnamed.map(|known| format!("nothing names {}", known.name))).collect()
}

fn begins(path: &str, with: &[&str]) -> bool {
    with.iter().any(|beginning| path.starts_with(beginning))
}
