//! `GET /v1/insights`: figures of searches and of added videos for a dashboard.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::Params;
use super::instant as rfc3339;
use super::search::{SearchKindName, seconds};
use super::searches;
use crate::app::{App, Authorized};
use crate::catalog::instant::DAY_MS;
use crate::catalog::{
    FrequentText, Insights, KindFigures, Latency, SearchFigures, SearchesAsked, SlowSearch, instant,
};
use crate::terms::SearchKind;

/// Most days of an answer.
const MOST_DAYS: i64 = 366;
/// Days of an answer without `since` and `days`.
const DAYS: i64 = 30;
/// Most searches that are counted. A million take SQLite about ten seconds, in which others wait.
const MOST_SEARCHES: u32 = 200_000;

/// Routes of `/v1/insights`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(get))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct InsightParams {
    /// Counts from this time on (RFC 3339 instant or date). Default: `days` before `until`.
    #[param(nullable = false)]
    since: Option<String>,
    /// Counts before this time (RFC 3339 instant or date), at most 366 days after `since`. Default: now.
    #[param(nullable = false)]
    until: Option<String>,
    /// Number of days (UTC), the one of `until` included, 1 to 366; default 30. Not together with `since`.
    #[param(minimum = 1, maximum = 366, nullable = false)]
    days: Option<i64>,
    /// Counts only searches of this kind.
    #[param(nullable = false)]
    kind: Option<SearchKindName>,
    /// Counts only searches in the space with this readable name.
    #[param(nullable = false)]
    space: Option<String>,
    /// Counts only searches with this API key.
    #[param(nullable = false)]
    key_id: Option<Uuid>,
}

impl InsightParams {
    fn checked(self, app: &Authorized) -> Result<SearchesAsked, ApiError> {
        let between = self.between(instant::now_ms())?;
        Ok(SearchesAsked {
            of: searches::seen_by(app),
            before: None,
            limit: MOST_SEARCHES,
            since_ms: Some(between.start),
            until_ms: Some(between.end),
            kind: self.kind.map(SearchKind::from),
            space: self.space,
            key: self.key_id,
            without_results: None,
        })
    }

    /// The time to count, in Unix milliseconds.
    fn between(&self, now_ms: i64) -> Result<Range<i64>, ApiError> {
        let until = searches::time(self.until.as_deref(), "until")?.unwrap_or(now_ms);
        let days = self.days.unwrap_or(DAYS);
        let since = match searches::time(self.since.as_deref(), "since")? {
            Some(_) if self.days.is_some() => {
                return Err(ApiError::invalid("days", "must not come together with `since`"));
            }
            Some(since) => since,
            None if !(1..=MOST_DAYS).contains(&days) => {
                return Err(ApiError::invalid("days", format!("must be 1 to {MOST_DAYS}")));
            }
            None => (day(until.saturating_sub(1)) - (days - 1)).saturating_mul(DAY_MS),
        };
        if since >= until || until.saturating_sub(since) > MOST_DAYS * DAY_MS {
            let detail = format!("must be before `until`, by {MOST_DAYS} days at most");
            return Err(ApiError::invalid("since", detail));
        }
        Ok(since..until)
    }
}

/// The day of a time, counted from 1970-01-01.
fn day(ms: i64) -> i64 {
    ms.div_euclid(DAY_MS)
}

/// Figures of searches and of added videos.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Insights)]
struct InsightsOut {
    /// Start of the time that is counted (RFC 3339).
    since: String,
    /// End of the time that is counted (RFC 3339), exclusive.
    until: String,
    /// Whether all searches are counted. False: only the newest 200,000, in all figures.
    complete: bool,
    /// Number of searches.
    #[schema(minimum = 0)]
    searches: i64,
    /// Number of searches without results.
    #[schema(minimum = 0)]
    without_results: i64,
    /// Durations of the searches. Null without searches.
    latency_ms: Option<LatencyOut>,
    /// Number of videos that were added, without deleted ones.
    #[schema(minimum = 0)]
    videos_added: i64,
    /// Length of these videos, in seconds, as far as it is known.
    #[schema(minimum = 0)]
    seconds_added: f64,
    /// Every day of the time, the oldest first.
    days: Vec<DayOut>,
    /// The kinds of query that occur, the most frequent first.
    kinds: Vec<KindOut>,
    /// The most frequent texts of text searches, at most 20, the most frequent first. Without those that the log holds as hashes.
    most_searched: Vec<TextOut>,
    /// The most frequent texts among the searches without results, at most 20, the most frequent first. Counts only searches
    /// without results.
    nothing_found: Vec<TextOut>,
    /// The slowest searches, at most 20, the slowest first.
    slowest: Vec<SlowOut>,
}

/// Percentiles of the searches' durations, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SearchLatency)]
struct LatencyOut {
    /// The median, in milliseconds.
    #[schema(minimum = 0)]
    p50: f64,
    /// The 95th percentile, in milliseconds.
    #[schema(minimum = 0)]
    p95: f64,
    /// The 99th percentile, in milliseconds.
    #[schema(minimum = 0)]
    p99: f64,
}

/// Figures of one day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InsightDay)]
struct DayOut {
    /// The day, in UTC, as `2024-07-01`.
    #[schema(format = Date)]
    day: String,
    /// Number of searches.
    #[schema(minimum = 0)]
    searches: i64,
    /// Number of searches without results.
    #[schema(minimum = 0)]
    without_results: i64,
    /// Durations of the searches. Null without searches.
    latency_ms: Option<LatencyOut>,
    /// Number of videos that were added, without deleted ones.
    #[schema(minimum = 0)]
    videos_added: i64,
    /// Length of these videos, in seconds, as far as it is known.
    #[schema(minimum = 0)]
    seconds_added: f64,
}

/// Searches of one kind.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KindFigures)]
struct KindOut {
    /// The kind.
    kind: SearchKindName,
    /// Number of searches.
    #[schema(minimum = 1)]
    searches: i64,
    /// Number of searches without results.
    #[schema(minimum = 0)]
    without_results: i64,
}

/// Searches by equal texts. Case and white space do not count, nor does the filter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FrequentText)]
struct TextOut {
    /// The text as it was sent last.
    text: String,
    /// Number of searches.
    #[schema(minimum = 1)]
    searches: i64,
    /// Number of searches without results.
    #[schema(minimum = 0)]
    without_results: i64,
    /// `search_id` of the newest.
    last_search_id: Uuid,
    /// Time of the newest (RFC 3339).
    last_at: String,
}

/// A slow search.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SlowSearch)]
struct SlowOut {
    /// The `search_id`.
    search_id: Uuid,
    /// Time of its answer (RFC 3339).
    at: String,
    /// Kind of query.
    kind: SearchKindName,
    /// Its duration, in milliseconds.
    #[schema(minimum = 0)]
    took_ms: f64,
}

/// Returns figures of searches and of added videos for a dashboard: a day each, durations, frequent texts.
///
/// A key counts its own searches, one with the scope `admin` all, and of the videos those that it reaches. Searches that the
/// query log has forgotten are not counted. Counts of the whole library are in `/v1/stats`.
#[utoipa::path(get, path = "/v1/insights", operation_id = "getInsights", tag = "operation", params(InsightParams),
    responses((status = 200, body = InsightsOut)))]
async fn get(
    app: Authorized,
    Params(params): Params<InsightParams>,
) -> Result<axum::Json<InsightsOut>, ApiError> {
    let asked = params.checked(&app)?;
    app.query_log.settled().await;
    let insights = app.view().insights(&asked).await?;
    let between = asked.since_ms.unwrap_or_default()..asked.until_ms.unwrap_or_default();
    Ok(axum::Json(InsightsOut::of(insights, between)))
}

impl InsightsOut {
    fn of(insights: Insights, between: Range<i64>) -> InsightsOut {
        let SearchFigures { searches, without_results, latency } = insights.searches;
        InsightsOut {
            since: rfc3339(between.start),
            until: rfc3339(between.end),
            complete: insights.complete,
            searches,
            without_results,
            latency_ms: latency.map(LatencyOut::from),
            videos_added: insights.added.iter().map(|day| day.videos).sum(),
            seconds_added: seconds(insights.added.iter().map(|day| day.duration_ms).sum()),
            days: days(&insights, between),
            kinds: insights.kinds.into_iter().map(KindOut::from).collect(),
            most_searched: insights.frequent.into_iter().map(TextOut::from).collect(),
            nothing_found: insights.unanswered.into_iter().map(TextOut::from).collect(),
            slowest: insights.slowest.into_iter().map(SlowOut::from).collect(),
        }
    }
}

/// Every day of the time, also those on which nothing happened, so that a chart needs no gaps filled.
fn days(insights: &Insights, between: Range<i64>) -> Vec<DayOut> {
    let searches: BTreeMap<i64, SearchFigures> =
        insights.days.iter().map(|found| (found.day, found.figures)).collect();
    let added: BTreeMap<_, _> = insights.added.iter().map(|found| (found.day, found)).collect();
    let out = |day: i64| {
        let SearchFigures { searches, without_results, latency } =
            searches.get(&day).copied().unwrap_or_default();
        DayOut {
            day: rfc3339(day.saturating_mul(DAY_MS)).chars().take("2024-07-01".len()).collect(),
            searches,
            without_results,
            latency_ms: latency.map(LatencyOut::from),
            videos_added: added.get(&day).map_or(0, |added| added.videos),
            seconds_added: seconds(added.get(&day).map_or(0, |added| added.duration_ms)),
        }
    };
    (day(between.start)..=day(between.end - 1)).map(out).collect()
}

impl From<Latency> for LatencyOut {
    fn from(Latency { p50, p95, p99 }: Latency) -> LatencyOut {
        LatencyOut { p50, p95, p99 }
    }
}

impl From<KindFigures> for KindOut {
    fn from(KindFigures { kind, searches, without_results }: KindFigures) -> KindOut {
        KindOut { kind: kind.into(), searches, without_results }
    }
}

impl From<FrequentText> for TextOut {
    fn from(found: FrequentText) -> TextOut {
        let FrequentText { text, searches, without_results, newest, newest_at_ms } = found;
        TextOut { text, searches, without_results, last_search_id: newest, last_at: rfc3339(newest_at_ms) }
    }
}

impl From<SlowSearch> for SlowOut {
    fn from(SlowSearch { id, at_ms, kind, total_ms }: SlowSearch) -> SlowOut {
        SlowOut { search_id: id, at: rfc3339(at_ms), kind: kind.into(), took_ms: total_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-07-01T12:00:00Z.
    const NOW_MS: i64 = 1_719_835_200_000;

    #[track_caller]
    fn check(since: Option<&str>, until: Option<&str>, days: Option<i64>, expected: Option<&str>) {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let params = InsightParams {
            since: own(since),
            until: own(until),
            days,
            kind: None,
            space: None,
            key_id: None,
        };
        let found = params.between(NOW_MS).ok();
        let found = found.map(|it| format!("{} {}", rfc3339(it.start), rfc3339(it.end)));
        assert_eq!(found.map(|it| it.replace(":00.000Z", "")).as_deref(), expected);
    }

    #[test]
    fn whole_days_are_counted() {
        check(None, None, None, Some("2024-06-02T00:00 2024-07-01T12:00"));
        check(None, None, Some(1), Some("2024-07-01T00:00 2024-07-01T12:00"));
        check(None, Some("2024-03-01"), Some(1), Some("2024-02-29T00:00 2024-03-01T00:00"));
        check(Some("2024-06-30T23:00:00+02:00"), None, None, Some("2024-06-30T21:00 2024-07-01T12:00"));
        check(None, None, Some(366), Some("2023-07-02T00:00 2024-07-01T12:00"));
    }

    #[test]
    fn no_time_of_no_length_or_of_years_is_counted() {
        check(None, None, Some(0), None);
        check(None, None, Some(367), None);
        check(Some("2024-06-30"), None, Some(2), None);
        check(Some("2024-07-02"), None, None, None);
        check(Some("2023-06-30"), None, None, None);
        check(Some("2024-06-30"), Some("2024-06-30"), None, None);
        check(Some("yesterday"), None, None, None);
    }
}
