//! Picks the embedding spaces for a query and reserves places in their encoder pools.

use std::sync::Arc;

use reprise_encoders::Permit;

use super::error::SearchError;
use super::types::{FusionMode, Request};
use crate::app::App;
use crate::models::LoadedSpace;
use crate::terms::{QueryKind, SearchKind};

/// A loaded space and a permit to encode in its pool.
pub(super) struct Admission {
    pub(super) space: Arc<LoadedSpace>,
    pub(super) permit: Permit,
}

/// A search that holds its spaces and pool permits. Only now may it read files and decode.
pub struct Admitted {
    pub(super) space: Arc<LoadedSpace>,
    /// `None`: the search compares no frames.
    pub(super) permit: Option<Permit>,
    /// The passage space. `None` if none is loaded or the search leaves subtitles out.
    pub(super) passages: Option<Admission>,
    pub(super) kind: SearchKind,
}

/// Finds the spaces for a query and takes a permit from each pool.
///
/// # Errors
/// [`SearchError::NoSuchSpace`], [`SearchError::SpaceCannot`], `exact` on an engine without it, or a full pool.
pub fn admit(app: &App, request: &Request) -> Result<Admitted, SearchError> {
    if request.exact && !app.vectors.limits().exact {
        let why = "the vector engine of this server can't compare every vector; search without `exact`";
        return Err(SearchError::invalid("/exact", why));
    }
    let (space, visual) = match space_of(app, request) {
        Ok(space) => (space, request.sources.visual),
        // Without a model for text queries, subtitles alone can still answer.
        Err(SearchError::SpaceCannot { .. }) if request.may_use_subtitles_only() => (any_space(app)?, false),
        Err(error) => return Err(error),
    };
    if visual && request.fusion.mode == Some(FusionMode::Combiner) && !space.space.can.composed {
        let detail = format!("space {} has no trained fusion head; use the mode `average`", space.space.name);
        return Err(SearchError::cannot("/fusion/mode", detail));
    }
    let permit = if visual { Some(space.pool.admit()?) } else { None };
    Ok(Admitted { space, permit, passages: passages(app, request)?, kind: request.kind() })
}

/// Takes a permit from the pool of each of these spaces, for a page after the first.
///
/// # Errors
/// [`SearchError::CursorGone`] if one is not loaded; a full pool.
pub(super) fn admit_next<'a>(
    app: &App,
    spaces: impl Iterator<Item = &'a str>,
) -> Result<Vec<Permit>, SearchError> {
    let permit = |name| Ok(app.spaces.named(name).ok_or(SearchError::CursorGone)?.pool.admit()?);
    spaces.map(permit).collect()
}

fn passages(app: &App, request: &Request) -> Result<Option<Admission>, SearchError> {
    let space = app.spaces.active(QueryKind::Spoken).filter(|_| request.sources.have_cues());
    let admitted = space.map(|space| space.pool.admit().map(|permit| Admission { space, permit }));
    Ok(admitted.transpose()?)
}

fn any_space(app: &App) -> Result<Arc<LoadedSpace>, SearchError> {
    let none = || SearchError::cannot("/query", "no model is loaded");
    app.spaces.now().all().first().cloned().ok_or_else(none)
}

/// The space that answers a request: the one it names, or the active one for its kind.
///
/// # Errors
/// No such space, or it can't answer the kind. [`SearchError::Invalid`] if no one space answers all examples.
pub fn space_of(app: &App, request: &Request) -> Result<Arc<LoadedSpace>, SearchError> {
    let (kinds, named) = (request.query_kinds(), request.space.as_deref());
    match (&kinds[..], named) {
        ([kind], _) => space_for(app, *kind, named),
        (_, Some(name)) => named_for_all(app, &kinds, name),
        (_, None) => active_for_all(app, &kinds),
    }
}

fn named_for_all(app: &App, kinds: &[QueryKind], name: &str) -> Result<Arc<LoadedSpace>, SearchError> {
    let space = app.spaces.named(name).ok_or_else(|| SearchError::NoSuchSpace(name.to_owned()))?;
    let Some(lacking) = kinds.iter().find(|kind| !space.can(**kind)) else { return Ok(space) };
    let (name, lacking) = (&space.space.name, lacking.name());
    let detail =
        format!("one model must answer all examples, but space {name} can't answer {lacking} queries");
    Err(SearchError::invalid("/space", detail))
}

/// Several kinds of example need one space that is active for all of them: vectors of two spaces can't be compared.
fn active_for_all(app: &App, kinds: &[QueryKind]) -> Result<Arc<LoadedSpace>, SearchError> {
    let now = app.spaces.now();
    let active = |kind: &QueryKind| (*kind, now.active(*kind));
    let active: Vec<_> = kinds.iter().map(active).collect();
    if let Some((_, Some(first))) = active.first()
        && active.iter().all(|(_, space)| space.is_some_and(|space| space.key == first.key))
    {
        return Ok(Arc::clone(first));
    }
    let who = |(kind, space): &(QueryKind, Option<&Arc<LoadedSpace>>)| {
        let name = space.map_or("no model", |space| &space.space.name);
        format!("{name} answers {} queries", kind.name())
    };
    let who: Vec<String> = active.iter().map(who).collect();
    let detail = format!(
        "one model must answer all examples, but {}; name a `space` that answers all of them",
        who.join(" and ")
    );
    Err(SearchError::invalid("/query", detail))
}

/// The space named, or the active one for `kind`.
///
/// # Errors
/// No such space, or it can't answer this kind.
pub fn space_for(app: &App, kind: QueryKind, named: Option<&str>) -> Result<Arc<LoadedSpace>, SearchError> {
    let Some(name) = named else {
        let active = app.spaces.active(kind);
        let none = || format!("no loaded model answers {} queries", kind.name());
        return active.ok_or_else(|| SearchError::cannot("/query", none()));
    };
    let space = app.spaces.named(name).ok_or_else(|| SearchError::NoSuchSpace(name.to_owned()))?;
    if !space.can(kind) {
        let detail = format!("space {} can't answer {} queries", space.space.name, kind.name());
        return Err(SearchError::cannot("/space", detail));
    }
    Ok(space)
}
