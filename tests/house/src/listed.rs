//! Lists of faults that are still allowed; each may only shrink.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::circles::{file_circles, room_circles};
use crate::error::HouseError;
use crate::imports::Imports;
use crate::parameters::faulty_fns;
use crate::tree::Tree;
use crate::walls::breaches;

/// One list: a kind of fault, and a file with the allowed faults of that kind.
pub struct List {
    /// Path relative to the workspace's folder; without the file no fault is allowed.
    pub path: &'static str,
    /// Description of the lines.
    pub holds: &'static str,
    find: fn(&Tree, &Imports) -> BTreeSet<String>,
}

/// All lists.
pub const LISTS: [List; 4] = [
    List {
        path: "tests/it/tidy/allowed/circles.txt",
        holds: "file in an import circle",
        find: |_, imports| {
            file_circles(&imports.files).into_iter().flat_map(|circle| circle.members).collect()
        },
    },
    List {
        path: "tests/it/tidy/allowed/rooms.txt",
        holds: "room in an import circle",
        find: |_, imports| {
            room_circles(&imports.files).into_iter().flat_map(|circle| circle.members).collect()
        },
    },
    List {
        path: "tests/it/tidy/allowed/parameters.txt",
        holds: "function with a tuple parameter, or with more than five",
        find: |tree, _| faulty_fns(tree).iter().map(ToString::to_string).collect(),
    },
    List {
        path: "tests/it/tidy/allowed/walls.txt",
        holds: "import through a wall",
        find: |_, imports| {
            breaches(imports).iter().map(|breach| format!("{} -> {}", breach.from, breach.to)).collect()
        },
    },
];

impl List {
    /// Differences between the list in folder `root` and the source, one sentence each.
    pub fn differences(&self, root: &Path, tree: &Tree, imports: &Imports) -> Vec<String> {
        let found = (self.find)(tree, imports);
        let listed: BTreeSet<String> =
            fs::read_to_string(root.join(self.path)).unwrap_or_default().lines().map(str::to_owned).collect();
        let new = found.difference(&listed).map(|entry| format!("new {}: {entry}", self.holds));
        let gone = listed.difference(&found).map(|entry| format!("no longer true, so delete it: {entry}"));
        new.chain(gone).collect()
    }

    /// Writes the present faults of the source; deletes the file if there are none.
    pub fn write(&self, root: &Path, tree: &Tree, imports: &Imports) -> Result<(), HouseError> {
        let found: Vec<String> = (self.find)(tree, imports).into_iter().collect();
        let path = root.join(self.path);
        if !found.is_empty() {
            fs::write(path, found.join("\n") + "\n")?;
        } else if path.exists() {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}
