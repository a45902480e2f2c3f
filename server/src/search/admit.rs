//! Picks the embedding spaces for a query and reserves places in their encoder pools.

use std::sync::Arc;

use reprise_encoders::Permit;

use super::error::SearchError;
use super::types::{FusionMode, Request};
use crate::app::App;
use crate::models::LoadedSpace;
use crate::terms::QueryKind;

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
    pub(super) kind: QueryKind,
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
    let kind = request.kind();
    let (space, visual) = match space_for(app, kind, request.space.as_deref()) {
        Ok(space) => (space, request.sources.visual),
        // Without a model for text queries, subtitles alone can still answer.
        Err(SearchError::SpaceCannot(_)) if request.may_use_subtitles_only() => (any_space(app)?, false),
        Err(error) => return Err(error),
    };
    if visual && request.fusion.mode == Some(FusionMode::Combiner) && !space.space.can.composed {
        return Err(SearchError::SpaceCannot(format!(
            "space {} has no trained fusion head; use the mode `average`",
            space.space.name
        )));
    }
    let permit = if visual { Some(space.pool.admit()?) } else { None };
    Ok(Admitted { space, permit, passages: passages(app, request)?, kind })
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
    let space = app.spaces.active(QueryKind::Spoken).filter(|_| request.sources.spoken);
    let admitted = space.map(|space| space.pool.admit().map(|permit| Admission { space, permit }));
    Ok(admitted.transpose()?)
}

fn any_space(app: &App) -> Result<Arc<LoadedSpace>, SearchError> {
    let none = || SearchError::SpaceCannot("no model is loaded".to_owned());
    app.spaces.now().all().first().cloned().ok_or_else(none)
}

/// The space named, or the active one for `kind`.
///
/// # Errors
/// No such space, or it can't answer this kind.
pub fn space_for(app: &App, kind: QueryKind, named: Option<&str>) -> Result<Arc<LoadedSpace>, SearchError> {
    let Some(name) = named else {
        let active = app.spaces.active(kind);
        return active.ok_or_else(|| {
            SearchError::SpaceCannot(format!("no loaded model answers {} queries", kind.name()))
        });
    };
    let space = app.spaces.named(name).ok_or_else(|| SearchError::NoSuchSpace(name.to_owned()))?;
    if !space.can(kind) {
        return Err(SearchError::SpaceCannot(format!(
            "space {} can't answer {} queries",
            space.space.name,
            kind.name()
        )));
    }
    Ok(space)
}
