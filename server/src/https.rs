//! The client of outgoing HTTP requests.

use rustls::crypto::ring;

/// Starts a client's settings. Its cryptography is ring, which the database drivers need too: reqwest's own default
/// would be a second library of the kind, and most of a minute of a first build.
#[expect(clippy::disallowed_methods, reason = "the one place that names the provider")]
pub fn client() -> reqwest::ClientBuilder {
    // Fails only if a provider is there already.
    let _ = ring::default_provider().install_default();
    reqwest::Client::builder()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_can_be_made_more_than_once() {
        client().build().unwrap();
        client().build().unwrap();
    }
}
