//! The page in a real browser against the real server: the user's actions step by step.
//!
//! Needs chromium, chromedriver and ffmpeg; prints `skipped: ...` without them.

mod browser;
mod films;
mod page;

mod keyboard;
mod keys;
mod lecture;
mod models;
mod modules;
mod playback;
mod search;
mod uploads;
mod widths;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::Path;

use futures_util::FutureExt;
use reprise_tests::program;
use reprise_tests::server::Server;

use browser::Browser;
use page::Page;

/// The server and screen of a visit.
#[derive(Debug, Clone, Copy, Default)]
struct Setting {
    /// API key of the server.
    key: Option<&'static str>,
    /// Model of the server, if not `builtin:tiny`.
    model: Option<&'static str>,
    /// Whether the screen is only 360 pixels wide.
    phone: bool,
}

/// Runs `visit` in a new browser on the page of a new server, with an empty folder for films. Prints the page's
/// contents if the visit panics.
async fn visit(setting: Setting, visit: impl AsyncFnOnce(&Page, &Path)) {
    if ["chromium", "chromedriver", "ffmpeg", "ffprobe"].iter().any(|name| program(name).is_none()) {
        return;
    }
    let data = tempfile::tempdir().expect("a temporary folder");
    let films = tempfile::tempdir().expect("a temporary folder");
    let given = [("--api-key", setting.key), ("--model", setting.model)];
    let arguments = given.into_iter().filter_map(|(name, value)| Some([name, value?])).flatten();
    let server = Server::start(data.path(), &arguments.collect::<Vec<_>>());
    let browser = Browser::start(setting.phone).await;
    let page = Page::new(browser.client.clone(), server.base().to_owned());
    let outcome = AssertUnwindSafe(visit(&page, films.path())).catch_unwind().await;
    if outcome.is_err() {
        eprintln!(
            "the page showed:\n{}\nthe server said:\n{}",
            page.transcript().await,
            last_lines(data.path())
        );
    }
    browser.close().await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

/// The last lines of the server's log.
fn last_lines(data: &Path) -> String {
    let all = std::fs::read_to_string(data.join("server.log")).unwrap_or_default();
    let lines: Vec<&str> = all.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
