//! `reprise search`: one query to a running server.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::client::{Client, ServerArgs};
use reprise_research::terminal::{clock, say};

/// Arguments of `reprise search`.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// The query text
    #[arg(required_unless_present_any = ["clip", "upload"], conflicts_with_all = ["clip", "upload"])]
    text: Option<String>,
    /// A part of a stored video: VIDEO@START-END, in seconds
    #[arg(long, value_name = "VIDEO@START-END", conflicts_with = "upload")]
    clip: Option<String>,
    /// A video file to search with
    #[arg(long, value_name = "FILE")]
    upload: Option<PathBuf>,
    /// Modification text: how the results should differ from the clip
    #[arg(long, conflicts_with = "text")]
    modification: Option<String>,
    /// A space's id or name
    #[arg(long)]
    space: Option<String>,
    /// clip, video or both
    #[arg(long, default_value = "clip")]
    level: String,
    /// Where to search for a text: visual (pictures), spoken (subtitles) [default: both]
    #[arg(long, value_delimiter = ',', value_name = "SOURCE,...")]
    sources: Vec<String>,
    /// Hits to print
    #[arg(long, default_value_t = 10)]
    limit: usize,
    #[command(flatten)]
    server: ServerArgs,
    /// Print the server's answer unchanged
    #[arg(long)]
    json: bool,
}

/// Prints hits, best first.
pub(crate) async fn run(args: SearchArgs) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let mut body = json!({"query": query(&args)?, "level": args.level, "limit": args.limit});
    if let Some(space) = &args.space {
        body["space"] = json!(space);
    }
    if !args.sources.is_empty() {
        body["sources"] = json!(args.sources);
    }
    let request = match &args.upload {
        None => client.post("/v1/search").json(&body),
        Some(file) => {
            let form = reqwest::multipart::Form::new().text("query", body.to_string());
            let form = form.file("file", file).await.with_context(|| file.display().to_string())?;
            client.post("/v1/search").multipart(form)
        }
    };
    let answer = client.json(request).await?;
    if args.json {
        say(answer)?;
        return Ok(());
    }
    print(&answer)
}

fn query(args: &SearchArgs) -> anyhow::Result<Value> {
    let mut query = match (&args.text, &args.clip, &args.upload) {
        (Some(text), None, None) => json!({"text": text}),
        (None, Some(clip), None) => {
            let (video, start, end) =
                stretch(clip).context("a clip is VIDEO@START-END, e.g. 0198…@12.4-13.1")?;
            json!({"clip": {"video_id": video, "start": start, "end": end}})
        }
        (None, None, Some(_)) => json!({"upload": true}),
        _ => bail!("give a text, --clip or --upload"),
    };
    if let Some(modification) = &args.modification {
        query["modification"] = json!(modification);
    }
    Ok(query)
}

/// Removes marks and HTML escapes from a snippet.
fn plain(html: &str) -> String {
    let unmarked = html.replace("<mark>", "").replace("</mark>", "").replace('\n', " ");
    let unescaped =
        unmarked.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    unescaped.replace("&amp;", "&")
}

fn stretch(text: &str) -> Option<(&str, f64, f64)> {
    let (video, times) = text.rsplit_once('@')?;
    let (start, end) = times.split_once('-')?;
    Some((video, start.parse().ok()?, end.parse().ok()?))
}

fn print(answer: &Value) -> anyhow::Result<()> {
    let hits = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    for (heading, name) in [("clips", "results"), ("videos", "videos")] {
        let found = hits(name);
        if name == "videos" && !found.is_empty() {
            say(heading)?;
        }
        for hit in found {
            let time = |name: &str| clock(hit[name].as_f64().unwrap_or(0.0));
            let (rank, score) = (hit["rank"].as_u64().unwrap_or(0), hit["score"].as_f64().unwrap_or(0.0));
            let (title, video) =
                (hit["title"].as_str().unwrap_or(""), hit["video_id"].as_str().unwrap_or(""));
            say(format!(
                "{rank:>3}  {score:.3}  {:>10} - {:<10}  {title}  {video}",
                time("start"),
                time("end")
            ))?;
            let spoken = hit["evidence"].as_array().into_iter().flatten().find_map(|it| it["text"].as_str());
            if let Some(said) = spoken {
                say(format!("     “{}”", plain(said)))?;
            }
        }
    }
    if hits("results").is_empty() {
        say("nothing found")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, f64, f64)>) {
        assert_eq!(stretch(text), expected, "{text}");
    }

    #[test]
    fn clips_are_parsed() {
        check("0198-ab@12.4-13.1", Some(("0198-ab", 12.4, 13.1)));
        check("v@1-2-3", None);
        check("v@x-2", None);
        check("1-2", None);
    }
}
