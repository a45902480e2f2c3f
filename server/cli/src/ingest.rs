//! `reprise ingest`: uploads files to a running server and shows the progress of their jobs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use futures_util::{StreamExt, stream};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use reprise_encoders::video::{self, Limits};
use reprise_encoders::with_causes;
use serde_json::{Value, json};

use crate::client::{Client, ServerArgs};
use crate::outcome::Outcome;
use crate::sidecars;
use reprise_research::terminal::say;

/// Time between two requests for a running job.
const LOOK: Duration = Duration::from_millis(300);
/// Files uploaded or waited for at the same time.
const IN_FLIGHT: usize = 3;

/// Arguments of `reprise ingest`.
#[derive(Debug, Args)]
pub(crate) struct IngestArgs {
    /// Files, and folders of videos
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON document instead of bars and lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// Ingests all files. Fails if a file did not become searchable.
pub(crate) async fn run(args: IngestArgs) -> anyhow::Result<()> {
    let bars = MultiProgress::new();
    let as_json = args.json;
    let mut outcomes = Vec::new();
    let files = files(&args.paths)?;
    let bar_of = |file: &Path| bars.add(bar(file, as_json));
    let ended = |outcome: Outcome| {
        if !as_json {
            bars.suspend(|| say(outcome.line()))?;
        }
        outcomes.push(outcome);
        Ok(())
    };
    each(files, &args.server, bar_of, ended).await?;
    finish(&outcomes, as_json)
}

/// A file of an ingest.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// Whether the user named the file itself rather than its folder.
    pub(crate) named: bool,
    /// The folder of the library that the video goes to.
    pub(crate) folder: Option<String>,
}

/// Uploads files concurrently and waits for their jobs. Calls `ended` with the outcomes in the order of the files.
/// `bar_of` makes the progress bar of a file, with 1000 steps.
///
/// # Errors
/// The client can't be created, or `ended` fails.
pub(crate) async fn each(
    files: Vec<Source>,
    server: &ServerArgs,
    bar_of: impl Fn(&Path) -> ProgressBar,
    mut ended: impl FnMut(Outcome) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let client = Client::new(server)?;
    let attached = sidecars::of(files.iter().map(|file| file.path.as_path()));
    let mut ending = stream::iter(files)
        .map(|source| {
            let subtitles = attached.beside(&source.path);
            let owner = attached.owner_of(&source.path);
            take(&client, &bar_of, Taken { source, subtitles, owner })
        })
        .buffered(IN_FLIGHT);
    while let Some(outcome) = ending.next().await {
        ended(outcome)?;
    }
    Ok(())
}

/// A file to ingest.
struct Taken {
    source: Source,
    /// Subtitle files of this video.
    subtitles: Vec<PathBuf>,
    /// The video that a subtitle file belongs to.
    owner: Option<PathBuf>,
}

/// Ingests one file. Skips a file from a folder that is no video.
async fn take(client: &Client, bar_of: &impl Fn(&Path) -> ProgressBar, taken: Taken) -> Outcome {
    let Taken { source, subtitles, owner } = taken;
    let Source { path: file, named, folder } = source;
    if sidecars::is_one(&file) && !named {
        return sidecars::outcome(file, owner).await;
    }
    if !named && let Some(reason) = in_background(&file, not_video).await {
        return Outcome::without_video(file, "skipped", reason);
    }
    let bar = bar_of(&file);
    let outcome = one_with(client, &file, &Beside { subtitles, folder }, &bar).await;
    bar.finish_and_clear();
    outcome.unwrap_or_else(|error| Outcome::without_video(file, "failed", with_causes(error.as_ref())))
}

/// Runs `look` on a blocking thread. Returns the reason to reject the file, if any.
async fn in_background(file: &Path, look: fn(&Path) -> Option<String>) -> Option<String> {
    let file = file.to_owned();
    let looked = tokio::task::spawn_blocking(move || look(&file)).await;
    looked.unwrap_or_else(|panic| Some(panic.to_string()))
}

fn finish(outcomes: &[Outcome], as_json: bool) -> anyhow::Result<()> {
    let count = |state: &str| outcomes.iter().filter(|it| it.state == state).count();
    let (succeeded, skipped) = (count("succeeded") + count("duplicate"), count("skipped"));
    let attached = count(sidecars::ATTACHED);
    let failed = outcomes.len() - succeeded - skipped - attached;
    if as_json {
        let item = |it: &Outcome| json!({"file": it.file, "state": it.state, "detail": it.detail, "video": it.video});
        say(json!({"items": outcomes.iter().map(item).collect::<Vec<_>>()}))?;
    } else {
        let with = if attached > 0 { format!(", {attached} subtitles attached") } else { String::new() };
        say(format!("{succeeded} succeeded, {failed} failed, {skipped} skipped{with}"))?;
    }
    if failed > 0 { bail!("{failed} of {} files did not become searchable", outcomes.len()) } else { Ok(()) }
}

/// The files at `paths`; files of a folder are ordered by name.
///
/// # Errors
/// A path does not exist, or a folder can't be read.
pub(crate) fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut inside = Vec::new();
            walk(path, &mut inside)?;
            inside.sort();
            all.extend(inside.into_iter().map(|path| Source { path, named: false, folder: None }));
        } else if path.exists() {
            all.push(Source { path: path.clone(), named: true, folder: None });
        } else {
            bail!("{}: no such file", path.display());
        }
    }
    Ok(all)
}

/// All files below a folder.
///
/// # Errors
/// A folder can't be read.
pub(crate) fn walk(folder: &Path, into: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() { walk(&path, into)? } else { into.push(path) }
    }
    Ok(())
}

/// The reason to skip a file of a folder, if any.
fn not_video(file: &Path) -> Option<String> {
    match video::probe(file, &Limits::default()) {
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// A progress bar for one file.
pub(crate) fn bar(file: &Path, hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(1000);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}% {msg}") {
        bar.set_style(style);
    }
    bar.set_message(format!("uploading {}", file.display()));
    bar
}

/// Uploads a file and waits until its job ends.
///
/// # Errors
/// The file can't be read, or the server does not answer or refuses it.
pub(crate) async fn one(client: &Client, file: &Path, bar: &ProgressBar) -> anyhow::Result<Outcome> {
    one_with(client, file, &Beside::default(), bar).await
}

/// What is sent with a video.
#[derive(Default)]
struct Beside {
    /// Subtitle files; unreadable ones are left out.
    subtitles: Vec<PathBuf>,
    folder: Option<String>,
}

/// Like [`one`], with what belongs to the video.
async fn one_with(
    client: &Client,
    file: &Path,
    beside: &Beside,
    bar: &ProgressBar,
) -> anyhow::Result<Outcome> {
    let mut form = reqwest::multipart::Form::new()
        .file("file", file)
        .await
        .with_context(|| file.display().to_string())?;
    if let Some(folder) = &beside.folder {
        form = form.text("folder", folder.clone());
    }
    for path in &beside.subtitles {
        if in_background(path, sidecars::unreadable).await.is_none() {
            form = form.file("subtitles", path).await.with_context(|| path.display().to_string())?;
        }
    }
    let answer = client.json(client.post("/v1/videos").multipart(form)).await?;
    let job = watched(client, &answer["job"], file, bar).await?;
    let id = answer["video"]["id"].as_str().unwrap_or_default();
    let video = client.json(client.get(&format!("/v1/videos/{id}"))).await?;
    let ended = job["state"].as_str().unwrap_or("succeeded");
    let is_duplicate = answer["duplicate"] == true && ended == "succeeded";
    let warning = video["warnings"][0].as_str().map(|warning| format!("warning: {warning}"));
    Ok(Outcome {
        file: file.to_owned(),
        state: if is_duplicate { "duplicate".to_owned() } else { ended.to_owned() },
        detail: job["reason"].as_str().map(str::to_owned).or(warning),
        video,
    })
}

/// Waits until the job ends and returns it. Shows the progress on the bar.
async fn watched(client: &Client, job: &Value, file: &Path, bar: &ProgressBar) -> anyhow::Result<Value> {
    let mut job = job.clone();
    while ["queued", "running"].iter().any(|state| job["state"] == *state) {
        bar.set_position((job["progress"].as_f64().unwrap_or(0.0) * 1000.0) as u64);
        bar.set_message(format!("{} {}", job["stage"].as_str().unwrap_or(""), file.display()));
        tokio::time::sleep(LOOK).await;
        let id = job["id"].as_str().unwrap_or_default().to_owned();
        job = client.json(client.get(&format!("/v1/jobs/{id}"))).await?;
    }
    Ok(job)
}
