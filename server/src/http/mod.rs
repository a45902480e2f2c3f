//! The HTTP API: routes, middleware layers and serving. No other folder uses axum.

mod add;
mod alerts;
mod audit;
mod clips;
mod conditional;
mod connections;
mod contract;
mod embeddings;
mod error;
mod evaluations;
mod exports;
mod extract;
mod fill;
mod guard;
mod insights;
mod jobs;
mod keys;
mod labels;
mod linger;
mod links;
mod map;
mod media;
mod models;
mod names;
mod operation;
mod page;
mod ranges;
mod read_text;
mod reel_links;
mod reels;
mod resegment;
mod search;
mod searches;
mod segmentation;
mod signed;
mod sources;
mod spaces;
mod sprites;
mod subtitles;
mod timeline;
mod transcribe;
mod transcript;
mod uploads;
mod videos;
mod webhooks;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, MatchedPath};
use axum::http::{HeaderName, HeaderValue, Request, Response, header};
use axum::response::IntoResponse;
use axum::{Router, middleware};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::{DefaultOnResponse, OnResponse, TraceLayer};
use tracing::Span;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::SwaggerUi;
use uuid::Uuid;

use crate::app::App;
use crate::telemetry::traces;
use connections::{ConnectionLimits, Connections};
use contract::Contract;
use error::{ApiError, REQUEST_ID};

pub use search::stored_search;

/// The documented routes of every room.
fn rooms() -> [OpenApiRouter<Arc<App>>; 31] {
    [
        search::routes(),
        searches::routes(),
        insights::routes(),
        add::routes(),
        uploads::routes(),
        videos::routes(),
        labels::routes(),
        clips::routes(),
        resegment::routes(),
        subtitles::routes(),
        transcript::routes(),
        transcribe::routes(),
        read_text::routes(),
        timeline::routes(),
        media::routes(),
        sprites::routes(),
        reels::routes(),
        reel_links::routes(),
        exports::routes(),
        jobs::routes(),
        alerts::routes(),
        webhooks::routes(),
        evaluations::routes(),
        map::routes(),
        spaces::routes(),
        models::routes(),
        embeddings::routes(),
        keys::routes(),
        links::routes(),
        audit::routes(),
        operation::routes(),
    ]
}

fn documented() -> OpenApiRouter<Arc<App>> {
    let none = OpenApiRouter::with_openapi(Contract::openapi());
    rooms().into_iter().fold(none, OpenApiRouter::merge)
}

/// The OpenAPI file, generated from the routes.
pub fn openapi() -> Value {
    contract::complete(documented().split_for_parts().1)
}

/// All routes, with every layer. The first layer listed is the innermost.
pub fn router(app: Arc<App>) -> Router {
    let (routes, file) = documented().split_for_parts();
    routes
        .merge(page::routes())
        .merge(SwaggerUi::new("/docs").external_url_unchecked("/openapi.json", contract::complete(file)))
        .fallback(page::missing)
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
        .layer(middleware::from_fn_with_state(Arc::clone(&app), uploads::speak))
        .layer(SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static("x-content-type-options"),
            HeaderValue::from_static("nosniff"),
        ))
        .layer(CompressionLayer::new().compress_when(compressible()))
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
    let (connections, tasks) = (Connections::new(ConnectionLimits::of(&app.config)), TaskTracker::new());
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

/// Media are compressed already, and players need their lengths and ranges.
fn compressible() -> impl Predicate {
    DefaultPredicate::new()
        .and(NotForContentType::new("video/"))
        .and(NotForContentType::new("application/octet-stream"))
}

fn cors(origins: &[String]) -> CorsLayer {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    if origins.is_empty() {
        return CorsLayer::new();
    }
    // Browsers do not take `*` for Authorization, so every header is named.
    let headers =
        [header::AUTHORIZATION, header::CONTENT_TYPE, header::RANGE, header::IF_MATCH, header::IF_NONE_MATCH];
    let ours = ["idempotency-key", REQUEST_ID].into_iter().chain(uploads::SENT).map(HeaderName::from_static);
    let shown = [header::RETRY_AFTER, header::CONTENT_RANGE, header::ETAG, header::LOCATION];
    let shown_too = uploads::ANSWERED.into_iter().chain([REQUEST_ID]).map(HeaderName::from_static);
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods(Any)
        .allow_headers(headers.into_iter().chain(ours).collect::<Vec<_>>())
        .expose_headers(shown.into_iter().chain(shown_too).collect::<Vec<_>>())
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
