//! Webhooks over HTTP, with a receiver that verifies deliveries as Standard Webhooks says.

mod life;
mod refused;
mod safety;

use std::sync::Arc;
use std::time::Duration;

use reprise_server::activity::signature;
use reprise_server::activity::webhooks::Sender;
use reprise_server::catalog::{NewWebhook, Owner, Webhook, WebhookEvent};
use reprise_server::https::Reach;
use reprise_tests::receiver::Receiver;
use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::catalog::{Opened, on_both};
use crate::faults::bed::{text, until};

on_both!(a_delivery_that_fails_is_tried_again_when_its_wait_is_over, redirects_are_not_followed);

/// Lets webhooks lead to a receiver on this machine.
pub(crate) const PRIVATE: &str = "--allow-private-webhooks";

/// Makes a webhook that the receiver trusts. Returns it.
pub(crate) async fn hook(server: &Server, receiver: &Receiver, path: &str, events: Value) -> Value {
    let body = json!({"url": receiver.url(path), "events": events});
    let (status, hook) = server.post("/v1/webhooks", &body).await;
    assert_eq!(status, StatusCode::CREATED, "{hook}");
    receiver.trust(path, text(&hook, "/secret")).await;
    hook
}

/// The path of a webhook or of what is below it.
pub(crate) fn path_of(hook: &Value, below: &str) -> String {
    format!("/v1/webhooks/{}{below}", text(hook, "/id"))
}

/// Waits until the newest delivery of a webhook is in a state. Returns it.
pub(crate) async fn ended(server: &Server, hook: &Value, state: &str) -> Value {
    let newest = async || {
        let listed = server.get(&path_of(hook, "/deliveries")).await.1;
        Some(listed["items"][0].clone()).filter(|it| it["state"] == state)
    };
    until("the delivery is in its state", newest).await
}

/// Sends a test event.
pub(crate) async fn test(server: &Server, hook: &Value) -> Value {
    let (status, delivery) = server.post(&path_of(hook, "/test"), &json!({})).await;
    assert_eq!((status, &delivery["state"]), (StatusCode::ACCEPTED, &json!("waiting")), "{delivery}");
    delivery
}

/// A catalog with a webhook that leads to a path of the receiver, and a sender.
async fn stored(opened: &Opened, receiver: &Receiver, path: &str) -> (Webhook, Sender) {
    let secret = signature::new_secret();
    receiver.trust(path, &signature::text(&secret)).await;
    let new = NewWebhook {
        owner: None,
        url: receiver.url(path),
        description: String::new(),
        events: WebhookEvent::ALL.to_vec(),
        secret,
    };
    let hook = opened.catalog.add_webhook(&new).await.unwrap();
    opened.catalog.test_webhook(Owner::Anybody, hook.id).await.unwrap().unwrap();
    (hook, Sender::new(Arc::clone(&opened.catalog), Reach::All, Duration::from_secs(30)))
}

async fn a_delivery_that_fails_is_tried_again_when_its_wait_is_over(opened: &Opened) {
    let Some(receiver) = Receiver::start() else { return };
    let (hook, sender) = stored(opened, &receiver, "/once").await;
    assert!(sender.send_next().await.unwrap());
    let listed = async || opened.catalog.deliveries(Owner::Anybody, hook.id, None, 9).await.unwrap().unwrap();
    let [waiting] = &listed().await[..] else { panic!("one delivery") };
    assert_eq!((waiting.status, waiting.reason.as_deref()), (Some(500), Some("the receiver answered 500")));
    assert!(!sender.send_next().await.unwrap(), "it waits");
    opened.clock.advance(Duration::from_secs(7));
    assert!(sender.send_next().await.unwrap());
    let [ended] = &listed().await[..] else { panic!("one delivery") };
    assert_eq!((ended.status, ended.attempts, &ended.reason), (Some(204), 2, &None));
    let received = receiver.received("/once").await;
    assert_eq!(received.len(), 2);
    assert!(received.iter().all(|it| it["id"] == json!(ended.id) && it["event"]["type"] == "webhook.test"));
}

async fn redirects_are_not_followed(opened: &Opened) {
    let Some(receiver) = Receiver::start() else { return };
    let (hook, sender) = stored(opened, &receiver, "/moved").await;
    assert!(sender.send_next().await.unwrap());
    let listed = opened.catalog.deliveries(Owner::Anybody, hook.id, None, 9).await.unwrap().unwrap();
    assert_eq!(listed[0].reason.as_deref(), Some("the receiver answered 307; redirects are not followed"));
    assert_eq!(receiver.received("/moved").await.len(), 1);
    assert_eq!(receiver.received("/ok").await, Vec::<Value>::new());
}

#[test]
fn openssl_makes_the_signature_as_the_guide_says() {
    if reprise_tests::program("openssl").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (secret, body) = (signature::new_secret(), r#"{"type": "webhook.test", "data": "é"}"#);
    std::fs::write(folder.path().join("body.json"), body).unwrap();
    let message = signature::Message { id: uuid::Uuid::now_v7(), timestamp: 1_700_000_000, body };
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/webhooks.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let script = guide.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a script");
    let mut bash = std::process::Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", script]).current_dir(folder.path());
    bash.env("SECRET", signature::text(&secret)).env("ID", message.id.to_string());
    let output = bash.env("TIMESTAMP", message.timestamp.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(format!("v1,{}", said.trim()), signature::header(message, &[secret]));
}
