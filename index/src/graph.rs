//! The growing HNSW graph: the only file that knows hnsw_rs.
//!
//! Nodes are ordinals of [`Rows`]; the graph knows no removal and no filter: whoever searches picks from what it finds.

use std::collections::HashMap;

use hnsw_rs::prelude::{Distance, Hnsw};
use parking_lot::RwLock;

use crate::rows::Rows;
use crate::vector::cosine;

/// Links of a node in the upper layers; twice as many at the bottom.
const LINKS: usize = 16;
/// Candidates looked at when a node is linked.
const EF_CONSTRUCTION: usize = 200;
/// Most layers, hnsw_rs's own limit.
const LAYERS: usize = 16;
/// Nodes for which memory is set aside at once, at most.
const EXPECTED_MOST: usize = 1 << 16;

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
    /// Links rows, for `expected` in all.
    pub(crate) fn of(rows: &Rows, expected: u64) -> Graph {
        let expected =
            usize::try_from(expected).map_or(EXPECTED_MOST, |expected| expected.min(EXPECTED_MOST));
        let hnsw = Hnsw::new(LINKS, expected, LAYERS, EF_CONSTRUCTION, CosineDistance);
        let graph = Graph { hnsw, twins: RwLock::default() };
        (0..rows.len()).for_each(|ordinal| graph.insert(ordinal, rows.vector(ordinal)));
        graph
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
