//! Functions with unclear parameters: tuples, or too many.

use std::fmt;

use syn::visit::{self, Visit};
use syn::{FnArg, ImplItemFn, ItemFn, ItemImpl, Pat, Signature, TraitItemFn, Type};

use crate::scope::{is_test, line_of};
use crate::tree::Tree;

/// Largest number of parameters besides `self`.
const PARAMETERS_MOST: usize = 5;

/// A function that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultyFn {
    /// Path of the file.
    pub path: String,
    /// Name with the type before it.
    pub name: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// The broken rule.
    pub fault: Fault,
}

/// A broken rule on parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A parameter is a tuple.
    Tuple,
    /// More than five parameters besides `self`.
    TooMany,
}

impl fmt::Display for FaultyFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self.fault {
            Fault::Tuple => "tuple",
            Fault::TooMany => "too many",
        };
        write!(f, "{} {}: {fault}", self.path, self.name)
    }
}

/// The functions of `tree` that break a rule, except tests.
pub fn faulty_fns(tree: &Tree) -> Vec<FaultyFn> {
    let mut found = Vec::new();
    for file in &tree.files {
        let mut finder = Finder { path: &file.path, owner: None, found: &mut found };
        for item in &file.items {
            finder.visit_item(item);
        }
    }
    found.sort();
    found
}

struct Finder<'a> {
    path: &'a str,
    /// Name of the enclosing type or trait.
    owner: Option<String>,
    found: &'a mut Vec<FaultyFn>,
}

impl Finder<'_> {
    fn check(&mut self, signature: &Signature) {
        let typed: Vec<_> = signature
            .inputs
            .iter()
            .filter_map(|input| match input {
                FnArg::Typed(typed) => Some(typed),
                FnArg::Receiver(_) => None,
            })
            .collect();
        if typed.iter().any(|typed| is_tuple(&typed.ty) || matches!(*typed.pat, Pat::Tuple(_))) {
            self.add(signature, Fault::Tuple);
        }
        if typed.len() > PARAMETERS_MOST {
            self.add(signature, Fault::TooMany);
        }
    }

    fn add(&mut self, signature: &Signature, fault: Fault) {
        let owner = self.owner.as_ref().map(|owner| format!("{owner}::")).unwrap_or_default();
        self.found.push(FaultyFn {
            path: self.path.to_owned(),
            name: format!("{owner}{}", signature.ident),
            line: line_of(signature.ident.span()),
            fault,
        });
    }

    fn within(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        let before = self.owner.replace(owner);
        visit(self);
        self.owner = before;
    }
}

/// Whether a type is a tuple or a reference to one; `()` is none.
fn is_tuple(ty: &Type) -> bool {
    match ty {
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Reference(reference) => is_tuple(&reference.elem),
        Type::Paren(inner) => is_tuple(&inner.elem),
        _ => false,
    }
}

/// Name of a type without its path and generics.
fn name_of(ty: &Type) -> String {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        Type::Reference(reference) => name_of(&reference.elem),
        _ => String::new(),
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        // The trait decides the parameters of its implementations.
        if item.trait_.is_none() && !is_test(&item.attrs) {
            self.within(name_of(&item.self_ty), |this| visit::visit_item_impl(this, item));
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within(item.ident.to_string(), |this| visit::visit_item_trait(this, item));
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.check(&item.sig);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            self.check(&item.sig);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.check(&item.sig);
        visit::visit_trait_item_fn(self, item);
    }
}
