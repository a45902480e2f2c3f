//! The measured engines: the built-in index and the crate hnsw_rs.

use clap::ValueEnum;
use hnsw_rs::anndists::dist::distances::Distance;
use hnsw_rs::hnsw::Hnsw;
use reprise_index::{Codes, Collection, Filter, Index, Mode, Settings, UnitVector, cosine};

/// Parameters of the graph, equal to the service's engine: links per point, candidates while linking, layers.
const LINKS: usize = 16;
const CANDIDATES: usize = 200;
const LAYERS: usize = 16;

/// The kind of engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EngineKind {
    /// The index crate.
    Builtin,
    /// The crate hnsw_rs. One thread builds its graph.
    #[value(name = "hnsw_rs")]
    HnswRs,
}

/// An engine filled with all vectors.
pub(super) enum Engine {
    Builtin(Index),
    HnswRs { graph: Box<Hnsw<'static, f32, Cosine>>, bytes: u64 },
}

/// One minus the cosine, at least 0: the crate asserts that distances are not negative.
pub(super) struct Cosine;

impl Distance<f32> for Cosine {
    fn eval(&self, one: &[f32], other: &[f32]) -> f32 {
        (1.0 - cosine(one, other)).max(0.0)
    }
}

impl Engine {
    /// Fills and links the built-in index. Calls `report` with the number of linked vectors and their total.
    pub(super) fn builtin(
        at: Collection,
        base: &[UnitVector],
        settings: Settings,
        report: &(dyn Fn(usize, usize) + Sync),
    ) -> anyhow::Result<Engine> {
        let index = Index::with_settings(settings);
        for (key, vector) in (0..).zip(base) {
            index.fill(at, key, vector)?;
        }
        index.seal_with(at, settings.build_threads, report);
        Ok(Engine::Builtin(index))
    }

    /// Fills and links a graph of hnsw_rs.
    pub(super) fn hnsw_rs(base: &[UnitVector], report: &dyn Fn(usize, usize)) -> Engine {
        let graph = Hnsw::new(LINKS, base.len(), LAYERS, CANDIDATES, Cosine);
        for (key, vector) in base.iter().enumerate() {
            graph.insert_slice((vector.values(), key));
            report(key + 1, base.len());
        }
        let values = base.first().map_or(0, |vector| vector.values().len());
        let bytes = (base.len() * (values * 4 + 3 * LINKS * 8)) as u64;
        Engine::HnswRs { graph: Box::new(graph), bytes }
    }

    /// The nearest rows, from `ef` candidates.
    pub(super) fn search(
        &self,
        at: Collection,
        query: &UnitVector,
        k: usize,
        ef: usize,
    ) -> anyhow::Result<Vec<u64>> {
        match self {
            Engine::Builtin(index) => {
                let hits = index.search(at, query, k, &Filter::default(), Mode::Walk { ef })?.hits;
                Ok(hits.iter().map(|hit| hit.key).collect())
            }
            Engine::HnswRs { graph, .. } => {
                let found = graph.search(query.values(), k, ef);
                Ok(found.iter().map(|neighbour| neighbour.get_origin_id() as u64).collect())
            }
        }
    }

    /// Size of vectors and links in bytes. An estimate for hnsw_rs, which does not count them.
    pub(super) fn bytes(&self, at: Collection) -> u64 {
        match self {
            Engine::Builtin(index) => index.bytes(at),
            Engine::HnswRs { bytes, .. } => *bytes,
        }
    }
}

impl EngineKind {
    /// The code formats to measure: `asked` or else all; hnsw_rs only supports f32.
    pub(super) fn codes(self, asked: Option<Codes>) -> Vec<Codes> {
        match self {
            EngineKind::Builtin => asked.map_or(Codes::ALL.to_vec(), |codes| vec![codes]),
            EngineKind::HnswRs => vec![Codes::F32],
        }
    }
}
