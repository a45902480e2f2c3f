//! `reprise feedback`: writes what was done with hits as JSON lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use reprise_research::terminal::say;
use reprise_server::catalog::{self, FeedbackPosition, JudgedSearch, Verdict, Visibility, instant};
use reprise_server::terms::Level;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::migrate::DatabaseArgs;

/// Entries that are read at once.
const AT_ONCE: u32 = 1000;

/// Arguments of `reprise feedback`.
#[derive(Debug, Args)]
pub(crate) struct FeedbackArgs {
    #[command(subcommand)]
    command: FeedbackCommand,
}

#[derive(Debug, Subcommand)]
enum FeedbackCommand {
    /// Write all feedback on hits as JSON lines (docs/query-log.md); servers may be running
    Export(ExportArgs),
}

#[derive(Debug, Args)]
struct ExportArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// File to write; an existing one is replaced when the new one is whole
    file: PathBuf,
}

/// One line: what was done with one hit of one search.
#[derive(Debug, Serialize)]
struct Line {
    search_id: Uuid,
    at: String,
    verdict: Verdict,
    key_name: Option<String>,
    kind: &'static str,
    space: String,
    query: Query,
    hit: Hit,
}

#[derive(Debug, Serialize)]
struct Query {
    text: Option<String>,
    hash: String,
    clip_id: Option<Uuid>,
    video_id: Option<Uuid>,
    file: Option<PathBuf>,
    file_name: Option<String>,
    start: Option<f64>,
    end: Option<f64>,
    uploaded: bool,
    filter: Option<Value>,
}

#[derive(Debug, Serialize)]
struct Hit {
    rank: i64,
    score: f64,
    level: Level,
    clip_id: Uuid,
    video_id: Uuid,
    file: PathBuf,
    file_name: String,
    title: String,
    start: f64,
    end: f64,
}

impl Line {
    /// `folder`: the data folder.
    fn new(judged: JudgedSearch, folder: &Path) -> Line {
        let (query, hit) = (judged.query, judged.hit);
        let (query_path, query_file_name) =
            judged.query_file.map(|it| (folder.join(it.file), it.file_name)).unzip();
        Line {
            search_id: judged.search,
            at: instant::format(judged.at_ms),
            verdict: judged.verdict,
            key_name: judged.key_name,
            kind: judged.kind.name(),
            space: judged.space,
            query: Query {
                text: query.text,
                hash: query.hash,
                clip_id: query.clip,
                video_id: query.video,
                file: query_path,
                file_name: query_file_name,
                start: query.start_ms.map(seconds),
                end: query.end_ms.map(seconds),
                uploaded: query.uploaded,
                filter: query.filter,
            },
            hit: Hit {
                rank: hit.rank,
                score: hit.score,
                level: hit.level,
                clip_id: hit.span,
                video_id: hit.video,
                file: folder.join(judged.hit_file.file),
                file_name: judged.hit_file.file_name,
                title: judged.hit_title,
                start: seconds(hit.start_ms),
                end: seconds(hit.end_ms),
            },
        }
    }
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// Runs the subcommand.
pub(crate) async fn run(args: FeedbackArgs) -> anyhow::Result<()> {
    let FeedbackCommand::Export(args) = args.command;
    let partial = partial(&args.file);
    let lines = match write(&args, &partial).await {
        Ok(lines) => lines,
        Err(error) => {
            let _ = std::fs::remove_file(&partial);
            return Err(error);
        }
    };
    std::fs::rename(&partial, &args.file).with_context(|| args.file.display().to_string())?;
    say(format!("{lines} lines in {}", args.file.display()))?;
    Ok(())
}

/// Where the file is written until it is whole.
fn partial(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// Writes all lines to `path`. Returns their number.
async fn write(args: &ExportArgs, path: &Path) -> anyhow::Result<u64> {
    let catalog = catalog::open_existing(&args.database.url()).await?;
    let unwritten = || path.display().to_string();
    let folder = std::path::absolute(&args.database.data_dir)?;
    let mut file = BufWriter::new(File::create(path).with_context(unwritten)?);
    let (mut lines, mut after) = (0, None);
    loop {
        let page = catalog.view(&Visibility::All).feedback(after, AT_ONCE).await?;
        let Some(last) = page.last() else { break };
        after = Some(FeedbackPosition { search: last.search, span: last.hit.span, verdict: last.verdict });
        lines += page.len() as u64;
        for judged in page {
            let line = serde_json::to_string(&Line::new(judged, &folder))?;
            writeln!(file, "{line}").with_context(unwritten)?;
        }
    }
    file.into_inner()
        .map_err(|error| error.into_error())
        .and_then(|file| file.sync_all())
        .with_context(unwritten)?;
    catalog.close().await;
    Ok(lines)
}
