//! The modules of the workspace: their files, and the names that they define, import and mention.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Expr, ExprLit, Item, ItemMod, Lit, Meta};

use crate::error::HouseError;
use crate::mentions;
use crate::packages::Package;
use crate::scope::{Scope, is_test};

/// The modules of several crates.
#[derive(Default)]
pub struct Tree {
    pub(crate) modules: Vec<Module>,
    pub(crate) files: Vec<SourceFile>,
    /// Root modules of the library crates, by crate name.
    pub(crate) libraries: BTreeMap<String, ModuleId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleId(pub(crate) usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) usize);

/// One module: a file, or a `mod name { ... }` inside one.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) parent: Option<ModuleId>,
    pub(crate) root: ModuleId,
    pub(crate) file: FileId,
    pub(crate) children: BTreeMap<String, ModuleId>,
    pub(crate) scope: Scope,
}

/// One source file.
pub(crate) struct SourceFile {
    /// Path relative to the workspace's folder, separated by `/`.
    pub(crate) path: String,
    pub(crate) items: Vec<Item>,
}

/// Folder of the workspace that contains this package.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The source of one crate.
pub(crate) struct CrateSource<'a> {
    /// Name of the crate in code; `None` for a program.
    pub(crate) library: Option<String>,
    /// Path of the root file.
    pub(crate) root: String,
    /// Reads the text of a file; `None` if it does not exist.
    pub(crate) text: &'a dyn Fn(&str) -> Option<String>,
}

/// A file that declares modules.
struct ModuleFile {
    /// Folder with the files of the declared modules.
    folder: String,
    /// Path of the file.
    path: String,
    file: FileId,
    module: ModuleId,
}

impl Tree {
    /// Parses the libraries and programs of `packages`, whose folders lie under `root`.
    pub fn of_packages<'a>(
        root: &Path,
        packages: impl IntoIterator<Item = &'a Package>,
    ) -> Result<Tree, HouseError> {
        let mut tree = Tree::default();
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        for target in packages.into_iter().flat_map(Package::product) {
            let is_library = target.kind.iter().any(|kind| kind == "lib");
            tree.read_crate(&CrateSource {
                library: is_library.then(|| target.name.replace('-', "_")),
                root: target.src_path.clone(),
                text: &text,
            })?;
        }
        Ok(tree)
    }

    /// Paths of all parsed files, in order.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<_> = self.files.iter().map(|file| file.path.as_str()).collect();
        paths.sort_unstable();
        paths
    }

    pub(crate) fn read_crate(&mut self, source: &CrateSource<'_>) -> Result<(), HouseError> {
        let module = self.add_module(None, FileId(self.files.len()));
        if let Some(library) = &source.library {
            self.libraries.insert(library.clone(), module);
        }
        let folder = source.root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text = (source.text)(&source.root).ok_or_else(|| HouseError::Missing {
            module: "crate".to_owned(),
            declared_in: source.root.clone(),
        })?;
        let place = ModuleFile {
            folder: folder.to_owned(),
            path: source.root.clone(),
            file: FileId(self.files.len()),
            module,
        };
        self.read_file(source, place, &text)
    }

    fn add_module(&mut self, parent: Option<ModuleId>, file: FileId) -> ModuleId {
        let id = ModuleId(self.modules.len());
        let root = parent.map_or(id, |parent| self.module(parent).root);
        let (children, scope) = (BTreeMap::new(), Scope::default());
        self.modules.push(Module { parent, root, file, children, scope });
        id
    }

    pub(crate) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    fn read_file(
        &mut self,
        source: &CrateSource<'_>,
        place: ModuleFile,
        text: &str,
    ) -> Result<(), HouseError> {
        let parsed = syn::parse_file(text)
            .map_err(|error| HouseError::Syntax { path: place.path.clone(), source: error })?;
        let items: Vec<Item> = parsed.items;
        self.files.push(SourceFile { path: place.path.clone(), items: Vec::new() });
        self.read_items(source, &place, &items)?;
        self.files[place.file.0].items = items;
        Ok(())
    }

    fn read_items(
        &mut self,
        source: &CrateSource<'_>,
        place: &ModuleFile,
        items: &[Item],
    ) -> Result<(), HouseError> {
        for item in items {
            if let Item::Mod(item) = item {
                if !is_test(&item.attrs) {
                    self.read_mod(source, place, item)?;
                }
                continue;
            }
            let scope = &mut self.modules[place.module.0].scope;
            scope.define(item);
            mentions::collect(item, scope);
        }
        Ok(())
    }

    fn read_mod(
        &mut self,
        source: &CrateSource<'_>,
        place: &ModuleFile,
        item: &ItemMod,
    ) -> Result<(), HouseError> {
        let name = item.ident.to_string();
        let inner = join(&place.folder, &name);
        if let Some((_, items)) = &item.content {
            let module = self.add_child(place, &name, place.file);
            let place = ModuleFile { folder: inner, path: place.path.clone(), file: place.file, module };
            return self.read_items(source, &place, items);
        }
        let candidates = match path_attribute(item) {
            Some(path) => {
                let beside = place.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                vec![join(beside, &path)]
            }
            None => vec![format!("{inner}.rs"), format!("{inner}/mod.rs")],
        };
        let found = candidates.into_iter().find_map(|path| Some(((source.text)(&path)?, path)));
        let (text, path) = found
            .ok_or_else(|| HouseError::Missing { module: name.clone(), declared_in: place.path.clone() })?;
        let file = FileId(self.files.len());
        let module = self.add_child(place, &name, file);
        self.read_file(source, ModuleFile { folder: inner, path, file, module }, &text)
    }

    fn add_child(&mut self, place: &ModuleFile, name: &str, file: FileId) -> ModuleId {
        let child = self.add_module(Some(place.module), file);
        self.modules[place.module.0].children.insert(name.to_owned(), child);
        child
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The file that `#[path = "..."]` names.
fn path_attribute(item: &ItemMod) -> Option<String> {
    item.attrs.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}
