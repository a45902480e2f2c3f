//! Alerts: checks of new videos, matches, and who sees them.

use std::time::Duration;

use reprise_server::catalog::{
    ASKED_FOR, Alert, AlertHit, Attempted, CatalogError, Found, LeasedCheck, NewAlert, NewApiKey, NewVideo,
    NewWebhook, Owner, Scope, Video, VideoFilter, Visibility, WebhookEvent, WebhookFault, WebhookSecret,
};
use reprise_server::terms::Level;
use serde_json::{Value, json};
use uuid::Uuid;

use super::samples::{LEASE, add_ready, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_new_video_is_asked_once_and_its_match_is_sent_once,
    a_dead_process_neither_loses_nor_doubles_a_match,
    a_check_that_fails_says_why_and_is_given_up_after_a_day,
    deleted_videos_and_alerts_are_not_asked,
    an_owner_sees_its_own_alerts,
    an_alert_names_webhooks_of_its_owner,
    an_alert_is_changed_in_the_state_that_was_read,
);

fn new(name: &str) -> NewAlert {
    let search = json!({"query": {"text": "é\0"}, "limit": 5});
    NewAlert { owner: None, name: name.to_owned(), search, min_score: Some(0.25), webhooks: Vec::new() }
}

async fn alert(opened: &Opened, new: &NewAlert) -> Alert {
    opened.catalog.view(ALL).add_alert(Owner::Anybody, new, 100).await.unwrap()
}

async fn seen(opened: &Opened, alert: &Alert) -> Alert {
    opened.catalog.view(ALL).alert(Owner::Anybody, alert.id).await.unwrap().unwrap()
}

async fn webhook(opened: &Opened, owner: Option<Uuid>, events: &[WebhookEvent]) -> Uuid {
    let (url, secret) = ("https://example.com".to_owned(), WebhookSecret::from([1; 32]));
    let new = NewWebhook { owner, url, description: String::new(), events: events.to_vec(), secret };
    opened.catalog.add_webhook(&new).await.unwrap().id
}

async fn ready(opened: &Opened, name: &str) -> Video {
    let tiny = space(&opened.catalog, "tiny", 4).await;
    add_ready(&opened.catalog, video(name), 2, &[&tiny]).await
}

async fn leased(opened: &Opened) -> LeasedCheck {
    opened.catalog.lease_check(LEASE).await.unwrap().expect("a check is due")
}

async fn nothing_is_due(opened: &Opened) -> bool {
    opened.catalog.lease_check(LEASE).await.unwrap().is_none()
}

fn found(score: f64) -> Found {
    let hit = AlertHit {
        clip: Uuid::from_u128(7),
        level: Level::Clip,
        start_ms: 500,
        end_ms: 1500,
        score,
        z: Some(4.5),
    };
    Found { space: "tiny".to_owned(), hits: vec![hit] }
}

fn nothing() -> Found {
    Found { space: "tiny".to_owned(), hits: Vec::new() }
}

/// The payloads of all deliveries that are due.
async fn sent(opened: &Opened) -> Vec<Value> {
    let mut payloads = Vec::new();
    while let Some(leased) = opened.catalog.lease_delivery(LEASE).await.unwrap() {
        payloads.push(serde_json::from_str(&leased.payload).unwrap());
        opened.catalog.finish_delivery(&leased.lease, &Attempted::Delivered(204)).await.unwrap();
    }
    payloads
}

async fn matched(opened: &Opened, alert: &Alert) -> Vec<Uuid> {
    let view = opened.catalog.view(ALL);
    let matches = view.alert_matches(Owner::Anybody, alert.id, None, 99).await.unwrap().unwrap();
    matches.into_iter().map(|it| it.video).collect()
}

async fn a_new_video_is_asked_once_and_its_match_is_sent_once(opened: &Opened) {
    let before = ready(opened, "before").await;
    let hook = webhook(opened, None, &[WebhookEvent::AlertMatched]).await;
    webhook(opened, None, &[WebhookEvent::AlertMatched]).await;
    let alert = alert(opened, &NewAlert { webhooks: vec![hook], ..new("é") }).await;
    assert_eq!(seen(opened, &alert).await, alert);
    assert!(nothing_is_due(opened).await, "videos from before are not asked");
    let (first, second) = (ready(opened, "first").await, ready(opened, "second").await);
    assert_eq!(seen(opened, &alert).await.waiting, 2);
    let check = leased(opened).await;
    assert_eq!((check.lease.alert, check.lease.video, check.attempt), (alert.id, first.id, 1));
    assert_eq!((&check.search, check.min_score, check.owner), (&alert.search, Some(0.25), None));
    opened.catalog.finish_check(&check.lease, &found(0.5)).await.unwrap();
    opened.catalog.finish_check(&check.lease, &found(0.5)).await.unwrap();
    let check = leased(opened).await;
    assert_eq!(check.lease.video, second.id);
    opened.catalog.finish_check(&check.lease, &nothing()).await.unwrap();
    assert!(nothing_is_due(opened).await);

    let view = opened.catalog.view(ALL);
    let matches = view.alert_matches(Owner::Anybody, alert.id, None, 99).await.unwrap().unwrap();
    let [only] = &matches[..] else { panic!("{matches:?}") };
    assert_eq!((only.video, &only.found), (first.id, &found(0.5)));
    assert_eq!(view.alert_matches(Owner::Anybody, alert.id, Some(only.id), 99).await.unwrap().unwrap(), []);
    let payloads = sent(opened).await;
    let [payload] = &payloads[..] else { panic!("only the named webhook gets it: {payloads:?}") };
    assert_eq!(payload["type"], "alert.matched");
    let data = &payload["data"];
    assert_eq!((&data["alert_id"], &data["alert_name"]), (&json!(alert.id), &json!("é")));
    assert_eq!((&data["match_id"], &data["video_id"]), (&json!(only.id), &json!(first.id)));
    let url = format!("/v1/clips/{}", Uuid::from_u128(7));
    let hit = json!({"clip_id": Uuid::from_u128(7), "level": "clip", "start": 0.5, "end": 1.5, "score": 0.5, "z": 4.5,
        "url": url});
    assert_eq!(data["hits"], json!([hit]));
    let now = seen(opened, &alert).await;
    assert_eq!((now.matches, now.waiting, now.missed, &now.trouble), (1, 0, 0, &None));

    // Another cut of a video is no new video.
    let again = view.resegment(before.id, &before.segmentation).await.unwrap().unwrap();
    let recut = super::samples::lease(&opened.catalog).await;
    assert_eq!(recut.job.id, again.id);
    opened.catalog.finish_ingest(&recut.lease, super::samples::ingested(1, &[])).await.unwrap();
    assert!(nothing_is_due(opened).await);
}

async fn a_dead_process_neither_loses_nor_doubles_a_match(opened: &Opened) {
    let alert = alert(opened, &new("a")).await;
    let film = ready(opened, "film").await;
    let dead = leased(opened).await;
    assert!(nothing_is_due(opened).await, "one process at a time asks");
    opened.clock.advance(LEASE);
    let second = leased(opened).await;
    assert_eq!((second.lease.video, second.attempt), (film.id, 2));
    // The first one was only slow.
    opened.catalog.finish_check(&dead.lease, &found(0.1)).await.unwrap();
    assert_eq!(matched(opened, &alert).await, Vec::<Uuid>::new());
    opened.catalog.finish_check(&second.lease, &found(0.2)).await.unwrap();
    opened.catalog.finish_check(&dead.lease, &found(0.3)).await.unwrap();
    assert_eq!(matched(opened, &alert).await, [film.id]);
    assert!(nothing_is_due(opened).await);
}

async fn a_check_that_fails_says_why_and_is_given_up_after_a_day(opened: &Opened) {
    let alert = alert(opened, &new("a")).await;
    ready(opened, "film").await;
    let wait = Duration::from_secs(3600);
    let why = Some("no loaded space is called `x`");
    for attempt in 1..=23 {
        let check = leased(opened).await;
        assert_eq!(check.attempt, attempt);
        opened.catalog.postpone_check(&check.lease, wait, why).await.unwrap();
        let now = seen(opened, &alert).await;
        assert_eq!((now.trouble.as_deref(), now.waiting, now.missed), (why, 1, 0));
        assert!(nothing_is_due(opened).await, "it waits");
        opened.clock.advance(wait);
    }
    let check = leased(opened).await;
    assert_eq!(ASKED_FOR, 24 * wait);
    opened.catalog.postpone_check(&check.lease, wait, None).await.unwrap();
    let now = seen(opened, &alert).await;
    assert_eq!((now.trouble.as_deref(), now.waiting, now.missed), (why, 0, 1));
    ready(opened, "other").await;
    opened.catalog.finish_check(&leased(opened).await.lease, &nothing()).await.unwrap();
    assert_eq!(seen(opened, &alert).await.trouble, None, "the next one went well");
}

async fn deleted_videos_and_alerts_are_not_asked(opened: &Opened) {
    let (kept, gone) = (alert(opened, &new("kept")).await, alert(opened, &new("gone")).await);
    let (view, film) = (opened.catalog.view(ALL), ready(opened, "film").await);
    let checks = [leased(opened).await, leased(opened).await];
    assert_eq!(view.delete_alert(Owner::Anybody, gone.id).await.unwrap(), Some(()));
    assert_eq!(view.delete_alert(Owner::Anybody, gone.id).await.unwrap(), None);
    for check in &checks {
        opened.catalog.finish_check(&check.lease, &found(0.5)).await.unwrap();
    }
    assert_eq!(matched(opened, &kept).await, [film.id]);
    assert_eq!(view.alert_matches(Owner::Anybody, gone.id, None, 9).await.unwrap(), None);
    let doomed = ready(opened, "doomed").await;
    let check = leased(opened).await;
    view.delete_video(doomed.id).await.unwrap().unwrap();
    view.delete_video(film.id).await.unwrap().unwrap();
    opened.catalog.finish_check(&check.lease, &found(0.5)).await.unwrap();
    opened.clock.advance(LEASE);
    assert!(nothing_is_due(opened).await);
    assert_eq!(matched(opened, &kept).await, Vec::<Uuid>::new(), "matches in deleted videos are hidden");
    let now = seen(opened, &kept).await;
    assert_eq!((now.matches, now.waiting), (0, 0));
    opened.catalog.purge_video(film.id).await.unwrap();
    opened.catalog.sweep_alerts().await.unwrap();
    assert_eq!(seen(opened, &kept).await, now);
}

/// A key that reaches the videos of a team, and its visibility.
async fn key(opened: &Opened, team: &str) -> (Uuid, Visibility) {
    let only = VideoFilter::parse(&json!({"field": "metadata.team", "eq": team})).unwrap();
    let only = std::sync::Arc::new(only);
    let key = NewApiKey {
        name: team.to_owned(),
        scopes: vec![Scope::Write],
        only: Some(only.clone()),
        limits: Default::default(),
        expires_at_ms: None,
    };
    let id = opened.catalog.add_key(Uuid::now_v7(), [0; 32], key).await.unwrap().id;
    (id, Visibility::Matching(only))
}

async fn an_owner_sees_its_own_alerts(opened: &Opened) {
    let ((a, a_team), (b, _)) = (key(opened, "a").await, key(opened, "b").await);
    let mine = alert(opened, &NewAlert { owner: Some(a), ..new("mine") }).await;
    let theirs = alert(opened, &NewAlert { owner: Some(b), ..new("theirs") }).await;
    let view = opened.catalog.view(&a_team);
    assert_eq!(view.alerts(Owner::Key(a), None, 9).await.unwrap(), std::slice::from_ref(&mine));
    assert_eq!(
        opened.catalog.view(ALL).alerts(Owner::Anybody, None, 9).await.unwrap(),
        [theirs.clone(), mine.clone()]
    );
    assert_eq!(view.alert(Owner::Key(a), theirs.id).await.unwrap(), None);
    assert_eq!(view.alert_matches(Owner::Key(a), theirs.id, None, 9).await.unwrap(), None);
    assert_eq!(view.delete_alert(Owner::Key(a), theirs.id).await.unwrap(), None);
    // What left the key's reach since is hidden.
    let tiny = space(&opened.catalog, "tiny", 4).await;
    let of_a = NewVideo { metadata: json!({"team": "a"}), ..video("of a") };
    let film = add_ready(&opened.catalog, of_a, 1, &[&tiny]).await;
    for _ in 0..2 {
        opened.catalog.finish_check(&leased(opened).await.lease, &found(0.5)).await.unwrap();
    }
    let matches = async || view.alert_matches(Owner::Key(a), mine.id, None, 9).await.unwrap().unwrap().len();
    assert_eq!(matches().await, 1);
    let moved = reprise_server::catalog::VideoPatch { metadata: Some(json!({})), ..Default::default() };
    opened.catalog.view(ALL).update_video(film.id, moved).await.unwrap().unwrap();
    assert_eq!(matches().await, 0);
    let most = opened.catalog.view(ALL).add_alert(Owner::Anybody, &new("third"), 2).await;
    assert!(matches!(&most, Err(CatalogError::Conflict(text)) if text.contains("may have 2")), "{most:?}");
}

async fn an_alert_is_changed_in_the_state_that_was_read(opened: &Opened) {
    let view = opened.catalog.view(ALL);
    let hook = webhook(opened, None, &[WebhookEvent::AlertMatched]).await;
    let first = alert(opened, &new("first")).await;
    ready(opened, "a").await;
    let wait = Duration::from_secs(600);
    let lease = leased(opened).await.lease;
    opened.catalog.postpone_check(&lease, wait, Some("no such space")).await.unwrap();
    assert!(nothing_is_due(opened).await);
    let change =
        async |expected: &Alert, new: NewAlert| view.update_alert(Owner::Anybody, expected, &new).await;
    // A name and webhooks leave the checks alone.
    let named = NewAlert { webhooks: vec![hook, hook], ..new("second") };
    let second = change(&seen(opened, &first).await, named.clone()).await.unwrap().unwrap();
    assert_eq!((&*second.name, &second.webhooks, second.min_score), ("second", &vec![hook], Some(0.25)));
    assert_eq!((second.waiting, second.trouble.as_deref()), (1, Some("no such space")));
    assert!(nothing_is_due(opened).await);
    assert!(matches!(change(&first, named).await, Err(CatalogError::Stale)), "it has another name by now");
    // A new search is asked at once.
    let search = json!({"query": {"text": "b"}});
    let asked = NewAlert { search: search.clone(), min_score: None, ..new("third") };
    let third = change(&second, asked).await.unwrap().unwrap();
    assert_eq!((&third.search, third.min_score, third.trouble.as_deref()), (&search, None, None));
    assert_eq!(third.webhooks, Vec::<Uuid>::new());
    let check = leased(opened).await;
    assert_eq!((check.lease.alert, check.search), (third.id, search));
    let unknown = NewAlert { webhooks: vec![Uuid::now_v7()], ..new("x") };
    let refused = change(&third, unknown).await;
    assert!(matches!(refused, Err(CatalogError::Webhook { place: 0, .. })), "{refused:?}");
    let other = Owner::Key(key(opened, "a").await.0);
    assert_eq!(view.update_alert(other, &third, &new("x")).await.unwrap(), None);
    view.delete_alert(Owner::Anybody, third.id).await.unwrap().unwrap();
    assert_eq!(change(&third, new("x")).await.unwrap(), None);
}

async fn an_alert_names_webhooks_of_its_owner(opened: &Opened) {
    let ((a, a_team), (b, _)) = (key(opened, "a").await, key(opened, "b").await);
    let mine = webhook(opened, Some(a), &[WebhookEvent::AlertMatched]).await;
    let theirs = webhook(opened, Some(b), &[WebhookEvent::AlertMatched]).await;
    let other = webhook(opened, Some(a), &[WebhookEvent::VideoReady]).await;
    let view = opened.catalog.view(&a_team);
    let add = async |webhooks: Vec<Uuid>| {
        view.add_alert(Owner::Key(a), &NewAlert { owner: Some(a), webhooks, ..new("x") }, 100).await
    };
    for (webhooks, expected) in [
        (vec![mine, theirs], (1, WebhookFault::Missing(theirs))),
        (vec![other], (0, WebhookFault::OtherEvents)),
    ] {
        match add(webhooks).await {
            Err(CatalogError::Webhook { place, fault }) => assert_eq!((place, fault), expected),
            other => panic!("{other:?}"),
        }
    }
    let alert = add(vec![mine]).await.unwrap();
    opened.catalog.delete_webhook(Owner::Key(a), mine).await.unwrap().unwrap();
    assert_eq!(seen(opened, &alert).await.webhooks, Vec::<Uuid>::new());

    // A limited webhook gets the matches in videos that its key reaches.
    let alert = alert_of_all(opened, theirs).await;
    ready(opened, "of nobody").await;
    let tiny = space(&opened.catalog, "tiny", 4).await;
    let of_b = NewVideo { metadata: json!({"team": "b"}), ..video("of b") };
    let film = add_ready(&opened.catalog, of_b, 1, &[&tiny]).await;
    while let Some(check) = opened.catalog.lease_check(LEASE).await.unwrap() {
        opened.catalog.finish_check(&check.lease, &found(0.5)).await.unwrap();
    }
    assert_eq!(matched(opened, &alert).await.len(), 2);
    let payloads = sent(opened).await;
    assert!(payloads.len() == 1 && payloads[0]["data"]["video_id"] == json!(film.id), "{payloads:?}");
}

async fn alert_of_all(opened: &Opened, webhook: Uuid) -> Alert {
    alert(opened, &NewAlert { webhooks: vec![webhook], ..new("all") }).await
}
