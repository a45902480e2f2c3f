//! Arranges an acyclic graph in layers: every edge leads down, and few edges cross.

use std::collections::{BTreeMap, BTreeSet};

/// Largest number of nodes in one layer.
const WIDTH_MOST: usize = 6;
/// Passes of ordering the layers by their neighbours.
const SWEEPS: usize = 40;

/// A directed graph. Nodes are numbers from 0; an edge leads from a node to one that it uses.
pub(crate) struct Graph {
    pub(crate) nodes: usize,
    pub(crate) edges: BTreeSet<Edge>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Layers from top to bottom. Nodes from `Graph::nodes` on are bends of edges that cross a layer.
pub(crate) struct Layers {
    pub(crate) layers: Vec<Vec<usize>>,
    /// The nodes on each edge's way, from its start to its end.
    pub(crate) routes: BTreeMap<Edge, Vec<usize>>,
}

impl Graph {
    /// The graph without edges that follow from two or more others.
    pub(crate) fn reduced(&self) -> Graph {
        let reached: Vec<BTreeSet<usize>> = (0..self.nodes).map(|node| self.reached_from(node)).collect();
        let follows = |edge: &Edge| {
            self.targets(edge.from).any(|between| between != edge.to && reached[between].contains(&edge.to))
        };
        let edges = self.edges.iter().filter(|edge| !follows(edge)).copied().collect();
        Graph { nodes: self.nodes, edges }
    }

    fn targets(&self, node: usize) -> impl Iterator<Item = usize> {
        self.edges.iter().filter(move |edge| edge.from == node).map(|edge| edge.to)
    }

    fn reached_from(&self, node: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut left: Vec<usize> = self.targets(node).collect();
        while let Some(next) = left.pop() {
            if reached.insert(next) {
                left.extend(self.targets(next));
            }
        }
        reached
    }

    /// Layer of each node, 0 at the bottom.
    fn heights(&self) -> Vec<usize> {
        let mut heights: Vec<Option<usize>> = vec![None; self.nodes];
        let mut taken: Vec<usize> = Vec::new();
        let users = |node: usize| self.edges.iter().filter(|edge| edge.to == node).count();
        loop {
            let is_ready = |node: &usize| {
                heights[*node].is_none() && self.targets(*node).all(|to| heights[to].is_some())
            };
            let ready = (0..self.nodes).filter(is_ready).max_by_key(|node| (users(*node), self.nodes - node));
            let Some(node) = ready else { break };
            let lowest = self.targets(node).filter_map(|to| heights[to]).max().map_or(0, |below| below + 1);
            let height = (lowest..).find(|&at| taken.get(at).is_none_or(|&count| count < WIDTH_MOST));
            let height = height.unwrap_or(lowest);
            taken.resize(taken.len().max(height + 1), 0);
            taken[height] += 1;
            heights[node] = Some(height);
        }
        heights.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The layers, each in an order with few crossings.
    pub(crate) fn layers(&self) -> Layers {
        let heights = self.heights();
        let top = heights.iter().copied().max().unwrap_or(0);
        let mut layers: Vec<Vec<usize>> = vec![Vec::new(); top + 1];
        for (node, height) in heights.iter().enumerate() {
            layers[top - height].push(node);
        }
        let mut routes = BTreeMap::new();
        let mut next = self.nodes;
        for edge in &self.edges {
            let mut route = vec![edge.from];
            let passed = top - heights[edge.from] + 1..top - heights[edge.to];
            for layer in &mut layers[passed] {
                layer.push(next);
                route.push(next);
                next += 1;
            }
            route.push(edge.to);
            routes.insert(*edge, route);
        }
        let mut laid = Layers { layers, routes };
        laid.order();
        laid
    }
}

impl Layers {
    /// Edges between neighbouring layers, upper node first.
    pub(crate) fn links(&self) -> Vec<Edge> {
        let steps = self.routes.values().flat_map(|route| route.windows(2));
        steps.map(|step| Edge { from: step[0], to: step[1] }).collect()
    }

    /// Orders each layer by the mean position of its neighbours, and keeps the order with the fewest crossings.
    fn order(&mut self) {
        let links = self.links();
        let mut best = (self.crossings(&links), self.layers.clone());
        for sweep in 0..SWEEPS {
            let downward = sweep % 2 == 0;
            let count = self.layers.len();
            for step in 1..count {
                let (layer, beside) =
                    if downward { (step, step - 1) } else { (count - 1 - step, count - step) };
                let place: BTreeMap<usize, usize> =
                    self.layers[beside].iter().enumerate().map(|(at, node)| (*node, at)).collect();
                let mean = |node: usize, own: usize| {
                    let near: Vec<usize> = links
                        .iter()
                        .filter_map(|link| match node {
                            _ if link.from == node => place.get(&link.to),
                            _ if link.to == node => place.get(&link.from),
                            _ => None,
                        })
                        .copied()
                        .collect();
                    if near.is_empty() {
                        own as f64
                    } else {
                        near.iter().sum::<usize>() as f64 / near.len() as f64
                    }
                };
                let mut keyed: Vec<_> = self.layers[layer]
                    .iter()
                    .enumerate()
                    .map(|(at, node)| (mean(*node, at), *node))
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.layers[layer] = keyed.into_iter().map(|(_, node)| node).collect();
            }
            let crossings = self.crossings(&links);
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    fn crossings(&self, links: &[Edge]) -> usize {
        let mut place = BTreeMap::new();
        for (layer, nodes) in self.layers.iter().enumerate() {
            for (at, node) in nodes.iter().enumerate() {
                place.insert(*node, (layer, at));
            }
        }
        let mut count = 0;
        for (index, one) in links.iter().enumerate() {
            for other in &links[index + 1..] {
                let (a, b) = (place[&one.from], place[&other.from]);
                let (c, d) = (place[&one.to], place[&other.to]);
                let crosses = a.0 == b.0 && (a.1 < b.1 && c.1 > d.1 || a.1 > b.1 && c.1 < d.1);
                count += usize::from(crosses);
            }
        }
        count
    }

    /// Horizontal middle of each node. `widths` gives the widths of the nodes, `gap` the space between them.
    pub(crate) fn places(&self, widths: &dyn Fn(usize) -> f64, gap: f64) -> BTreeMap<usize, f64> {
        let links = self.links();
        let mut places = BTreeMap::new();
        for layer in &self.layers {
            let wide: f64 = layer.iter().map(|node| widths(*node) + gap).sum();
            let mut at = -wide / 2.0;
            for &node in layer {
                places.insert(node, at + widths(node) / 2.0);
                at += widths(node) + gap;
            }
        }
        for _ in 0..SWEEPS {
            for layer in &self.layers {
                let wished: Vec<f64> = layer.iter().map(|node| self.wish(*node, &links, &places)).collect();
                let starts = offsets(layer, widths, gap);
                for ((node, place), start) in layer.iter().zip(spread(&wished, &starts)).zip(&starts) {
                    places.insert(*node, place + start);
                }
            }
        }
        places
    }

    /// Mean position of a node's neighbours; the middle of the picture without neighbours.
    fn wish(&self, node: usize, links: &[Edge], places: &BTreeMap<usize, f64>) -> f64 {
        let near: Vec<f64> = links
            .iter()
            .filter_map(|link| match node {
                _ if link.from == node => Some(places[&link.to]),
                _ if link.to == node => Some(places[&link.from]),
                _ => None,
            })
            .collect();
        if near.is_empty() { 0.0 } else { near.iter().sum::<f64>() / near.len() as f64 }
    }
}

/// Distance from the middle of the first node to each node's middle, if all nodes stand as close as possible.
fn offsets(layer: &[usize], widths: &dyn Fn(usize) -> f64, gap: f64) -> Vec<f64> {
    let mut offsets = vec![0.0];
    for pair in layer.windows(2) {
        let last = offsets.last().copied().unwrap_or_default();
        offsets.push(last + widths(pair[0]) / 2.0 + gap + widths(pair[1]) / 2.0);
    }
    offsets
}

/// The non-decreasing positions nearest to `wished` minus `offsets` (pool adjacent violators).
fn spread(wished: &[f64], offsets: &[f64]) -> Vec<f64> {
    struct Pool {
        mean: f64,
        count: usize,
    }
    let mut pools: Vec<Pool> = Vec::new();
    for (wish, offset) in wished.iter().zip(offsets) {
        let mut pool = Pool { mean: wish - offset, count: 1 };
        while let Some(before) = pools.pop_if(|before| before.mean > pool.mean) {
            let count = before.count + pool.count;
            pool.mean = (before.mean * before.count as f64 + pool.mean * pool.count as f64) / count as f64;
            pool.count = count;
        }
        pools.push(pool);
    }
    pools.iter().flat_map(|pool| std::iter::repeat_n(pool.mean, pool.count)).collect()
}
