//! API keys and signed links.

use reprise_server::access::{KeyToken, Link, LinkSigner};
use reprise_server::catalog::Secret;

/// A key that is read is written as it was; no text but the signature itself opens a link.
pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(key) = text.parse::<KeyToken>() {
        assert_eq!(key.to_string(), text);
    }
    let signer = LinkSigner::new(Secret::from([7; 32]));
    let link = Link { path: "/v1/videos/a/media", key: None, expires: 1_700_000_000 };
    let signature = signer.sign(link);
    assert_eq!(signer.has_signed(link, &text), text == signature, "{text}");
    // The rest of the text is the path, and the signature is another link's.
    let other = Link { path: &text, ..link };
    assert_eq!(signer.has_signed(other, &signature), other == link, "{text}");
}
