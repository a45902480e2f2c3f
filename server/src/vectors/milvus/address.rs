//! The address of a Milvus server.

use std::time::Duration;

use milvus::v2::{ConnectConfig, RetryConfig, TelemetryConfig};
use percent_encoding::percent_decode_str;
use reqwest::Url;

use crate::vectors::EngineError;

/// Milvus' own port.
const PORT: u16 = 19_530;

/// Reads `http://[user:password@]host[:port][/database]`, with `https` for TLS and `milvus` as an alias of `http`. The
/// port is 19530 by default, with TLS 443. `call` is the most time for a call.
pub(super) fn settings(address: &str, call: Duration) -> Result<ConnectConfig, EngineError> {
    let wrong = |why: &str| {
        let form = "http://[user:password@]host:port[/database], also with https:// or milvus://";
        EngineError::Unusable(format!("the address of Milvus {why}; it must be {form}"))
    };
    let plain = match address.strip_prefix("milvus://") {
        Some(rest) => format!("http://{rest}"),
        None => address.to_owned(),
    };
    let url = Url::parse(&plain).map_err(|_| wrong("is not a URL"))?;
    let default = match url.scheme() {
        "http" => PORT,
        "https" => 443,
        other => return Err(wrong(&format!("begins with {other}://"))),
    };
    let host = url.host_str().ok_or_else(|| wrong("has no host"))?;
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        text.map(|text| text.into_owned()).map_err(|_| wrong("is not in UTF-8"))
    };
    let database = decoded(url.path().trim_matches('/'))?;
    if database.contains('/') || url.query().is_some() {
        return Err(wrong("has more than a database behind its port"));
    }
    let settings = ConnectConfig::new()
        .uri(format!("{}://{host}:{}", url.scheme(), url.port().unwrap_or(default)))
        .database(database)
        .connect_timeout(call)
        .rpc_timeout(Duration::ZERO)
        // Idle pings offend servers of other gRPC libraries, which then close the connection.
        .keepalive_while_idle(false)
        .keepalive_time(Duration::from_secs(60))
        // The callers try again. The crate's default is 75 attempts, during which no caller learns of the outage.
        .retry(RetryConfig::new().max_attempts(1))
        .telemetry(TelemetryConfig::new().enabled(false));
    match (decoded(url.username())?, url.password()) {
        (user, Some(password)) => Ok(settings.token(format!("{user}:{}", decoded(password)?))),
        (user, None) if user.is_empty() => Ok(settings),
        // Hosted servers know API keys: one word instead of a name and a password.
        (key, None) => Ok(settings.token(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str) -> Result<ConnectConfig, String> {
        settings(address, Duration::from_secs(1)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_names_server_and_database() {
        for (address, uri, database) in [
            ("http://localhost:19530", "http://localhost:19530", ""),
            ("milvus://vectors", "http://vectors:19530", ""),
            ("milvus://me:secret@[::1]:7/films", "http://[::1]:7", "films"),
            ("https://cloud.example/", "https://cloud.example:443", ""),
        ] {
            let settings = read(address).unwrap();
            assert_eq!((settings.get_uri(), settings.get_database()), (uri, database));
        }
        assert!(read("http://me:p%40ss@host:1").unwrap().get_token().is_some());
        assert!(read("http://host:1").unwrap().get_token().is_none());
    }

    #[test]
    fn a_wrong_address_is_refused_with_the_right_form() {
        for address in ["", "localhost:19530", "postgres://host/db", "http://host/a/b", "http://host/a?b"] {
            let refused = read(address).err().unwrap_or_default();
            assert!(refused.contains("http://[user:password@]host:port"), "{address}: {refused}");
        }
    }
}
