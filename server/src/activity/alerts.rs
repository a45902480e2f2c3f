//! Asks every newly ready video the stored searches, in the background.
//!
//! A check is a row that is stored with the video's state and deleted with the match (`catalog/checks.rs`). So it survives
//! `kill -9`, and only one of several servers runs it. An alert runs with its owner's key and finds only what that key sees.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, Authorized};
use crate::catalog::{AlertHit, CatalogError, Filter, Found, LeasedCheck, instant};
use crate::search::{self, Match, Request, SearchError};
use crate::terms::QueryKind;

/// Reads a stored search. The contract of a search belongs to another room.
pub type ReadSearch = fn(&Value) -> Result<Request, String>;

/// The wait after the first failed try; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// Longest sleep of the idle task.
const IDLE: Duration = Duration::from_secs(60);
/// Interval of the sweeps of what refers to deleted alerts.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// Why a check did not end.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The video is not completely searchable yet.
    #[error("the index does not have the whole video yet")]
    TooEarly,
    /// The key of the alert's owner was revoked or has expired.
    #[error("the key that made the alert was revoked or has expired")]
    NoOwner,
    /// This version does not read the stored search.
    #[error("the search can't be read: {0}")]
    Unreadable(String),
    /// The search took too long.
    #[error("the search took too long")]
    Late,
    /// The search was refused or failed, e.g. because its space or its clip is gone.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Runs checks that are due until `closing`.
pub async fn run(app: Arc<App>, read: ReadSearch, closing: CancellationToken) {
    let within = Duration::from_secs_f64(app.config.timeout_seconds);
    let lease = app.config.lease() + within;
    let mut next_sweep = Instant::now();
    while !closing.is_cancelled() {
        if next_sweep <= Instant::now() {
            next_sweep = Instant::now() + SWEEP_EVERY;
            if let Err(error) = app.catalog.sweep_alerts().await {
                tracing::warn!(%error, "what is left of deleted alerts can't be swept");
            }
        }
        match app.catalog.lease_check(lease).await {
            Ok(Some(leased)) => check(&app, read, leased, &closing).await,
            Ok(None) => idle(&app, &closing).await,
            Err(error) => {
                tracing::warn!(%error, "no alert can be leased; trying again");
                idle(&app, &closing).await;
            }
        }
    }
}

async fn idle(app: &App, closing: &CancellationToken) {
    tokio::select! {
        () = closing.cancelled() => {}
        () = app.catalog.wait_for_check(IDLE) => {}
    }
}

/// Runs one check and stores its end.
async fn check(app: &Arc<App>, read: ReadSearch, leased: LeasedCheck, closing: &CancellationToken) {
    let within = Duration::from_secs_f64(app.config.timeout_seconds);
    let lease = leased.lease;
    let found = tokio::select! {
        found = tokio::time::timeout(within, find(app, read, &leased)) => found.unwrap_or(Err(Trouble::Late)),
        () = closing.cancelled() => Err(Trouble::TooEarly),
    };
    let wait = wait_after(leased.attempt);
    let stored = match found {
        Ok(found) => app.catalog.finish_check(&lease, &found).await,
        Err(Trouble::TooEarly) => app.catalog.postpone_check(&lease, wait, None).await,
        Err(trouble) => {
            let said = trouble.to_string();
            tracing::warn!(alert = %lease.alert, video = %lease.video, trouble = said, "an alert can't be checked yet");
            app.catalog.postpone_check(&lease, wait, Some(&said)).await
        }
    };
    if let Err(error) = stored {
        let alert = lease.alert;
        tracing::warn!(%error, %alert, "the end of an alert's check could not be stored; its lease will run out");
    }
}

/// The hits of an alert's search in the check's video.
async fn find(app: &Arc<App>, read: ReadSearch, leased: &LeasedCheck) -> Result<Found, Trouble> {
    let owner = Authorized::new(Arc::clone(app), caller(app, leased.owner).await?);
    let mut request = read(&leased.search).map_err(Trouble::Unreadable)?;
    if is_incomplete(app, &request, leased.lease.video).await? {
        return Err(Trouble::TooEarly);
    }
    // An alert takes the hits alone.
    request.facets.clear();
    request.filter = Some(Filter::within_video(request.filter, leased.lease.video));
    let admitted = search::admit(app, &request)?;
    let outcome = search::run(&owner, request, admitted).await?;
    if outcome.index.behind > 0 {
        return Err(Trouble::TooEarly);
    }
    let passes = |hit: &&Match| leased.min_score.is_none_or(|least| f64::from(hit.score) >= least);
    let hits = outcome.results.iter().filter(passes).map(hit).collect();
    Ok(Found { space: outcome.index.space, hits })
}

/// Who asks: the holder of the key that made the alert.
async fn caller(app: &App, owner: Option<Uuid>) -> Result<Caller, Trouble> {
    let Some(id) = owner else { return Ok(Caller::unlimited()) };
    let key = app.catalog.key(id).await?.ok_or(Trouble::NoOwner)?.key;
    if key.is_valid_at(instant::now_ms()) { Ok(Caller::of_key(Arc::new(key))) } else { Err(Trouble::NoOwner) }
}

/// Whether the video lacks vectors that the search compares. A job makes them.
async fn is_incomplete(app: &App, request: &Request, video: Uuid) -> Result<bool, CatalogError> {
    let visual = search::space_of(app, request).ok();
    if let Some(space) = visual.filter(|space| request.sources.visual && space.space.can.frames)
        && !app.catalog.spans_without_vector(video, space.key).await?.is_empty()
    {
        return Ok(true);
    }
    match app.spaces.active(QueryKind::Spoken).filter(|_| request.sources.spoken) {
        Some(space) => Ok(!app.catalog.passages_without_vector(video, space.key).await?.is_empty()),
        None => Ok(false),
    }
}

fn hit(found: &Match) -> AlertHit {
    let span = &found.span.span;
    AlertHit {
        clip: span.id,
        level: span.level,
        start_ms: span.start_ms,
        end_ms: span.end_ms,
        score: f64::from(found.score),
        z: found.evidence.iter().filter_map(|it| it.z).max_by(f32::total_cmp).map(f64::from),
    }
}

/// The wait after a failed `attempt`, counted from 1.
fn wait_after(attempt: i64) -> Duration {
    let doublings = u32::try_from(attempt.clamp(1, 20) - 1).unwrap_or_default();
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(attempt: i64, expected_seconds: u64) {
        assert_eq!(wait_after(attempt), Duration::from_secs(expected_seconds), "{attempt}");
    }

    #[test]
    fn waits_grow_to_an_hour() {
        check(0, 2);
        check(1, 2);
        check(4, 16);
        check(12, 3600);
        check(i64::MAX, 3600);
    }
}
