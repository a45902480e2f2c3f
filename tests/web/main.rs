//! The page in a real browser against the real server: walks of people, step by step, and what holds on every screen.
//!
//! Needs chromium, chromedriver and ffmpeg; prints `skipped: ...` without them.

mod browser;
mod films;
mod host;
mod library;
mod page;
mod screens;

mod accessible;
mod bytes;
mod dashboard;
mod editor;
mod first_sight;
mod interruptions;
mod keyboard;
mod keys;
mod labels;
mod lecture;
mod map;
mod models;
mod modules;
mod motion;
mod playback;
mod results;
mod scrolling;
mod shared;
mod sizes;
mod slides;
mod student;
mod uploads;
mod watch;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::Path;

use futures_util::FutureExt;
use reprise_tests::program;

use browser::Browser;
use host::Host;
use page::Page;

/// The server and screen of a visit.
#[derive(Debug, Clone, Copy, Default)]
struct Setting {
    /// API key of the server.
    key: Option<&'static str>,
    /// Model of the server, if not `builtin:tiny`.
    model: Option<&'static str>,
    /// Address of the service that writes down speech.
    transcribe_url: Option<&'static str>,
    /// Whether the screen is only 390 pixels wide.
    phone: bool,
}

/// Runs `visit` in a new browser on the page of a new server, with an empty folder for films. Prints the page's
/// contents if the visit panics.
async fn visit(setting: Setting, visit: impl AsyncFnOnce(&Page, &Path)) {
    if ["chromium", "chromedriver", "ffmpeg", "ffprobe"].iter().any(|name| program(name).is_none()) {
        return;
    }
    let films = tempfile::tempdir().expect("a temporary folder");
    let given = [
        ("--api-key", setting.key),
        ("--model", setting.model),
        ("--transcribe-url", setting.transcribe_url),
    ];
    let browser = Browser::start(setting.phone).await;
    let host = Host::start(given.into_iter().filter_map(|(name, value)| Some([name, value?])).flatten());
    let page = Page::new(browser.client.clone(), host);
    let outcome = AssertUnwindSafe(visit(&page, films.path())).catch_unwind().await;
    if outcome.is_err() {
        eprintln!(
            "the page showed:\n{}\nthe server said:\n{}",
            page.transcript().await,
            page.host.last_lines()
        );
        page.picture("failed").await;
    }
    browser.close().await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}
