//! One query, inputs to ranked matches. Knows no axum.
//!
//! [`run`] resolves the space, `encode` makes the query vector, `rank` turns index hits into matches,
//! groups and pages; `cursor` carries all of it to the next page.

mod cursor;
mod encode;
mod fuse;
mod late;
mod merge;
mod rank;
mod spoken;
mod timeline;
mod types;
mod windows;

use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_encoders::{EncodeError, Permit};

use crate::app::App;
use crate::config::QueryKind;
use crate::gallery::GalleryError;
use crate::spaces::LoadedSpace;

pub use cursor::Cursor;
pub use encode::{Encoded, embed, text_vectors};
pub use late::scores as late_scores;
pub use timeline::{Grain, Timeline, timeline};
pub use types::*;
pub use windows::Aggregation;
pub use windows::{QueryVectors, dot};

/// Most hits or groups per page.
pub const MAX_LIMIT: usize = 1000;
/// How long a search waits for changes that were committed before it came.
const CATCH_UP: Duration = Duration::from_secs(2);

/// A search that has its spaces and its places in their pools, and may now read files and decode.
pub struct Admitted {
    space: Arc<LoadedSpace>,
    /// `None`: nothing that is seen is looked for.
    permit: Option<Permit>,
    /// The space in which passages of what is said lie, if there is one and it is needed.
    passages: Option<(Arc<LoadedSpace>, Permit)>,
    kind: QueryKind,
}

/// Finds the spaces for a query and takes a place in their pools.
///
/// # Errors
/// No such space, a space that can't do it, or a full pool.
pub fn admit(app: &App, request: &Request) -> Result<Admitted, SearchError> {
    let kind = request.kind();
    let (space, sees) = match space_for(app, kind, request.space.as_deref()) {
        Ok(space) => (space, request.sources.visual),
        // Words alone answer as well where no model of pictures reads them.
        Err(SearchError::SpaceCannot(_)) if request.may_be_heard_only() => (any_space(app)?, false),
        Err(error) => return Err(error),
    };
    if sees && request.fusion.mode == Some(FusionMode::Combiner) && !space.space.can.composed {
        return Err(SearchError::SpaceCannot(format!(
            "space {} has no trained fusion head; use the mode `average`",
            space.space.name
        )));
    }
    let permit = if sees { Some(space.pool.admit()?) } else { None };
    let of_passages = app.spaces.active(QueryKind::Spoken).filter(|_| request.sources.spoken);
    let passages = match of_passages {
        Some(space) => {
            let permit = space.pool.admit()?;
            Some((space, permit))
        }
        None => None,
    };
    Ok(Admitted { space, permit, passages, kind })
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

/// Answers a query's first page.
///
/// # Errors
/// See [`SearchError`]; nothing is changed by a search.
pub async fn run(app: &App, request: Request, admitted: Admitted) -> Result<Outcome, SearchError> {
    let started = Instant::now();
    let Admitted { space, permit, passages, kind } = admitted;
    let encoded = match permit {
        Some(permit) => Some(encode::query(app, &request, &space, permit).await?),
        None => None,
    };
    let said = spoken::query(app, &request, passages).await?;
    let mut cursor = Cursor::first(app, &request, kind, &space, (encoded.as_ref(), said))?;
    cursor.state.info.weights = spoken::weights(&request, &space, encoded.is_some());
    if request.weights.visual == Some(0.0) {
        cursor.vectors = None;
    }
    let mut outcome = page(app, &space, cursor, started).await?;
    let times = encoded.map(|encoded| (encoded.decode_ms, encoded.encode_ms)).unwrap_or_default();
    (outcome.timings.decode_ms, outcome.timings.encode_ms) = times;
    outcome.timings.total_ms = millis(started);
    record(&outcome.timings);
    Ok(outcome)
}

/// Answers the page after the one that gave `cursor`.
///
/// # Errors
/// [`SearchError::CursorGone`] if the index it belongs to is gone.
pub async fn next(app: &App, cursor: Cursor) -> Result<Outcome, SearchError> {
    let started = Instant::now();
    let space = cursor.space(app)?;
    let mut outcome = page(app, &space, cursor, started).await?;
    outcome.timings.total_ms = millis(started);
    record(&outcome.timings);
    Ok(outcome)
}

async fn page(
    app: &App,
    space: &Arc<LoadedSpace>,
    mut cursor: Cursor,
    started: Instant,
) -> Result<Outcome, SearchError> {
    let at_catalog = Instant::now();
    app.gallery.catch_up_within(CATCH_UP).await?;
    let keys = match &cursor.filter {
        Some(filter) => Some(Arc::new(app.catalog.keys_matching(filter).await?)),
        None => None,
    };
    let catalog_ms = millis(at_catalog);
    let sought = spoken::listen(app, &mut cursor, keys).await?;
    let query = cursor.vectors.clone();
    let mut outcome = rank::page(app, space, cursor, sought).await?;
    if let Some(query) = query {
        let grouped = outcome.groups.iter_mut().flatten().flat_map(|group| &mut group.matches);
        timeline::find_peaks(app, space, &query, outcome.results.iter_mut().chain(grouped)).await;
    }
    outcome.timings.catalog_ms += catalog_ms;
    outcome.timings.total_ms = millis(started);
    Ok(outcome)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn record(timings: &Timings) {
    metrics::histogram!("reprise_search_seconds", "part" => "decode").record(timings.decode_ms / 1000.0);
    metrics::histogram!("reprise_search_seconds", "part" => "encode").record(timings.encode_ms / 1000.0);
    metrics::histogram!("reprise_search_seconds", "part" => "index").record(timings.search_ms / 1000.0);
    metrics::histogram!("reprise_search_seconds", "part" => "catalog").record(timings.catalog_ms / 1000.0);
    metrics::histogram!("reprise_search_seconds", "part" => "total").record(timings.total_ms / 1000.0);
}

/// Why a search has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// Something in the request is wrong; `pointer` says where.
    #[error("{detail}")]
    Invalid {
        /// JSON pointer into the request.
        pointer: String,
        /// What is wrong.
        detail: String,
    },
    /// No space has this id or name.
    #[error("no loaded space is called `{0}`")]
    NoSuchSpace(String),
    /// The space can't answer this kind of query.
    #[error("{0}")]
    SpaceCannot(String),
    /// The query names a video or clip that isn't there.
    #[error("there is no {what} {id}")]
    NotFound {
        /// `video`, `clip`, or the `file of video`: one that was taken in place may have been moved.
        what: &'static str,
        /// Its id.
        id: uuid::Uuid,
    },
    /// The cursor's index generation or space is gone; the client should search anew.
    #[error("the search that this cursor belongs to can't be continued; search again")]
    CursorGone,
    /// The file can't be decoded.
    #[error(transparent)]
    Video(#[from] reprise_encoders::video::VideoError),
    /// The encoder refused or failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] crate::catalog::CatalogError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] reprise_index::IndexError),
    /// Something of ours broke.
    #[error("{0}")]
    Internal(String),
}

impl From<GalleryError> for SearchError {
    fn from(error: GalleryError) -> SearchError {
        match error {
            GalleryError::Index(error) => SearchError::Index(error),
            GalleryError::Catalog(error) => SearchError::Catalog(error),
        }
    }
}

impl SearchError {
    /// An invalid part of the request.
    pub fn invalid(pointer: &str, detail: impl Into<String>) -> SearchError {
        SearchError::Invalid { pointer: pointer.to_owned(), detail: detail.into() }
    }
}
