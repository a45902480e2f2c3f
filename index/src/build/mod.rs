//! Builds the graph of a new segment: HNSW (Malkov and Yashunin, "Efficient and robust approximate nearest neighbor
//! search using Hierarchical Navigable Small World graphs", algorithms 1 to 4). Several threads link nodes by the codes
//! that searches will compare.
//!
//! Rows come ordered by layer, the highest layer first. The nodes of a layer are then `0..count`, and links need no
//! table of offsets. In the end every node can be reached (`reached`).

mod reached;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::codes::Query;
use crate::walk::{self, BOTTOM_LINKS, Found, Goal, LINKS, Links, NONE, Rows, Scratch};

/// HNSW's efConstruction: candidates kept while a node is linked.
const EF_CONSTRUCTION: usize = 200;
/// The first nodes are linked one after the other: nodes inserted at once into an empty graph do not find each other.
const LINKED_ALONE: usize = 64;
/// Locks of nodes; several nodes share one.
const LOCKS: usize = 4_096;
/// The most upper layers.
const LAYERS: usize = 15;
/// Nodes linked between two progress reports.
const REPORT: usize = 1_000;
/// Two vectors at most this far apart (1 - cosine) are twins: equal but for rounding.
const TWIN_DISTANCE: f32 = 1e-6;
/// A twin's lowest cosine by codes, and how many of the nearest nodes are compared exactly to find it.
const TWIN_BY_CODES: f32 = 0.99;
const TWIN_CANDIDATES: usize = 4;

/// The links of a finished build.
pub(crate) struct Linked {
    /// [`BOTTOM_LINKS`] links per node.
    pub(crate) bottom: Vec<u32>,
    /// [`LINKS`] links per node of each upper layer, the lowest layer first.
    pub(crate) upper: Vec<Vec<u32>>,
    /// (node, twin), sorted: the twin's row shares the node of an equal vector.
    ///
    /// Equal vectors (black frames, a still slide) share one node. With a node each, they would fill each other's
    /// links, and a walk could not leave the group.
    pub(crate) twins: Vec<(u32, u32)>,
}

/// The number of nodes in each upper layer, the lowest first, for `nodes` at the bottom.
pub(crate) fn upper_counts(nodes: usize) -> Vec<usize> {
    std::iter::successors(Some(nodes / LINKS), |count| Some(count / LINKS))
        .take_while(|&count| count > 0)
        .take(LAYERS)
        .collect()
}

/// Compares rows by their original vectors.
#[derive(Clone, Copy)]
pub(crate) struct Exact<'a> {
    /// The cosine of two rows.
    pub(crate) cosine: &'a (dyn Fn(u32, u32) -> f32 + Sync),
    /// The largest error of the codes; smaller differences are compared exactly.
    pub(crate) error: f32,
}

/// Links all rows; `report` receives the number of linked rows.
pub(crate) fn link(
    rows: &Rows,
    count: usize,
    threads: usize,
    exact: Exact,
    report: &(dyn Fn(usize) + Sync),
) -> Linked {
    let build = Build::new(rows, count, exact);
    let alone = count.min(LINKED_ALONE);
    let mut scratch = Scratches::new(rows);
    (0..alone).for_each(|node| build.insert(node as u32, &mut scratch));
    let next = AtomicUsize::new(alone);
    let work = || {
        let mut scratch = Scratches::new(rows);
        loop {
            let node = next.fetch_add(1, Ordering::Relaxed);
            if node >= count {
                break;
            }
            build.insert(node as u32, &mut scratch);
            if node.is_multiple_of(REPORT) {
                report(node);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    report(count);
    build.reach_all(&mut scratch);
    build.finish()
}

struct Build<'a> {
    rows: &'a Rows<'a>,
    count: usize,
    exact: Exact<'a>,
    bottom: Vec<AtomicU32>,
    upper: Vec<Vec<AtomicU32>>,
    counts: Vec<usize>,
    locks: Vec<Mutex<()>>,
    twins: Mutex<Vec<(u32, u32)>>,
}

/// Buffers of one building thread.
struct Scratches {
    walk: Scratch,
    /// The node being linked.
    query: Query,
    /// A neighbour of that node whose links are chosen again.
    neighbour: Query,
    /// A candidate compared with the chosen nodes.
    candidate: Query,
    candidates: Vec<Found>,
    chosen: Vec<u32>,
    links: Vec<u32>,
}

impl Scratches {
    fn new(rows: &Rows) -> Scratches {
        Scratches {
            walk: Scratch::default(),
            query: rows.coder.empty(),
            neighbour: rows.coder.empty(),
            candidate: rows.coder.empty(),
            candidates: Vec::new(),
            chosen: Vec::new(),
            links: Vec::new(),
        }
    }
}

impl Links for Build<'_> {
    fn upper_layers(&self) -> usize {
        self.counts.len()
    }

    #[inline]
    fn neighbours(&self, layer: usize, node: u32, into: &mut Vec<u32>, wanted: impl FnMut(u32) -> bool) {
        let links = self.links(layer, node).iter().map(|link| link.load(Ordering::Acquire));
        walk::gather(links, into, wanted);
    }

    fn nodes(&self, layer: usize) -> usize {
        if layer == 0 { self.count } else { self.counts[layer - 1] }
    }

    fn prefetch(&self, _: u32) {}
}

impl<'a> Build<'a> {
    fn new(rows: &'a Rows<'a>, count: usize, exact: Exact<'a>) -> Build<'a> {
        let none = |length: usize| (0..length).map(|_| AtomicU32::new(NONE)).collect::<Vec<_>>();
        let counts = upper_counts(count);
        Build {
            rows,
            count,
            exact,
            bottom: none(count * BOTTOM_LINKS),
            upper: counts.iter().map(|&count| none(count * LINKS)).collect(),
            counts,
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            twins: Mutex::default(),
        }
    }

    fn finish(self) -> Linked {
        let plain =
            |links: Vec<AtomicU32>| links.into_iter().map(AtomicU32::into_inner).collect::<Vec<u32>>();
        let mut twins = self.twins.into_inner();
        twins.sort_unstable();
        Linked { bottom: plain(self.bottom), upper: self.upper.into_iter().map(plain).collect(), twins }
    }

    fn links(&self, layer: usize, node: u32) -> &[AtomicU32] {
        let (links, each) = match layer {
            0 => (&self.bottom, BOTTOM_LINKS),
            upper => (&self.upper[upper - 1], LINKS),
        };
        &links[node as usize * each..(node as usize + 1) * each]
    }

    /// The highest layer that contains the node.
    fn layer_of(&self, node: u32) -> usize {
        self.counts.iter().take_while(|&&count| (node as usize) < count).count()
    }

    fn insert(&self, node: u32, scratch: &mut Scratches) {
        if node == 0 {
            return;
        }
        self.rows.take(node, &mut scratch.query);
        let highest = self.layer_of(node);
        let above = (highest + 1..=self.upper_layers()).rev();
        let goal = Goal { rows: self.rows, query: &scratch.query };
        let entry = walk::descend(self, goal, 0, above, &mut scratch.walk);
        let mut from = vec![entry];
        for layer in (0..=highest).rev() {
            let goal = Goal { rows: self.rows, query: &scratch.query };
            let found = scratch.walk.nearest(self, goal, layer, &from, EF_CONSTRUCTION);
            // While this node's upper layers were linked, another thread may have linked a neighbour back to it.
            scratch.candidates.clear();
            scratch.candidates.extend(found.iter().filter(|found| found.node != node));
            if layer == highest
                && let Some(twin) = self.twin_among(node, &scratch.candidates)
            {
                self.twins.lock().push((twin, node));
                return;
            }
            from.clear();
            from.extend_from_slice(&scratch.candidates);
            self.connect(layer, node, scratch);
        }
    }

    /// The candidate with an equal vector, if there is one.
    fn twin_among(&self, node: u32, candidates: &[Found]) -> Option<u32> {
        let near = candidates.iter().take(TWIN_CANDIDATES).filter(|found| found.score > TWIN_BY_CODES);
        near.map(|found| found.node).find(|&other| 1.0 - (self.exact.cosine)(node, other) <= TWIN_DISTANCE)
    }

    /// Links a node with its best candidates, in both directions.
    fn connect(&self, layer: usize, node: u32, scratch: &mut Scratches) {
        self.choose(node, LINKS, scratch);
        let chosen = std::mem::take(&mut scratch.chosen);
        {
            let _lock = self.lock(node);
            // Links that other threads added to this node meanwhile stay while there is room.
            let mut links = chosen.clone();
            self.neighbours(layer, node, &mut links, |neighbour| !chosen.contains(&neighbour));
            self.write(layer, node, &links);
        }
        for &neighbour in &chosen {
            self.link_back(layer, neighbour, node, scratch);
        }
        scratch.chosen = chosen;
    }

    fn link_back(&self, layer: usize, node: u32, new: u32, scratch: &mut Scratches) {
        let most = if layer == 0 { BOTTOM_LINKS } else { LINKS };
        let _lock = self.lock(node);
        scratch.links.clear();
        self.neighbours(layer, node, &mut scratch.links, |_| true);
        if scratch.links.contains(&new) {
            return;
        }
        scratch.links.push(new);
        if scratch.links.len() > most {
            self.rows.take(node, &mut scratch.neighbour);
            scratch.candidates.clear();
            for &other in &scratch.links {
                let score = self.rows.score(&scratch.neighbour, other);
                scratch.candidates.push(Found { score, node: other });
            }
            scratch.candidates.sort_unstable_by(|left, right| right.cmp(left));
            self.choose(node, most, scratch);
            self.write(layer, node, &scratch.chosen);
        } else {
            self.write(layer, node, &scratch.links);
        }
    }

    /// Chooses at most `most` candidates as links of `node`, best first. A candidate is chosen if it is nearer to the
    /// node than to every chosen candidate (algorithm 4).
    fn choose(&self, node: u32, most: usize, scratch: &mut Scratches) {
        let Scratches { candidates, chosen, candidate, .. } = scratch;
        chosen.clear();
        for found in candidates.iter() {
            if chosen.len() == most {
                break;
            }
            if !chosen.is_empty() {
                self.rows.take(found.node, candidate);
            }
            if chosen.iter().all(|&other| self.is_apart(node, found, candidate, other)) {
                chosen.push(found.node);
            }
        }
    }

    /// Whether the found node is nearer to `node` than to `other`. Compared by codes alone, a group of nearly equal
    /// vectors would look like twins, and none of them would keep a link to another.
    fn is_apart(&self, node: u32, found: &Found, candidate: &Query, other: u32) -> bool {
        let score = self.rows.score(candidate, other);
        if (score - found.score).abs() > 2.0 * self.exact.error {
            return score < found.score;
        }
        (self.exact.cosine)(found.node, other) < (self.exact.cosine)(found.node, node)
    }

    fn write(&self, layer: usize, node: u32, links: &[u32]) {
        let places = self.links(layer, node);
        for (place, link) in places.iter().zip(links.iter().copied().chain(std::iter::repeat(NONE))) {
            place.store(link, Ordering::Release);
        }
    }

    fn lock(&self, node: u32) -> parking_lot::MutexGuard<'_, ()> {
        self.locks[node as usize % LOCKS].lock()
    }
}
