//! `reprise demo`: a server with a few videos in it, to look around.

mod shapes;
mod sports;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use reprise_encoders::TrainedOn;

use crate::client::ServerArgs;
use crate::ingest::{self, IngestArgs};
use crate::serve;
use reprise_research::terminal::say;
use reprise_server::app::App;
use reprise_server::config::{Config, QueryKind};

/// Arguments of `reprise demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    config: Config,
    /// Videos to ingest instead of rendered ones; files and folders, `:` between several
    #[arg(long = "videos", env = "REPRISE_DEMO", value_delimiter = ':')]
    videos: Vec<PathBuf>,
}

/// Serves, ingests, says where to look; goes on until a signal.
pub(crate) async fn run(mut args: DemoArgs) -> anyhow::Result<()> {
    // A folder of its own: a demo must not fill a user's library.
    args.config.data_dir = args.config.data_dir.join("demo");
    serve::serve(args.config, move |app, address| fill(app, address, args.videos)).await
}

async fn fill(app: Arc<App>, address: SocketAddr, videos: Vec<PathBuf>) -> anyhow::Result<()> {
    // Drawings of sports are for models that see a change of movement; the others know colour and layout.
    let composes = app.spaces.active(QueryKind::Composed).is_some_and(|space| space.space.can.composed);
    let library = match (videos.is_empty(), composes) {
        (false, _) => None,
        (true, true) => Some(sports::render(&app.config.data_dir).await?),
        (true, false) => Some(shapes::render(&app.config.data_dir).await?),
    };
    let paths = match &library {
        Some(folder) if composes => sports::VIDEOS.map(|name| folder.join(name)).to_vec(),
        Some(folder) => vec![folder.clone()],
        None => videos,
    };
    let server = ServerArgs { server: format!("http://{address}"), api_key: app.config.api_key.clone() };
    if let Err(error) = ingest::run(IngestArgs { paths, server, json: false }).await {
        tracing::warn!("{error:#}");
    }
    if let Some(warning) = app.spaces.active(QueryKind::Text).and_then(|it| warning(it.space.trained_on)) {
        say(warning)?;
        say("Name a real one with REPRISE_MODEL, e.g. REPRISE_MODEL=laion/CLIP-ViT-B-32-laion2B-s34B-b79K.")?;
    }
    if let Some(folder) = library.filter(|_| composes) {
        let examples = sports::examples(&*app.catalog, &folder).await?;
        for example in &examples {
            say(format!("Try {}: http://{address}{}", example.title, example.href))?;
        }
        // Fails only if they are set already, and nobody else sets them.
        let _ = app.examples.set(examples);
    }
    say(format!("The page is at http://{address}"))?;
    Ok(())
}

/// How far to trust the answers, where that is not obvious.
fn warning(trained_on: TrainedOn) -> Option<&'static str> {
    match trained_on {
        TrainedOn::Nothing => Some(
            "The model is untrained: it sees little more than colour and layout, and words mean nothing to it.",
        ),
        TrainedOn::RenderedClips => {
            Some("The model is trained on rendered clips: it knows drawings of sports, and no real footage.")
        }
        TrainedOn::Unstated => None,
    }
}
