//! Collects the paths in a module's code: expressions, types, patterns, macros, attributes.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, Meta, Path};

use crate::scope::{Mention, Scope, is_test, line_of};

/// Adds the paths and the inner `use` declarations of `item` to `scope`.
pub(crate) fn collect(item: &Item, scope: &mut Scope) {
    let mut collector = Collector { scope, bindings: Vec::new() };
    collector.visit_item(item);
}

/// Visits all code except tests.
struct Collector<'a> {
    scope: &'a mut Scope,
    /// Names of local variables in the enclosing functions; they hide imported names.
    bindings: Vec<BTreeSet<String>>,
}

impl Collector<'_> {
    fn add(&mut self, path: Vec<String>, line: usize) {
        if let [name] = &path[..]
            && self.bindings.iter().any(|names| names.contains(name))
        {
            return;
        }
        self.scope.mentions.push(Mention { path, line });
    }

    fn within_fn(&mut self, names: BTreeSet<String>, visit: impl FnOnce(&mut Self)) {
        self.bindings.push(names);
        visit(self);
        self.bindings.pop();
    }

    /// Finds `a::b::c`, `Type` and `call(` in macro tokens, whose grammar is unknown.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    self.add_tokens(group.stream());
                    at += 1;
                }
                TokenTree::Ident(first) => {
                    let hidden = at > 0 && is_punct(&tokens[at - 1], &['.', '$']);
                    let mut path = vec![first.to_string()];
                    at += 1;
                    while let [first, second, TokenTree::Ident(next), ..] = &tokens[at..]
                        && is_punct(first, &[':'])
                        && is_punct(second, &[':'])
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    let is_call = matches!(tokens.get(at), Some(TokenTree::Group(_)));
                    let is_type = path[0].starts_with(char::is_uppercase);
                    if !hidden && (path.len() > 1 || is_call || is_type) {
                        self.add(path, line_of(first.span()));
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
            }
        }
    }
}

fn is_punct(token: &TokenTree, wanted: &[char]) -> bool {
    matches!(token, TokenTree::Punct(punct) if wanted.contains(&punct.as_char()))
}

/// The names that the patterns of a function bind.
#[derive(Default)]
struct Bindings(BTreeSet<String>);

impl<'ast> Visit<'ast> for Bindings {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.0.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    /// A module has its own scope.
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.scope.import(item);
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Const(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let mut names = Bindings::default();
        names.visit_item_fn(item);
        self.within_fn(names.0, |this| visit::visit_item_fn(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let mut names = Bindings::default();
        names.visit_impl_item_fn(item);
        self.within_fn(names.0, |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let mut names = Bindings::default();
        names.visit_trait_item_fn(item);
        self.within_fn(names.0, |this| visit::visit_trait_item_fn(this, item));
    }

    /// `pub(in path)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast Path) {
        let mut segments: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if path.leading_colon.is_some() {
            segments.insert(0, String::new());
        }
        if let Some(first) = path.segments.first() {
            self.add(segments, line_of(first.ident.span()));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.visit_path(&mac.path);
        self.add_tokens(mac.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::List(list) => {
                self.visit_path(&list.path);
                self.add_tokens(list.tokens.clone());
            }
            Meta::Path(path) => self.visit_path(path),
            Meta::NameValue(_) => {}
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
