//! All screens of the page, each with what says that it is complete.

use serde_json::json;

use crate::films::scene_start;
use crate::library::{Library, text};
use crate::page::Page;

/// A screen, or a dialog over one.
pub(crate) struct Screen {
    pub(crate) name: &'static str,
    pub(crate) path: String,
    /// A selector of what is there when all is loaded.
    ready: &'static str,
    /// The key that opens a dialog, with its selector.
    then: Option<(char, &'static str)>,
}

impl Screen {
    fn new(name: &'static str, path: &str, ready: &'static str) -> Screen {
        Screen { name, path: path.to_owned(), ready, then: None }
    }

    /// Opens it, and waits until everything on it is there.
    pub(crate) async fn open(&self, page: &Page) {
        page.open(&self.path).await;
        page.find(self.ready).await;
        if let Some((key, dialog)) = self.then {
            page.run("document.activeElement.blur()", json!(null)).await;
            page.press(&[key]).await;
            page.find(dialog).await;
        }
        let settled = "!document.querySelector('.skel, .waits, [aria-label=Loading]') && !document.querySelector('.screen[aria-busy=true]') \
            && [...document.images].every((image) => image.complete || !image.checkVisibility() || image.getBoundingClientRect().top > innerHeight)";
        page.until(&format!("{} is complete", self.name), settled).await;
        // What an observer of sizes or of visibility draws comes with the next frames.
        let drawn = "const [, done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done(null)))";
        page.client.execute_async(drawn, vec![json!(null)]).await.expect("two frames");
    }
}

/// Every screen but the question for a key.
pub(crate) async fn all(page: &Page, library: &Library) -> Vec<Screen> {
    let Library { film, lecture, reel } = library;
    let end = scene_start(1);
    let clip = format!("clip={film}&start=0&end={end}");
    let (_, link) =
        page.host.server().post(&format!("/v1/reels/{reel}/links"), &json!({"seconds": 86400})).await;
    let card = ".results .card[data-place]";
    let new = Screen::new;
    vec![
        new("search", "/", ".home .examples"),
        new("words", "/?q=a+yellow+room", card),
        new("grouped", "/?q=a+yellow+room&group=video", ".group .card"),
        new("clip", &format!("/?{clip}&mod=but+brighter"), card),
        Screen { then: Some(('c', "#compare .strip img")), ..new("compare", &format!("/?{clip}"), card) },
        new("nothing", "/?q=cauliflower&sources=spoken", ".empty.nothing"),
        new("watch", &format!("/v/{film}?t=3&in=2&out=3.5&{clip}"), "#hits .hitrow[data-hit]"),
        new("transcript", &format!("/v/{lecture}?t=5&q=variance&tab=transcript"), "#transcript .cue"),
        new("details", &format!("/v/{lecture}?tab=details"), "#video-title"),
        new("gone", "/v/00000000-0000-7000-8000-000000000000", ".watch-state .empty"),
        new("reels", "/reels", ".reel-list .reel-item"),
        new("reel", &format!("/reels/{reel}"), ".reelrow"),
        new("shared", &format!("/shared/{reel}?{}", text(&link["query"])), ".shared-clips li"),
        new("library", "/library", ".library .card"),
        new("library-list", "/library?view=list", "table.videos tbody tr"),
        new("trash", "/library?show=trash", ".library .empty"),
        new("activity", "/activity", "#failed .job"),
        new("insights", "/insights", ".dash .stat"),
        new("searches", "/insights?list=slow", "#searches tbody tr"),
        new("models", "/models", "#here tbody tr"),
        Screen { then: Some(('?', "dialog#keys .keyrow")), ..new("keys", "/library", ".library .card") },
    ]
}
