//! The query log: pages, lists, callers, feedback, forgetting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_server::catalog::{
    FeedbackPosition, FeedbackTaken, LoggedQuery, LoggedSearch, NewFeedback, NewSearch, NewSearchPage,
    NewVideo, SearchFacts, SearchHit, SearchTimes, SearchesAsked, SearchesOf, SourceScore, Verdict, Video,
    VideoFilter, Visibility,
};
use reprise_server::terms::{Level, SearchKind};
use serde_json::json;
use uuid::Uuid;

use super::samples::{add_ready, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_search_is_listed_with_its_hits,
    searches_are_listed_in_pages_and_filtered,
    later_pages_add_their_hits,
    a_caller_sees_its_searches_and_the_hits_that_it_reaches,
    feedback_is_kept_once_and_can_change_its_mind,
    old_searches_are_forgotten,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A searchable video of one clip that belongs to a team, and its clip.
pub(crate) async fn film(opened: &Opened, title: &str, team: &str) -> (Video, Uuid) {
    let tiny = space(&opened.catalog, "tiny", 4).await;
    let content_hash = format!("{:064x}", Uuid::now_v7().as_u128());
    let new = NewVideo { metadata: json!({"team": team}), content_hash, ..video(title) };
    let video = add_ready(&opened.catalog, new, 1, &[&tiny]).await;
    let clips = opened.catalog.view(ALL).clips(video.id, None, 9).await.unwrap();
    let clip = clips.iter().find(|clip| clip.level == Level::Clip).unwrap().id;
    (video, clip)
}

pub(crate) fn hit(rank: i64, video: &Video, span: Uuid) -> SearchHit {
    SearchHit {
        rank,
        span,
        video: video.id,
        level: Level::Clip,
        start_ms: 0,
        end_ms: 1000,
        inside: false,
        score: 1.0 / rank as f64,
        visual: Some(SourceScore { score: 0.25, rank, z: None }),
        spoken: Some(SourceScore { score: 7.5, rank: rank + 1, z: Some(-1.5) }),
        screen: None,
        full_video: None,
    }
}

/// A text search without a key.
pub(crate) fn facts(text: &str) -> SearchFacts {
    SearchFacts {
        key: None,
        key_name: None,
        kind: SearchKind::Text,
        space: "tiny".to_owned(),
        query: LoggedQuery {
            text: Some(text.to_owned()),
            hash: format!("hash of {text}"),
            filter: Some(json!({"field": "title", "eq": "é"})),
            filtered: true,
            ..LoggedQuery::default()
        },
        live: 12,
        times: SearchTimes { decode: 0.0, encode: 2.5, search: 1.0, catalog: 0.5, total: 4.25 },
    }
}

pub(crate) fn first_page(search: SearchFacts, hits: Vec<SearchHit>) -> NewSearchPage {
    let shown = hits.len() as i64;
    let first = Some(Box::new(NewSearch { answered: Instant::now(), search }));
    NewSearchPage { search: Uuid::now_v7(), first, hits, shown, exhausted: true }
}

pub(crate) async fn log(opened: &Opened, page: NewSearchPage) -> Uuid {
    opened.catalog.log_searches(std::slice::from_ref(&page)).await.unwrap();
    page.search
}

pub(crate) fn everybody() -> SearchesAsked {
    SearchesAsked {
        of: SearchesOf::Everybody,
        before: None,
        limit: 100,
        since_ms: None,
        until_ms: None,
        kind: None,
        space: None,
        key: None,
        without_results: None,
    }
}

fn team(name: &str) -> Visibility {
    let only = json!({"field": "metadata.team", "eq": name});
    Visibility::Matching(Arc::new(VideoFilter::parse(&only).unwrap()))
}

fn spans(search: &LoggedSearch) -> Vec<Uuid> {
    search.hits.iter().map(|judged| judged.hit.span).collect()
}

async fn a_search_is_listed_with_its_hits(opened: &Opened) {
    let (one, first) = film(opened, "one", "a").await;
    let (other, second) = film(opened, "other", "a").await;
    let inside = SearchHit { inside: true, level: Level::Moment, ..hit(1, &one, Uuid::now_v7()) };
    let hits = vec![inside.clone(), hit(2, &other, second), hit(1, &one, first)];
    let asked = facts("a dive \u{1f93d}");
    let id = log(opened, first_page(asked.clone(), hits)).await;
    let view = opened.catalog.view(ALL);
    let found = view.search(id, SearchesOf::Everybody).await.unwrap().unwrap();
    assert_eq!((found.id, &found.facts, found.shown, found.exhausted), (id, &asked, 3, true));
    let now = opened.catalog.now_ms().await.unwrap();
    assert!((now - 60_000..=now).contains(&found.at_ms), "{} at {now}", found.at_ms);
    let got: Vec<&SearchHit> = found.hits.iter().map(|judged| &judged.hit).collect();
    assert_eq!(got, [&hit(1, &one, first), &inside, &hit(2, &other, second)]);
    assert!(found.hits.iter().all(|judged| judged.feedback.is_empty()));
    let listed = view.searches(&everybody(), 1).await.unwrap();
    assert_eq!((listed.len(), spans(&listed[0])), (1, vec![first]), "up to rank 1, none inside others");
    view.delete_video(one.id).await.unwrap().unwrap();
    let found = view.search(id, SearchesOf::Everybody).await.unwrap().unwrap();
    assert_eq!(spans(&found), [second], "a deleted video is in no hit");
    assert_eq!(view.search(Uuid::now_v7(), SearchesOf::Everybody).await.unwrap(), None);
}

async fn searches_are_listed_in_pages_and_filtered(opened: &Opened) {
    let (video, clip) = film(opened, "one", "a").await;
    let (start, key) = (opened.catalog.now_ms().await.unwrap(), Uuid::now_v7());
    let mut ids = Vec::new();
    for (kind, space, hits, key) in [
        (SearchKind::Text, "tiny", 1, None),
        (SearchKind::Clip, "tiny", 0, Some(key)),
        (SearchKind::Composed, "other", 1, Some(key)),
    ] {
        let asked = SearchFacts { kind, space: space.to_owned(), key, ..facts("x") };
        ids.push(log(opened, first_page(asked, vec![hit(1, &video, clip); hits])).await);
        opened.clock.advance(DAY);
    }
    let view = opened.catalog.view(ALL);
    let check = async |change: &dyn Fn(&mut SearchesAsked), expected: &[usize]| {
        let mut asked = everybody();
        change(&mut asked);
        let listed = view.searches(&asked, 10).await.unwrap();
        let got: Vec<Uuid> = listed.iter().map(|search| search.id).collect();
        assert_eq!(got, expected.iter().map(|at| ids[*at]).collect::<Vec<_>>(), "{asked:?}");
    };
    let day = DAY.as_millis() as i64;
    check(&|_| (), &[2, 1, 0]).await;
    check(&|asked| asked.limit = 2, &[2, 1]).await;
    check(&|asked| asked.before = Some(ids[1]), &[0]).await;
    check(&|asked| asked.since_ms = Some(start + day / 2), &[2, 1]).await;
    check(&|asked| asked.until_ms = Some(start + day / 2), &[0]).await;
    check(&|asked| asked.kind = Some(SearchKind::Clip), &[1]).await;
    check(&|asked| asked.space = Some("tiny".to_owned()), &[1, 0]).await;
    check(&|asked| asked.key = Some(key), &[2, 1]).await;
    check(&|asked| asked.without_results = Some(true), &[1]).await;
    check(&|asked| asked.without_results = Some(false), &[2, 0]).await;
    check(&|asked| asked.of = SearchesOf::Key(key), &[2, 1]).await;
    check(&|asked| asked.of = SearchesOf::Key(Uuid::nil()), &[]).await;
}

async fn later_pages_add_their_hits(opened: &Opened) {
    let (video, clip) = film(opened, "one", "a").await;
    let first = NewSearchPage { exhausted: false, ..first_page(facts("x"), vec![hit(1, &video, clip)]) };
    let second = Uuid::now_v7();
    let later = NewSearchPage {
        first: None,
        hits: vec![hit(2, &video, second)],
        shown: 2,
        exhausted: true,
        ..first.clone()
    };
    let stranger = NewSearchPage { search: Uuid::now_v7(), ..later.clone() };
    // Pages may be written together or one by one, and the same page may be asked for again.
    let batches = [vec![first.clone(), later.clone(), stranger], vec![later.clone()], vec![first.clone()]];
    for batch in batches {
        opened.catalog.log_searches(&batch).await.unwrap();
        let listed = opened.catalog.view(ALL).searches(&everybody(), 10).await.unwrap();
        assert_eq!(listed.len(), 1, "a page whose search is not there is left out");
        assert_eq!((listed[0].shown, listed[0].exhausted), (2, true));
        assert_eq!(spans(&listed[0]), [clip, second]);
    }
}

async fn a_caller_sees_its_searches_and_the_hits_that_it_reaches(opened: &Opened) {
    let (mine, my_clip) = film(opened, "mine", "a").await;
    let (theirs, their_clip) = film(opened, "theirs", "b").await;
    let (key, other) = (Uuid::now_v7(), Uuid::now_v7());
    let hits = vec![hit(1, &theirs, their_clip), hit(2, &mine, my_clip)];
    let asked = SearchFacts { key: Some(key), key_name: Some("a".to_owned()), ..facts("x") };
    let id = log(opened, first_page(asked, hits)).await;
    let of_a = team("a");
    let view = opened.catalog.view(&of_a);
    let own = view.search(id, SearchesOf::Key(key)).await.unwrap().unwrap();
    assert_eq!((spans(&own), own.shown), (vec![my_clip], 2));
    assert_eq!(view.search(id, SearchesOf::Key(other)).await.unwrap(), None);
    let asked = SearchesAsked { of: SearchesOf::Key(key), ..everybody() };
    assert_eq!(spans(&view.searches(&asked, 10).await.unwrap()[0]), [my_clip]);
    let give = async |of, span| {
        let new = NewFeedback { search: id, span, verdict: Verdict::Opened, key: Some(key), key_name: None };
        view.give_feedback(of, &new).await.unwrap()
    };
    assert_eq!(give(SearchesOf::Key(other), my_clip).await, FeedbackTaken::NoSearch);
    assert_eq!(give(SearchesOf::Key(key), their_clip).await, FeedbackTaken::NoHit);
    assert_eq!(give(SearchesOf::Key(key), my_clip).await, FeedbackTaken::Stored);
    assert_eq!(view.feedback(None, 9).await.unwrap().len(), 1);
    assert_eq!(opened.catalog.view(&team("b")).feedback(None, 9).await.unwrap(), []);
}

async fn feedback_is_kept_once_and_can_change_its_mind(opened: &Opened) {
    use Verdict::{Exported, NotRelevant, Opened as Looked, Relevant};
    let (video, clip) = film(opened, "one", "a").await;
    let view = opened.catalog.view(ALL);
    let id = log(opened, first_page(facts("x"), vec![hit(1, &video, clip)])).await;
    let give = async |search, span, verdict| {
        opened.clock.advance(Duration::from_secs(1));
        let new = NewFeedback { search, span, verdict, key: None, key_name: Some("é".to_owned()) };
        view.give_feedback(SearchesOf::Everybody, &new).await.unwrap()
    };
    for (verdict, expected) in [
        (Relevant, &[Relevant][..]),
        (Looked, &[Relevant, Looked]),
        (Relevant, &[Relevant, Looked]),
        (NotRelevant, &[Looked, NotRelevant]),
        (Exported, &[Looked, NotRelevant, Exported]),
    ] {
        assert_eq!(give(id, clip, verdict).await, FeedbackTaken::Stored);
        let found = view.search(id, SearchesOf::Everybody).await.unwrap().unwrap();
        assert_eq!(found.hits[0].feedback, expected, "after {verdict}");
    }
    assert_eq!(give(id, video.id, Looked).await, FeedbackTaken::NoHit);
    assert_eq!(give(Uuid::now_v7(), clip, Looked).await, FeedbackTaken::NoSearch);
    let (mut read, mut after) = (Vec::new(), None);
    while let Some(judged) = view.feedback(after, 1).await.unwrap().pop() {
        let (search, span, verdict) = (judged.search, judged.hit.span, judged.verdict);
        after = Some(FeedbackPosition { search, span, verdict });
        assert_eq!((&judged.query, &judged.hit), (&facts("x").query, &hit(1, &video, clip)));
        assert_eq!((&judged.hit_title[..], &judged.key_name), ("one", &Some("é".to_owned())));
        assert_eq!((&judged.hit_file.file[..], &judged.query_file), ("media/one.mp4", &None));
        read.push(verdict);
    }
    assert_eq!(read, [Exported, NotRelevant, Looked]);
}

async fn old_searches_are_forgotten(opened: &Opened) {
    let (video, clip) = film(opened, "one", "a").await;
    let old = log(opened, first_page(facts("old"), vec![hit(1, &video, clip)])).await;
    let view = opened.catalog.view(ALL);
    let new = NewFeedback { search: old, span: clip, verdict: Verdict::Relevant, key: None, key_name: None };
    assert_eq!(view.give_feedback(SearchesOf::Everybody, &new).await.unwrap(), FeedbackTaken::Stored);
    opened.clock.advance(DAY);
    // More than one transaction forgets.
    let pages: Vec<NewSearchPage> = (0..1100).map(|_| first_page(facts("young"), Vec::new())).collect();
    opened.catalog.log_searches(&pages).await.unwrap();
    let day_ms = DAY.as_millis() as i64;
    assert_eq!(opened.catalog.forget_searches(2 * day_ms).await.unwrap(), 0);
    opened.clock.advance(Duration::from_secs(3600));
    assert_eq!(opened.catalog.forget_searches(day_ms).await.unwrap(), 1);
    assert_eq!(view.search(old, SearchesOf::Everybody).await.unwrap(), None);
    assert_eq!(view.feedback(None, 9).await.unwrap(), []);
    opened.clock.advance(DAY);
    assert_eq!(opened.catalog.forget_searches(day_ms).await.unwrap(), 1100);
    assert_eq!(opened.catalog.forget_searches(day_ms).await.unwrap(), 0);
}
