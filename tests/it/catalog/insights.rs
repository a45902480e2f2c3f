//! Figures of the query log and of added videos.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reprise_server::catalog::{
    FrequentText, Latency, LoggedQuery, SearchFacts, SearchFigures, SearchTimes, SearchesAsked, SearchesOf,
    VideoFilter, Visibility,
};
use reprise_server::terms::SearchKind;
use serde_json::json;
use uuid::Uuid;

use super::searches::{everybody, facts, film, first_page, hit, log};
use super::{ALL, Opened, on_both};
use crate::faults::bed::Random;

on_both!(
    figures_are_those_of_all_searches_and_of_each_day,
    texts_are_counted_by_their_hash,
    the_slowest_searches_come_first,
    only_the_newest_searches_are_counted,
    a_caller_counts_its_searches_and_videos,
);

const DAY: Duration = Duration::from_secs(24 * 3600);
const DAY_MS: i64 = 24 * 3600 * 1000;

/// A text search that took so long.
fn took(text: &str, total: f64) -> SearchFacts {
    SearchFacts { times: SearchTimes { total, ..SearchTimes::default() }, ..facts(text) }
}

/// Logs a search without results.
async fn log_empty(opened: &Opened, search: SearchFacts) -> Uuid {
    log(opened, first_page(search, Vec::new())).await
}

/// The figures of searches that took so long, none of which had results.
fn expected(mut took: Vec<f64>) -> SearchFigures {
    took.sort_by(f64::total_cmp);
    let share = |of_100: usize| took[(took.len() * of_100).div_ceil(100) - 1];
    SearchFigures {
        searches: took.len() as i64,
        without_results: took.len() as i64,
        latency: Some(Latency { p50: share(50), p95: share(95), p99: share(99) }),
    }
}

async fn figures_are_those_of_all_searches_and_of_each_day(opened: &Opened) {
    let view = opened.catalog.view(ALL);
    let nothing = view.insights(&everybody()).await.unwrap();
    assert_eq!((nothing.searches, nothing.complete), (SearchFigures::default(), true));
    assert!(nothing.days.is_empty() && nothing.kinds.is_empty() && nothing.frequent.is_empty());
    let (mut random, mut by_day) = (Random(7), BTreeMap::<i64, Vec<f64>>::new());
    for searches in [1, 37, 100] {
        let pages: Vec<_> =
            (0..searches).map(|_| first_page(took("x", random.below(50) as f64 / 4.0), Vec::new())).collect();
        let day = opened.catalog.now_ms().await.unwrap() / DAY_MS;
        let times = pages.iter().map(|page| page.first.as_ref().unwrap().search.times.total).collect();
        opened.catalog.log_searches(&pages).await.unwrap();
        by_day.insert(day, times);
        opened.clock.advance(2 * DAY);
    }
    let asked = SearchesAsked { limit: 1000, ..everybody() };
    let found = view.insights(&asked).await.unwrap();
    assert_eq!(found.searches, expected(by_day.values().flatten().copied().collect()));
    let days: Vec<_> = found.days.iter().map(|day| (day.day, day.figures)).collect();
    let wanted: Vec<_> = by_day.iter().map(|(day, times)| (*day, expected(times.clone()))).collect();
    assert_eq!(days, wanted);
    let last = *by_day.keys().next_back().unwrap();
    let asked = SearchesAsked { since_ms: Some(last * DAY_MS), until_ms: Some((last + 1) * DAY_MS), ..asked };
    assert_eq!(view.insights(&asked).await.unwrap().searches, wanted[2].1, "of one day");
}

async fn texts_are_counted_by_their_hash(opened: &Opened) {
    let (video, clip) = film(opened, "one", "a").await;
    let spelled = |text: &str, hash: &str| {
        let query =
            LoggedQuery { text: Some(text.to_owned()), hash: hash.to_owned(), ..LoggedQuery::default() };
        SearchFacts { query, ..facts("") }
    };
    let hashed = LoggedQuery { hash: "dive".to_owned(), ..LoggedQuery::default() };
    log_empty(opened, SearchFacts { query: hashed, ..facts("") }).await;
    log_empty(opened, SearchFacts { kind: SearchKind::Composed, ..spelled("a change", "change") }).await;
    log_empty(opened, spelled("a dive", "dive")).await;
    log_empty(opened, spelled("nothing", "nothing")).await;
    opened.clock.advance(Duration::from_secs(1));
    let newest = log(opened, first_page(spelled("A  dive", "dive"), vec![hit(1, &video, clip)])).await;
    let now = opened.catalog.now_ms().await.unwrap();
    let found = opened.catalog.view(ALL).insights(&everybody()).await.unwrap();
    let texts = |found: &[FrequentText]| -> Vec<(String, i64, i64)> {
        found.iter().map(|it| (it.text.clone(), it.searches, it.without_results)).collect()
    };
    assert_eq!(texts(&found.frequent), [("A  dive".to_owned(), 2, 1), ("nothing".to_owned(), 1, 1)]);
    assert_eq!(found.frequent[0].newest, newest);
    assert!((now - 60_000..=now).contains(&found.frequent[0].newest_at_ms));
    let mut unanswered = texts(&found.unanswered);
    unanswered.sort();
    assert_eq!(unanswered, [("a dive".to_owned(), 1, 1), ("nothing".to_owned(), 1, 1)]);
    let kinds: Vec<_> = found.kinds.iter().map(|it| (it.kind, it.searches, it.without_results)).collect();
    assert_eq!(kinds, [(SearchKind::Text, 4, 3), (SearchKind::Composed, 1, 1)]);
}

async fn the_slowest_searches_come_first(opened: &Opened) {
    let mut ids = Vec::new();
    for number in 0..23 {
        ids.push(log_empty(opened, took("x", f64::from(number * 7 % 23))).await);
    }
    let found = opened.catalog.view(ALL).insights(&everybody()).await.unwrap();
    let slowest: Vec<(Uuid, f64)> = found.slowest.iter().map(|it| (it.id, it.total_ms)).collect();
    let mut wanted: Vec<(Uuid, f64)> =
        ids.iter().zip(0..).map(|(id, number)| (*id, f64::from(number * 7 % 23))).collect();
    wanted.sort_by(|a, b| b.1.total_cmp(&a.1));
    assert_eq!(slowest, wanted[..20]);
    assert_eq!((found.slowest[0].kind, found.searches.searches), (SearchKind::Text, 23));
}

async fn only_the_newest_searches_are_counted(opened: &Opened) {
    for total in [9.0, 1.0, 2.0] {
        log_empty(opened, took("x", total)).await;
        opened.clock.advance(DAY);
    }
    for (limit, expected) in [(2, (2, false, 1.0)), (3, (3, true, 2.0)), (4, (3, true, 2.0))] {
        let asked = SearchesAsked { limit, ..everybody() };
        let found = opened.catalog.view(ALL).insights(&asked).await.unwrap();
        let got = (found.searches.searches, found.complete, found.searches.latency.unwrap().p50);
        assert_eq!(got, expected, "at most {limit}");
        assert_eq!((found.days.len(), found.slowest.len()), (got.0 as usize, got.0 as usize));
        assert_eq!(found.frequent[0].searches, got.0);
    }
}

async fn a_caller_counts_its_searches_and_videos(opened: &Opened) {
    let (mine, _) = film(opened, "mine", "a").await;
    film(opened, "theirs", "b").await;
    let (key, other) = (Uuid::now_v7(), Uuid::now_v7());
    for of in [Some(key), Some(other), Some(key), None] {
        log_empty(opened, SearchFacts { key: of, ..facts("x") }).await;
    }
    let duration_ms = mine.facts.as_ref().unwrap().duration_ms;
    let only = VideoFilter::parse(&json!({"field": "metadata.team", "eq": "a"})).unwrap();
    let of_a = Visibility::Matching(Arc::new(only));
    for (visibility, of, expected) in [
        (&of_a, SearchesOf::Key(key), (2, 1, duration_ms)),
        (&of_a, SearchesOf::Key(Uuid::nil()), (0, 1, duration_ms)),
        (ALL, SearchesOf::Everybody, (4, 2, 2 * duration_ms)),
    ] {
        let asked = SearchesAsked { of, ..everybody() };
        let found = opened.catalog.view(visibility).insights(&asked).await.unwrap();
        let (videos, length) = (found.added.iter().map(|day| day.videos), found.added.iter());
        let length: i64 = length.map(|day| day.duration_ms).sum();
        assert_eq!((found.searches.searches, videos.sum::<i64>(), length), expected, "{of:?}");
    }
    let view = opened.catalog.view(ALL);
    view.delete_video(mine.id).await.unwrap().unwrap();
    let found = view.insights(&everybody()).await.unwrap();
    assert_eq!(found.added.iter().map(|day| day.videos).sum::<i64>(), 1, "without deleted ones");
    let old = SearchesAsked { since_ms: Some(0), until_ms: Some(DAY_MS), ..everybody() };
    assert_eq!(view.insights(&old).await.unwrap().added, []);
}
