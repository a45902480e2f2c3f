//! `reprise eval broadcast`: sends composed queries to its own server, which has ingested the benchmark's long
//! videos.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use reprise_index::eval::{CUTOFFS, Figures, Judged};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::client::{Client, ServerArgs};
use crate::ingest;
use reprise_research::eval::ranges::{self, Element, Query, Range, TargetLocation};
use reprise_research::eval::report::{self, Row};
use reprise_research::terminal::say;
use reprise_server::app::App;
use reprise_server::config::Config;
use reprise_server::http;
use reprise_server::start::{self, Background};

/// Arguments of `reprise eval broadcast`.
#[derive(Debug, Args)]
pub(crate) struct BroadcastArgs {
    /// A folder that `reprise synth` wrote
    #[arg(long)]
    data: PathBuf,
    /// The searched space, by id or name
    #[arg(long)]
    space: Option<String>,
    /// Queries per kind
    #[arg(long, default_value_t = 100)]
    queries: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: Config,
}

/// Ranks of the reported recall.
const FOUND_AT: [usize; 4] = [1, 5, 10, 50];
/// Name of the model's method in the report.
const METHOD: &str = "composed";
/// Data folder beside the user's library; emptied at each run.
const FOLDER: &str = "eval-broadcast";

/// Starts its own server, ingests, searches, and prints the table or JSON.
pub(crate) async fn run(mut args: BroadcastArgs) -> anyhow::Result<()> {
    let elements = ranges::elements(&args.data)?;
    let queries = ranges::queries(&elements, &ranges::changes(&args.data)?, args.queries);
    ensure!(!queries.is_empty(), "{} has no queries over broadcasts", args.data.display());
    let folder = args.config.data_dir.join(FOLDER);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    args.config = Config {
        data_dir: folder,
        database_url: None,
        api_key: None,
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        ..args.config
    };
    let server = Server::start(args.config.clone()).await?;
    let judged = judge(&server.client, &args, &elements, &queries).await;
    server.stop().await?;
    let (space, figures) = judged?;
    let row = Row { method: METHOD.to_owned(), space, figures, through_index: BTreeMap::new() };
    if args.json {
        say(report::json(&[row]))?;
        return Ok(());
    }
    for line in report::table(&[row]) {
        say(line)?;
    }
    Ok(())
}

/// The name of the searched space, and the figures by place.
async fn judge(
    client: &Client,
    args: &BroadcastArgs,
    elements: &[Element],
    queries: &BTreeMap<TargetLocation, Vec<Query>>,
) -> anyhow::Result<(String, BTreeMap<String, Figures>)> {
    let mut videos = BTreeMap::new();
    for element in elements {
        let name = &element.range.video;
        if !videos.contains_key(name) {
            videos.insert(name.clone(), stored(client, args, name).await?);
        }
    }
    let (mut space, mut figures) = (String::new(), BTreeMap::new());
    for (place, queries) in queries {
        let mut judged = Vec::new();
        for query in queries {
            let answer = ask(client, args, &videos, query).await?;
            let hits = hits(&answer, &videos);
            let ranked = ranges::found(elements, &query.targets, &hits);
            judged.push(Judged { ranked, relevant: query.targets.clone(), listed: query.targets.len() });
            answer["index"]["space"].as_str().unwrap_or_default().clone_into(&mut space);
        }
        let of = Figures::of(&judged, &CUTOFFS, &FOUND_AT);
        figures.extend(of.map(|it| (place.name().to_owned(), it)));
    }
    Ok((space, figures))
}

/// Ingests a file and waits for its job. Returns the video's id.
async fn stored(client: &Client, args: &BroadcastArgs, name: &str) -> anyhow::Result<String> {
    let file = args.data.join(name);
    let bar = ingest::bar(&file, args.json);
    let outcome = ingest::one(client, &file, &bar).await?;
    bar.finish_and_clear();
    if outcome.state != "succeeded" {
        bail!("{name}: {}", outcome.detail.unwrap_or(outcome.state));
    }
    outcome.video["id"].as_str().map(str::to_owned).context("the server names no id")
}

async fn ask(
    client: &Client,
    args: &BroadcastArgs,
    videos: &BTreeMap<String, String>,
    query: &Query,
) -> anyhow::Result<Value> {
    let Range { video, start, end } = &query.from;
    let video = videos.get(video).context("the query's video was not ingested")?;
    let clip = json!({"video_id": video, "start": start, "end": end});
    let most = FOUND_AT.into_iter().max().unwrap_or_default();
    let mut body = json!({"query": {"clip": clip, "modification": query.modification}, "limit": most});
    if let Some(space) = &args.space {
        body["space"] = json!(space);
    }
    client.json(client.post("/v1/search").json(&body)).await
}

/// The ranges of the hits, best first, with file names instead of ids.
fn hits(answer: &Value, videos: &BTreeMap<String, String>) -> Vec<Range> {
    let name = |id: &str| videos.iter().find(|(_, known)| *known == id).map(|(name, _)| name.clone());
    let hit = |hit: &Value| {
        let video = name(hit["video_id"].as_str()?)?;
        Some(Range { video, start: hit["start"].as_f64()?, end: hit["end"].as_f64()? })
    };
    answer["results"].as_array().into_iter().flatten().filter_map(hit).collect()
}

/// A server within this process.
struct Server {
    client: Client,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<()>,
    app: Arc<App>,
    background: Background,
}

impl Server {
    async fn start(config: Config) -> anyhow::Result<Server> {
        let listener = TcpListener::bind(config.listen).await?;
        let drain = Duration::from_secs_f64(config.drain_seconds);
        let server = ServerArgs { server: format!("http://{}", listener.local_addr()?), api_key: None };
        let app = start::open(config).await?;
        let background = start::start(&app).await?;
        let (stop, stopped) = oneshot::channel::<()>();
        // A dropped sender also means stop.
        let stopped = async move { stopped.await.unwrap_or_default() };
        let serving = tokio::spawn(http::serve(Arc::clone(&app), listener, Box::pin(stopped), drain));
        Ok(Server { client: Client::new(&server)?, stop, serving, app, background })
    }

    async fn stop(self) -> anyhow::Result<()> {
        // An open connection would delay the stop.
        drop(self.client);
        let _ = self.stop.send(());
        self.serving.await?;
        start::close(&self.app, self.background).await;
        Ok(())
    }
}
