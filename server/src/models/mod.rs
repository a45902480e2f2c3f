//! The embedding spaces that this server has loaded, and which one answers which kind of query.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use reprise_encoders::text::Tokenizer;
use reprise_encoders::{LoadError, LoadOptions, Loaded, ModelName, Pool, Space, batch, pool};
use tokio::sync::{Mutex, MutexGuard};

use crate::catalog::{Activation, Catalog, CatalogError, NewSpace, SpaceRow};
use crate::config::Config;
use crate::terms::QueryKind;
use crate::vectors::EngineError;

/// One loaded space: its description, its tokenizer and the pool that encodes into it.
pub struct LoadedSpace {
    /// Dense number in catalog and index.
    pub key: u32,
    /// What the space is.
    pub space: Space,
    /// How it reads text.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// The devices that it runs on: `cpu`, `cuda:N`.
    pub devices: Vec<String>,
    /// Its workers.
    pub pool: Pool,
    /// Whether it was added to a running server: then it is loaded at each start.
    pub added: bool,
}

impl LoadedSpace {
    /// Whether the space can answer this kind of query: composed by its own head or by averaging.
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

/// The loaded spaces. They may change while others read them: who needs more than one answer that fit together asks
/// the [`Snapshot`].
pub struct Spaces {
    now: RwLock<Arc<Snapshot>>,
    /// One change at a time; held for moments.
    changing: Mutex<()>,
    /// One model is loaded at a time, so that no two loads make the same space.
    turn: Mutex<()>,
    /// The models that are being loaded or wait for it.
    loading: std::sync::Mutex<Vec<String>>,
    unavailable: Vec<Unavailable>,
}

/// The loaded spaces and what they answer at one moment.
#[derive(Clone)]
pub struct Snapshot {
    loaded: Vec<Arc<LoadedSpace>>,
    active: BTreeMap<QueryKind, usize>,
    /// The spaces that the command line names for a kind.
    named: BTreeMap<QueryKind, usize>,
}

/// A model that was added to a running server and did not load at this start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// As the user named it.
    pub model: String,
    /// Why.
    pub why: String,
}

/// Why the spaces could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SpacesError {
    /// A model did not load.
    #[error("model {model}: {error}")]
    Load {
        /// As the user named it.
        model: String,
        /// Why.
        error: LoadError,
    },
    /// A model was named for a kind of query that it can't answer.
    #[error("model {model} can't answer {kind} queries; name another model for them")]
    Cannot {
        /// As the user named it.
        model: String,
        /// The kind.
        kind: &'static str,
    },
    /// A model is not what it was when it was added.
    #[error("model {model} has changed since it was added; add it again")]
    Changed {
        /// As the user named it.
        model: String,
    },
    /// Two models were named for one kind.
    #[error("two models are named for {0} queries; name one")]
    Twice(&'static str),
    /// Loading panicked; ours.
    #[error("model {model}: loading panicked: {panic}")]
    Panicked {
        /// As the user named it.
        model: String,
        /// What it said.
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
    /// Loads every model of `config` and those that were added to a running server, and registers their spaces.
    ///
    /// # Errors
    /// A model of `config` that doesn't load or run, or kinds that don't fit, end the start: a wrong name must not
    /// wait for the first search. An added model that doesn't load is told by [`Spaces::unavailable`]: a server must
    /// come up again without whoever added it.
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

    /// The spaces as they are at this moment, which stay so for who holds them.
    pub fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The space that answers `kind`, if any can.
    pub fn active(&self, kind: QueryKind) -> Option<Arc<LoadedSpace>> {
        self.now().active(kind).cloned()
    }

    /// A loaded space by id or readable name.
    pub fn named(&self, name: &str) -> Option<Arc<LoadedSpace>> {
        self.now().named(name).cloned()
    }

    /// All loaded spaces: those of the flags in their order, then those that were added.
    pub fn all(&self) -> Vec<Arc<LoadedSpace>> {
        self.now().loaded.clone()
    }

    /// The models that are being loaded, or wait for it.
    pub fn loading(&self) -> Vec<String> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The models that were added to a running server and did not load at this start.
    pub fn unavailable(&self) -> &[Unavailable] {
        &self.unavailable
    }

    /// Waits until no other model is being loaded; nobody else loads one while the result is held.
    pub(crate) async fn take_turn(&self, model: &str) -> Turn<'_> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner).push(model.to_owned());
        let listed = Listed { spaces: self, model: model.to_owned() };
        Turn { _turn: self.turn.lock().await, _listed: listed }
    }

    /// Adds a space to those that are loaded. Kinds that none of them answered go to it.
    ///
    /// # Errors
    /// The catalog failed, and nothing changed.
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

    /// Has a loaded space answer these kinds of query, after restarts too.
    ///
    /// # Errors
    /// It can't answer one of them, or the catalog failed, and nothing changed.
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

/// The right to load a model.
pub(crate) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _listed: Listed<'a>,
}

/// A model among those that are being loaded.
struct Listed<'a> {
    spaces: &'a Spaces,
    model: String,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut loading = self.spaces.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = loading.iter().position(|model| *model == self.model) {
            loading.remove(index);
        }
    }
}

impl Snapshot {
    /// The space that answers `kind`, if any can.
    pub fn active(&self, kind: QueryKind) -> Option<&Arc<LoadedSpace>> {
        self.active.get(&kind).and_then(|index| self.loaded.get(*index))
    }

    /// A loaded space by id or readable name.
    pub fn named(&self, name: &str) -> Option<&Arc<LoadedSpace>> {
        self.loaded.iter().find(|it| it.space.id == name || it.space.name == name)
    }

    /// All loaded spaces: those of the flags in their order, then those that were added.
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

    /// What is stored so that these kinds go to `space` at the next start too.
    fn activations(&self, kinds: &[QueryKind], space: u32) -> Vec<Activation> {
        let activation = |kind: &QueryKind| {
            let named = self.named_for(*kind).map(str::to_owned);
            Activation { kind: *kind, space, named }
        };
        kinds.iter().map(activation).collect()
    }

    /// Moves a kind as it was moved before this start, unless its space is not loaded, or the command line names
    /// another space for the kind than it did then: whoever changed it since knows better.
    fn restore(&mut self, moved: &Activation) {
        let named = self.named_for(moved.kind);
        let is_overruled = named.is_some() && named != moved.named.as_deref();
        let index = self.loaded.iter().position(|it| it.key == moved.space && it.can(moved.kind));
        if let Some(index) = index.filter(|_| !is_overruled) {
            self.active.insert(moved.kind, index);
        }
    }
}

/// Which space answers which kind: the one that it was `chosen` for; a kind not named goes to the first that can
/// do it.
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
        // A space without frames finds nothing that is seen: it answers a text only if there is no other.
        let sees = |space: &&Space| can(space, kind) && (kind != QueryKind::Text || space.can.frames);
        let first = spaces.iter().position(sees);
        if let Some(index) = first.or_else(|| spaces.iter().position(|space| can(space, kind))) {
            active.entry(kind).or_insert(index);
        }
    }
    Ok(active)
}

/// Loads a model. It has encoded a text and a picture when this returns.
///
/// # Errors
/// [`SpacesError`]: it does not load or run.
pub(crate) async fn load_model(model: &ModelName, options: LoadOptions) -> Result<Loaded, SpacesError> {
    let (name, model) = (model.to_string(), model.clone());
    let failed = {
        let model = name.clone();
        move |error: LoadError| SpacesError::Load { model, error }
    };
    let load = move || reprise_encoders::load_with(&model, &options).map_err(failed);
    // A thread of its own: a server that stops waits for the runtime's threads, and a download may take hours.
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

/// Registers a loaded model's space and starts its workers. `added`: to a running server, now or earlier.
///
/// # Errors
/// The catalog failed, or has the space with another dimension.
pub(crate) async fn start(
    loaded: Loaded,
    config: &Config,
    catalog: &Catalog,
    added: bool,
) -> Result<LoadedSpace, SpacesError> {
    let Loaded { space, tokenizer, encoders, devices, limits } = loaded;
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
    let settings = pool::Settings { limits, requests: config.max_requests, bulk_waiting, ..usual };
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
    Ok(LoadedSpace { key: row.key, space, tokenizer, devices, pool, added })
}

fn measure(space: &str, batch: &pool::BatchReport) {
    let lane = match batch.lane {
        pool::Lane::Interactive => "queries",
        pool::Lane::Bulk => "bulk",
    };
    let of = |name: &'static str| metrics::histogram!(name, "space" => space.to_owned(), "lane" => lane);
    let queued = of("reprise_queue_seconds");
    batch.waited.iter().for_each(|waited| queued.record(waited.as_secs_f64()));
    of("reprise_batch_inputs").record(batch.waited.len() as f64);
    of("reprise_encode_seconds").record(batch.encoding.as_secs_f64());
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

    /// Spaces 0 to 2 see and read, only see, only read; what is chosen for which, and which then answers
    /// text, clip, composed and spoken.
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
