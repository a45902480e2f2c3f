//! `POST /v1/media-links`: signed links to media, for players that can't send a key.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{Method, Uri};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::Json;
use super::signed::{self, Signed, Target};
use super::{clips, instant as rfc3339, reel_links, videos};
use crate::access::{Caller, Link};
use crate::app::{App, Authorized};
use crate::catalog::instant;

/// Most links of one request.
const MOST_LINKS: usize = 1000;
/// Validity of a link if the request names none, in seconds.
const USUAL_SECONDS: i64 = 3600;
/// Longest validity of a link, in seconds: a week.
pub(super) const LONGEST_SECONDS: i64 = 7 * 24 * 3600;

/// Routes of `/v1/media-links`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(sign))
}

/// Paths of media to sign.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MediaPaths)]
struct LinksBody {
    /// 1 to 1000 paths of media, previews, thumbnails, sprite sheets and downloads of exports, such as
    /// `/v1/clips/{id}/preview`. A query string stays.
    #[schema(min_items = 1, max_items = 1000)]
    paths: Vec<String>,
    /// Validity in seconds, 1 to 604800; default 3600.
    #[schema(minimum = 1, maximum = 604_800)]
    seconds: Option<i64>,
}

/// A signed link.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MediaLink)]
struct LinkOut {
    /// The path as it was sent.
    path: String,
    /// The path with its signature. It needs no key.
    url: String,
}

/// Signed links, in the order of the paths.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MediaLinks)]
struct LinksOut {
    /// The links.
    items: Vec<LinkOut>,
    /// End of their validity (RFC 3339).
    expires_at: String,
}

/// Signs links to media, so that a player needs no key. They end with the key that made them.
#[utoipa::path(post, path = "/v1/media-links", operation_id = "signMediaLinks", tag = "access", request_body = LinksBody,
    responses((status = 200, body = LinksOut), (status = 404)))]
async fn sign(app: Authorized, Json(body): Json<LinksBody>) -> Result<axum::Json<LinksOut>, ApiError> {
    let seconds = body.seconds.unwrap_or(USUAL_SECONDS);
    if !(1..=LONGEST_SECONDS).contains(&seconds) {
        return Err(ApiError::invalid("/seconds", format!("must be from 1 to {LONGEST_SECONDS}")));
    }
    if !(1..=MOST_LINKS).contains(&body.paths.len()) {
        return Err(ApiError::invalid("/paths", format!("name 1 to {MOST_LINKS} paths")));
    }
    let expires = instant::now_ms() / 1000 + seconds;
    let mut items = Vec::new();
    for (place, path) in body.paths.into_iter().enumerate() {
        items.push(link(&app, path, expires).await.map_err(|error| error.at(format!("/paths/{place}")))?);
    }
    Ok(axum::Json(LinksOut { items, expires_at: rfc3339(expires * 1000) }))
}

async fn link(app: &Authorized, sent: String, expires: i64) -> Result<LinkOut, ApiError> {
    let uri: Uri = sent.parse().map_err(|_| ApiError::invalid("", "this is no path"))?;
    match Target::of(uri.path()) {
        Some(Target::Video(id)) => drop(videos::found(app.view().video(id).await?, id)?),
        Some(Target::Clip(id)) => drop(clips::found(app.view().span(id).await?, id)?),
        Some(Target::Export(id)) => export_exists(app, id).await?,
        None => {
            let detail =
                "only media, previews, thumbnails, sprite sheets and downloads of exports have links";
            return Err(ApiError::invalid("", detail));
        }
    }
    Ok(LinkOut { url: signed(app, &uri, expires), path: sent })
}

async fn export_exists(app: &Authorized, id: Uuid) -> Result<(), ApiError> {
    match app.view().export(id).await? {
        Some(_) => Ok(()),
        None => Err(ApiError::not_found(format!("there is no export {id}, or it has expired"))),
    }
}

/// An address with its signature, valid until `expires`, in Unix seconds.
pub(super) fn signed(app: &Authorized, uri: &Uri, expires: i64) -> String {
    let key = app.caller().key_id();
    let signature = app.links.sign(Link { path: uri.path(), key, expires });
    let own = uri.query().map(|query| format!("{query}&")).unwrap_or_default();
    let key = key.map(|id| format!("key={id}&")).unwrap_or_default();
    format!("{}?{own}{key}expires={expires}&signature={signature}", uri.path())
}

/// Whether links to this media route can be signed.
pub(super) fn is_signable(route: &str) -> bool {
    Target::of(&route.replace("{id}", &Uuid::nil().to_string()).replace("{sheet}", "0")).is_some()
}

/// The caller of a signed link, who may only read; `None` if the request is no signed link. Removes the signature, so that
/// handlers don't see it.
///
/// # Errors
/// 401 if the signature is wrong or has expired, or its key has ended.
pub(super) async fn take(app: &App, request: &mut Request) -> Result<Option<Caller>, ApiError> {
    let uri = request.uri().clone();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read {
        return Ok(None);
    }
    let Some(sent) = Signed::of(uri.query().unwrap_or_default()) else { return Ok(None) };
    let caller = match sent.reel {
        Some(reel) => match reel_links::part(uri.path(), reel) {
            Some(part) => reel_links::caller(app, reel, &sent, part).await?,
            None => return Ok(None),
        },
        None if Target::of(uri.path()).is_none() => return Ok(None),
        None => {
            let link = Link { path: uri.path(), key: sent.key, expires: sent.expires };
            signed::check(app, link, &sent.signature)?;
            app.gate.link_owner(&app.catalog, sent.key).await?.reading()
        }
    };
    let plain =
        if sent.rest.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), sent.rest) };
    *request.uri_mut() = plain.parse().map_err(ApiError::internal)?;
    Ok(Some(caller))
}
