//! Signatures of deliveries, as Standard Webhooks 1.0 says: HMAC-SHA256 over `id.timestamp.body`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::digest::Key;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

use crate::catalog::{Secret, WebhookSecret};

/// Begins every secret, so that scanners for leaked secrets can find it.
const PREFIX: &str = "whsec_";

/// A new secret.
pub fn new_secret() -> WebhookSecret {
    WebhookSecret::from(*Secret::random().bytes())
}

/// A secret as its owner gets it: `whsec_` and the base64 of its bytes.
pub fn text(secret: &WebhookSecret) -> String {
    format!("{PREFIX}{}", STANDARD.encode(secret.bytes()))
}

/// A message to sign.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// The header `webhook-id`.
    pub id: Uuid,
    /// The header `webhook-timestamp`, in Unix seconds.
    pub timestamp: i64,
    /// The body.
    pub body: &'a str,
}

/// The header `webhook-signature`: a signature by each secret, parted by a space.
pub fn header(message: Message<'_>, secrets: &[WebhookSecret]) -> String {
    let signatures: Vec<String> = secrets.iter().map(|secret| sign(message, secret)).collect();
    signatures.join(" ")
}

fn sign(message: Message<'_>, secret: &WebhookSecret) -> String {
    // RFC 2104 fills a short key up with zeros.
    let mut key = Key::<Hmac<Sha256>>::default();
    key[..secret.bytes().len()].copy_from_slice(secret.bytes());
    let mac = Hmac::<Sha256>::new(&key).chain_update(format!("{}.{}.", message.id, message.timestamp));
    format!("v1,{}", STANDARD.encode(mac.chain_update(message.body).finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: Message<'_> = Message {
        id: Uuid::from_u128(0x0198_0f64),
        timestamp: 1_614_265_330,
        body: r#"{"type": "webhook.test"}"#,
    };

    // Made with Python's hmac.
    const SIGNED_BY_SEVENS: &str = "v1,W8TDmzjCB7ygDtErsHE3hbGInZ1MxvzbYPF9dI6sIak=";
    const SIGNED_BY_EIGHTS: &str = "v1,X5QHK+soC/ZZf4fQ3L8/xunnFzFTeJOYj6kDrYWqFAs=";

    #[track_caller]
    fn check(secrets: &[u8], expected: &str) {
        let secrets: Vec<WebhookSecret> =
            secrets.iter().map(|byte| WebhookSecret::from([*byte; 32])).collect();
        assert_eq!(header(MESSAGE, &secrets), expected);
    }

    #[test]
    fn messages_are_signed_with_every_secret() {
        check(&[7], SIGNED_BY_SEVENS);
        check(&[8, 7], &format!("{SIGNED_BY_EIGHTS} {SIGNED_BY_SEVENS}"));
    }

    #[test]
    fn secrets_have_the_form_of_the_standard() {
        let (first, second) = (text(&new_secret()), text(&new_secret()));
        assert!(first.starts_with("whsec_") && first.len() == 50 && first != second, "{first}");
        assert_eq!(format!("{:?}", new_secret()), "WebhookSecret(..)");
    }
}
