//! The text of an API key: a public id and a secret.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::catalog::Secret;

/// Begins every key, so that scanners for leaked secrets can find it.
const PREFIX: &str = "rpr_";
/// Bytes of the id.
const ID_BYTES: usize = 16;
/// Bytes of the secret.
const SECRET_BYTES: usize = 32;

/// A key as its owner holds it: `rpr_` and the base64 of a 16-byte id and a 32-byte secret.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyToken {
    id: Uuid,
    secret: Secret,
}

/// The text is no key of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no API key of reprise: it begins with rpr_ and has 68 characters")]
pub struct NotAKey;

impl KeyToken {
    /// A new key.
    pub fn random() -> KeyToken {
        KeyToken { id: Uuid::now_v7(), secret: Secret::random() }
    }

    /// The public half.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// SHA-256 of the secret half. A random secret of 256 bits needs no slow hash.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret.bytes()).into()
    }

    /// Whether `hash` is that of the secret half. The duration reveals nothing about it.
    pub fn has_hash(&self, hash: &[u8]) -> bool {
        self.hash().ct_eq(hash).into()
    }
}

impl fmt::Display for KeyToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&self.id.as_bytes()[..], self.secret.bytes()].concat();
        write!(formatter, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl fmt::Debug for KeyToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyToken({})", self.id)
    }
}

impl FromStr for KeyToken {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<KeyToken, NotAKey> {
        let text = text.strip_prefix(PREFIX).ok_or(NotAKey)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NotAKey)?;
        let (id, secret) = bytes.split_first_chunk::<ID_BYTES>().ok_or(NotAKey)?;
        let secret: [u8; SECRET_BYTES] = secret.try_into().map_err(|_| NotAKey)?;
        Ok(KeyToken { id: Uuid::from_bytes(*id), secret: Secret::from(secret) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&KeyToken>) {
        assert_eq!(text.parse().ok().as_ref(), expected, "{text}");
    }

    #[test]
    fn a_key_comes_back_from_its_text() {
        let key = KeyToken::random();
        let text = key.to_string();
        assert_eq!(text.len(), 68);
        check(&text, Some(&key));
        assert!(key.has_hash(&key.hash()));
        assert!(!key.has_hash(&KeyToken::random().hash()) && !key.has_hash(&[]));
        for wrong in ["", "rpr_", "secret", &text[1..], &text[..67], &format!("{text}A"), "rpr_%%%"] {
            check(wrong, None);
        }
    }

    #[test]
    fn logs_do_not_show_the_secret() {
        let key = KeyToken::random();
        assert_eq!(format!("{key:?}"), format!("KeyToken({})", key.id()));
    }
}
