//! What the contract names and this version does not do yet: refused by name, and not in the OpenAPI file.

use axum::Router;
use axum::routing::post;

use super::error::ApiError;

/// The routes of this file.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/v1/spaces", post(load_space))
        .route("/v1/spaces/{id}/activate", post(activate_space))
}

async fn load_space() -> ApiError {
    ApiError::invalid("spaces", "models can't be loaded at run time yet; start the server with --model")
}

async fn activate_space() -> ApiError {
    ApiError::invalid(
        "activate",
        "query kinds can't be moved at run time yet; start the server with --model KINDS=NAME",
    )
}
