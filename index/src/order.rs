//! Orders the nodes of a built graph, so that neighbours lie near each other in memory.

use crate::build::{Linked, upper_counts};
use crate::walk::{BOTTOM_LINKS, LINKS, NONE};

impl Linked {
    /// All nodes in a new order: depth first along the bottom links, and within each layer's nodes only, because the
    /// nodes of a layer come first.
    pub(crate) fn order(&self) -> Vec<u32> {
        let count = self.bottom.len() / BOTTOM_LINKS;
        let (mut is_placed, mut order, mut left) =
            (vec![false; count], Vec::with_capacity(count), Vec::new());
        for start in 0..count as u32 {
            left.push(start);
            while let Some(node) = left.pop() {
                if !std::mem::replace(&mut is_placed[node as usize], true) {
                    order.push(node);
                    let links = &self.bottom[node as usize * BOTTOM_LINKS..][..BOTTOM_LINKS];
                    let links = links.iter().rev().filter(|&&link| link != NONE);
                    left.extend(links.filter(|&&link| !is_placed[link as usize]));
                }
            }
        }
        let counts = upper_counts(count);
        order.sort_by_key(|&node| counts.iter().filter(|&&count| node as usize >= count).count());
        order
    }

    /// The same graph with its nodes in this order.
    pub(crate) fn ordered(&self, order: &[u32]) -> Linked {
        let mut place = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&node, at)| place[node as usize] = at);
        let placed = |links: &[u32], each: usize| -> Vec<u32> {
            let nodes = order.iter().take(links.len() / each);
            let links = nodes.flat_map(|&node| &links[node as usize * each..][..each]);
            links.map(|&link| if link == NONE { NONE } else { place[link as usize] }).collect()
        };
        let twins = self.twins.iter().map(|&(node, twin)| (place[node as usize], place[twin as usize]));
        let mut twins: Vec<(u32, u32)> = twins.collect();
        twins.sort_unstable();
        Linked {
            bottom: placed(&self.bottom, BOTTOM_LINKS),
            upper: self.upper.iter().map(|links| placed(links, LINKS)).collect(),
            twins,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph in which each node leads to the one `step` further on.
    fn ring(count: u32, step: u32) -> Linked {
        let links = |count: u32, each: usize| -> Vec<u32> {
            let of = |node| [vec![(node + step) % count], vec![NONE; each - 1]].concat();
            (0..count).flat_map(of).collect()
        };
        let upper =
            upper_counts(count as usize).into_iter().map(|count| links(count as u32, LINKS)).collect();
        Linked { bottom: links(count, BOTTOM_LINKS), upper, twins: vec![(1, count - 1), (2, 0)] }
    }

    /// Checks that each layer keeps its nodes, that links lead where they led, and how many lead to the next node.
    #[track_caller]
    fn check(count: u32, step: u32, nearest: usize) {
        let before = ring(count, step);
        let order = before.order();
        let after = before.ordered(&order);
        for layer in upper_counts(count as usize) {
            let mut nodes = order[..layer].to_vec();
            nodes.sort_unstable();
            assert_eq!(nodes, (0..layer as u32).collect::<Vec<_>>());
        }
        let mut near = 0;
        for (node, links) in after.bottom.chunks(BOTTOM_LINKS).enumerate() {
            assert_eq!(order[links[0] as usize], (order[node] + step) % count);
            near += usize::from(links[0] as usize == node + 1);
        }
        assert!(near >= nearest, "{near} of {count}");
        let mut twins: Vec<_> =
            after.twins.iter().map(|&(node, twin)| (order[node as usize], order[twin as usize])).collect();
        twins.sort_unstable();
        assert_eq!(twins, before.twins);
        assert!(after.twins.is_sorted());
    }

    #[test]
    fn neighbours_come_near_and_layers_keep_their_nodes() {
        check(5, 1, 4);
        check(1_000, 7, 700);
    }
}
