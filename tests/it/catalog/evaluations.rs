//! Evaluations: outcomes that are stored once, owners, ends.

use std::sync::Arc;
use std::time::Duration;

use reprise_server::catalog::{
    CatalogError, EvaluationQuery, JobFilter, JobName, JobState, NewEvaluation, NewOutcome, Owner,
    VideoFilter, VideoRange, Visibility,
};
use serde_json::json;
use uuid::Uuid;

use super::samples::{add_ready, lease, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    an_outcome_is_stored_once_and_only_by_the_holder,
    an_evaluation_belongs_to_its_key,
    evaluations_expire,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

fn new(owner: Option<Uuid>, video: Uuid, queries: usize) -> NewEvaluation {
    let relevant = vec![VideoRange { video, start_ms: 0, end_ms: 1000 }];
    let query = |number: usize| EvaluationQuery {
        text: Some(format!("é \"' {number}")),
        relevant: relevant.clone(),
        ..EvaluationQuery::default()
    };
    NewEvaluation {
        owner,
        name: "é \"'".to_owned(),
        settings: json!({"spaces": ["tiny"]}),
        queries: (0..queries).map(query).collect(),
        lasts: DAY,
    }
}

async fn an_outcome_is_stored_once_and_only_by_the_holder(opened: &Opened) {
    let (catalog, view) = (&opened.catalog, opened.catalog.view(ALL));
    let tiny = space(catalog, "tiny", 4).await;
    let film = add_ready(catalog, video("film"), 3, &[&tiny]).await.id;
    let stored = view.add_evaluation(&new(None, film, 3)).await.unwrap();
    assert_eq!((stored.job.kind, stored.queries), (JobName::Evaluation, 3));
    assert_eq!(view.evaluation(Owner::Anybody, stored.job.id).await.unwrap(), Some(stored.clone()));
    let leased = lease(catalog).await;
    assert_eq!(leased.job.id, stored.job.id);
    let outcome = |place: i64, what: &str| NewOutcome { place, outcome: json!([what]) };
    catalog.store_outcomes(&leased.lease, &[outcome(0, "a"), outcome(2, "c")]).await.unwrap();
    catalog.store_outcomes(&leased.lease, &[outcome(0, "other")]).await.unwrap();
    let left = catalog.unanswered_queries(stored.job.id, 9).await.unwrap();
    assert_eq!(left.iter().map(|it| it.place).collect::<Vec<_>>(), [1]);
    assert_eq!(catalog.count_answered(stored.job.id).await.unwrap(), 2);
    let read = view.evaluated_queries(stored.job.id, -1, 9).await.unwrap();
    assert_eq!((read[0].outcome.clone(), read.len()), (Some(json!(["a"])), 3));
    catalog.store_outcomes(&leased.lease, &[outcome(1, "b")]).await.unwrap();
    for _ in 0..2 {
        catalog.finish_evaluation(&leased.lease, &json!({"asked": 3})).await.unwrap();
    }
    let ended = view.evaluation(Owner::Anybody, stored.job.id).await.unwrap().unwrap();
    assert_eq!((ended.job.state, ended.report), (JobState::Succeeded, Some(json!({"asked": 3}))));
    let page = catalog.answered_queries(stored.job.id, 0, 9).await.unwrap();
    assert_eq!(page.iter().map(|it| it.place).collect::<Vec<_>>(), [1, 2]);

    let gone = view.add_evaluation(&new(None, film, 1)).await.unwrap();
    let leased = lease(catalog).await;
    assert_eq!(view.delete_evaluation(Owner::Anybody, gone.job.id).await.unwrap(), Some(()));
    assert_eq!(view.delete_evaluation(Owner::Anybody, gone.job.id).await.unwrap(), None);
    assert_eq!(view.job(gone.job.id).await.unwrap(), None);
    let late = catalog.store_outcomes(&leased.lease, &[outcome(0, "late")]).await;
    assert!(matches!(late, Err(CatalogError::LeaseLost)), "{late:?}");
    let late = catalog.finish_evaluation(&leased.lease, &json!({})).await;
    assert!(matches!(late, Err(CatalogError::LeaseLost)), "{late:?}");
}

async fn an_evaluation_belongs_to_its_key(opened: &Opened) {
    let view = opened.catalog.view(ALL);
    let (own, other) = (Uuid::now_v7(), Uuid::now_v7());
    let stored = view.add_evaluation(&new(Some(own), Uuid::nil(), 1)).await.unwrap();
    for (owner, count) in [(Owner::Anybody, 1), (Owner::Key(own), 1), (Owner::Key(other), 0)] {
        assert_eq!(view.evaluations(owner, None, 9).await.unwrap().len(), count, "{owner:?}");
        assert_eq!(view.evaluation(owner, stored.job.id).await.unwrap().iter().len(), count);
    }
    assert_eq!(view.delete_evaluation(Owner::Key(other), stored.job.id).await.unwrap(), None);
    let filter = VideoFilter::parse(&json!({"field": "metadata.team", "eq": "a"})).unwrap();
    let nothing = Visibility::Matching(Arc::new(filter));
    let id = stored.job.id;
    for (key, count) in [(own, 1), (other, 0)] {
        let limited = opened.catalog.view(&nothing).of_key(Some(key));
        assert_eq!(limited.jobs(&JobFilter::default(), None, 9).await.unwrap().len(), count);
        assert_eq!(limited.counts().await.unwrap().jobs_queued, count as i64);
        let found = limited.evaluated_queries(id, -1, 9).await.unwrap();
        assert_eq!(found[0].query.relevant, [], "the video is not there");
    }
    let limited = opened.catalog.view(&nothing).of_key(Some(other));
    assert_eq!(limited.cancel_job(id).await.unwrap(), None);
    let limited = opened.catalog.view(&nothing).of_key(Some(own));
    assert_eq!(limited.cancel_job(id).await.unwrap().map(|job| job.state), Some(JobState::Cancelled));
    assert_eq!(limited.retry_job(id).await.unwrap().map(|job| job.state), Some(JobState::Queued));
}

async fn evaluations_expire(opened: &Opened) {
    let (catalog, view) = (&opened.catalog, opened.catalog.view(ALL));
    let first = view.add_evaluation(&new(None, Uuid::nil(), 2)).await.unwrap();
    opened.clock.advance(DAY / 2);
    let second = view.add_evaluation(&new(None, Uuid::nil(), 2)).await.unwrap();
    assert_eq!(catalog.forget_evaluations().await.unwrap(), 0);
    opened.clock.advance(DAY / 2);
    assert_eq!(catalog.forget_evaluations().await.unwrap(), 1);
    assert_eq!(view.evaluation(Owner::Anybody, first.job.id).await.unwrap(), None);
    assert_eq!(view.job(first.job.id).await.unwrap(), None);
    assert_eq!(catalog.unanswered_queries(first.job.id, 9).await.unwrap(), []);
    assert_eq!(catalog.unanswered_queries(second.job.id, 9).await.unwrap().len(), 2);
}
