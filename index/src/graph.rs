//! The growing HNSW graph: the only file that knows hnsw_rs.
//!
//! Nodes are ordinals of [`Rows`]; the graph knows no removal and no filter: whoever searches picks from what it finds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use hnsw_rs::prelude::{Distance, Hnsw};
use parking_lot::RwLock;

use crate::rows::Rows;
use crate::vector::cosine;

/// Links of a node in the upper layers; twice as many at the bottom.
pub(crate) const LINKS: usize = 16;
/// Candidates looked at when a node is linked.
const EF_CONSTRUCTION: usize = 200;
/// Most layers, hnsw_rs's own limit.
const LAYERS: usize = 16;
/// The first nodes are linked one after the other: nodes linked at once into an empty graph don't see each other.
const LINKED_ALONE: usize = 64;

/// A vector at most this far (1 - cosine) from a node is its twin: the same but for rounding.
const TWIN_DISTANCE: f32 = 1e-6;
/// Candidates looked at when a twin is looked for.
const TWIN_EF: usize = 16;

/// Links and vectors of nodes.
///
/// Equal vectors (black frames, a still slide) share one node: a crowd of them would push every way out from each
/// other's links, and a walk that enters it would end there (recall at 10 fell to 0.85 with 1,000 among 3,000).
pub(crate) struct Graph {
    hnsw: Hnsw<'static, f32, CosineDistance>,
    /// Ordinals that share a node, by the node's own.
    twins: RwLock<HashMap<u32, Vec<u32>>>,
}

/// 1 - cosine, never negative: hnsw_rs asserts that.
struct CosineDistance;

impl Distance<f32> for CosineDistance {
    fn eval(&self, left: &[f32], right: &[f32]) -> f32 {
        (1.0 - cosine(left, right)).max(0.0)
    }
}

impl Graph {
    pub(crate) fn new(expected: usize) -> Graph {
        Graph {
            hnsw: Hnsw::new(LINKS, expected, LAYERS, EF_CONSTRUCTION, CosineDistance),
            twins: RwLock::default(),
        }
    }

    /// Links one node. Searches may run meanwhile and may see it.
    pub(crate) fn insert(&self, ordinal: u32, vector: &[f32]) {
        match self.hnsw.search(vector, 1, TWIN_EF).first() {
            Some(nearest) if nearest.distance <= TWIN_DISTANCE => {
                self.twins.write().entry(nearest.d_id as u32).or_default().push(ordinal);
            }
            _ => self.hnsw.insert((vector, ordinal as usize)),
        }
    }

    /// Links the rows `ordinals` with `threads` threads.
    pub(crate) fn insert_all(&self, rows: &Rows, ordinals: std::ops::Range<u32>, threads: usize) {
        let mut ordinals = ordinals;
        while self.hnsw.get_nb_point() < LINKED_ALONE
            && let Some(ordinal) = ordinals.next()
        {
            self.insert(ordinal, rows.vector(ordinal));
        }
        let next = AtomicUsize::new(ordinals.start as usize);
        let work = || {
            while let Ok(ordinal) = u32::try_from(next.fetch_add(1, Ordering::Relaxed))
                && ordinal < ordinals.end
            {
                self.insert(ordinal, rows.vector(ordinal));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
    }

    /// The ordinals of about `ef` nearest nodes, in no order; some may have been linked only a moment ago.
    ///
    /// Takes no filter on purpose: hnsw_rs's filtered walk gives up its early exit (by estimate 1.6 times slower than a
    /// wider plain walk whose finds are filtered afterwards).
    pub(crate) fn search(&self, query: &[f32], ef: usize) -> Vec<u32> {
        let mut found: Vec<u32> =
            self.hnsw.search(query, ef, ef).iter().map(|node| node.d_id as u32).collect();
        let twins = self.twins.read();
        let shared: Vec<u32> = found.iter().filter_map(|node| twins.get(node)).flatten().copied().collect();
        found.extend(shared);
        found
    }
}
