//! Answers queries with ranked matches.
//!
//! [`plan()`] encodes the query and fixes the ranking. `page` ranks and cuts one page of it. A [`Cursor`] carries
//! the plan and the position to the next page.

mod admit;
mod arrange;
mod cursor;
mod diversity;
mod duplicates;
mod encode;
mod error;
mod examples;
mod facets;
mod fold;
mod fuse;
mod input;
mod late;
mod log;
mod measure;
mod merge;
mod paging;
mod plan;
mod query_vectors;
mod ranges;
mod rank;
mod rounded;
mod spoken;
mod standing;
mod timeline;
mod timings;
mod types;

use std::time::Instant;

use crate::app::Authorized;

pub use admit::{Admitted, admit, space_for, space_of};
pub use cursor::{Cursor, CursorSigner};
pub use encode::{Encoded, QueryEncoder, text_vectors};
pub use error::SearchError;
pub use facets::MOST_FACETS;
pub use input::RankInput;
pub use measure::known_duplicate_cosine;
pub use paging::Position;
pub use plan::{Planned, SearchPlan, plan};
pub use timeline::{Grain, Timeline, timeline};
pub use timings::Timings;
use timings::millis;
pub use types::*;

/// Answers a query's first page.
///
/// # Errors
/// See [`SearchError`]. A search changes no stored data but the cache of ranges.
pub async fn run(app: &Authorized, request: Request, admitted: Admitted) -> Result<Outcome, SearchError> {
    let planned = plan(app, &request, admitted).await?;
    first_page(app, planned).await
}

/// Answers the first page of a query that a caller has sent, as [`run`], and hands it to the query log.
///
/// # Errors
/// See [`SearchError`].
pub async fn ask(app: &Authorized, request: Request, admitted: Admitted) -> Result<Outcome, SearchError> {
    let mut planned = plan(app, &request, admitted).await?;
    planned.plan.id = app.query_log.next_id();
    let origins = planned.plan.origins.clone();
    let outcome = first_page(app, planned).await?;
    log::first_page(app, &request, &origins, &outcome);
    Ok(outcome)
}

async fn first_page(app: &Authorized, planned: Planned) -> Result<Outcome, SearchError> {
    let Planned { plan, input, timings } = planned;
    let mut outcome = page(app, plan, None, input).await?;
    outcome.timings.add(timings);
    outcome.timings.record();
    Ok(outcome)
}

/// Answers the page after the one that gave `cursor`. It holds places in the pools like a first page, although it encodes
/// nothing: they bound the searches at work.
///
/// # Errors
/// [`SearchError::CursorGone`] if its space is no longer loaded; a full pool. Else see [`SearchError`].
pub async fn next(app: &Authorized, cursor: Cursor) -> Result<Outcome, SearchError> {
    let started = Instant::now();
    let _permits = admit::admit_next(app, cursor.plan.spaces())?;
    let Cursor { plan, after } = cursor;
    let input =
        RankInput::gather(app, plan.filter.as_ref(), plan.spoken.as_ref(), plan.levels, false).await?;
    let gathered = Timings { catalog_ms: input.catalog_ms, total_ms: millis(started), ..Timings::default() };
    let before = Position::seen(Some(&after));
    let mut outcome = page(app, plan, Some(after), input).await?;
    outcome.timings.add(gathered);
    outcome.timings.record();
    log::later_page(app, before, &outcome);
    Ok(outcome)
}

/// Ranks one page: the first, or the one after `after`.
///
/// # Errors
/// See [`SearchError`].
async fn page(
    app: &Authorized,
    mut plan: SearchPlan,
    after: Option<Position>,
    input: RankInput,
) -> Result<Outcome, SearchError> {
    let started = Instant::now();
    let space = app.spaces.named(&plan.space).ok_or(SearchError::CursorGone)?;
    if plan.visual.as_ref().is_some_and(|vectors| !vectors.have(space.space.dim)) {
        return Err(SearchError::CursorGone);
    }
    if plan.backgrounds.is_none() {
        plan.backgrounds = Some(measure::measure(app, &space, &plan, input.newest).await?);
    }
    if plan.folds_duplicates() && plan.duplicates.is_none() {
        plan.duplicates = Some(measure::duplicate_bound(app, &space, &plan, input.newest).await?);
    }
    let mut page = rank::page(app, &space, &plan, after.as_ref(), input).await?;
    if let Some(query) = plan.query_vectors() {
        let grouped = page.groups.iter_mut().flatten().flat_map(|group| &mut group.matches);
        timeline::find_peaks(app, &space, query, page.results.iter_mut().chain(grouped)).await;
    }
    let (search_id, near_duplicates, info) = (plan.id, plan.duplicates, plan.info.clone());
    let exhausted = page.end.is_none();
    let next_cursor =
        page.end.map(|after| CursorSigner::of(app).encode(&Cursor { plan, after })).transpose()?;
    Ok(Outcome {
        search_id,
        results: page.results,
        videos: page.videos,
        groups: page.groups,
        next_cursor,
        exhausted,
        near_duplicates,
        facets: page.facets,
        info,
        index: page.index,
        timings: Timings { total_ms: millis(started), ..page.timings },
        explain: page.explain,
    })
}
