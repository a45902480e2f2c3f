//! Links the nodes that no walk would reach: nodes choose their links, and a few are chosen by none.

use std::sync::atomic::Ordering;

use crate::walk::{self, BOTTOM_LINKS, Found, Goal, Links, NONE};

use super::{Build, EF_CONSTRUCTION, Scratches};

/// The nodes to which the bottom links lead from the first node.
struct Reached {
    is_reached: Vec<bool>,
    /// Nodes whose links are not yet followed.
    left: Vec<u32>,
}

impl Reached {
    fn new(build: &Build) -> Reached {
        let mut reached = Reached { is_reached: vec![false; build.count], left: Vec::new() };
        // A twin has no links: it is found with its node.
        build.twins.lock().iter().for_each(|&(_, twin)| reached.is_reached[twin as usize] = true);
        if build.count > 0 {
            reached.follow(build, 0);
        }
        reached
    }

    fn has(&self, node: u32) -> bool {
        self.is_reached[node as usize]
    }

    /// Marks a node and all to which its links lead.
    fn follow(&mut self, build: &Build, node: u32) {
        let Reached { is_reached, left } = self;
        left.push(node);
        while let Some(node) = left.pop() {
            if !std::mem::replace(&mut is_reached[node as usize], true) {
                build.neighbours(0, node, left, |node| !is_reached[node as usize]);
            }
        }
    }
}

impl Build<'_> {
    /// Makes every node easy to find: from the nearest node that it links to, one link or two lead to it, and links lead to
    /// it from the first node. Call it when all nodes are linked.
    pub(super) fn reach_all(&self, scratch: &mut Scratches) {
        for node in 0..self.count as u32 {
            let near = self.nearest_links(node, scratch);
            if near.first().is_some_and(|&nearest| !self.is_led_to(node, nearest)) {
                self.lead_to(node, near);
            }
        }
        let mut reached = Reached::new(self);
        for node in 0..self.count as u32 {
            if !reached.has(node) {
                let near = self.near(node, scratch).into_iter().filter(|&near| reached.has(near));
                self.lead_to(node, near);
                reached.follow(self, node);
            }
        }
    }

    /// Whether one link or two lead from `from` to a node.
    fn is_led_to(&self, node: u32, from: u32) -> bool {
        let links_of = |from| self.links(0, from).iter().map(|link| link.load(Ordering::Relaxed));
        let has_link = |from| links_of(from).any(|link| link == node);
        has_link(from) || links_of(from).take_while(|&link| link != NONE).any(has_link)
    }

    /// The nodes that a node links to, nearest first.
    fn nearest_links(&self, node: u32, scratch: &mut Scratches) -> Vec<u32> {
        self.rows.take(node, &mut scratch.query);
        let goal = Goal { rows: self.rows, query: &scratch.query };
        let (mut links, mut found) = (Vec::new(), Vec::new());
        self.neighbours(0, node, &mut links, |_| true);
        walk::compare(goal, &links, &mut found);
        found.sort_unstable_by(|left, right| right.cmp(left));
        found.iter().map(|found| found.node).collect()
    }

    /// The nodes that a walk finds near a node, nearest first.
    fn near(&self, node: u32, scratch: &mut Scratches) -> Vec<u32> {
        self.rows.take(node, &mut scratch.query);
        let goal = Goal { rows: self.rows, query: &scratch.query };
        let entry = walk::descend(self, goal, 0, (1..=self.upper_layers()).rev(), &mut scratch.walk);
        let first = Found { score: f32::NEG_INFINITY, node: 0 };
        let near = scratch.walk.nearest(self, goal, 0, &[entry, first], EF_CONSTRUCTION);
        near.iter().map(|found| found.node).collect()
    }

    /// Links a node from the first of `near` that has room for a link or for a better one, or that links to it already.
    fn lead_to(&self, node: u32, near: impl IntoIterator<Item = u32>) {
        for near in near {
            let mut links = self.with_room(near);
            if links.contains(&node) {
                return;
            }
            if links.len() < BOTTOM_LINKS {
                links.push(node);
                self.write(0, near, &links);
                return;
            }
        }
    }

    /// The links of a node, without one of them if there are [`BOTTOM_LINKS`] and another of its neighbours has that one
    /// too.
    fn with_room(&self, node: u32) -> Vec<u32> {
        let of = |node: u32| {
            let mut links = Vec::with_capacity(BOTTOM_LINKS);
            self.neighbours(0, node, &mut links, |_| true);
            links
        };
        let mut links = of(node);
        if links.len() == BOTTOM_LINKS {
            let of_neighbours: Vec<Vec<u32>> = links.iter().map(|&neighbour| of(neighbour)).collect();
            let spare = links.iter().rposition(|link| of_neighbours.iter().any(|links| links.contains(link)));
            spare.map(|at| links.remove(at));
        }
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Exact;
    use crate::codes::{self, Coder, Codes};
    use crate::walk::Rows;

    /// Links nodes on a circle as `links` says. Checks that all but twins can be reached then, and from their nearest links.
    #[track_caller]
    fn check(count: usize, links: impl Fn(usize) -> Vec<u32>, twins: &[(u32, u32)]) {
        let vector = |node: u32| {
            let angle = std::f32::consts::TAU * node as f32 / count as f32;
            [angle.cos(), angle.sin()]
        };
        let vectors: Vec<[f32; 2]> = (0..count as u32).map(vector).collect();
        let coder = Coder::learn(Codes::Int8, 2, vectors.iter().map(<[f32; 2]>::as_slice));
        let mut pages = crate::memory::Pages::zeroed(codes::bytes(Codes::Int8, 2, count)).unwrap();
        for (row, vector) in pages.bytes_mut().chunks_exact_mut(coder.stride()).zip(&vectors) {
            coder.encode(vector, row, &mut []);
        }
        let rows = Rows::new(&coder, pages.bytes());
        let cosine = |_: u32, _: u32| -> f32 { unreachable!("nothing is chosen") };
        let build = Build::new(&rows, count, Exact { cosine: &cosine, error: 0.0 });
        (0..count).for_each(|node| build.write(0, node as u32, &links(node)));
        build.twins.lock().extend(twins);
        let mut scratch = Scratches::new(&rows);
        let near: Vec<Vec<u32>> =
            (0..count as u32).map(|node| build.nearest_links(node, &mut scratch)).collect();
        build.reach_all(&mut scratch);
        let reached = Reached::new(&build);
        for (node, near) in (0..).zip(&near) {
            assert!(reached.has(node), "{node}");
            let is_led_to = |&from: &u32| build.is_led_to(node, from);
            let has_no_room = |&from: &u32| build.with_room(from).len() == BOTTOM_LINKS;
            let is_found = match near.first() {
                Some(nearest) if has_no_room(nearest) => near.iter().any(is_led_to),
                nearest => nearest.is_none_or(is_led_to),
            };
            assert!(is_found, "{node} from {near:?}");
            let mut links = Vec::new();
            build.neighbours(0, node, &mut links, |_| true);
            links.sort_unstable();
            assert!(links.is_sorted_by(|one, other| one < other), "{node} links twice: {links:?}");
        }
        assert!(twins.iter().all(|&(_, twin)| build.nearest_links(twin, &mut scratch).is_empty()));
    }

    #[test]
    fn every_node_is_reached() {
        check(0, |_| Vec::new(), &[]);
        check(1, |_| Vec::new(), &[]);
        check(50, |_| Vec::new(), &[]);
        // Pairs that know each other only.
        check(100, |node| vec![node as u32 ^ 1], &[]);
        // Nodes without links, two of them twins.
        check(
            100,
            |node| if node % 3 == 1 { Vec::new() } else { vec![node as u32 / 2] },
            &[(0, 91), (0, 97)],
        );
    }

    #[test]
    fn a_node_is_linked_once_where_the_nearest_has_no_room() {
        let links = |node: usize| match node {
            0 => vec![1, 2],
            1 => (10..10 + BOTTOM_LINKS as u32).collect(),
            2 => vec![0],
            _ => Vec::new(),
        };
        check(100, links, &[]);
    }

    #[test]
    fn a_node_gets_the_place_of_a_link_that_a_neighbour_has_too() {
        let full = |node: usize| (1..=BOTTOM_LINKS).map(|step| ((node + step) % 60) as u32).collect();
        check(64, |node| if node < 60 { full(node) } else { Vec::new() }, &[]);
    }
}
