//! `reprise serve`: opens the parts, serves until a signal, and closes them in order.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use reprise_research::terminal::say;
use reprise_server::app::App;
use reprise_server::config::Config;
use reprise_server::{http, start, telemetry};

/// Arguments of `reprise serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
}

/// Where traces go.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceArgs {
    /// Address of an OpenTelemetry collector that gets traces over OTLP/HTTP, such as http://localhost:4318
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,
}

/// Runs until SIGINT or SIGTERM.
pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    serve(args.config, |_, _| async { Ok(()) }).await
}

/// Serves until a signal. Runs `then` with the server's address once it listens.
pub(crate) async fn serve<F>(
    config: Config,
    then: impl FnOnce(Arc<App>, SocketAddr) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    if config.api_key.as_deref().is_some_and(|key| key.trim().is_empty()) {
        bail!("the API key is empty");
    }
    telemetry::metrics();
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("can't listen on {}", config.listen))?;
    let address = listener.local_addr()?;
    let drain = Duration::from_secs_f64(config.drain_seconds);
    let app = start::open(config).await?;
    check_exposure(&app).await?;
    // Before the first job starts, so that a signal hands it back.
    let stopped = stop_signal().context("signals can't be received")?;
    let background = start::start(&app).await?;
    std::fs::write(app.config.data_dir.join("address"), format!("http://{address}\n"))?;
    say(format!("listening on http://{address}"))?;
    let beside = tokio::spawn(then(Arc::clone(&app), address));
    let stopping = Arc::clone(&app);
    let stop = async move {
        stopped.await;
        stopping.ready.store(false, Ordering::Release);
        tracing::info!("stopping");
    };
    http::serve(Arc::clone(&app), listener, Box::pin(stop), drain).await;
    beside.abort();
    start::close(&app, background).await;
    Ok(())
}

/// Refuses to listen on a reachable address without a key.
async fn check_exposure(app: &App) -> anyhow::Result<()> {
    let config = &app.config;
    let has_key = config.api_key.is_some() || app.gate.has_keys(&app.catalog).await?;
    if config.listen.ip().is_loopback() || has_key || config.insecure {
        return Ok(());
    }
    bail!(
        "{} can be reached from elsewhere: set REPRISE_API_KEY, make a key with `reprise keys add`, or pass --insecure",
        config.listen
    )
}

/// Waits for SIGINT or SIGTERM. From this call on they no longer end the process by themselves.
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
