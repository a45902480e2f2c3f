//! The embedding spaces that this server has loaded, and which one answers which kind of query.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprise_encoders::text::Tokenizer;
use reprise_encoders::{EncodeError, LoadError, LoadOptions, Loaded, Pool, Space, batch, pool};

use crate::catalog::{Catalog, CatalogError, NewSpace};
use crate::config::{Config, ModelChoice, QueryKind};

/// One loaded space: its description, its tokenizer and the pool that encodes into it.
pub struct LoadedSpace {
    /// Dense number in catalog and index.
    pub key: u32,
    /// What the space is.
    pub space: Space,
    /// How it reads text.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// Its workers.
    pub pool: Pool,
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

/// All loaded spaces.
pub struct Spaces {
    loaded: Vec<Arc<LoadedSpace>>,
    active: BTreeMap<QueryKind, usize>,
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
    /// Two models were named for one kind.
    #[error("two models are named for {0} queries; name one")]
    Twice(&'static str),
    /// The first forward pass failed.
    #[error("model {model} does not run: {error}")]
    WarmUp {
        /// As the user named it.
        model: String,
        /// Why.
        error: EncodeError,
    },
    /// Loading panicked; ours.
    #[error("model {model}: loading panicked: {panic}")]
    Panicked {
        /// As the user named it.
        model: String,
        /// What it said.
        panic: String,
    },
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl Spaces {
    /// Loads every model of `config` and registers its space.
    ///
    /// # Errors
    /// A model that doesn't load or run, or kinds that don't fit, end the start: a wrong name must not
    /// wait for the first search.
    pub async fn load(config: &Config, catalog: &dyn Catalog) -> Result<Spaces, SpacesError> {
        let mut spaces: Vec<Arc<LoadedSpace>> = Vec::new();
        let mut chosen = Vec::new();
        for choice in &config.models {
            let loaded = load_model(choice, config.load_options()).await?;
            let known = spaces.iter().position(|known| known.space.id == loaded.space.id);
            chosen.push((choice.kinds.as_slice(), known.unwrap_or(spaces.len())));
            if known.is_none() {
                spaces.push(Arc::new(start(loaded, config, catalog).await?));
            }
        }
        let described: Vec<&Space> = spaces.iter().map(|it| &it.space).collect();
        let active = activate(&chosen, &described)?;
        Ok(Spaces { loaded: spaces, active })
    }

    /// The space that answers `kind`, if any can.
    pub fn active(&self, kind: QueryKind) -> Option<&Arc<LoadedSpace>> {
        self.active.get(&kind).map(|index| &self.loaded[*index])
    }

    /// A loaded space by id or readable name.
    pub fn named(&self, name: &str) -> Option<&Arc<LoadedSpace>> {
        self.loaded.iter().find(|it| it.space.id == name || it.space.name == name)
    }

    /// All loaded spaces, in the order of the flags.
    pub fn all(&self) -> &[Arc<LoadedSpace>] {
        &self.loaded
    }

    /// The kinds of query that `space` is active for.
    pub fn active_for(&self, space: &LoadedSpace) -> Vec<QueryKind> {
        let is_it = |kind: &QueryKind| self.active(*kind).is_some_and(|active| active.key == space.key);
        QueryKind::ALL.into_iter().filter(is_it).collect()
    }

    /// Finishes all queues and joins all workers. Blocks.
    pub fn close(&self) {
        self.loaded.iter().for_each(|it| it.pool.close());
    }

    /// Whether every pool still has a worker.
    pub fn alive(&self) -> bool {
        self.loaded.iter().all(|it| it.pool.alive())
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

async fn load_model(choice: &ModelChoice, options: LoadOptions) -> Result<Loaded, SpacesError> {
    let model = choice.model.clone();
    let name = model.to_string();
    let failed = {
        let model = name.clone();
        move |error: LoadError| SpacesError::Load { model, error }
    };
    let warm = move || {
        let mut loaded = reprise_encoders::load_with(&model, &options).map_err(failed)?;
        let model = model.to_string();
        loaded.warm_up().map_err(|error| SpacesError::WarmUp { model, error })?;
        Ok(loaded)
    };
    let loaded = tokio::task::spawn_blocking(warm).await;
    loaded.map_err(|panic| SpacesError::Panicked { model: name, panic: panic.to_string() })?
}

async fn start(loaded: Loaded, config: &Config, catalog: &dyn Catalog) -> Result<LoadedSpace, SpacesError> {
    let Loaded { space, tokenizer, encoders } = loaded;
    let row = catalog
        .register_space(&NewSpace {
            id: space.id.clone(),
            name: space.name.clone(),
            model: space.model.clone(),
            dim: space.dim,
        })
        .await?;
    let settings = pool::Settings {
        limits: batch::Limits { inputs: 32, cost: 8192 },
        requests: config.max_requests,
        ..pool::Settings::default()
    };
    let pool = Pool::start(encoders, settings);
    let name = space.name.clone();
    pool.observe(move |batch| measure(&name, batch));
    tracing::info!(space = space.name, dim = space.dim, "model ready");
    Ok(LoadedSpace { key: row.key, space, tokenizer, pool })
}

fn measure(space: &str, batch: &pool::BatchReport) {
    for waited in &batch.waited {
        metrics::histogram!("reprise_queue_seconds", "space" => space.to_owned())
            .record(waited.as_secs_f64());
    }
    metrics::histogram!("reprise_encode_seconds", "space" => space.to_owned())
        .record(batch.encoding.as_secs_f64());
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
            frame_size: FrameSize::ShortEdge(32),
            max_text_tokens: 16,
            temporal: false,
            frame_stage: None,
            can: Abilities { text: can("text"), frames: can("frames"), composed: can("head") },
            trained_on: reprise_encoders::TrainedOn::Nothing,
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
