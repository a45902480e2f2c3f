//! Signed, expiring links to media, so that a player needs no key.

use hmac::digest::Key;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::catalog::Secret;

/// Signs links and checks them. All servers of a library have the same secret.
#[derive(Debug, Clone)]
pub struct LinkSigner {
    secret: Secret,
}

/// The right to read one path until an instant, with the rights of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// The path, without its query string.
    pub path: &'a str,
    /// The API key that made it; `None` for a caller without one.
    pub key: Option<Uuid>,
    /// The end of its validity, in Unix seconds.
    pub expires: i64,
}

impl LinkSigner {
    /// Signs with `secret`.
    pub fn new(secret: Secret) -> LinkSigner {
        LinkSigner { secret }
    }

    /// The signature of a link: HMAC-SHA256 as 64 hex digits.
    pub fn sign(&self, link: Link<'_>) -> String {
        let bytes = self.mac(link).finalize().into_bytes();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether this library signed the link. It may have expired. A signature has one spelling.
    pub fn has_signed(&self, link: Link<'_>, signature: &str) -> bool {
        self.sign(link).as_bytes().ct_eq(signature.as_bytes()).into()
    }

    fn mac(&self, link: Link<'_>) -> Hmac<Sha256> {
        let mut key = Key::<Hmac<Sha256>>::default();
        key[..self.secret.bytes().len()].copy_from_slice(self.secret.bytes());
        // Fields of fixed length come first, so no two links have the same text.
        let mac = Hmac::new(&key).chain_update(link.expires.to_le_bytes());
        mac.chain_update(link.key.unwrap_or(Uuid::nil()).as_bytes()).chain_update(link.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link<'_> = Link { path: "/v1/videos/a/media", key: None, expires: 1_700_000_000 };

    #[track_caller]
    fn check(link: Link<'_>, change: impl Fn(String) -> String, expected: bool) {
        let signer = LinkSigner::new(Secret::from([7; 32]));
        assert_eq!(signer.has_signed(link, &change(signer.sign(LINK))), expected, "{link:?}");
    }

    #[test]
    fn a_signature_is_of_one_link_only() {
        check(LINK, |it| it, true);
        check(Link { path: "/v1/videos/b/media", ..LINK }, |it| it, false);
        check(Link { expires: LINK.expires + 1, ..LINK }, |it| it, false);
        check(Link { key: Some(Uuid::max()), ..LINK }, |it| it, false);
        check(LINK, |it| it[..62].to_owned(), false);
        check(LINK, |it| it + "00", false);
        check(LINK, |it| it.to_uppercase(), false);
        check(LINK, |it| it.replace('0', "+"), false);
        check(LINK, |_| String::new(), false);
        check(LINK, |it| it.replace(char::is_numeric, "x"), false);
        check(LINK, |_| "é".repeat(32), false);
    }

    #[test]
    fn another_library_does_not_know_it() {
        let other = LinkSigner::new(Secret::from([8; 32]));
        assert!(!other.has_signed(LINK, &LinkSigner::new(Secret::from([7; 32])).sign(LINK)));
    }
}
