//! The models that users can choose from: those that families name, those in the cache of downloads, and those that are
//! loaded or loading.

use std::collections::HashMap;

use reprise_encoders::families::family::PublishedModel;
use reprise_encoders::{Downloaded, LoadOptions, ModelName, cached_models, registry};

use super::Spaces;

/// How near a model is to answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearness {
    /// Nothing of it is on this machine.
    Away,
    /// Some of its files are on this machine.
    Partial,
    /// It would load without a network.
    Here,
    /// It is loading, or waits to load.
    Loading,
    /// It answers queries.
    Loaded,
}

/// A model to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The value for the model option.
    pub model: String,
    /// The family that reads it, if a family names the model or it is loaded.
    pub family: Option<String>,
    /// The facts that its family states, if it names the model.
    pub published: Option<PublishedModel>,
    /// How near it is.
    pub nearness: Nearness,
    /// Bytes of it in the cache of downloads.
    pub cached_bytes: u64,
    /// Its download, if it is loading.
    pub download: Option<Downloaded>,
    /// Readable names of its loaded spaces.
    pub spaces: Vec<String>,
}

/// All models to choose from: first those that families name, in the order of the families, then others by name. Blocks on
/// the disk. `with_cache`: whether to list models that only lie in the cache, which other programs may have downloaded.
pub fn catalogue(spaces: &Spaces, options: &LoadOptions, with_cache: bool) -> Vec<Entry> {
    let cached = cached_models(options).into_iter();
    let sizes: HashMap<String, u64> = cached.map(|it| (it.repository, it.bytes)).collect();
    let mut entries: Vec<Entry> = Vec::new();
    for known in registry::known() {
        let named = known.published.iter();
        entries.extend(named.map(|it| Entry {
            family: Some(known.family.to_owned()),
            published: Some(*it),
            ..Entry::named(it.model)
        }));
    }
    for space in spaces.all() {
        let entry = entry(&mut entries, &space.space.model);
        entry.family = Some(space.space.family.clone());
        entry.spaces.push(space.space.name.clone());
    }
    let loading = spaces.loading();
    for it in &loading {
        entry(&mut entries, &it.model).download = Some(it.progress.now());
    }
    if with_cache {
        let mut names: Vec<&String> = sizes.keys().collect();
        names.sort();
        for name in names {
            entry(&mut entries, name);
        }
    }
    entries.iter_mut().for_each(|entry| entry.look(&sizes, options));
    entries
}

/// The entry of a model, which is made if there is none.
fn entry<'a>(entries: &'a mut Vec<Entry>, model: &str) -> &'a mut Entry {
    let place = entries.iter().position(|it| it.model == model);
    let place = place.unwrap_or_else(|| {
        entries.push(Entry::named(model));
        entries.len() - 1
    });
    &mut entries[place]
}

impl Entry {
    fn named(model: &str) -> Entry {
        Entry {
            model: model.to_owned(),
            family: None,
            published: None,
            nearness: Nearness::Away,
            cached_bytes: 0,
            download: None,
            spaces: Vec::new(),
        }
    }

    /// Looks how much of the model is on this machine.
    fn look(&mut self, sizes: &HashMap<String, u64>, options: &LoadOptions) {
        let name = self.model.parse::<ModelName>().ok();
        let repository = name.as_ref().and_then(ModelName::repository);
        self.cached_bytes = repository.and_then(|it| sizes.get(it)).copied().unwrap_or(0);
        let is_candidate = repository.is_none() || self.cached_bytes > 0;
        self.nearness = match name {
            _ if self.download.is_some() => Nearness::Loading,
            _ if !self.spaces.is_empty() => Nearness::Loaded,
            Some(name) if is_candidate && registry::is_here(&name, options) => Nearness::Here,
            _ if self.cached_bytes > 0 => Nearness::Partial,
            _ => Nearness::Away,
        };
    }
}
