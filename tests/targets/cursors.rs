//! Cursors of searches: the bytes below the signature.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use reprise_server::catalog::Secret;
use reprise_server::search::CursorSigner;
use sha2::Sha256;

const SECRET: [u8; 32] = [7; 32];
/// Bytes of a cursor's signature.
const SIGNATURE: usize = 16;

/// Unsigned bytes are refused. Signed ones are refused too, or come back as they went.
pub(super) fn run(bytes: &[u8]) {
    let signer = CursorSigner::new(Secret::from(SECRET), 128);
    assert!(signer.decode(&URL_SAFE_NO_PAD.encode(bytes)).is_err(), "a forged cursor was taken");
    assert!(signer.decode(&String::from_utf8_lossy(bytes)).is_err(), "a forged cursor was taken");
    let mut mac = Hmac::<Sha256>::new_from_slice(&SECRET).expect("any key has a length");
    // The caller's key: none.
    mac.update(&[0; 16]);
    mac.update(bytes);
    let signature = mac.finalize().into_bytes();
    let text = URL_SAFE_NO_PAD.encode([&signature[..SIGNATURE], bytes].concat());
    let Ok(cursor) = signer.decode(&text) else { return };
    let again = signer.encode(&cursor).expect("what was read can be written");
    assert_eq!(signer.decode(&again).expect("what was written is read"), cursor);
}
