//! `/v1/reels/{id}/links`: signed links to a reel, which show it and the media of its videos to people without a key.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{Id, Json};
use super::signed::{self, Signed, Target};
use super::{instant as rfc3339, reels};
use crate::access::{Caller, Link};
use crate::app::{App, Authorized};
use crate::catalog::{ReelPart, instant};

/// Validity of a link if the request names none, in seconds: a week.
const USUAL_SECONDS: i64 = 7 * 24 * 3600;
/// Longest validity of a link, in seconds: 90 days.
const LONGEST_SECONDS: i64 = 90 * 24 * 3600;

/// Routes of `/v1/reels/{id}/links`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(sign, revoke))
}

/// A link to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewReelLink)]
struct ReelLinkBody {
    /// Validity in seconds, 1 to 7776000 (90 days); default 604800 (7 days).
    #[schema(minimum = 1, maximum = 7_776_000)]
    seconds: Option<i64>,
}

/// A signed link to a reel.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReelLink)]
struct ReelLinkOut {
    /// The reel's path with its signature. It needs no key.
    url: String,
    /// The query string of `url`. Behind `?` it opens these paths too, for the videos of the reel's ranges:
    /// `/v1/videos/{id}/media`, `/v1/videos/{id}/thumbnail`, `/v1/videos/{id}/sprites` and its sheets, and
    /// `/v1/clips/{id}/preview` and `/v1/clips/{id}/thumbnail` of their clips.
    query: String,
    /// End of its validity (RFC 3339).
    expires_at: String,
}

/// Signs a link to a reel, so that somebody without a key can read it and play its videos.
///
/// It shows the reel as it is when it is read: ranges that are added later too. It ends at its expiry, with the key that made
/// it, when the reel is deleted, and when the reel's links are revoked.
#[utoipa::path(post, path = "/v1/reels/{id}/links", operation_id = "signReelLink", tag = "exports",
    params(("id" = Uuid, Path, description = "Id of the reel")), request_body = ReelLinkBody,
    responses((status = 200, body = ReelLinkOut), (status = 404), (status = 422)))]
async fn sign(
    app: Authorized,
    Id(id): Id,
    Json(body): Json<ReelLinkBody>,
) -> Result<axum::Json<ReelLinkOut>, ApiError> {
    let seconds = body.seconds.unwrap_or(USUAL_SECONDS);
    if !(1..=LONGEST_SECONDS).contains(&seconds) {
        return Err(ApiError::invalid("/seconds", format!("must be from 1 to {LONGEST_SECONDS}")));
    }
    let reel = reels::found(app.view().reel(id).await?, id)?;
    let epoch = reels::found(app.catalog.link_epoch(reel.id).await?, id)?;
    let (expires, key) = (instant::now_ms() / 1000 + seconds, app.caller().key_id());
    let signature = app.links.sign(Link { path: &signed_text(id, epoch), key, expires });
    let key = key.map(|id| format!("key={id}&")).unwrap_or_default();
    let query = format!("reel={id}&{key}expires={expires}&signature={signature}");
    let url = format!("/v1/reels/{id}?{query}");
    Ok(axum::Json(ReelLinkOut { url, query, expires_at: rfc3339(expires * 1000) }))
}

/// Revokes all links to a reel, those of every key. Links that are made afterwards work.
#[utoipa::path(delete, path = "/v1/reels/{id}/links", operation_id = "revokeReelLinks", tag = "exports",
    params(("id" = Uuid, Path, description = "Id of the reel")),
    responses((status = 204), (status = 404)))]
async fn revoke(app: Authorized, Id(id): Id) -> Result<StatusCode, ApiError> {
    reels::found(app.view().revoke_reel_links(id).await?, id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// What is signed in place of a path. No path begins without a slash.
fn signed_text(reel: Uuid, epoch: i64) -> String {
    format!("reel {reel} {epoch}")
}

/// What a link to `reel` would have to show for this path; `None`: no such link shows it.
pub(super) fn part(path: &str, reel: Uuid) -> Option<ReelPart> {
    if path == format!("/v1/reels/{reel}") {
        return Some(ReelPart::Ranges);
    }
    match Target::of(path)? {
        Target::Video(id) => Some(ReelPart::Video(id)),
        Target::Clip(id) => Some(ReelPart::Span(id)),
        Target::Export(_) => None,
    }
}

/// The caller of a link to a reel: the link's key, which may only read.
///
/// # Errors
/// 401 if the link is wrong, has expired, was revoked or does not show this.
pub(super) async fn caller(app: &App, reel: Uuid, sent: &Signed, part: ReelPart) -> Result<Caller, ApiError> {
    // The signature comes first: nobody else may use up the key's requests.
    let epoch = app.catalog.link_epoch(reel).await?.ok_or_else(signed::wrong)?;
    let link = Link { path: &signed_text(reel, epoch), key: sent.key, expires: sent.expires };
    signed::check(app, link, &sent.signature)?;
    let caller = app.gate.link_owner(&app.catalog, sent.key).await?.reading();
    let view = app.catalog.view(caller.visibility()).of_key(caller.key_id());
    if view.reel_shows(reel, part).await? { Ok(caller) } else { Err(signed::wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<ReelPart>) {
        assert_eq!(part(path, Uuid::max()), expected, "{path}");
    }

    #[test]
    fn a_link_shows_its_reel_and_media_only() {
        let (id, reel) = (Uuid::now_v7(), Uuid::max());
        check(&format!("/v1/reels/{reel}"), Some(ReelPart::Ranges));
        check(&format!("/v1/videos/{id}/media"), Some(ReelPart::Video(id)));
        check(&format!("/v1/videos/{id}/thumbnail"), Some(ReelPart::Video(id)));
        check(&format!("/v1/videos/{id}/sprites/0"), Some(ReelPart::Video(id)));
        check(&format!("/v1/clips/{id}/preview"), Some(ReelPart::Span(id)));
        check(&format!("/v1/clips/{id}/thumbnail"), Some(ReelPart::Span(id)));
        for other in [
            "/v1/reels".to_owned(),
            format!("/v1/reels/{id}"),
            format!("/v1/reels/{reel}/links"),
            format!("/v1/videos/{id}"),
            format!("/v1/videos/{id}/clips"),
            format!("/v1/videos/{id}/subtitles"),
            format!("/v1/clips/{id}"),
            format!("/v1/exports/{id}/download"),
        ] {
            check(&other, None);
        }
    }
}
