//! Lets a client read an early refusal: the rest of its body is read for a moment and discarded.
//!
//! Closing a connection while the client still sends resets it. Most clients then report a broken pipe instead of the
//! answer in their buffer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{StreamExt, stream};
use tokio::time::timeout;

/// Longest time to read a refused body.
const AT_MOST: Duration = Duration::from_secs(5);
/// A client that sends nothing for this long has read its answer, or never will.
const QUIET: Duration = Duration::from_millis(500);

/// The body, shared by the handler and by the task that discards the rest.
type Shared = Arc<Mutex<BodyDataStream>>;

/// After an error answer, reads and discards the rest of the body.
pub(super) async fn linger(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let shared: Shared = Arc::new(Mutex::new(body.into_data_stream()));
    let body = Body::from_stream(pieces(Arc::clone(&shared)));
    let response = next.run(Request::from_parts(parts, body)).await;
    if response.status().is_client_error() || response.status().is_server_error() {
        tokio::spawn(timeout(AT_MOST, discard(shared)));
    }
    response
}

fn pieces(body: Shared) -> impl stream::Stream<Item = Result<bytes::Bytes, axum::Error>> + Send + 'static {
    stream::poll_fn(move |context| {
        body.lock().unwrap_or_else(PoisonError::into_inner).poll_next_unpin(context)
    })
}

async fn discard(body: Shared) {
    let mut pieces = Box::pin(pieces(body));
    while let Ok(Some(Ok(_))) = timeout(QUIET, pieces.next()).await {}
}
