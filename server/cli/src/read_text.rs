//! `reprise read-text`: prints the text on screen in a video, without a server.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use reprise_encoders::screen_text::{Next, ReadTextError, ScreenLine, ScreenText, Tesseract, read_text};
use reprise_encoders::video::{Limits, probe};
use reprise_research::terminal::{clock, say};
use serde_json::{Value, json};

/// Arguments of `reprise read-text`.
#[derive(Debug, Args)]
pub(crate) struct ReadTextArgs {
    /// The video
    file: PathBuf,
    /// Languages of the text, by Tesseract's names, joined with +
    #[arg(long, value_name = "LANGUAGES", default_value = "eng")]
    languages: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints each line of text with the time for which it is on screen.
pub(crate) async fn run(args: ReadTextArgs) -> anyhow::Result<()> {
    let ReadTextArgs { file, languages, json } = args;
    let found = tokio::task::spawn_blocking(move || read(&file, &languages)).await??;
    if json {
        return Ok(say(report(&found))?);
    }
    for line in &found.lines {
        let ScreenLine { start_ms, end_ms, text, .. } = line;
        say(format!("{:>12} - {:<12} {text}", clock(seconds(*start_ms)), clock(seconds(*end_ms))))?;
    }
    if found.lines.is_empty() {
        say("no text is on screen")?;
    }
    found.warnings.iter().try_for_each(|it| say(format!("warning: {it}")))?;
    Ok(())
}

fn read(file: &Path, languages: &str) -> anyhow::Result<ScreenText> {
    let tesseract = Tesseract::find(languages)?;
    let limits = Limits::default();
    let read = || -> Result<ScreenText, ReadTextError> {
        let probe = probe(file, &limits)?;
        read_text(file, &probe, &tesseract, &limits, |_| Next::Go)
    };
    read().with_context(|| file.display().to_string())
}

fn report(found: &ScreenText) -> Value {
    let line = |it: &ScreenLine| {
        json!({
            "start": seconds(it.start_ms),
            "end": seconds(it.end_ms),
            "text": it.text,
            "confidence": it.confidence,
            "box": it.region,
        })
    };
    json!({
        "duration": seconds(found.duration_ms),
        "lines": found.lines.iter().map(line).collect::<Vec<_>>(),
        "pictures": found.pictures,
        "regions": found.regions,
        "runs": found.runs,
        "warnings": found.warnings,
    })
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}
