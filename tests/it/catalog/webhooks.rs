//! Webhooks: the events that they get, and who sends a delivery when.

use std::sync::Arc;
use std::time::Duration;

use reprise_server::catalog::{
    ApiKey, Attempted, Catalog, CatalogError, Delivery, DeliveryState, KeyLimits, LeasedDelivery, MOST_ENDED,
    MOST_WAITING, MOST_WEBHOOKS, MadeExport, NewApiKey, NewExport, NewVideo, NewWebhook, NextAttempt,
    OLD_SECRET_LASTS, Owner, ReelRange, Scope, TRIED_FOR, VideoFilter, Webhook, WebhookEvent, WebhookSecret,
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use uuid::Uuid;

use super::samples::{LEASE, add, add_ready, ingested, lease, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    an_event_is_stored_by_what_causes_it,
    a_webhook_gets_events_of_what_its_key_reaches,
    an_owner_sees_and_changes_its_own_webhooks,
    one_process_at_a_time_sends_a_delivery,
    a_failing_delivery_is_tried_for_a_day,
    a_receiver_that_is_gone_ends_its_webhook,
    a_rotated_secret_signs_for_a_day,
    deliveries_are_bounded_in_number_and_time,
);

const EVENTS: [WebhookEvent; 4] = WebhookEvent::ALL;

fn secret(byte: u8) -> WebhookSecret {
    WebhookSecret::from([byte; 32])
}

fn new(owner: Option<Uuid>, events: &[WebhookEvent]) -> NewWebhook {
    let (url, description) = ("https://example.com/hooks".to_owned(), "é \"'".to_owned());
    NewWebhook { owner, url, description, events: events.to_vec(), secret: secret(1) }
}

async fn webhook(opened: &Opened, owner: Option<Uuid>, events: &[WebhookEvent]) -> Webhook {
    opened.catalog.add_webhook(&new(owner, events)).await.unwrap()
}

async fn key(catalog: &Catalog, team: &str) -> ApiKey {
    let only = json!({"field": "metadata.team", "eq": team});
    let key = NewApiKey {
        name: team.to_owned(),
        scopes: vec![Scope::Read, Scope::Write],
        only: Some(Arc::new(VideoFilter::parse(&only).unwrap())),
        limits: KeyLimits::default(),
        expires_at_ms: None,
    };
    catalog.add_key(Uuid::now_v7(), [0; 32], key).await.unwrap()
}

/// A video of a team, with bytes of its own.
fn of_team(name: &str) -> NewVideo {
    let content_hash = format!("{:064x}", Uuid::now_v7().as_u128());
    NewVideo { metadata: json!({"team": name}), content_hash, ..video(name) }
}

async fn deliveries(opened: &Opened, webhook: &Webhook) -> Vec<Delivery> {
    let listed = opened.catalog.deliveries(Owner::Anybody, webhook.id, None, 1000).await.unwrap();
    let mut listed = listed.expect("the webhook is there");
    listed.reverse();
    listed
}

async fn events(opened: &Opened, webhook: &Webhook) -> Vec<String> {
    deliveries(opened, webhook).await.into_iter().map(|delivery| delivery.event).collect()
}

async fn leased(opened: &Opened) -> LeasedDelivery {
    opened.catalog.lease_delivery(LEASE).await.unwrap().expect("a delivery is due")
}

/// Takes the next delivery, which the receiver takes. Returns its payload.
async fn delivered(opened: &Opened) -> Value {
    let leased = leased(opened).await;
    opened.catalog.finish_delivery(&leased.lease, &Attempted::Delivered(204)).await.unwrap();
    serde_json::from_str(&leased.payload).unwrap()
}

async fn nothing_is_due(opened: &Opened) -> bool {
    opened.catalog.lease_delivery(LEASE).await.unwrap().is_none()
}

async fn an_event_is_stored_by_what_causes_it(opened: &Opened) {
    let (catalog, hook) = (&opened.catalog, webhook(opened, None, &EVENTS).await);
    let only_failures = webhook(opened, None, &[WebhookEvent::VideoFailed]).await;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("ready"), 2, &[&tiny]).await;
    let payload = delivered(opened).await;
    let url = format!("/v1/videos/{}", ready.id);
    assert_eq!(payload["type"], "video.ready");
    assert_eq!(payload["data"], json!({"video_id": ready.id, "url": url}));
    assert!(payload["timestamp"].as_str().unwrap().ends_with('Z'), "{payload}");

    // To cut it again is no news.
    let again = catalog.view(ALL).resegment(ready.id, &ready.segmentation).await.unwrap().unwrap();
    let recut = lease(catalog).await;
    assert_eq!(recut.job.id, again.id);
    catalog.finish_ingest(&recut.lease, ingested(1, &[&tiny])).await.unwrap();
    assert_eq!(events(opened, &hook).await, ["video.ready"]);

    let (failed, job) = add(catalog, video("failed")).await;
    let ingest = lease(catalog).await;
    catalog.fail_job(&ingest.lease, &"x".repeat(3000), NextAttempt::Never).await.unwrap();
    let payload = delivered(opened).await;
    assert_eq!((&payload["type"], &payload["data"]["video_id"]), (&json!("video.failed"), &json!(failed.id)));
    assert_eq!(payload["data"]["job_url"], format!("/v1/jobs/{}", job.id));
    assert_eq!(payload["data"]["reason"].as_str().map(str::len), Some(500), "payloads are small");
    delivered(opened).await;
    let (_, cancelled) = add(catalog, video("cancelled")).await;
    catalog.view(ALL).cancel_job(cancelled.id).await.unwrap().unwrap();
    assert_eq!(events(opened, &only_failures).await, ["video.failed", "video.failed"]);
    assert_eq!(delivered(opened).await["data"]["reason"], "cancelled by a user");
    delivered(opened).await;

    let ranges = vec![ReelRange { video: ready.id, start_ms: 0, end_ms: 1000, note: String::new() }];
    let export = NewExport { request: json!({}), ranges, added_by: None };
    let export = catalog.view(ALL).add_export(&export).await.unwrap().job.id;
    let making = lease(catalog).await;
    let made = MadeExport {
        file: "exports/a".to_owned(),
        file_name: "a.csv".to_owned(),
        media_type: "text/csv".to_owned(),
        bytes: 1,
        content_hash: "0".repeat(64),
        report: json!({}),
    };
    for _ in 0..2 {
        catalog.finish_export(&making.lease, &made, &[ready.id], LEASE).await.unwrap();
    }
    let payload = delivered(opened).await;
    assert_eq!((&payload["type"], &payload["data"]["export_id"]), (&json!("export.ready"), &json!(export)));
    assert_eq!(payload["data"]["download_url"], format!("/v1/exports/{export}/download"));
    assert!(nothing_is_due(opened).await, "a repeated finish is no event");
}

async fn a_webhook_gets_events_of_what_its_key_reaches(opened: &Opened) {
    let catalog = &opened.catalog;
    let (a, b) = (key(catalog, "a").await, key(catalog, "b").await);
    let of_a = webhook(opened, Some(a.id), &EVENTS).await;
    let of_b = webhook(opened, Some(b.id), &EVENTS).await;
    let of_all = webhook(opened, None, &EVENTS).await;
    let tiny = space(catalog, "tiny", 4).await;
    let mine = add_ready(catalog, of_team("a"), 1, &[&tiny]).await;
    let theirs = add_ready(catalog, of_team("b"), 1, &[&tiny]).await;
    for (hook, expected) in [(&of_a, 1), (&of_b, 1), (&of_all, 2)] {
        assert_eq!(events(opened, hook).await.len(), expected);
    }
    let range = |video: Uuid| ReelRange { video, start_ms: 0, end_ms: 500, note: String::new() };
    for ranges in [vec![range(mine.id)], vec![range(mine.id), range(theirs.id)]] {
        let export = NewExport { request: json!({}), ranges: ranges.clone(), added_by: None };
        catalog.view(ALL).add_export(&export).await.unwrap();
        let shown: Vec<Uuid> = ranges.iter().map(|range| range.video).collect();
        let made = MadeExport {
            file: "exports/a".to_owned(),
            file_name: "a".to_owned(),
            media_type: "text/csv".to_owned(),
            bytes: 1,
            content_hash: "0".repeat(64),
            report: json!({}),
        };
        catalog.finish_export(&lease(catalog).await.lease, &made, &shown, LEASE).await.unwrap();
    }
    for (hook, expected) in [(&of_a, 2), (&of_b, 1), (&of_all, 4)] {
        assert_eq!(events(opened, hook).await.len(), expected);
    }
    // The webhook of a revoked key gets nothing more, not even what waits.
    catalog.revoke_key(a.id).await.unwrap();
    add_ready(catalog, of_team("a"), 1, &[&tiny]).await;
    assert_eq!(events(opened, &of_a).await.len(), 2);
    for _ in 0..6 {
        delivered(opened).await;
    }
    assert!(nothing_is_due(opened).await);
    let ended = deliveries(opened, &of_a).await;
    assert!(ended.iter().all(|it| it.state == DeliveryState::Failed && it.reason.is_some()), "{ended:?}");
}

async fn an_owner_sees_and_changes_its_own_webhooks(opened: &Opened) {
    let catalog = &opened.catalog;
    let (a, b) = (key(catalog, "a").await, key(catalog, "b").await);
    let mine = webhook(opened, Some(a.id), &[WebhookEvent::VideoReady]).await;
    let theirs = webhook(opened, Some(b.id), &EVENTS).await;
    assert_eq!((&mine.description[..], &mine.events[..]), ("é \"'", &[WebhookEvent::VideoReady][..]));
    let owner = Owner::Key(a.id);
    assert_eq!(catalog.webhooks(owner, None, 9).await.unwrap(), std::slice::from_ref(&mine));
    assert_eq!(catalog.webhooks(Owner::Anybody, None, 9).await.unwrap(), [theirs.clone(), mine.clone()]);
    assert_eq!(
        catalog.webhooks(Owner::Anybody, Some(theirs.id), 9).await.unwrap(),
        std::slice::from_ref(&mine)
    );
    assert_eq!(catalog.webhook(owner, theirs.id).await.unwrap(), None);
    assert_eq!(catalog.rotate_webhook(owner, theirs.id, &secret(9)).await.unwrap(), None);
    assert_eq!(catalog.test_webhook(owner, theirs.id).await.unwrap(), None);
    assert_eq!(catalog.deliveries(owner, theirs.id, None, 9).await.unwrap(), None);
    assert_eq!(catalog.delete_webhook(owner, theirs.id).await.unwrap(), None);
    assert!(catalog.test_webhook(owner, mine.id).await.unwrap().is_some());
    assert_eq!(catalog.delete_webhook(owner, mine.id).await.unwrap(), Some(()));
    assert_eq!(catalog.delete_webhook(owner, mine.id).await.unwrap(), None);
    assert!(nothing_is_due(opened).await, "its deliveries are gone too");
    for _ in 1..MOST_WEBHOOKS {
        webhook(opened, None, &EVENTS).await;
    }
    let refused = catalog.add_webhook(&new(None, &EVENTS)).await;
    assert!(matches!(&refused, Err(CatalogError::Conflict(text)) if text.contains("100")), "{refused:?}");
}

async fn one_process_at_a_time_sends_a_delivery(opened: &Opened) {
    let catalog = &opened.catalog;
    let (slow, other) = (webhook(opened, None, &EVENTS).await, webhook(opened, None, &EVENTS).await);
    for hook in [&slow, &slow, &other] {
        catalog.test_webhook(Owner::Anybody, hook.id).await.unwrap().unwrap();
    }
    let first = leased(opened).await;
    let second = leased(opened).await;
    assert_eq!(second.lease.delivery, deliveries(opened, &other).await[0].id, "a webhook gets one at a time");
    assert!(nothing_is_due(opened).await);
    catalog.finish_delivery(&second.lease, &Attempted::Delivered(200)).await.unwrap();
    // The process of the first has died.
    opened.clock.advance(LEASE);
    let again = leased(opened).await;
    assert_eq!((again.lease.delivery, again.attempt), (first.lease.delivery, 2));
    catalog.finish_delivery(&first.lease, &Attempted::Gone).await.unwrap();
    assert_eq!(
        catalog.webhook(Owner::Anybody, slow.id).await.unwrap(),
        Some(slow.clone()),
        "the lease was lost"
    );
    catalog.release_delivery(&again.lease).await.unwrap();
    let again = leased(opened).await;
    assert_eq!(
        (again.lease.delivery, again.attempt),
        (first.lease.delivery, 2),
        "that attempt did not count"
    );
    catalog.finish_delivery(&again.lease, &Attempted::Delivered(204)).await.unwrap();
    let [ended, waiting] = &deliveries(opened, &slow).await[..] else { panic!("two deliveries") };
    assert_eq!((ended.state, ended.status, &ended.reason), (DeliveryState::Delivered, Some(204), &None));
    assert_eq!((waiting.state, waiting.attempts), (DeliveryState::Waiting, 0));

    // A clock that is set back holds up nothing.
    let third = leased(opened).await;
    opened.clock.set_back(Duration::from_secs(3600));
    assert_eq!(leased(opened).await.lease.delivery, third.lease.delivery);
}

fn failed(wait: Duration) -> Attempted {
    Attempted::Failed { status: Some(500), reason: "it said\0 no".to_owned(), wait }
}

async fn a_failing_delivery_is_tried_for_a_day(opened: &Opened) {
    let (catalog, hook) = (&opened.catalog, webhook(opened, None, &EVENTS).await);
    catalog.test_webhook(Owner::Anybody, hook.id).await.unwrap().unwrap();
    let wait = Duration::from_secs(4 * 3600);
    for attempt in 1..=5 {
        let leased = leased(opened).await;
        assert_eq!(leased.attempt, attempt);
        catalog.finish_delivery(&leased.lease, &failed(wait)).await.unwrap();
        let [waiting] = &deliveries(opened, &hook).await[..] else { panic!("one delivery") };
        assert_eq!((waiting.state, waiting.status), (DeliveryState::Waiting, Some(500)));
        assert_eq!(waiting.reason.as_deref(), Some("it said no"));
        opened.clock.advance(wait - Duration::from_secs(1));
        assert!(nothing_is_due(opened).await, "it waits");
        opened.clock.advance(Duration::from_secs(1));
    }
    catalog.finish_delivery(&leased(opened).await.lease, &failed(wait)).await.unwrap();
    let [ended] = &deliveries(opened, &hook).await[..] else { panic!("one delivery") };
    assert_eq!((ended.state, ended.attempts, ended.next_attempt_ms), (DeliveryState::Failed, 6, None));
    assert_eq!(ended.reason.as_deref(), Some("given up after 6 attempts in a day: it said no"));
    assert!(nothing_is_due(opened).await);
}

async fn a_receiver_that_is_gone_ends_its_webhook(opened: &Opened) {
    let (catalog, hook) = (&opened.catalog, webhook(opened, None, &EVENTS).await);
    for _ in 0..2 {
        catalog.test_webhook(Owner::Anybody, hook.id).await.unwrap().unwrap();
    }
    catalog.finish_delivery(&leased(opened).await.lease, &Attempted::Gone).await.unwrap();
    let disabled = catalog.webhook(Owner::Anybody, hook.id).await.unwrap().unwrap().disabled.unwrap();
    assert_eq!(disabled.why, "the receiver answered 410");
    let states: Vec<_> = deliveries(opened, &hook).await.iter().map(|it| (it.state, it.status)).collect();
    assert_eq!(states, [(DeliveryState::Failed, Some(410)), (DeliveryState::Failed, None)]);
    let refused = catalog.test_webhook(Owner::Anybody, hook.id).await;
    assert!(matches!(refused, Err(CatalogError::Conflict(_))), "{refused:?}");
    let tiny = space(catalog, "tiny", 4).await;
    add_ready(catalog, video("a"), 1, &[&tiny]).await;
    assert_eq!(events(opened, &hook).await.len(), 2);
}

async fn a_rotated_secret_signs_for_a_day(opened: &Opened) {
    let (catalog, hook) = (&opened.catalog, webhook(opened, None, &EVENTS).await);
    let check = async |expected: &[u8]| {
        catalog.test_webhook(Owner::Anybody, hook.id).await.unwrap().unwrap();
        let leased = leased(opened).await;
        let expected: Vec<WebhookSecret> = expected.iter().map(|byte| secret(*byte)).collect();
        assert!(leased.secrets == expected);
        catalog.finish_delivery(&leased.lease, &Attempted::Delivered(204)).await.unwrap();
    };
    check(&[1]).await;
    catalog.rotate_webhook(Owner::Anybody, hook.id, &secret(2)).await.unwrap().unwrap();
    check(&[2, 1]).await;
    catalog.rotate_webhook(Owner::Anybody, hook.id, &secret(3)).await.unwrap().unwrap();
    check(&[3, 2]).await;
    opened.clock.advance(OLD_SECRET_LASTS);
    check(&[3]).await;
}

/// Adds deliveries in a state, as they would be a moment ago.
async fn fill(opened: &Opened, webhook: &Webhook, state: &str, count: i64) {
    let now = opened.catalog.now_ms().await.unwrap();
    let insert = "INSERT INTO webhook_deliveries (id, webhook, event, payload, state, not_before_ms, created_at_ms, \
                  updated_at_ms)";
    let rows = format!("'webhook.test', '{{}}', '{state}', {now} + 3600000, {now}, {now}");
    let id = webhook.id;
    if opened.url.starts_with("sqlite") {
        let sql = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
             {insert} SELECT randomblob(16), x'{}', {rows} FROM n",
            id.simple()
        );
        let mut database = SqliteConnection::connect(&opened.url).await.unwrap();
        sqlx::query(AssertSqlSafe(sql)).execute(&mut database).await.unwrap();
    } else {
        let sql =
            format!("{insert} SELECT gen_random_uuid(), '{id}', {rows} FROM generate_series(1, {count})");
        let mut database = PgConnection::connect(&opened.url).await.unwrap();
        sqlx::query(AssertSqlSafe(sql)).execute(&mut database).await.unwrap();
    }
}

async fn deliveries_are_bounded_in_number_and_time(opened: &Opened) {
    let (catalog, hook) = (&opened.catalog, webhook(opened, None, &EVENTS).await);
    let tiny = space(catalog, "tiny", 4).await;
    fill(opened, &hook, "waiting", MOST_WAITING).await;
    add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let refused = catalog.test_webhook(Owner::Anybody, hook.id).await;
    assert!(matches!(refused, Err(CatalogError::Conflict(_))), "{refused:?}");
    assert_eq!(catalog.webhook(Owner::Anybody, hook.id).await.unwrap().unwrap().dropped, 1);

    // After a day they are given up, and a week later forgotten.
    opened.clock.advance(TRIED_FOR);
    assert!(nothing_is_due(opened).await);
    catalog.sweep_deliveries().await.unwrap();
    let ended = deliveries(opened, &hook).await;
    assert!(
        ended.len() == 1000 && ended.iter().all(|it| it.state == DeliveryState::Failed),
        "{:?}",
        ended[0]
    );
    catalog.test_webhook(Owner::Anybody, hook.id).await.unwrap().unwrap();
    delivered(opened).await;
    let last = catalog.deliveries(Owner::Anybody, hook.id, None, 10_000).await.unwrap().unwrap();
    assert_eq!(last.len() as i64, MOST_ENDED, "an end makes room");
    opened.clock.advance(Duration::from_secs(7 * 24 * 3600));
    catalog.sweep_deliveries().await.unwrap();
    assert_eq!(deliveries(opened, &hook).await, []);
}
