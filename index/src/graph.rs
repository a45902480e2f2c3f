//! The growing HNSW graph: the only file that knows hnsw_rs.
//!
//! Nodes are ordinals of [`Rows`]; the graph knows no removal and no filter: whoever searches picks from what it finds.

use std::sync::atomic::{AtomicUsize, Ordering};

use hnsw_rs::prelude::{Distance, Hnsw};

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

pub(crate) struct Graph {
    hnsw: Hnsw<'static, f32, CosineDistance>,
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
        Graph { hnsw: Hnsw::new(LINKS, expected, LAYERS, EF_CONSTRUCTION, CosineDistance) }
    }

    /// Links one node. Searches may run meanwhile and may see it.
    pub(crate) fn insert(&self, ordinal: u32, vector: &[f32]) {
        self.hnsw.insert((vector, ordinal as usize));
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

    /// About `ef` nearest ordinals, nearest first; among them may be some that were linked a moment ago.
    ///
    /// Takes no filter on purpose: hnsw_rs's filtered walk gives up its early exit (measured 1.6 times slower than a
    /// wider plain walk whose finds are filtered afterwards).
    pub(crate) fn search(&self, query: &[f32], ef: usize) -> Vec<u32> {
        self.hnsw.search(query, ef, ef).into_iter().map(|neighbour| neighbour.d_id as u32).collect()
    }
}
