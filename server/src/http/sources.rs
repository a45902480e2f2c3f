//! Sources besides uploads: videos under a media root or at https addresses, models under a model root.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Url;

use super::error::ApiError;
use crate::app::App;
use crate::https::{self, AddressError, Reach};
use crate::storage::Received;

/// Largest number of redirects to follow.
const MAX_HOPS: usize = 5;

/// The real path of a file under a media root. A link out of the root is refused.
pub(super) fn under_media_root(app: &App, path: &Path) -> Result<PathBuf, ApiError> {
    let refused = || {
        ApiError::forbidden("this path is not under a media root; start the server with --media-root")
            .at("/path")
    };
    let real = under(&app.config.media_roots, path).ok_or_else(refused)?;
    if !real.is_file() {
        return Err(ApiError::invalid("/path", "this is not a file"));
    }
    Ok(real)
}

/// The real path of a folder under a model root. A link out of the root is refused.
pub(super) fn under_model_root(app: &App, path: &Path) -> Result<PathBuf, ApiError> {
    let refused = || {
        ApiError::forbidden("this folder is not under a model root; start the server with --model-root")
            .at("/model")
    };
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
        let detail = "fetching from addresses is off; start the server with --allow-url";
        return Err(ApiError::forbidden(detail).at("/url"));
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
    let client = https::client_to(url, Reach::Public).await.map_err(|error| match error {
        AddressError::NoHost | AddressError::Unknown => ApiError::invalid("/url", error.to_string()),
        AddressError::Private => {
            ApiError::forbidden("the URL leads to an address that is not public").at("/url")
        }
    })?;
    let client = client
        .connect_timeout(Duration::from_secs(10))
        .read_timeout(Duration::from_secs(30))
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
            let detail = format!("a file may have {} bytes", app.config.max_upload_bytes);
            return Err(ApiError::too_large(detail).at("/url"));
        }
    }
    Ok((name, incoming.finish().await?))
}
