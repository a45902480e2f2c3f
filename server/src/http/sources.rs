//! Sources besides uploads: videos under a media root or at https addresses, models under a model root.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Url;

use super::error::ApiError;
use crate::app::App;
use crate::https;
use crate::storage::Received;

/// Largest number of redirects to follow.
const MAX_HOPS: usize = 5;

/// The real path of a file under a media root. A link out of the root is refused.
pub(super) fn under_media_root(app: &App, path: &Path) -> Result<PathBuf, ApiError> {
    let refused =
        || ApiError::forbidden("this path is not under a media root; start the server with --media-root");
    let real = under(&app.config.media_roots, path).ok_or_else(refused)?;
    if !real.is_file() {
        return Err(ApiError::invalid("/path", "this is not a file"));
    }
    Ok(real)
}

/// The real path of a folder under a model root. A link out of the root is refused.
pub(super) fn under_model_root(app: &App, path: &Path) -> Result<PathBuf, ApiError> {
    let refused =
        || ApiError::forbidden("this folder is not under a model root; start the server with --model-root");
    under(&app.config.model_roots, path).ok_or_else(refused)
}

fn under(roots: &[PathBuf], path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let inside = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    roots.iter().any(inside).then_some(real)
}

/// Downloads a video over https. Every redirect must lead to a public address.
pub(super) async fn fetch(app: &App, url: &str) -> Result<(String, Received), ApiError> {
    if !app.config.allow_url {
        return Err(ApiError::forbidden("fetching from addresses is off; start the server with --allow-url"));
    }
    let mut url = Url::parse(url).map_err(|_| ApiError::invalid("/url", "this is not a URL"))?;
    for _ in 0..MAX_HOPS {
        let response = hop(&url).await?;
        if !response.status().is_redirection() {
            return receive(app, &url, response).await;
        }
        let location = response.headers().get("location").and_then(|it| it.to_str().ok()).unwrap_or_default();
        url = url
            .join(location)
            .map_err(|_| ApiError::invalid("/url", "it redirects to something that is no URL"))?;
    }
    Err(ApiError::invalid("/url", "it redirects too often"))
}

/// Sends one request to the checked addresses. The name is not resolved again between check and use.
async fn hop(url: &Url) -> Result<reqwest::Response, ApiError> {
    if url.scheme() != "https" {
        return Err(ApiError::invalid("/url", "only https is fetched"));
    }
    let host = url.host_str().ok_or_else(|| ApiError::invalid("/url", "it names no host"))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(443);
    let unknown = |_| ApiError::invalid("/url", "its host can't be found");
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((bare, port)).await.map_err(unknown)?.collect();
    if addresses.is_empty() || !addresses.iter().all(|address| is_public(address.ip())) {
        return Err(ApiError::forbidden("the URL leads to an address that is not public"));
    }
    let client = https::client()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(Duration::from_secs(10))
        .read_timeout(Duration::from_secs(30))
        .resolve_to_addrs(host, &addresses)
        .build()
        .map_err(ApiError::internal)?;
    client
        .get(url.clone())
        .send()
        .await
        .map_err(|error| ApiError::invalid("/url", format!("it can't be fetched: {}", error.without_url())))
}

async fn receive(app: &App, url: &Url, response: reqwest::Response) -> Result<(String, Received), ApiError> {
    if !response.status().is_success() {
        return Err(ApiError::invalid("/url", format!("its server answers {}", response.status())));
    }
    let name = url.path_segments().and_then(Iterator::last).unwrap_or_default().to_owned();
    let mut incoming = app.storage.receive().await?;
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        incoming.write(&piece.map_err(|_| ApiError::invalid("/url", "the connection broke"))?).await?;
        if incoming.bytes() > app.config.max_upload_bytes {
            return Err(ApiError::too_large(format!(
                "a file may have {} bytes",
                app.config.max_upload_bytes
            )));
        }
    }
    Ok((name, incoming.finish().await?))
}

/// Whether an address is public.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && (64..128).contains(&b);
            let benchmark = a == 198 && (b == 18 || b == 19);
            let special = v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_multicast();
            !(special || shared || benchmark || a == 0 || a >= 240 || (a == 192 && b == 0))
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(IpAddr::V4(v4)),
            // Global unicast is 2000::/3; 2002::/16, 2001::/32 and 64:ff9b::/96 tunnel to any IPv4 address.
            None => {
                v6.segments()[0] & 0xe000 == 0x2000
                    && v6.segments()[0] != 0x2002
                    && ![[0x2001, 0], [0x2001, 0xdb8]].contains(&[v6.segments()[0], v6.segments()[1]])
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: bool) {
        assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
    }

    #[test]
    fn only_addresses_out_on_the_internet_are_public() {
        check("93.184.216.34", true);
        check("2606:4700::1111", true);
        for inside in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "2002:7f00:1::",
            "2001:0:7f00:1::",
            "64:ff9b::7f00:1",
            "ff02::1",
        ] {
            check(inside, false);
        }
    }
}
