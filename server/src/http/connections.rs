//! Connections: a limit on their number, and deadlines for those that stand still.

use std::collections::HashMap;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::config::Config;

/// Interval of the looks at a connection.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Pause after the operating system refused a connection, usually for lack of file descriptors.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);
/// File descriptors kept for files, databases and decoders.
const OTHER_FILES: u64 = 256;

/// Limits on connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Most at once.
    pub(super) most: usize,
    /// Longest time for the headers of a request to arrive. Also closes connections that wait for their next request.
    pub(super) headers_within: Duration,
    /// A connection that moves no byte for this long while no handler works for it is closed.
    pub(super) idle: Duration,
}

impl ConnectionLimits {
    /// Those of a configuration.
    pub(super) fn of(config: &Config) -> ConnectionLimits {
        ConnectionLimits {
            most: config.max_connections,
            headers_within: Duration::from_secs_f64(config.header_seconds),
            idle: Duration::from_secs_f64(config.idle_seconds),
        }
    }
}

/// The open connections of a server.
pub(super) struct Connections {
    /// With no more connections than the operating system allows.
    limits: ConnectionLimits,
    open: Mutex<HashMap<u64, Arc<Activity>>>,
    closed: Notify,
}

/// What a connection does.
struct Activity {
    opened: Instant,
    /// Milliseconds from `opened` to the last byte.
    moved_ms: AtomicU64,
    /// Handlers at work.
    working: AtomicUsize,
    close: CancellationToken,
}

impl Connections {
    /// No connections yet, and never more than the operating system's limit on files leaves room for.
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Connections> {
        let most = limits.most;
        let room = file_limit().map_or(usize::MAX, |files| {
            usize::try_from(files.saturating_sub(OTHER_FILES).max(files / 2)).unwrap_or(usize::MAX)
        });
        if room < most {
            tracing::warn!(most, room, "the limit on open files allows fewer connections (see ulimit -n)");
        }
        Arc::new(Connections {
            limits: ConnectionLimits { most: most.clamp(1, room.max(1)), ..limits },
            open: Mutex::default(),
            closed: Notify::new(),
        })
    }

    /// Accepts connections until `stop`, and serves each in a task of `tasks`.
    pub(super) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        router: Router,
        stop: CancellationToken,
        tasks: &TaskTracker,
    ) {
        let accepted = async {
            for number in 0.. {
                let stream = accept(&listener).await;
                let place = self.place(number).await;
                tasks.spawn(serve_one(stream, router.clone(), place, stop.clone()));
            }
        };
        tokio::select! {
            () = accepted => {}
            () = stop.cancelled() => {}
        }
    }

    /// Takes a place. If there is none, closes the connection that was idle for longest. Handlers at work are spared.
    async fn place(self: &Arc<Self>, number: u64) -> Place {
        loop {
            let closed = self.closed.notified();
            {
                let mut open = self.open();
                if open.len() < self.limits.most {
                    let activity = Arc::new(Activity::new());
                    open.insert(number, Arc::clone(&activity));
                    return Place { connections: Arc::clone(self), number, activity };
                }
                let idle = open.values().filter(|activity| activity.is_idle());
                if let Some(longest) = idle.min_by_key(|activity| activity.moved()) {
                    longest.close.cancel();
                }
            }
            let _ = timeout(LOOK_EVERY, closed).await;
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Activity>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of an open connection.
struct Place {
    connections: Arc<Connections>,
    number: u64,
    activity: Arc<Activity>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().remove(&self.number);
        self.connections.closed.notify_one();
    }
}

impl Activity {
    fn new() -> Activity {
        Activity {
            opened: Instant::now(),
            moved_ms: AtomicU64::new(0),
            working: AtomicUsize::new(0),
            close: CancellationToken::new(),
        }
    }

    /// The time of the last byte.
    fn moved(&self) -> Instant {
        self.opened + Duration::from_millis(self.moved_ms.load(Ordering::Relaxed))
    }

    fn moves(&self) {
        let elapsed = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.store(elapsed, Ordering::Relaxed);
    }

    fn is_idle(&self) -> bool {
        self.working.load(Ordering::Relaxed) == 0
    }
}

/// A handler at work.
struct Work(Arc<Activity>);

impl Work {
    fn new(activity: &Arc<Activity>) -> Work {
        activity.working.fetch_add(1, Ordering::Relaxed);
        Work(Arc::clone(activity))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The answer follows now: its time begins.
        self.0.moves();
        self.0.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for a connection. Errors end with their cause: a client that has gone, or file descriptors that come back.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_of_client(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted; trying again");
                sleep(AFTER_REFUSAL).await;
            }
        }
    }
}

fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Serves the requests of one connection until it ends, stands still or must give its place away.
async fn serve_one(stream: TcpStream, router: Router, place: Place, stop: CancellationToken) {
    // Answers are short and written at once. Waiting for more bytes would only delay them.
    let _ = stream.set_nodelay(true);
    let (activity, limits) = (Arc::clone(&place.activity), place.connections.limits);
    let of_requests = Arc::clone(&activity);
    let handler = tower::service_fn(move |request: Request<Incoming>| {
        let (work, router) = (Work::new(&of_requests), router.clone());
        async move {
            let answered = router.oneshot(request.map(Body::new)).await;
            drop(work);
            answered
        }
    });
    let stream = TokioIo::new(Observed { stream, activity: Arc::clone(&activity) });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.headers_within)
            .serve_connection(stream, TowerToHyperService::new(handler))
    );
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            () = activity.close.cancelled() => return tracing::debug!("an idle connection gave its place away"),
            () = stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = looks.tick() => {
                if activity.is_idle() && activity.moved().elapsed() > limits.idle {
                    return tracing::debug!("a connection stood still and was closed");
                }
            }
        }
    }
}

/// A stream that records when bytes move.
struct Observed {
    stream: TcpStream,
    activity: Arc<Activity>,
}

impl Observed {
    fn note<T>(&self, polled: Poll<T>) -> Poll<T> {
        if polled.is_ready() {
            self.activity.moves();
        }
        polled
    }
}

impl AsyncRead for Observed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note(polled)
    }
}

impl AsyncWrite for Observed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Raises the limit on open files to the highest that this process may have, and returns it; `None` if there is none.
#[cfg(unix)]
fn file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    getrlimit(Resource::Nofile).current
}

#[cfg(not(unix))]
fn file_limit() -> Option<u64> {
    None
}
