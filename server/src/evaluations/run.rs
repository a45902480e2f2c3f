//! Asks every space every query of an evaluation, and stores what it found, a few queries at a time.

use std::sync::Arc;
use std::time::Duration;

use reprise_encoders::EncodeError;

use super::figures::{Answered, Report};
use super::judge::{Found, ranks};
use super::settings::{AskedSpace, Settings};
use crate::app::{App, Authorized};
use crate::catalog::{CatalogError, EvaluatedQuery, EvaluationQuery, Lease, NewOutcome, Owner, Visibility};
use crate::ingest::{JobProgress, Stop};
use crate::search::{self, Outcome, SearchError};

/// Queries that are asked between two writes. A killed evaluation repeats them.
const PORTION: u32 = 16;
/// Queries per read of the outcomes.
const READ: u32 = 1000;
/// Wait for a place in a model's pool. Users come first.
const BUSY: Duration = Duration::from_millis(500);

/// Why an evaluation ended without figures.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The job was stopped.
    #[error("the evaluation was stopped")]
    Stopped(Stop),
    /// It was deleted.
    #[error("the evaluation was deleted")]
    Deleted,
    /// Its key is no longer valid.
    #[error("the key that made the evaluation was revoked or has expired")]
    NoOwner,
    /// This version does not read what was stored.
    #[error("the evaluation can't be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A space is not loaded.
    #[error("space {0} is not loaded: load its model, then retry the job")]
    NoSpace(String),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A search failed, whatever its query.
    #[error(transparent)]
    Search(SearchError),
}

/// Runs the evaluation of a leased job to its end. What was stored before is not asked again.
///
/// # Errors
/// See [`EvaluationError`].
pub async fn run(app: &Arc<App>, lease: &Lease, progress: &JobProgress) -> Result<(), EvaluationError> {
    let view = app.catalog.view(&Visibility::All);
    let found = view.evaluation(Owner::Anybody, lease.job).await?.ok_or(EvaluationError::Deleted)?;
    let settings: Settings = serde_json::from_value(found.settings)?;
    let owner = Authorized::for_owner(app, found.owner).await?.ok_or(EvaluationError::NoOwner)?;
    progress.stage("search");
    progress.expect(found.queries, 0.0);
    let asker = Asker { app: &owner, settings: &settings, progress };
    let mut done = app.catalog.count_answered(lease.job).await?;
    loop {
        progress.reached(done);
        let queries = app.catalog.unanswered_queries(lease.job, PORTION).await?;
        if queries.is_empty() {
            break;
        }
        let mut outcomes = Vec::with_capacity(queries.len());
        for EvaluatedQuery { place, query, .. } in &queries {
            let outcome = serde_json::to_value(asker.ask(query).await?)?;
            outcomes.push(NewOutcome { place: *place, outcome });
            done += 1;
            progress.reached(done);
        }
        app.catalog.store_outcomes(lease, &outcomes).await?;
        progress.kept();
    }
    progress.stage("finish");
    let report = Report::of(&settings, &answered(app, lease).await?);
    app.catalog.finish_evaluation(lease, &serde_json::to_value(report)?).await?;
    Ok(())
}

/// What was stored for all queries.
async fn answered(app: &App, lease: &Lease) -> Result<Vec<Answered>, EvaluationError> {
    let mut all = Vec::new();
    let mut after = -1;
    loop {
        let page = app.catalog.answered_queries(lease.job, after, READ).await?;
        let Some(last) = page.last() else { return Ok(all) };
        after = last.place;
        for EvaluatedQuery { query, outcome, .. } in page {
            let found: Vec<Found> = serde_json::from_value(outcome.unwrap_or_default())?;
            all.push(Answered { relevant: query.relevant.len(), found });
        }
    }
}

/// Asks queries.
struct Asker<'a> {
    app: &'a Authorized,
    settings: &'a Settings,
    progress: &'a JobProgress,
}

impl Asker<'_> {
    /// What each space finds for a query.
    async fn ask(&self, query: &EvaluationQuery) -> Result<Vec<Found>, EvaluationError> {
        let mut all = Vec::with_capacity(self.settings.spaces.len());
        for space in &self.settings.spaces {
            all.push(self.found(query, space).await?);
        }
        Ok(all)
    }

    async fn found(&self, query: &EvaluationQuery, space: &AskedSpace) -> Result<Found, EvaluationError> {
        loop {
            if let Some(stop) = self.progress.stopped() {
                return Err(EvaluationError::Stopped(stop));
            }
            match self.search(query, space).await {
                Ok(outcome) => return Ok(self.judged(&outcome, query)),
                Err(Fault::Busy) => tokio::time::sleep(BUSY).await,
                Err(Fault::OfQuery(trouble)) => return Ok(Found::nothing(trouble)),
                Err(Fault::OfSpace) => return Err(EvaluationError::NoSpace(space.name.clone())),
                Err(Fault::OfServer(error)) => return Err(EvaluationError::Search(error)),
            }
        }
    }

    /// One search, as its owner, which no log has.
    async fn search(&self, query: &EvaluationQuery, space: &AskedSpace) -> Result<Outcome, Fault> {
        let request =
            self.settings.request(query, space).map_err(|error| Fault::OfQuery(error.to_string()))?;
        let admitted = search::admit(self.app, &request)?;
        let within = Duration::from_secs_f64(self.app.config.timeout_seconds);
        // On the heap: the compiler does not lay out futures that are nested this deep.
        let answered = Box::pin(search::run(self.app, request, admitted));
        match tokio::time::timeout(within, answered).await {
            Ok(answered) => Ok(answered?),
            Err(_) => Err(Fault::OfQuery("the search took too long".to_owned())),
        }
    }

    fn judged(&self, outcome: &Outcome, query: &EvaluationQuery) -> Found {
        Found {
            ranks: ranks(&outcome.results, &query.relevant, self.settings),
            ms: outcome.timings.total_ms,
            exact: outcome.index.exact,
            trouble: None,
        }
    }
}

/// Whose fault a failed search is.
enum Fault {
    /// The model's pool is full.
    Busy,
    /// The query can't be asked, e.g. because its video is gone.
    OfQuery(String),
    /// The space is not loaded.
    OfSpace,
    /// The next attempt may go better.
    OfServer(SearchError),
}

impl From<SearchError> for Fault {
    fn from(error: SearchError) -> Fault {
        match &error {
            SearchError::Encode(EncodeError::Overloaded { .. }) => Fault::Busy,
            SearchError::NoSuchSpace(_) => Fault::OfSpace,
            SearchError::NotFound { .. }
            | SearchError::Video { .. }
            | SearchError::Invalid { .. }
            | SearchError::SpaceCannot { .. }
            | SearchError::Encode(EncodeError::BadInput(_) | EncodeError::Unsupported { .. }) => {
                Fault::OfQuery(error.to_string())
            }
            _ => Fault::OfServer(error),
        }
    }
}
