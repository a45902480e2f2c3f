//! Client for outgoing HTTP requests.

use rustls::crypto::ring;

/// Builds a client with ring as its cryptography provider. The database drivers need ring anyway. reqwest's default
/// provider would be a second library, and add most of a minute to a first build.
#[expect(clippy::disallowed_methods, reason = "the one place that names the provider")]
pub fn client() -> reqwest::ClientBuilder {
    // Fails only if a provider is already installed.
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
