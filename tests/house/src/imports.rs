//! Resolves every `use` and path of a tree to the file that defines the item.
//!
//! File A imports file B in these cases:
//! - A `use` or a path in A names an item that B defines. Re-exports, `super::` and `crate::` are followed to the
//!   definition.
//! - A has `use b::*`, and B is the file of `b`.
//!
//! No import: `mod child;`, a `use` that only brings a module's name into scope (its uses count), a re-export of an
//! item from a module below, code under `#[cfg(test)]`, and uses within one file.

use std::collections::BTreeSet;

use crate::scope::Use;
use crate::tree::{FileId, ModuleId, Tree};

/// File `from` uses an item that file `to` defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// Path of the importing file.
    pub from: String,
    /// Path of the file that defines the item.
    pub to: String,
    /// Path of the file whose module the code names; with a re-export it differs from `to`.
    pub named: String,
    /// Line in `from`.
    pub line: usize,
    /// The path as written in the code.
    pub text: String,
    /// Whether the module in `to` is declared below the one in `from`.
    pub is_below: bool,
}

/// A file names a crate that is not part of the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrateImport {
    /// Path of the importing file.
    pub from: String,
    /// Name of the crate as written in the code.
    pub name: String,
    /// Line in `from`.
    pub line: usize,
    /// The path as written in the code.
    pub text: String,
}

/// All imports of a tree.
#[derive(Debug, Default)]
pub struct Imports {
    /// Imports between files of all crates in the tree.
    pub files: Vec<Import>,
    /// Imports of crates: those outside the tree, and named libraries of the tree.
    pub crates: Vec<CrateImport>,
}

/// The target of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Module(ModuleId),
    /// An item, or something inside one.
    Item {
        /// The module that defines it.
        by: ModuleId,
        /// The module that the path names.
        named: ModuleId,
    },
}

/// The start of a path.
enum Start {
    At(ModuleId, usize),
    Crate(String),
    Names(Vec<Found>),
}

/// (module, name) pairs being resolved: re-exports may name each other in a circle.
type Visiting = BTreeSet<(ModuleId, String)>;

impl Imports {
    /// Resolves all paths of `tree`.
    pub fn of(tree: &Tree) -> Imports {
        let mut imports = Imports::default();
        for (at, module) in tree.modules.iter().enumerate() {
            let from = ModuleId(at);
            for import in module.scope.imports.values().flatten() {
                imports.add_use(tree, from, import);
            }
            for glob in &module.scope.globs {
                imports.add_glob(tree, from, glob);
            }
            for mention in &module.scope.mentions {
                imports.add_path(tree, from, &mention.path, mention.line);
            }
        }
        imports.files.sort();
        imports.files.dedup();
        imports.crates.sort();
        imports.crates.dedup();
        imports
    }

    fn add_use(&mut self, tree: &Tree, from: ModuleId, import: &Use) {
        self.add_crate(tree, from, &import.path, import.line);
        for found in tree.resolve(from, &import.path, &mut Visiting::new()) {
            if let Found::Item { by, named } = found
                && !(import.is_reexport && tree.is_below(by, from))
            {
                self.add(tree, from, by, named, import);
            }
        }
    }

    fn add_glob(&mut self, tree: &Tree, from: ModuleId, glob: &Use) {
        self.add_crate(tree, from, &glob.path, glob.line);
        for found in tree.resolve(from, &glob.path, &mut Visiting::new()) {
            let (by, named) = match found {
                Found::Module(module) => (module, module),
                Found::Item { by, named } => (by, named),
            };
            if !(glob.is_reexport && tree.is_below(by, from)) {
                self.add(tree, from, by, named, glob);
            }
        }
    }

    fn add_path(&mut self, tree: &Tree, from: ModuleId, path: &[String], line: usize) {
        self.add_crate(tree, from, path, line);
        for found in tree.resolve(from, path, &mut Visiting::new()) {
            if let Found::Item { by, named } = found {
                let at = Use { path: path.to_vec(), is_reexport: false, line };
                self.add(tree, from, by, named, &at);
            }
        }
    }

    fn add(&mut self, tree: &Tree, from: ModuleId, by: ModuleId, named: ModuleId, at: &Use) {
        let path_of = |module: ModuleId| tree.path_of(tree.module(module).file).to_owned();
        let is_below = tree.is_below(by, from);
        if tree.module(from).file != tree.module(by).file {
            let (from, to, named) = (path_of(from), path_of(by), path_of(named));
            let text = at.path.join("::");
            self.files.push(Import { from, to, named, line: at.line, text, is_below });
        }
    }

    fn add_crate(&mut self, tree: &Tree, from: ModuleId, path: &[String], line: usize) {
        if let Start::Crate(name) = tree.start(from, path, &mut Visiting::new()) {
            let from = tree.path_of(tree.module(from).file).to_owned();
            self.crates.push(CrateImport { from, name, line, text: path.join("::") });
        }
    }
}

impl Tree {
    pub(crate) fn path_of(&self, file: FileId) -> &str {
        &self.files[file.0].path
    }

    /// Whether `module` is declared below `above`, at any depth.
    fn is_below(&self, module: ModuleId, above: ModuleId) -> bool {
        let mut parent = self.module(module).parent;
        while let Some(id) = parent {
            if id == above {
                return true;
            }
            parent = self.module(id).parent;
        }
        false
    }

    /// Resolves the leading segments of `path`, as written in `module`.
    fn start(&self, module: ModuleId, path: &[String], visiting: &mut Visiting) -> Start {
        let mut at = module;
        for (index, segment) in path.iter().enumerate() {
            match segment.as_str() {
                "crate" => at = self.module(module).root,
                "self" => {}
                "super" => at = self.module(at).parent.unwrap_or(at),
                "" => return path.get(1).map_or(Start::Names(Vec::new()), |name| Start::Crate(name.clone())),
                _ if index > 0 => return Start::At(at, index),
                name => {
                    let names = self.names(module, name, visiting);
                    let is_crate =
                        self.libraries.contains_key(name) || (path.len() > 1 && is_crate_name(name));
                    return if names.is_empty() && is_crate {
                        Start::Crate(name.to_owned())
                    } else {
                        Start::Names(names)
                    };
                }
            }
        }
        Start::At(at, path.len())
    }

    /// Everything that `path`, as written in `module`, may name.
    fn resolve(&self, module: ModuleId, path: &[String], visiting: &mut Visiting) -> Vec<Found> {
        match self.start(module, path, visiting) {
            Start::At(at, index) => self.descend(vec![Found::Module(at)], &path[index..], visiting),
            Start::Names(names) => self.descend(names, &path[1..], visiting),
            Start::Crate(name) => {
                let skipped = if path[0].is_empty() { 2 } else { 1 };
                let root = self.libraries.get(&name);
                let found = root.map(|root| Found::Module(*root)).into_iter().collect();
                self.descend(found, &path[skipped..], visiting)
            }
        }
    }

    fn descend(&self, found: Vec<Found>, path: &[String], visiting: &mut Visiting) -> Vec<Found> {
        let Some((name, rest)) = path.split_first() else { return found };
        let mut next = Vec::new();
        for found in found {
            match found {
                Found::Module(module) => {
                    let names = self.names(module, name, visiting);
                    next.extend(self.descend(names, rest, visiting));
                }
                item @ Found::Item { .. } => next.push(item),
            }
        }
        // A module and a function may have the same name. More segments can only follow the module.
        let is_module = |found: &Found| matches!(found, Found::Module(_));
        if !rest.is_empty() && found_deeper(&next, is_module) {
            next.retain(|found| !is_module(found) || rest.is_empty());
        }
        next.sort();
        next.dedup();
        next
    }

    /// Everything that `name` may mean in the scope of `module`.
    fn names(&self, module: ModuleId, name: &str, visiting: &mut Visiting) -> Vec<Found> {
        if !visiting.insert((module, name.to_owned())) {
            return Vec::new();
        }
        let scope = &self.module(module).scope;
        let mut found = Vec::new();
        found.extend(self.module(module).children.get(name).copied().map(Found::Module));
        if scope.items.contains(name) {
            found.push(Found::Item { by: module, named: module });
        }
        for import in scope.imports.get(name).into_iter().flatten() {
            found.extend(self.resolve(module, &import.path, visiting));
        }
        if found.is_empty() {
            for glob in &scope.globs {
                let path: Vec<_> = glob.path.iter().cloned().chain([name.to_owned()]).collect();
                found.extend(self.resolve(module, &path, visiting));
            }
        }
        visiting.remove(&(module, name.to_owned()));
        for found in &mut found {
            if let Found::Item { named, .. } = found {
                *named = module;
            }
        }
        found
    }
}

fn found_deeper(found: &[Found], is_module: impl Fn(&Found) -> bool) -> bool {
    found.iter().any(|found| !is_module(found))
}

fn is_crate_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
}
