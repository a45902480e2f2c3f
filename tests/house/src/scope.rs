//! The names that one module defines, imports and mentions.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use syn::{Attribute, Item, ItemUse, Meta, UseTree, Visibility};

/// The names of one module.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Names of the items defined here.
    pub(crate) items: BTreeSet<String>,
    /// `use` declarations by imported name; `_` holds those without a name.
    pub(crate) imports: BTreeMap<String, Vec<Use>>,
    /// Paths of `use path::*`.
    pub(crate) globs: Vec<Use>,
    /// Paths in the code outside `use`.
    pub(crate) mentions: Vec<Mention>,
}

/// One leaf of a `use` declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    /// The full path, without `*`.
    pub(crate) path: Vec<String>,
    /// Whether other modules may import it from here.
    pub(crate) is_reexport: bool,
    /// Line of the declaration.
    pub(crate) line: usize,
}

/// One path in the code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mention {
    /// Segments of the path without generics.
    pub(crate) path: Vec<String>,
    /// Line in the file, from 1.
    pub(crate) line: usize,
}

impl Scope {
    /// Adds the names of an item of the module.
    pub(crate) fn define(&mut self, item: &Item) {
        let name = match item {
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::TraitAlias(item) => &item.ident,
            Item::Type(item) => &item.ident,
            Item::Union(item) => &item.ident,
            Item::Macro(item) => match &item.ident {
                Some(name) => name,
                None => return,
            },
            _ => return,
        };
        self.items.insert(name.to_string());
    }

    /// Adds the leaves of a `use` declaration.
    pub(crate) fn import(&mut self, item: &ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        let start = if item.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
        self.import_tree(&item.tree, start, is_reexport);
    }

    fn import_tree(&mut self, tree: &UseTree, mut path: Vec<String>, is_reexport: bool) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.import_tree(&part.tree, path, is_reexport);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import_tree(tree, path.clone(), is_reexport);
                }
            }
            UseTree::Glob(glob) => {
                let line = line_of(glob.star_token.spans[0]);
                self.globs.push(Use { path, is_reexport, line });
            }
            UseTree::Name(last) => {
                if last.ident != "self" {
                    path.push(last.ident.to_string());
                }
                let name = path.last().cloned().unwrap_or_default();
                let line = line_of(last.ident.span());
                self.imports.entry(name).or_default().push(Use { path, is_reexport, line });
            }
            UseTree::Rename(last) => {
                if last.ident != "self" {
                    path.push(last.ident.to_string());
                }
                let name = last.rename.to_string();
                let line = line_of(last.ident.span());
                self.imports.entry(name).or_default().push(Use { path, is_reexport, line });
            }
        }
    }
}

/// The line on which `span` begins, from 1.
pub(crate) fn line_of(span: Span) -> usize {
    span.start().line
}

/// Whether these attributes exclude an item from builds without tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || (path.is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(|meta| needs_test(&meta)))
    })
}

/// Whether a `cfg` predicate holds only in tests.
fn needs_test(meta: &Meta) -> bool {
    match meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            let parts =
                list.parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated);
            parts.is_ok_and(|parts| parts.iter().any(needs_test))
        }
        _ => false,
    }
}
