//! Import circles: files or rooms that import each other, directly or through others.
//!
//! A file may use modules declared below it, and they may use it: `mod.rs` puts the parts of its folder together. So
//! imports from a file to one below it count in no circle. A room is a top-level module of a crate with everything
//! below it.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::Import;

/// Files or rooms that all reach each other, and the imports between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Circle {
    /// Paths of the files or names of the rooms, in order; at least two.
    pub members: Vec<String>,
    /// The imports between them.
    pub imports: Vec<Import>,
}

/// The maximal circles between files.
pub fn file_circles(imports: &[Import]) -> Vec<Circle> {
    let upward = imports.iter().filter(|import| !import.is_below);
    circles(upward.map(|import| Edge { from: import.from.clone(), to: import.to.clone(), import }).collect())
}

/// The maximal circles between rooms.
pub fn room_circles(imports: &[Import]) -> Vec<Circle> {
    let between = imports.iter().filter_map(|import| {
        let (from, to) = (room(&import.from)?, room(&import.to)?);
        (from != to).then_some(Edge { from, to, import })
    });
    circles(between.collect())
}

/// The room of a file, as `folder/name`; `None` for a crate's root file.
pub fn room(path: &str) -> Option<String> {
    let (package, inside) = path.split_once("/src/")?;
    let name = inside.split('/').next()?.trim_end_matches(".rs");
    (!matches!(inside, "lib.rs" | "main.rs")).then(|| format!("{package}/{name}"))
}

struct Edge<'a> {
    from: String,
    to: String,
    import: &'a Import,
}

fn circles(edges: Vec<Edge<'_>>) -> Vec<Circle> {
    let found = components(edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str())));
    let circles = found.into_iter().filter(|members| members.len() > 1);
    circles
        .map(|members| {
            let inside =
                |edge: &&Edge<'_>| members.contains(edge.from.as_str()) && members.contains(edge.to.as_str());
            Circle {
                imports: edges.iter().filter(inside).map(|edge| edge.import.clone()).collect(),
                members: members.iter().map(|name| (*name).to_owned()).collect(),
            }
        })
        .collect()
}

/// Strongly connected components, each in order (Tarjan's algorithm).
pub(crate) fn components<'a>(edges: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().insert(to);
        next.entry(to).or_default();
    }
    let mut walk = Walk { next: &next, order: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for node in next.keys() {
        if !walk.order.contains_key(node) {
            walk.enter(node);
        }
    }
    walk.found.sort();
    walk.found
}

struct Walk<'a, 'b> {
    next: &'b BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Number at which each node was entered; `usize::MAX` once its component is complete.
    order: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<BTreeSet<&'a str>>,
}

impl<'a> Walk<'a, '_> {
    /// Returns the earliest node on the stack that `node` reaches.
    fn enter(&mut self, node: &'a str) -> usize {
        let own = self.order.len();
        let mut lowest = own;
        self.order.insert(node, own);
        self.stack.push(node);
        for &to in &self.next[node] {
            let reached = match self.order.get(to) {
                None => self.enter(to),
                Some(&order) => order,
            };
            lowest = lowest.min(reached);
        }
        if lowest == own {
            let mut component = BTreeSet::new();
            while let Some(member) = self.stack.pop() {
                self.order.insert(member, usize::MAX);
                component.insert(member);
                if member == node {
                    break;
                }
            }
            self.found.push(component);
            return usize::MAX;
        }
        lowest
    }
}
