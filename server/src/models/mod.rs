//! The loaded embedding spaces, and the active space for each kind of query.

pub mod catalogue;
mod pace;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use reprise_encoders::text::Tokenizer;
use reprise_encoders::{
    DownloadProgress, Embedder, LoadError, LoadOptions, ModelName, Pool, Space, batch, pool,
};
use tokio::sync::{Mutex, MutexGuard};

pub(crate) use pace::Measuring;
pub use pace::Pace;

use crate::catalog::{Activation, Catalog, CatalogError, NewSpace, SpaceRow};
use crate::config::Config;
use crate::telemetry::names::{self, Metric};
use crate::terms::QueryKind;
use crate::vectors::EngineError;

/// A loaded space: its description, its tokenizer and its encoder pool.
pub struct LoadedSpace {
    /// Number of the space in catalog and index.
    pub key: u32,
    /// Description of the space.
    pub space: Space,
    /// Tokenizer. `None` if the model takes no text.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// Devices of its workers: `cpu`, `cuda:N`.
    pub devices: Vec<String>,
    /// Pool of its workers.
    pub pool: Pool,
    /// Whether it was added to a running server. Such a model is loaded at each start.
    pub added: bool,
    /// Time that this machine takes for a stored clip.
    pub pace: Pace,
}

impl LoadedSpace {
    /// Whether the space can answer this kind of query. Composed queries need a fusion head, or text and frames.
    pub fn can(&self, kind: QueryKind) -> bool {
        can(&self.space, kind)
    }
}

fn can(space: &Space, kind: QueryKind) -> bool {
    match kind {
        QueryKind::Text => space.can.text,
        QueryKind::Clip => space.can.frames,
        QueryKind::Composed => space.can.composed || (space.can.text && space.can.frames),
        QueryKind::Spoken => space.can.text && !space.can.frames,
    }
}

/// The loaded spaces. They may change between calls. Use a [`Snapshot`] for consistent answers.
pub struct Spaces {
    now: RwLock<Arc<Snapshot>>,
    /// Lock: one change at a time. Held only briefly.
    changing: Mutex<()>,
    /// Lock: one load at a time. Two loads could make the same space.
    turn: Mutex<()>,
    /// Models that are loading or wait to load.
    loading: std::sync::Mutex<Vec<Loading>>,
    unavailable: Vec<Unavailable>,
}

/// The loaded and active spaces at one moment.
#[derive(Clone)]
pub struct Snapshot {
    loaded: Vec<Arc<LoadedSpace>>,
    active: BTreeMap<QueryKind, usize>,
    /// The spaces that the command line names for a kind.
    named: BTreeMap<QueryKind, usize>,
}

/// A model that is loading or waits to load.
#[derive(Debug, Clone)]
pub struct Loading {
    /// Name from the user.
    pub model: String,
    /// Its download.
    pub progress: Arc<DownloadProgress>,
}

/// An added model that did not load at this start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Name from the user.
    pub model: String,
    /// The reason.
    pub why: String,
}

/// Error of loading or activating a space.
#[derive(Debug, thiserror::Error)]
pub enum SpacesError {
    /// A model did not load.
    #[error("model {model}: {error}")]
    Load {
        /// Name from the user.
        model: String,
        /// The reason.
        error: LoadError,
    },
    /// The user named a model for a kind of query that it can't answer.
    #[error("model {model} can't answer {kind} queries; name another model for them")]
    Cannot {
        /// Name from the user.
        model: String,
        /// The kind of query.
        kind: &'static str,
    },
    /// A model differs from when it was added.
    #[error("model {model} has changed since it was added; add it again")]
    Changed {
        /// Name from the user.
        model: String,
    },
    /// The command line names two models for one kind.
    #[error("two models are named for {0} queries; name one")]
    Twice(&'static str),
    /// Loading panicked. This is a defect of the service.
    #[error("model {model}: loading panicked: {panic}")]
    Panicked {
        /// Name from the user.
        model: String,
        /// The panic's message.
        panic: String,
    },
    /// The service is stopping.
    #[error("the service is stopping")]
    Closing,
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The vector engine can't hold its vectors.
    #[error(transparent)]
    Vectors(#[from] EngineError),
}

impl Spaces {
    /// Loads the models of `config` and all added models, and registers their spaces.
    ///
    /// # Errors
    /// A model of `config` that fails, or kinds that don't fit, abort the start: a wrong name should show at once. A
    /// failed added model is only listed in [`Spaces::unavailable`], because a restart must not depend on the user
    /// who added it.
    pub async fn load(config: &Config, catalog: &Catalog) -> Result<Spaces, SpacesError> {
        let mut loaded: Vec<Arc<LoadedSpace>> = Vec::new();
        let mut chosen = Vec::new();
        for choice in &config.models {
            let model = load_model(&choice.model, config.load_options()).await?;
            let known = loaded.iter().position(|known| known.space.id == model.space.id);
            chosen.push((choice.kinds.as_slice(), known.unwrap_or(loaded.len())));
            if known.is_none() {
                loaded.push(Arc::new(start(model, config, catalog, false).await?));
            }
        }
        let described: Vec<&Space> = loaded.iter().map(|it| &it.space).collect();
        let active = activate(&chosen, &described)?;
        let pairs = chosen.iter().flat_map(|(kinds, index)| kinds.iter().map(|kind| (*kind, *index)));
        let mut now = Snapshot { active, named: pairs.collect(), loaded };
        if config.forget_added {
            catalog.forget_added().await?;
        }
        let mut unavailable = Vec::new();
        for row in catalog.spaces().await?.into_iter().filter(|row| row.added) {
            if now.loaded.iter().any(|known| known.key == row.key) {
                continue;
            }
            match load_added(&row, config, catalog).await {
                Ok(space) => now.loaded.push(Arc::new(space)),
                Err(SpacesError::Catalog(error)) => return Err(error.into()),
                Err(error) => {
                    tracing::error!(%error, "a model that was added does not load; --forget-added forgets it");
                    unavailable.push(Unavailable { model: row.space.model, why: error.to_string() });
                }
            }
        }
        for moved in catalog.activations().await? {
            now.restore(&moved);
        }
        Ok(Spaces {
            now: RwLock::new(Arc::new(now)),
            changing: Mutex::default(),
            turn: Mutex::default(),
            loading: std::sync::Mutex::default(),
            unavailable,
        })
    }

    /// The spaces at this moment. The snapshot never changes.
    pub fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The active space for `kind`, if any.
    pub fn active(&self, kind: QueryKind) -> Option<Arc<LoadedSpace>> {
        self.now().active(kind).cloned()
    }

    /// A loaded space by id or readable name.
    pub fn named(&self, name: &str) -> Option<Arc<LoadedSpace>> {
        self.now().named(name).cloned()
    }

    /// All loaded spaces: those of the command line in order, then the added ones.
    pub fn all(&self) -> Vec<Arc<LoadedSpace>> {
        self.now().loaded.clone()
    }

    /// Models that are loading or wait to load, in order. The first one is loading.
    pub fn loading(&self) -> Vec<Loading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Added models that did not load at this start.
    pub fn unavailable(&self) -> &[Unavailable] {
        &self.unavailable
    }

    /// Waits until no other model is loading. No other model loads until the result is dropped.
    pub(crate) async fn take_turn(&self, model: &str) -> Turn<'_> {
        let progress = Arc::<DownloadProgress>::default();
        let loading = Loading { model: model.to_owned(), progress: Arc::clone(&progress) };
        self.loading.lock().unwrap_or_else(PoisonError::into_inner).push(loading);
        let listed = Listed { spaces: self, model: model.to_owned() };
        Turn { _turn: self.turn.lock().await, _listed: listed, progress }
    }

    /// Adds a loaded space. It becomes active for kinds without an active space.
    ///
    /// # Errors
    /// The catalog failed. Nothing changed.
    pub(crate) async fn add(&self, space: Arc<LoadedSpace>, catalog: &Catalog) -> Result<(), SpacesError> {
        let _one = self.changing.lock().await;
        let mut next = Snapshot::clone(&self.now());
        let unanswered = |kind: &QueryKind| !next.active.contains_key(kind) && space.can(*kind);
        let kinds: Vec<QueryKind> = QueryKind::ALL.into_iter().filter(unanswered).collect();
        catalog.keep_space(space.key).await?;
        catalog.activate(&next.activations(&kinds, space.key)).await?;
        next.active.extend(kinds.into_iter().map(|kind| (kind, next.loaded.len())));
        next.loaded.push(space);
        self.publish(next);
        Ok(())
    }

    /// Makes a loaded space active for these kinds of query, also after restarts.
    ///
    /// # Errors
    /// The space can't answer a kind, or the catalog failed. Nothing changed.
    pub async fn activate(
        &self,
        space: &LoadedSpace,
        kinds: &[QueryKind],
        catalog: &Catalog,
    ) -> Result<(), SpacesError> {
        if let Some(kind) = kinds.iter().find(|kind| !space.can(**kind)) {
            return Err(SpacesError::Cannot { model: space.space.model.clone(), kind: kind.name() });
        }
        let _one = self.changing.lock().await;
        let mut next = Snapshot::clone(&self.now());
        catalog.activate(&next.activations(kinds, space.key)).await?;
        let index = next.loaded.iter().position(|it| it.key == space.key);
        next.active.extend(index.into_iter().flat_map(|index| kinds.iter().map(move |kind| (*kind, index))));
        self.publish(next);
        Ok(())
    }

    fn publish(&self, next: Snapshot) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
    }

    /// Finishes all queues and joins all workers. Blocks.
    pub fn close(&self) {
        self.now().loaded.iter().for_each(|it| it.pool.close());
    }

    /// Whether every pool still has a worker.
    pub fn alive(&self) -> bool {
        self.now().loaded.iter().all(|it| it.pool.alive())
    }
}

/// Permission to load a model.
pub(crate) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _listed: Listed<'a>,
    /// Shows the download to others.
    pub(crate) progress: Arc<DownloadProgress>,
}

/// Lists a model as loading until it is dropped.
struct Listed<'a> {
    spaces: &'a Spaces,
    model: String,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut loading = self.spaces.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = loading.iter().position(|it| it.model == self.model) {
            loading.remove(index);
        }
    }
}

impl Snapshot {
    /// The active space for `kind`, if any.
    pub fn active(&self, kind: QueryKind) -> Option<&Arc<LoadedSpace>> {
        self.active.get(&kind).and_then(|index| self.loaded.get(*index))
    }

    /// A loaded space by id or readable name.
    pub fn named(&self, name: &str) -> Option<&Arc<LoadedSpace>> {
        self.loaded.iter().find(|it| it.space.id == name || it.space.name == name)
    }

    /// All loaded spaces: those of the command line in order, then the added ones.
    pub fn all(&self) -> &[Arc<LoadedSpace>] {
        &self.loaded
    }

    /// The kinds of query that `space` is active for.
    pub fn active_for(&self, space: &LoadedSpace) -> Vec<QueryKind> {
        let is_it = |kind: &QueryKind| self.active(*kind).is_some_and(|active| active.key == space.key);
        QueryKind::ALL.into_iter().filter(is_it).collect()
    }

    /// The id of the space that the command line names for `kind`.
    fn named_for(&self, kind: QueryKind) -> Option<&str> {
        self.named.get(&kind).and_then(|index| self.loaded.get(*index)).map(|it| it.space.id.as_str())
    }

    /// Rows to store, so that `space` stays active for these kinds after a restart.
    fn activations(&self, kinds: &[QueryKind], space: u32) -> Vec<Activation> {
        let activation = |kind: &QueryKind| {
            let named = self.named_for(*kind).map(str::to_owned);
            Activation { kind: *kind, space, named }
        };
        kinds.iter().map(activation).collect()
    }

    /// Restores a stored activation. Skips it if its space is not loaded, or if the command line now names another
    /// space for the kind than at the activation: the newer choice wins.
    fn restore(&mut self, moved: &Activation) {
        let named = self.named_for(moved.kind);
        let is_overruled = named.is_some() && named != moved.named.as_deref();
        let index = self.loaded.iter().position(|it| it.key == moved.space && it.can(moved.kind));
        if let Some(index) = index.filter(|_| !is_overruled) {
            self.active.insert(moved.kind, index);
        }
    }
}

/// The active space for each kind: the chosen one, or else the first space that can answer it.
fn activate(
    chosen: &[(&[QueryKind], usize)],
    spaces: &[&Space],
) -> Result<BTreeMap<QueryKind, usize>, SpacesError> {
    let mut active = BTreeMap::new();
    for (kinds, index) in chosen {
        for kind in *kinds {
            if !can(spaces[*index], *kind) {
                let model = spaces[*index].model.clone();
                return Err(SpacesError::Cannot { model, kind: kind.name() });
            }
            if active.insert(*kind, *index).is_some_and(|before| before != *index) {
                return Err(SpacesError::Twice(kind.name()));
            }
        }
    }
    for kind in QueryKind::ALL {
        // A text-only space can't find visual content. It answers text queries only without an alternative.
        let sees = |space: &&Space| can(space, kind) && (kind != QueryKind::Text || space.can.frames);
        let first = spaces.iter().position(sees);
        if let Some(index) = first.or_else(|| spaces.iter().position(|space| can(space, kind))) {
            active.entry(kind).or_insert(index);
        }
    }
    Ok(active)
}

/// Loads a model. It has encoded a test text and frame when this returns.
///
/// # Errors
/// [`SpacesError`] if it does not load or run.
pub(crate) async fn load_model(model: &ModelName, options: LoadOptions) -> Result<Embedder, SpacesError> {
    let (name, model) = (model.to_string(), model.clone());
    let failed = {
        let model = name.clone();
        move |error: LoadError| SpacesError::Load { model, error }
    };
    let load = move || reprise_encoders::load_with(&model, &options).map_err(failed);
    // Not a thread of the runtime: a server that stops waits for those, and a download may take hours.
    let (sender, loaded) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("load".to_owned());
    let panicked = |panic: String| SpacesError::Panicked { model: name, panic };
    let run = move || drop(sender.send(std::panic::catch_unwind(load)));
    match thread.spawn(run) {
        Ok(_) => {}
        Err(error) => return Err(panicked(error.to_string())),
    }
    match loaded.await {
        Ok(Ok(loaded)) => loaded,
        Ok(Err(panic)) => Err(panicked(said(&*panic))),
        Err(gone) => Err(panicked(gone.to_string())),
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Loads a model that was added before this start.
async fn load_added(row: &SpaceRow, config: &Config, catalog: &Catalog) -> Result<LoadedSpace, SpacesError> {
    let failed = |error| SpacesError::Load { model: row.space.model.clone(), error };
    let model: ModelName = row.space.model.parse().map_err(failed)?;
    let loaded = load_model(&model, config.load_options()).await?;
    if loaded.space.id != row.space.id {
        return Err(SpacesError::Changed { model: row.space.model.clone() });
    }
    start(loaded, config, catalog, true).await
}

/// Registers a loaded model's space and starts its workers. `added`: whether it was added to a running server.
///
/// # Errors
/// The catalog failed, or has the space with another dimension.
pub(crate) async fn start(
    loaded: Embedder,
    config: &Config,
    catalog: &Catalog,
    added: bool,
) -> Result<LoadedSpace, SpacesError> {
    let Embedder { space, tokenizer, encoders, devices, limits } = loaded;
    let row = catalog
        .register_space(&NewSpace {
            id: space.id.clone(),
            name: space.name.clone(),
            model: space.model.clone(),
            dim: space.dim,
        })
        .await?;
    let (limits, usual) =
        (limits.unwrap_or(batch::Limits { inputs: 32, cost: 8192 }), pool::Settings::default());
    // The next batch gathers while one is encoded.
    let bulk_waiting = usual.bulk_waiting.max(2 * limits.inputs);
    let stuck_after = Duration::from_secs_f64(config.stuck_seconds);
    let settings =
        pool::Settings { limits, requests: config.max_requests, bulk_waiting, stuck_after, ..usual };
    let pool = Pool::of_encoders(encoders, settings);
    let name = space.name.clone();
    pool.observe(move |batch| measure(&name, batch));
    let precision = space.precision.name();
    tracing::info!(
        space = space.name,
        dim = space.dim,
        devices = devices.join(","),
        precision,
        "model ready"
    );
    Ok(LoadedSpace { key: row.key, space, tokenizer, devices, pool, added, pace: Pace::default() })
}

fn measure(space: &str, batch: &pool::BatchReport) {
    let lane = match batch.lane {
        pool::Lane::Interactive => "queries",
        pool::Lane::Bulk => "bulk",
    };
    let of = |metric: Metric| metrics::histogram!(metric.name, "space" => space.to_owned(), "lane" => lane);
    let queued = of(names::QUEUE_SECONDS);
    batch.waited.iter().for_each(|waited| queued.record(waited.as_secs_f64()));
    of(names::BATCH_INPUTS).record(batch.waited.len() as f64);
    of(names::ENCODE_SECONDS).record(batch.encoding.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use reprise_encoders::video::sample::Sampler;
    use reprise_encoders::{Abilities, FrameSize};

    use super::*;
    use QueryKind::{Clip, Composed, Spoken, Text};

    fn space(name: &str, can: &str) -> Space {
        let can = |ability: &str| can.contains(ability);
        Space {
            id: name.to_owned(),
            name: name.to_owned(),
            model: name.to_owned(),
            family: "clip".to_owned(),
            dim: 4,
            sampler: Sampler::PerSecond { rate: 2.0, at_most: 12 },
            scaling: FrameSize::ShortEdge(32).into(),
            max_text_tokens: 16,
            temporal: false,
            frame_stage: None,
            can: Abilities { text: can("text"), frames: can("frames"), composed: can("head") },
            composed_frames: None,
            trained_on: reprise_encoders::TrainedOn::Nothing,
            precision: reprise_encoders::Precision::F32,
        }
    }

    /// Space 0 takes text and frames, 1 only frames, 2 only text. `chosen`: kinds and space. `expected`: the active
    /// space for text, clip, composed and spoken.
    #[track_caller]
    fn check(chosen: &[(&[QueryKind], usize)], expected: Result<[Option<usize>; 4], &str>) {
        let spaces = [space("both", "text frames"), space("eyes", "frames head"), space("words", "text")];
        let active = activate(chosen, &spaces.iter().collect::<Vec<_>>());
        let got = active.map(|active| QueryKind::ALL.map(|kind| active.get(&kind).copied()));
        assert_eq!(got.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_kind_goes_where_it_was_chosen_for_and_else_to_the_first_that_can() {
        check(&[], Ok([Some(0), Some(0), Some(0), Some(2)]));
        check(&[(&[Text], 2), (&[Clip, Composed], 1)], Ok([Some(2), Some(1), Some(1), Some(2)]));
        check(&[(&[Clip], 1), (&[Clip], 1)], Ok([Some(0), Some(1), Some(0), Some(2)]));
    }

    #[test]
    fn a_choice_that_can_not_be_kept_is_an_error() {
        check(&[(&[Text], 1)], Err("model eyes can't answer text queries; name another model for them"));
        check(
            &[(&[Composed], 2)],
            Err("model words can't answer composed queries; name another model for them"),
        );
        check(&[(&[Spoken], 0)], Err("model both can't answer spoken queries; name another model for them"));
        check(&[(&[Clip], 0), (&[Clip], 1)], Err("two models are named for clip queries; name one"));
    }
}
