//! Wire format of an evaluation.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::error::ApiError;
use super::super::instant as rfc3339;
use super::super::search::seconds;
use crate::catalog::{EvaluatedQuery, Evaluation, JobState, VideoRange};
use crate::evaluations::{Comparison, Cutoff, Found, Report, Settings, SpaceFigures};
use crate::search::Levels;

/// Queries that several spaces were asked, with how early each found what is relevant. It is a job of the same id.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Evaluation)]
pub(super) struct EvaluationOut {
    /// Its id, a uuid v7: that of its job.
    id: Uuid,
    /// Its name.
    name: String,
    /// State of its job.
    #[schema(value_type = super::super::names::JobStateName)]
    state: JobState,
    /// Fraction of the queries done, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    progress: f64,
    /// Estimated seconds left; null unless it is running.
    #[schema(minimum = 0)]
    eta_s: Option<f64>,
    /// Reason for the failure, the next attempt or the cancellation; null if there is none.
    reason: Option<String>,
    /// Readable names of its spaces.
    spaces: Vec<String>,
    /// Level of the hits: `clip` or `video`.
    level: String,
    /// Least temporal intersection over union of a hit with a relevant range that it finds, 0.01 to 1.
    #[schema(minimum = 0.01, maximum = 1)]
    min_iou: f64,
    /// Number of hits that are looked at for each query, 1 to 1000.
    #[schema(minimum = 1, maximum = 1000)]
    depth: u32,
    /// Number of its queries, 1 to 10000.
    #[schema(minimum = 1, maximum = 10_000)]
    query_count: i64,
    /// Whether its queries are from feedback.
    from_feedback: bool,
    /// Number of judged queries of the log that could not be asked again.
    #[schema(minimum = 0)]
    left_out: usize,
    /// Its figures. Null until it is done.
    figures: Option<FiguresOut>,
    /// Id of the API key that made it. Null without a key.
    key_id: Option<Uuid>,
    /// Time of its making (RFC 3339).
    created_at: String,
    /// Time of its deletion (RFC 3339).
    expires_at: String,
}

/// Figures of an evaluation. A query that one of the spaces could not be asked counts in none of them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EvaluationFigures)]
struct FiguresOut {
    /// Number of queries that every space was asked.
    #[schema(minimum = 0)]
    asked: usize,
    /// Number of queries that a space could not be asked, for example because their video was deleted.
    #[schema(minimum = 0)]
    failed: usize,
    /// Figures of each space, in the order of `spaces`.
    spaces: Vec<SpaceFiguresOut>,
    /// Each pair of spaces, compared.
    comparisons: Vec<ComparisonOut>,
}

/// Figures of one space.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SpaceFigures)]
struct SpaceFiguresOut {
    /// Readable name of the space.
    space: String,
    /// Recall and mean average precision at each K.
    at: Vec<CutoffOut>,
    /// Number of queries with a relevant range among the hits.
    #[schema(minimum = 0)]
    found: usize,
    /// Median rank of the first relevant range, over all queries. Null if half of them or more have none among the hits.
    #[schema(minimum = 1)]
    median_rank: Option<f64>,
    /// Mean rank of the first relevant range, over the queries that have one among the hits. Null if none has.
    #[schema(minimum = 1)]
    mean_rank: Option<f64>,
    /// Median duration of a search, in milliseconds.
    #[schema(minimum = 0)]
    median_ms: f64,
    /// Duration that 95 of 100 searches keep, in milliseconds.
    #[schema(minimum = 0)]
    p95_ms: f64,
    /// Whether every search compared every vector. If not, the engine's graph has a part in the figures.
    exact: bool,
}

/// Figures of the first K hits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EvaluationCutoff)]
struct CutoffOut {
    /// Number of hits that count, the K: 1 to 1000.
    #[schema(minimum = 1, maximum = 1000)]
    k: u32,
    /// Share of the queries with a relevant range among the first K hits, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    recall: f64,
    /// Mean average precision of the first K hits, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    map: f64,
}

/// How many queries fare better or worse in a space than in another.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SpaceComparison)]
struct ComparisonOut {
    /// Readable name of the space.
    space: String,
    /// Readable name of the space that it is compared with.
    baseline: String,
    /// Number of queries whose first relevant range comes earlier.
    #[schema(minimum = 0)]
    better: usize,
    /// Number of queries whose first relevant range comes later, or not at all.
    #[schema(minimum = 0)]
    worse: usize,
    /// Number of all others.
    #[schema(minimum = 0)]
    same: usize,
}

/// One page of evaluations.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EvaluationPage {
    /// The evaluations of this page.
    pub(super) items: Vec<EvaluationOut>,
    /// Cursor of the next page; null on the last one.
    pub(super) next_cursor: Option<String>,
}

/// An evaluation with a page of its queries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EvaluationWithQueries {
    /// The evaluation.
    pub(super) evaluation: EvaluationOut,
    /// Queries of this page, in the order of the request.
    pub(super) queries: Vec<EvaluatedQueryOut>,
    /// Cursor of the next page; null on the last one.
    pub(super) next_cursor: Option<String>,
}

/// A query of an evaluation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EvaluatedQuery)]
pub(super) struct EvaluatedQueryOut {
    /// Its place in the request, from 0.
    #[schema(minimum = 0)]
    place: i64,
    /// Its name. Null without one.
    label: Option<String>,
    /// The text, or the change to the clip. Null for a clip alone.
    text: Option<String>,
    /// The clip. Null for a text, and if its video was deleted.
    clip: Option<EvaluatedRange>,
    /// The filter. Null without one.
    #[schema(value_type = Option<HashMap<String, Value>>)]
    filter: Option<Value>,
    /// What it should find, without ranges in deleted videos.
    relevant: Vec<EvaluatedRange>,
    /// What each space found, in the order of `spaces`. Empty until every space has answered.
    outcomes: Vec<OutcomeOut>,
}

/// A range of a video.
#[derive(Debug, Serialize, ToSchema)]
struct EvaluatedRange {
    /// Id of the video.
    video_id: Uuid,
    /// Start, in seconds.
    #[schema(minimum = 0)]
    start: f64,
    /// End, in seconds, exclusive.
    #[schema(minimum = 0)]
    end: f64,
}

/// What a space found for a query.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EvaluationOutcome)]
struct OutcomeOut {
    /// Readable name of the space.
    space: String,
    /// Rank of the first hit that finds a relevant range, from 1. Null if none does.
    #[schema(minimum = 1)]
    rank: Option<u32>,
    /// Ranks of all hits that find a relevant range, from 1, ascending. A range is found once.
    ranks: Vec<u32>,
    /// Duration of the search, in milliseconds.
    #[schema(minimum = 0)]
    took_ms: f64,
    /// Why the query could not be asked; null if it was.
    problem: Option<String>,
}

impl EvaluationOut {
    /// # Errors
    /// What is stored can't be read.
    pub(super) fn of(evaluation: Evaluation) -> Result<EvaluationOut, ApiError> {
        let settings = super::settings(&evaluation)?;
        let Evaluation { job, owner, name, queries, report, expires_at_ms, .. } = evaluation;
        let report: Option<Report> =
            report.map(serde_json::from_value).transpose().map_err(ApiError::internal)?;
        let is_done = job.state == JobState::Succeeded;
        Ok(EvaluationOut {
            id: job.id,
            name,
            state: job.state,
            progress: if is_done { 1.0 } else { job.progress.fraction },
            eta_s: if job.state == JobState::Running { job.progress.eta_s } else { None },
            reason: job.reason,
            spaces: settings.spaces.into_iter().map(|space| space.name).collect(),
            level: if settings.levels == Levels::Video { "video" } else { "clip" }.to_owned(),
            min_iou: settings.min_iou,
            depth: settings.depth,
            query_count: queries,
            from_feedback: settings.is_from_log,
            left_out: settings.left_out,
            figures: report.map(FiguresOut::from),
            key_id: owner,
            created_at: rfc3339(job.created_at_ms),
            expires_at: rfc3339(expires_at_ms),
        })
    }
}

impl From<Report> for FiguresOut {
    fn from(report: Report) -> FiguresOut {
        let compared = |it: Comparison| {
            let Comparison { space, baseline, better, worse, same } = it;
            ComparisonOut { space, baseline, better, worse, same }
        };
        FiguresOut {
            asked: report.asked,
            failed: report.failed,
            spaces: report.spaces.into_iter().map(SpaceFiguresOut::from).collect(),
            comparisons: report.comparisons.into_iter().map(compared).collect(),
        }
    }
}

impl From<SpaceFigures> for SpaceFiguresOut {
    fn from(figures: SpaceFigures) -> SpaceFiguresOut {
        let cutoff = |Cutoff { k, recall, map }| CutoffOut { k, recall, map };
        SpaceFiguresOut {
            space: figures.space,
            at: figures.at.into_iter().map(cutoff).collect(),
            found: figures.found,
            median_rank: figures.median_rank,
            mean_rank: figures.mean_rank,
            median_ms: figures.median_ms,
            p95_ms: figures.p95_ms,
            exact: figures.exact,
        }
    }
}

impl EvaluatedQueryOut {
    /// # Errors
    /// What is stored can't be read.
    pub(super) fn of(stored: EvaluatedQuery, settings: &Settings) -> Result<EvaluatedQueryOut, ApiError> {
        let EvaluatedQuery { place, query, outcome } = stored;
        let found: Option<Vec<Found>> =
            outcome.map(serde_json::from_value).transpose().map_err(ApiError::internal)?;
        let outcome = |(space, found): (&crate::evaluations::AskedSpace, Found)| OutcomeOut {
            space: space.name.clone(),
            rank: found.rank(),
            ranks: found.ranks,
            took_ms: found.ms,
            problem: found.trouble,
        };
        Ok(EvaluatedQueryOut {
            place,
            label: query.label,
            text: query.text,
            clip: query.clip.map(EvaluatedRange::from),
            filter: query.filter,
            relevant: query.relevant.into_iter().map(EvaluatedRange::from).collect(),
            outcomes: settings.spaces.iter().zip(found.unwrap_or_default()).map(outcome).collect(),
        })
    }
}

impl From<VideoRange> for EvaluatedRange {
    fn from(range: VideoRange) -> EvaluatedRange {
        let VideoRange { video, start_ms, end_ms } = range;
        EvaluatedRange { video_id: video, start: seconds(start_ms), end: seconds(end_ms) }
    }
}
