//! Wire format of a request for an evaluation, and its checks.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::error::ApiError;
use super::super::extract;
use super::super::search::{ClipBody, some_text};
use super::super::{ranges, searches};
use super::forms::QueryForms;
use crate::app::Authorized;
use crate::catalog::{
    EvaluationQuery, Filter, JudgedQueries, MOST_EVALUATED, MOST_RELEVANT, NewEvaluation, VideoRange,
};
use crate::evaluations::{AskedSpace, Settings, kind_of};
use crate::search::{self, Levels, MAX_LIMIT};
use crate::terms::QueryKind;

/// Most spaces of an evaluation.
const MOST_SPACES: usize = 8;
/// Most cutoffs.
const MOST_CUTOFFS: usize = 10;

/// An evaluation to run: with exactly one of `queries` and `from_feedback`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewEvaluation)]
pub(super) struct EvaluationBody {
    /// Its name: 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// Ids or readable names of the spaces to ask, 1 to 8. Each must answer every query.
    #[schema(min_items = 1, max_items = 8)]
    spaces: Vec<String>,
    /// Level of the hits. Default `clip`.
    level: Option<EvaluatedLevel>,
    /// Least temporal intersection over union of a hit with a relevant range that it finds, 0.01 to 1; default 0.5. At the level
    /// `video` a full video finds every range in it.
    #[schema(minimum = 0.01, maximum = 1)]
    min_iou: Option<f64>,
    /// The K of recall at K and mAP at K: 1 to 10 different numbers, each from 1 to `depth`. Default 1, 5 and 10.
    #[schema(min_items = 1, max_items = 10)]
    cutoffs: Option<Vec<u32>>,
    /// Hits that are looked at for each query, 1 to 1000. Default 100, or the largest cutoff if it is larger.
    #[schema(minimum = 1, maximum = 1000)]
    depth: Option<u32>,
    /// 1 to 10000 queries, with at most 100000 relevant ranges together.
    #[schema(value_type = Option<Vec<QueryForms>>, min_items = 1, max_items = 10_000)]
    queries: Option<Vec<QueryBody>>,
    /// Takes the queries from the query log, as they are now.
    from_feedback: Option<FeedbackBody>,
}

/// Level of the hits of an evaluation. `clip`: clips and moments. `video`: full videos.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EvaluatedLevel {
    Clip,
    Video,
}

/// A query with what it should find. It has exactly one of `text`, `clip` and `clip_id`. `forms` describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryBody {
    label: Option<String>,
    text: Option<String>,
    clip: Option<ClipBody>,
    clip_id: Option<Uuid>,
    modification: Option<String>,
    filter: Option<Value>,
    relevant: Vec<RelevantBody>,
}

/// What a query should find: a clip, a time range of a video, or all of a video (`video_id` alone). `forms` describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RelevantBody {
    clip_id: Option<Uuid>,
    video_id: Option<Uuid>,
    start: Option<f64>,
    end: Option<f64>,
}

/// Takes the queries with a hit that was judged `relevant`. Equal queries become one, with all ranges. Queries that the log does
/// not hold in full (hashes, files, texts of 4000 characters and more) are left out.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FromFeedback)]
struct FeedbackBody {
    /// Takes only searches answered at this time or later (RFC 3339 instant or date).
    since: Option<String>,
    /// Takes only searches answered before this time (RFC 3339 instant or date).
    until: Option<String>,
}

impl EvaluationBody {
    /// Checks the request, and finds its ranges.
    pub(super) async fn checked(self, app: &Authorized) -> Result<NewEvaluation, ApiError> {
        let name = ranges::checked_name(self.name.clone(), "/name")?;
        let mut settings = self.settings(app)?;
        let queries = match (self.queries, self.from_feedback) {
            (Some(queries), None) => given(app, queries).await?,
            (None, Some(feedback)) => {
                let judged = feedback.queries(app, settings.levels).await?;
                (settings.is_from_log, settings.left_out) = (true, judged.left_out);
                judged.queries
            }
            _ => return Err(ApiError::invalid("", "give exactly one of queries and from_feedback")),
        };
        check_spaces(app, &settings.spaces, &queries)?;
        let lasts = app.config.evaluation_lasts(settings.is_from_log);
        let settings = serde_json::to_value(settings).map_err(ApiError::internal)?;
        Ok(NewEvaluation { owner: app.caller().key_id(), name, settings, queries, lasts })
    }

    fn settings(&self, app: &Authorized) -> Result<Settings, ApiError> {
        let min_iou = self.min_iou.unwrap_or(0.5);
        if !(0.01..=1.0).contains(&min_iou) {
            return Err(ApiError::invalid("/min_iou", "must be from 0.01 to 1"));
        }
        let mut cutoffs = self.cutoffs.clone().unwrap_or_else(|| vec![1, 5, 10]);
        cutoffs.sort_unstable();
        let largest = cutoffs.last().copied().unwrap_or_default();
        let depth = self.depth.unwrap_or(largest.max(100));
        if !(1..=MAX_LIMIT).contains(&(depth as usize)) {
            return Err(ApiError::invalid("/depth", format!("must be from 1 to {MAX_LIMIT}")));
        }
        let repeats = cutoffs.windows(2).any(|pair| pair[0] == pair[1]);
        let is_sound = (1..=MOST_CUTOFFS).contains(&cutoffs.len()) && cutoffs[0] > 0 && largest <= depth;
        if repeats || !is_sound {
            let detail = format!("give 1 to {MOST_CUTOFFS} different numbers from 1 to {depth}");
            return Err(ApiError::invalid("/cutoffs", detail));
        }
        Ok(Settings {
            spaces: spaces(app, &self.spaces)?,
            levels: match self.level {
                Some(EvaluatedLevel::Video) => Levels::Video,
                Some(EvaluatedLevel::Clip) | None => Levels::Clip,
            },
            min_iou,
            cutoffs,
            depth,
            exact: app.vectors.limits().exact,
            is_from_log: false,
            left_out: 0,
        })
    }
}

fn spaces(app: &Authorized, named: &[String]) -> Result<Vec<AskedSpace>, ApiError> {
    if !(1..=MOST_SPACES).contains(&named.len()) {
        return Err(ApiError::invalid("/spaces", format!("name 1 to {MOST_SPACES} spaces")));
    }
    let mut spaces: Vec<AskedSpace> = Vec::new();
    for (place, name) in named.iter().enumerate() {
        let pointer = format!("/spaces/{place}");
        let none = || ApiError::invalid(pointer.as_str(), format!("no loaded space is called `{name}`"));
        let space = &app.spaces.named(name).ok_or_else(none)?.space;
        if spaces.iter().any(|known| known.id == space.id) {
            return Err(ApiError::invalid(pointer, "the space is named twice"));
        }
        spaces.push(AskedSpace { id: space.id.clone(), name: space.name.clone() });
    }
    Ok(spaces)
}

/// Refuses a space that can't answer one of the queries.
fn check_spaces(
    app: &Authorized,
    spaces: &[AskedSpace],
    queries: &[EvaluationQuery],
) -> Result<(), ApiError> {
    let kinds: HashSet<QueryKind> = queries.iter().map(kind_of).collect();
    for (place, space) in spaces.iter().enumerate() {
        for kind in &kinds {
            search::space_for(app, *kind, Some(&space.id))
                .map_err(|error| ApiError::invalid(format!("/spaces/{place}"), error.to_string()))?;
        }
    }
    Ok(())
}

impl FeedbackBody {
    async fn queries(self, app: &Authorized, levels: Levels) -> Result<JudgedQueries, ApiError> {
        let since = searches::time(self.since.as_deref(), "/from_feedback/since")?.unwrap_or(i64::MIN);
        let until = searches::time(self.until.as_deref(), "/from_feedback/until")?.unwrap_or(i64::MAX);
        app.query_log.settled().await;
        let of = searches::seen_by(app);
        let judged = app.view().judged_queries(of, since..until, levels == Levels::Video).await?;
        if judged.is_cut || judged.queries.len() > MOST_EVALUATED {
            let detail = format!(
                "there is feedback on more than {MOST_RELEVANT} hits or {MOST_EVALUATED} queries; narrow the time"
            );
            return Err(ApiError::invalid("/from_feedback", detail));
        }
        if judged.queries.is_empty() {
            let detail = format!(
                "the query log has no query with a relevant hit that can be asked again; {} can't",
                judged.left_out
            );
            return Err(ApiError::invalid("/from_feedback", detail));
        }
        Ok(judged)
    }
}

/// The queries of a request, with the ranges that they name.
async fn given(app: &Authorized, bodies: Vec<QueryBody>) -> Result<Vec<EvaluationQuery>, ApiError> {
    if !(1..=MOST_EVALUATED).contains(&bodies.len()) {
        return Err(ApiError::invalid("/queries", format!("give 1 to {MOST_EVALUATED} queries")));
    }
    let relevant: usize = bodies.iter().map(|body| body.relevant.len()).sum();
    if relevant > MOST_RELEVANT {
        let detail =
            format!("the queries have {relevant} relevant ranges; at most {MOST_RELEVANT} are taken");
        return Err(ApiError::invalid("/queries", detail));
    }
    let named = Named::of(app, &bodies).await?;
    let one = |(place, body): (usize, QueryBody)| body.checked(&named, &format!("/queries/{place}"));
    bodies.into_iter().enumerate().map(one).collect()
}

/// What the caller sees of the videos and clips that the queries name.
struct Named {
    lengths: HashMap<Uuid, Option<i64>>,
    clips: HashMap<Uuid, VideoRange>,
}

impl Named {
    async fn of(app: &Authorized, bodies: &[QueryBody]) -> Result<Named, ApiError> {
        let relevant = || bodies.iter().flat_map(|body| &body.relevant);
        let clips: HashSet<Uuid> = relevant()
            .filter_map(|range| range.clip_id)
            .chain(bodies.iter().filter_map(|body| body.clip_id))
            .collect();
        let videos: HashSet<Uuid> = relevant()
            .filter_map(|range| range.video_id)
            .chain(bodies.iter().filter_map(|body| Some(body.clip.as_ref()?.video_id)))
            .collect();
        let list = |ids: HashSet<Uuid>| ids.into_iter().collect::<Vec<_>>();
        Ok(Named {
            lengths: app.view().video_lengths(&list(videos)).await?,
            clips: app.view().span_ranges(&list(clips)).await?,
        })
    }

    fn clip(&self, id: Uuid, pointer: &str) -> Result<VideoRange, ApiError> {
        let none = || ApiError::not_found(format!("there is no clip {id}")).at(format!("{pointer}/clip_id"));
        self.clips.get(&id).copied().ok_or_else(none)
    }

    /// The length of a video, in milliseconds.
    fn length(&self, video: Uuid, pointer: &str) -> Result<Option<i64>, ApiError> {
        let none =
            || ApiError::not_found(format!("there is no video {video}")).at(format!("{pointer}/video_id"));
        self.lengths.get(&video).copied().ok_or_else(none)
    }

    /// A range that begins before its video's end.
    fn range(&self, body: ClipBody, pointer: &str) -> Result<VideoRange, ApiError> {
        let length = self.length(body.video_id, pointer)?;
        let (start_ms, end_ms) = extract::stretch(body.start, body.end, pointer)?;
        if length.is_some_and(|length| start_ms >= length) {
            return Err(ApiError::invalid(format!("{pointer}/start"), "it begins after the video's end"));
        }
        Ok(VideoRange { video: body.video_id, start_ms, end_ms })
    }
}

impl QueryBody {
    fn checked(self, named: &Named, pointer: &str) -> Result<EvaluationQuery, ApiError> {
        let label =
            self.label.map(|label| ranges::checked_name(label, &format!("{pointer}/label"))).transpose()?;
        let change = self.modification.map(|text| some_text(text, &format!("{pointer}/modification")));
        let change = change.transpose()?;
        let (text, clip) = match (self.text, self.clip, self.clip_id) {
            (Some(text), None, None) => (Some(some_text(text, &format!("{pointer}/text"))?), None),
            (None, Some(clip), None) => (None, Some(named.range(clip, &format!("{pointer}/clip"))?)),
            (None, None, Some(id)) => (None, Some(named.clip(id, pointer)?)),
            _ => return Err(ApiError::invalid(pointer, "give exactly one of text, clip and clip_id")),
        };
        if text.is_some() && change.is_some() {
            let detail = "a modification changes a clip, not a text";
            return Err(ApiError::invalid(format!("{pointer}/modification"), detail));
        }
        if let Some(Err(wrong)) = self.filter.as_ref().map(Filter::parse) {
            let pointer = format!("{pointer}/filter{}", wrong.pointer);
            return Err(ApiError::invalid(pointer, wrong.detail));
        }
        if self.relevant.is_empty() {
            let detail = "a query needs at least one relevant range";
            return Err(ApiError::invalid(format!("{pointer}/relevant"), detail));
        }
        let one = |(place, range): (usize, RelevantBody)| {
            range.checked(named, &format!("{pointer}/relevant/{place}"))
        };
        let mut relevant: Vec<VideoRange> =
            self.relevant.into_iter().enumerate().map(one).collect::<Result<_, _>>()?;
        let mut known = HashSet::new();
        relevant.retain(|range| known.insert(*range));
        Ok(EvaluationQuery { label, text: text.or(change), clip, filter: self.filter, relevant })
    }
}

impl RelevantBody {
    fn checked(self, named: &Named, pointer: &str) -> Result<VideoRange, ApiError> {
        match (self.clip_id, self.video_id, self.start, self.end) {
            (Some(id), None, None, None) => named.clip(id, pointer),
            (None, Some(video_id), Some(start), Some(end)) => {
                named.range(ClipBody { video_id, start, end }, pointer)
            }
            (None, Some(video), None, None) => {
                let unknown = "the video's length is not known yet: wait for its job, or give start and end";
                let length = named.length(video, pointer)?.filter(|length| *length > 0);
                let end_ms = length.ok_or_else(|| ApiError::invalid(pointer, unknown))?;
                Ok(VideoRange { video, start_ms: 0, end_ms })
            }
            _ => {
                let detail = "give clip_id, or video_id, or video_id with start and end";
                Err(ApiError::invalid(pointer, detail))
            }
        }
    }
}
