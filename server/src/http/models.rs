//! `GET /v1/models`: the models to choose from, with size, licence, use and download.

use std::sync::Arc;

use reprise_encoders::Downloaded;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use crate::app::{App, Authorized};
use crate::catalog::Scope;
use crate::models::catalogue::{Entry, Nearness, catalogue};

/// Routes of `/v1/models`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// State of a model. `away`: nothing of it is on the server. `partial`: some of its files are. `here`: it would load without a
/// network. `loading`: it is loading, or waits to load. `loaded`: it answers queries.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ModelState {
    /// Nothing of it is on the server.
    Away,
    /// Some of its files are on the server.
    Partial,
    /// It would load without a network.
    Here,
    /// It is loading, or waits to load.
    Loading,
    /// It answers queries.
    Loaded,
}

impl From<Nearness> for ModelState {
    fn from(nearness: Nearness) -> ModelState {
        match nearness {
            Nearness::Away => ModelState::Away,
            Nearness::Partial => ModelState::Partial,
            Nearness::Here => ModelState::Here,
            Nearness::Loading => ModelState::Loading,
            Nearness::Loaded => ModelState::Loaded,
        }
    }
}

/// The download of a model that is loading.
#[derive(Debug, Serialize, ToSchema)]
struct Download {
    /// Number of files that were begun. Files that were on the server before do not count; 0 while the model waits.
    #[schema(minimum = 0)]
    files: u64,
    /// Bytes of these files that have come, with those of earlier attempts.
    #[schema(minimum = 0)]
    bytes: u64,
    /// Bytes of these files when they are whole. Other files may follow, so it may grow; the weights are nearly all of it. Null
    /// if the hub does not say.
    #[schema(minimum = 0)]
    total: Option<u64>,
}

impl From<Downloaded> for Download {
    fn from(it: Downloaded) -> Download {
        Download { files: it.files, bytes: it.bytes, total: it.total }
    }
}

/// A model to choose.
#[derive(Debug, Serialize, ToSchema)]
struct Model {
    /// The name that `addSpace` takes: a hub id, `builtin:…`, or a folder on the server.
    model: String,
    /// The family that reads it, such as `clip`. Null if it was never loaded and is not among the known models.
    family: Option<String>,
    /// Its use, in words. Null if it is not among the known models.
    purpose: Option<String>,
    /// SPDX id of the licence of its weights, such as `Apache-2.0`. Null if it is not known for certain.
    licence: Option<String>,
    /// Size of its weights as they are published, in bytes, about: that of their files, or their number times the bytes of one.
    /// Null if neither is known for certain.
    #[schema(minimum = 0)]
    bytes: Option<u64>,
    /// State of the model.
    state: ModelState,
    /// Bytes of it in the server's cache of downloads, of all its versions.
    #[schema(minimum = 0)]
    cached_bytes: u64,
    /// Its download. Null unless it is loading.
    download: Option<Download>,
    /// Readable names of its spaces in `listSpaces`. Empty unless it is loaded.
    spaces: Vec<String>,
}

impl From<Entry> for Model {
    fn from(entry: Entry) -> Model {
        let known = entry.published;
        Model {
            model: entry.model,
            family: entry.family,
            purpose: known.map(|it| it.purpose.to_owned()),
            licence: known.and_then(|it| it.licence).map(str::to_owned),
            bytes: known.and_then(|it| it.bytes),
            state: entry.nearness.into(),
            cached_bytes: entry.cached_bytes,
            download: entry.download.map(Download::from),
            spaces: entry.spaces,
        }
    }
}

/// The models to choose from.
#[derive(Debug, Serialize, ToSchema)]
struct ModelList {
    /// The known models, then others that are loaded, loading or in the cache, at most some hundred.
    items: Vec<Model>,
}

/// Lists the models that are known by name, and the models that are loaded or loading.
///
/// Many more can be loaded by their name or from a folder: `reprise models` lists what the families read. A key with the
/// scope `admin` also sees other models in the server's cache of downloads, which is shared with other programs.
#[utoipa::path(get, path = "/v1/models", operation_id = "listModels", tag = "models",
    responses((status = 200, body = ModelList)))]
async fn list(app: Authorized) -> Result<axum::Json<ModelList>, ApiError> {
    let with_cache = app.caller().may(Scope::Admin);
    let (shared, options) = (Arc::clone(app.shared()), app.config.load_options());
    let look = move || catalogue(&shared.spaces, &options, with_cache);
    let entries = tokio::task::spawn_blocking(look).await.map_err(ApiError::internal)?;
    Ok(axum::Json(ModelList { items: entries.into_iter().map(Model::from).collect() }))
}
