//! `/v1/videos/{id}/sprites`: small pictures of a whole video in a few JPEGs.

use std::io;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::conditional;
use super::error::ApiError;
use super::extract::Id;
use super::media::{Footage, make};
use super::names::FileBytes;
use super::search::seconds;
use super::videos::found;
use crate::app::{App, Authorized};
use crate::sprites::{self, SpriteFacts};
use crate::storage::{Derived, LocalFile};

/// Routes of `/v1/videos/{id}/sprites`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(describe)).routes(routes!(sheet))
}

/// The sprite sheets of a video: small pictures at even distances, in rows on a few JPEGs.
///
/// Picture `n` is on screen at `n * interval`. It stands on sheet `n / (columns * rows)`, there in row
/// `n % (columns * rows) / columns`, column `n % columns`, all rounded down and counted from 0.
#[derive(Debug, Serialize, ToSchema)]
struct SpriteSheets {
    /// Width of a picture in pixels, 2 to 160.
    #[schema(minimum = 2, maximum = 160)]
    tile_width: u32,
    /// Height of a picture in pixels, 2 to 160.
    #[schema(minimum = 2, maximum = 160)]
    tile_height: u32,
    /// Pictures in a row of a sheet, 1 to 10.
    #[schema(minimum = 1, maximum = 10)]
    columns: usize,
    /// Rows of a sheet, 1 to 10. The last sheet is filled up with black.
    #[schema(minimum = 1, maximum = 10)]
    rows: usize,
    /// Seconds from one picture to the next, at least 0.5.
    #[schema(minimum = 0)]
    interval: f64,
    /// Number of pictures, 1 to 600.
    #[schema(minimum = 1, maximum = 600)]
    tiles: usize,
    /// Paths of the sheets, in order.
    sheets: Vec<String>,
}

impl SpriteSheets {
    fn new(video: Uuid, facts: SpriteFacts) -> SpriteSheets {
        let SpriteFacts { tile_width, tile_height, columns, rows, interval_ms, tiles, sheets } = facts;
        let path = |number: usize| format!("/v1/videos/{video}/sprites/{number}");
        let (interval, sheets) = (seconds(interval_ms), (0..sheets.len()).map(path).collect());
        SpriteSheets { tile_width, tile_height, columns, rows, interval, tiles, sheets }
    }
}

/// Describes the sprite sheets of a video.
///
/// The ingest makes them. If they are lost, or the video is older than they, the first request decodes the video once for
/// them, which may take minutes. 409 before the ingest has succeeded.
#[utoipa::path(get, path = "/v1/videos/{id}/sprites", operation_id = "getSprites", tag = "media",
    params(("id" = Uuid, Path, description = "The video's id")),
    responses((status = 200, body = SpriteSheets), (status = 304), (status = 409), (status = 415)))]
async fn describe(app: Authorized, Id(id): Id, headers: HeaderMap) -> Result<Response, ApiError> {
    let file = of_video(&app, id).await?;
    let facts = reading(&app, id, move || sprites::facts(file.path())).await?;
    conditional::answer(&headers, &SpriteSheets::new(id, facts))
}

/// Returns a sprite sheet of a video. `getSprites` lists them.
#[utoipa::path(get, path = "/v1/videos/{id}/sprites/{sheet}", operation_id = "getSpriteSheet", tag = "media",
    params(("id" = Uuid, Path, description = "The video's id"),
        ("sheet" = u32, Path, description = "Number of the sheet, from 0")),
    responses((status = 200, content_type = "image/jpeg", body = inline(FileBytes), description = "The sheet"),
        (status = 304), (status = 409), (status = 415)))]
async fn sheet(app: Authorized, at: SheetPath, headers: HeaderMap) -> Result<Response, ApiError> {
    let file = of_video(&app, at.video).await?;
    let jpeg = reading(&app, at.video, move || sprites::sheet(file.path(), at.sheet)).await?;
    let jpeg =
        jpeg.ok_or_else(|| ApiError::not_found(format!("there is no sheet {}", at.sheet)).at("sheet"))?;
    let content_type = HeaderValue::from_static("image/jpeg");
    Ok(conditional::kept(&headers, jpeg, content_type, "private, max-age=3600"))
}

/// The file of a video's sprite sheets, which is made if it is missing.
async fn of_video(app: &Authorized, id: Uuid) -> Result<LocalFile, ApiError> {
    let video = found(app.view().video(id).await?, id)?;
    if video.facts.is_none() {
        return Err(ApiError::conflict(
            "the video's ingest makes its sprite sheets and has not succeeded yet",
        ));
    }
    let footage = Footage::of(app, &video).await?.within(app.config.render_limit());
    make(app, Derived::Sprites, id, move |out| footage.sprites(out)).await
}

/// Reads the file of the sprite sheets. A damaged one is removed, so that the next request makes it anew.
async fn reading<T: Send + 'static>(
    app: &Authorized,
    id: Uuid,
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(read).await.map_err(ApiError::internal)? {
        Ok(read) => Ok(read),
        Err(error) => {
            tracing::warn!(%error, video = %id, "the sprite sheets of a video are damaged");
            app.storage.remove_derived(Derived::Sprites, id).await?;
            Err(ApiError::unavailable("the sprite sheets are damaged and will be made anew; try again"))
        }
    }
}

/// The video and the sheet in the path.
struct SheetPath {
    video: Uuid,
    sheet: usize,
}

impl<S: Send + Sync> FromRequestParts<S> for SheetPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = axum::extract::Path::<(String, String)>::from_request_parts(parts, state).await;
        let axum::extract::Path((video, sheet)) = path.map_err(|_| ApiError::no_id("id"))?;
        let video = video.parse().map_err(|_| ApiError::no_id("id"))?;
        let no_sheet = |_| ApiError::not_found("the sheet in the path is not a number").at("sheet");
        Ok(SheetPath { video, sheet: sheet.parse().map_err(no_sheet)? })
    }
}
