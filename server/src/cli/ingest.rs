//! `reprise ingest`: uploads files to a running server and shows how their jobs go.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use reprise_encoders::video::{self, Limits};
use serde_json::{Value, json};

use super::client::{Client, ServerArgs};
use super::say;

/// How often a running job is looked at.
const LOOK: Duration = Duration::from_millis(300);

/// Arguments of `reprise ingest`.
#[derive(Debug, Args)]
pub(super) struct IngestArgs {
    /// Files, and folders whose videos are taken
    #[arg(required = true)]
    pub(super) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Print one JSON document instead of bars and lines
    #[arg(long)]
    pub(super) json: bool,
}

/// What became of one file.
struct Outcome {
    file: PathBuf,
    state: String,
    detail: Option<String>,
    video: Value,
}

/// Ends with an error if a file did not become searchable.
pub(super) async fn run(args: IngestArgs) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let mut outcomes = Vec::new();
    let bars = MultiProgress::new();
    for (file, named) in files(&args.paths)? {
        if let Some(reason) = (!named).then(|| not_video(&file)).flatten() {
            outcomes.push(Outcome {
                file,
                state: "skipped".to_owned(),
                detail: Some(reason),
                video: Value::Null,
            });
            continue;
        }
        let bar = bars.add(bar(&file, args.json));
        let outcome = one(&client, &file, &bar).await.unwrap_or_else(|error| Outcome {
            file: file.clone(),
            state: "failed".to_owned(),
            detail: Some(format!("{error:#}")),
            video: Value::Null,
        });
        bar.finish_and_clear();
        if !args.json {
            say(line(&outcome))?;
        }
        outcomes.push(outcome);
    }
    finish(&outcomes, args.json)
}

fn finish(outcomes: &[Outcome], as_json: bool) -> anyhow::Result<()> {
    let count = |state: &str| outcomes.iter().filter(|it| it.state == state).count();
    let (succeeded, skipped) = (count("succeeded") + count("duplicate"), count("skipped"));
    let failed = outcomes.len() - succeeded - skipped;
    if as_json {
        let item = |it: &Outcome| json!({"file": it.file, "state": it.state, "detail": it.detail, "video": it.video});
        say(json!({"items": outcomes.iter().map(item).collect::<Vec<_>>()}))?;
    } else {
        say(format!("{succeeded} succeeded, {failed} failed, {skipped} skipped"))?;
        let why = |it: &&Outcome| it.state == "skipped";
        for it in outcomes.iter().filter(why) {
            say(line(it))?;
        }
    }
    if failed > 0 { bail!("{failed} of {} files did not become searchable", outcomes.len()) } else { Ok(()) }
}

fn line(outcome: &Outcome) -> String {
    let name = outcome.file.display();
    match &outcome.detail {
        Some(detail) => format!("{:<10} {name}: {detail}", outcome.state),
        None => format!("{:<10} {name}", outcome.state),
    }
}

/// Files in order of name; `true` for those that the user named.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut inside = Vec::new();
            walk(path, &mut inside)?;
            inside.sort();
            all.extend(inside.into_iter().map(|file| (file, false)));
        } else if path.exists() {
            all.push((path.clone(), true));
        } else {
            bail!("{}: no such file", path.display());
        }
    }
    Ok(all)
}

fn walk(folder: &Path, into: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() { walk(&path, into)? } else { into.push(path) }
    }
    Ok(())
}

/// Why a file in a folder is left out.
fn not_video(file: &Path) -> Option<String> {
    let extension = file.extension().and_then(|it| it.to_str()).unwrap_or_default().to_lowercase();
    if ["srt", "vtt"].contains(&extension.as_str()) {
        return Some("subtitles can't be attached yet".to_owned());
    }
    match video::probe(file, &Limits::default()) {
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

fn bar(file: &Path, hidden: bool) -> ProgressBar {
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

async fn one(client: &Client, file: &Path, bar: &ProgressBar) -> anyhow::Result<Outcome> {
    let form = reqwest::multipart::Form::new()
        .file("file", file)
        .await
        .with_context(|| file.display().to_string())?;
    let answer = client.json(client.post("/v1/videos").multipart(form)).await?;
    let mut job = answer["job"].clone();
    while ["queued", "running"].iter().any(|state| job["state"] == *state) {
        bar.set_position((job["progress"].as_f64().unwrap_or(0.0) * 1000.0) as u64);
        bar.set_message(format!("{} {}", job["stage"].as_str().unwrap_or(""), file.display()));
        tokio::time::sleep(LOOK).await;
        let id = job["id"].as_str().unwrap_or_default().to_owned();
        job = client.json(client.get(&format!("/v1/jobs/{id}"))).await?;
    }
    let ended = job["state"].as_str().unwrap_or("succeeded").to_owned();
    let duplicate = answer["duplicate"] == true && ended == "succeeded";
    let warnings = async {
        let id = answer["video"]["id"].as_str().unwrap_or_default();
        client.json(client.get(&format!("/v1/videos/{id}"))).await
    };
    let video = warnings.await?;
    let warned =
        video["warnings"].as_array().and_then(|it| it.first()).and_then(Value::as_str).map(str::to_owned);
    Ok(Outcome {
        file: file.to_owned(),
        state: if duplicate { "duplicate".to_owned() } else { ended },
        detail: job["reason"].as_str().map(str::to_owned).or(warned.map(|it| format!("warning: {it}"))),
        video,
    })
}
