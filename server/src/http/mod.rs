//! The HTTP API: routes, middleware layers and serving. No other folder uses axum.

mod add;
mod audit;
mod clips;
mod connections;
mod embeddings;
mod error;
mod exports;
mod extract;
mod guard;
mod jobs;
mod keys;
mod linger;
mod links;
mod media;
mod operation;
mod page;
mod ranges;
mod reels;
mod resegment;
mod search;
mod segmentation;
mod sources;
mod spaces;
mod subtitles;
mod timeline;
mod videos;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, MatchedPath};
use axum::http::{HeaderName, HeaderValue, Request, Response, header};
use axum::response::IntoResponse;
use axum::{Router, middleware};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, Any, CorsLayer};
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::{DefaultOnResponse, OnResponse, TraceLayer};
use tracing::Span;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as OpenApiFile;
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::SwaggerUi;
use uuid::Uuid;

use crate::app::App;
use crate::telemetry::traces;
use connections::Connections;
use error::{ApiError, REQUEST_ID};

#[derive(OpenApi)]
#[openapi(
    info(title = "reprise", description = "Finds moments in video. Times are seconds, end exclusive; ids are uuid v7; errors are RFC 9457 problem+json. Scores are comparable within one answer only."),
    tags(
        (name = "search", description = "Find clips and full videos"),
        (name = "library", description = "Videos and clips"),
        (name = "subtitles", description = "Subtitles of a video"),
        (name = "media", description = "Video files, previews and thumbnails"),
        (name = "exports", description = "Reels, and files of their ranges"),
        (name = "jobs", description = "Background jobs"),
        (name = "models", description = "Embedding spaces and vectors"),
        (name = "access", description = "API keys, signed links and the audit log"),
        (name = "operation", description = "Health, metrics, counts"),
    )
)]
struct Contract;

fn documented() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Contract::openapi())
        .merge(search::routes())
        .merge(add::routes())
        .merge(videos::routes())
        .merge(clips::routes())
        .merge(resegment::routes())
        .merge(subtitles::routes())
        .merge(timeline::routes())
        .merge(media::routes())
        .merge(reels::routes())
        .merge(exports::routes())
        .merge(jobs::routes())
        .merge(spaces::routes())
        .merge(embeddings::routes())
        .merge(keys::routes())
        .merge(links::routes())
        .merge(audit::routes())
        .merge(operation::routes())
}

/// The OpenAPI file, generated from the routes.
pub fn openapi() -> OpenApiFile {
    documented().split_for_parts().1
}

/// All routes, with every layer. The first layer listed is the innermost.
pub fn router(app: Arc<App>) -> Router {
    let (routes, contract) = documented().split_for_parts();
    routes
        .merge(page::routes())
        .merge(SwaggerUi::new("/docs").url("/openapi.json", contract))
        .fallback(|| async { ApiError::not_found("there is nothing at this path") })
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(guard::measure))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::time_limit))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::caller))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::origin))
        .layer(CatchPanicLayer::custom(|_panic| {
            ApiError::internal("a handler panicked").into_response().map(axum::body::Body::new)
        }))
        .layer(middleware::from_fn(linger::linger))
        .layer(cors(&app.config.cors_origins))
        .layer(TraceLayer::new_for_http().make_span_with(span).on_response(record_status).on_failure(()))
        .layer(PropagateRequestIdLayer::new(HeaderName::from_static(REQUEST_ID)))
        .layer(middleware::from_fn(error::render))
        .layer(SetRequestIdLayer::new(HeaderName::from_static(REQUEST_ID), NewRequestId))
        .layer(middleware::from_fn(guard::plain_request_id))
        .layer(SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static("x-content-type-options"),
            HeaderValue::from_static("nosniff"),
        ))
        .with_state(app)
}

/// Serves until `stop`. Then running requests have `drain` to finish.
///
/// `stop` is boxed: with a generic parameter the whole server would be compiled again in each caller's crate.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    drain: Duration,
) {
    let (connections, tasks) = (Connections::new(app.config.max_connections), TaskTracker::new());
    let stopping = CancellationToken::new();
    let accepting = connections.serve(listener, router(app), stopping.clone(), &tasks);
    let stopped = async {
        stop.await;
        stopping.cancel();
    };
    tokio::join!(accepting, stopped);
    tasks.close();
    if tokio::time::timeout(drain, tasks.wait()).await.is_err() {
        tracing::warn!("requests that did not finish in time are cut off");
    }
}

fn cors(origins: &[String]) -> CorsLayer {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    if origins.is_empty() {
        return CorsLayer::new();
    }
    // Browsers do not take `*` for Authorization, so every header is named.
    let headers =
        [header::AUTHORIZATION, header::CONTENT_TYPE, header::RANGE, header::IF_MATCH, header::IF_NONE_MATCH];
    let ours = ["idempotency-key", REQUEST_ID].map(HeaderName::from_static);
    let shown =
        [header::RETRY_AFTER, header::CONTENT_RANGE, header::ETAG, HeaderName::from_static(REQUEST_ID)];
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods(Any)
        .allow_headers(headers.into_iter().chain(ours).collect::<Vec<_>>())
        .expose_headers(shown)
}

/// Log span with the request's id, which the answer also carries.
fn span<B>(request: &Request<B>) -> tracing::Span {
    let header = |name| request.headers().get(name).and_then(|it| it.to_str().ok());
    let id = header(REQUEST_ID).unwrap_or_default();
    let span = tracing::info_span!("request", id, method = %request.method(), path = request.uri().path());
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    traces::request_began(&span, route, header("traceparent"));
    span
}

/// Records the status in the request's span, and logs the answer as tower-http does by default.
fn record_status<B>(response: &Response<B>, latency: Duration, span: &Span) {
    traces::request_ended(span, response.status().as_u16());
    DefaultOnResponse::new().on_response(response, latency, span);
}

/// Generates uuid v7 ids for requests without an id.
#[derive(Clone, Copy)]
struct NewRequestId;

impl MakeRequestId for NewRequestId {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        HeaderValue::from_str(&Uuid::now_v7().to_string()).ok().map(RequestId::new)
    }
}

/// Formats Unix milliseconds as RFC 3339.
fn instant(unix_ms: i64) -> String {
    crate::catalog::instant::format(unix_ms)
}

/// The cursor after a full page. A page that isn't full is the last.
fn next_cursor<T, C: ToString>(page: &[T], limit: u32, cursor: impl Fn(&T) -> C) -> Option<String> {
    let full = page.len() == limit as usize;
    page.last().filter(|_| full).map(|last| cursor(last).to_string())
}
