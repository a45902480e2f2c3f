//! `reprise demo`: a server with a few videos for a first look.

mod shapes;
mod sports;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use reprise_encoders::TrainedOn;

use crate::client::ServerArgs;
use crate::ingest::{self, Source};
use crate::outcome::Outcome;
use crate::serve::{self, TraceArgs};
use crate::step::Step;
use reprise_research::terminal::say;
use reprise_server::app::App;
use reprise_server::config::Config;
use reprise_server::terms::QueryKind;

/// Arguments of `reprise demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
    /// Videos to ingest instead of rendered ones: files and folders, separated by `:`
    #[arg(long = "videos", env = "REPRISE_DEMO", value_delimiter = ':')]
    videos: Vec<PathBuf>,
}

/// Serves, ingests and prints the page's address. Runs until a signal.
pub(crate) async fn run(mut args: DemoArgs) -> anyhow::Result<()> {
    // Its own folder: a demo must not fill a user's library.
    args.config.data_dir = args.config.data_dir.join("demo");
    serve::serve(args.config, move |app, address| fill(app, address, args.videos)).await
}

async fn fill(app: Arc<App>, address: SocketAddr, videos: Vec<PathBuf>) -> anyhow::Result<()> {
    // Drawn sports need a model of motion. Other models know only colour and layout.
    let composes = app.spaces.active(QueryKind::Composed).is_some_and(|space| space.space.can.composed);
    let library = match (videos.is_empty(), composes) {
        (false, _) => None,
        (true, true) => Some(sports::render(&app.config.data_dir).await?),
        (true, false) => Some(shapes::render(&app.config.data_dir).await?),
    };
    let files = match &library {
        Some(folder) if composes => rendered(&sports::VIDEOS.map(|name| folder.join(name)))?,
        Some(folder) => rendered(std::slice::from_ref(folder))?,
        None => ingest::files(&videos)?,
    };
    let server = ServerArgs { server: format!("http://{address}"), api_key: app.config.api_key.clone() };
    take(files, &server).await?;
    if let Some(warning) = app.spaces.active(QueryKind::Text).and_then(|it| warning(it.space.trained_on)) {
        say(warning)?;
        say("Name a real one with REPRISE_MODEL, e.g. REPRISE_MODEL=laion/CLIP-ViT-B-32-laion2B-s34B-b79K.")?;
    }
    if let Some(folder) = library.filter(|_| composes) {
        let examples = sports::examples(&app.catalog, &folder).await?;
        for example in &examples {
            say(format!("Try {}: http://{address}{}", example.title, example.href))?;
        }
        // Fails only if the examples are set already; only this code sets them.
        let _ = app.examples.set(examples);
    }
    say(format!("The page is at http://{address}"))?;
    Ok(())
}

/// The videos of rendered folders, each in a folder of that name in the library. They are marked as named by the user:
/// then only the server probes them.
fn rendered(folders: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let files = ingest::files(folders)?.into_iter();
    let whole = files.filter(|file| file.path.extension().is_some_and(|it| it == "mp4"));
    let folder = |file: &Source| Some(file.path.parent()?.file_name()?.to_str()?.to_owned());
    Ok(whole.map(|file| Source { named: true, folder: folder(&file), path: file.path }).collect())
}

/// Ingests files with one bar for all, and prints the files that failed.
async fn take(files: Vec<Source>, server: &ServerArgs) -> anyhow::Result<()> {
    let all = files.len() as u64;
    let step = Step::begin("ingesting", "files")?;
    let bars: Mutex<Vec<ProgressBar>> = Mutex::default();
    let bar_of = |_: &Path| {
        let bar = ProgressBar::hidden();
        bar.set_length(1000);
        if let Ok(mut bars) = bars.lock() {
            bars.push(bar.clone());
        }
        bar
    };
    let mut searchable = 0;
    let ended = |outcome: Outcome| {
        if ["succeeded", "duplicate"].contains(&outcome.state.as_str()) {
            searchable += 1;
            return Ok(());
        }
        step.note(&outcome.line())
    };
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    {
        let mut taking = pin!(ingest::each(files, server, bar_of, ended));
        loop {
            tokio::select! {
                taken = &mut taking => break taken?,
                _ = clock.tick() => {
                    let thousandths: u64 =
                        bars.lock().map_or(0, |bars| bars.iter().map(ProgressBar::position).sum());
                    step.set(thousandths / 1000, all);
                }
            }
        }
    }
    step.end(&format!("ingested {searchable} of {all} files"))?;
    Ok(())
}

/// A warning about the quality of the answers, if the model needs one.
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
