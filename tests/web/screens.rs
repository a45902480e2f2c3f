//! All screens of the page, each with what says that it is complete.

use serde_json::json;

use crate::films::scene_start;
use crate::library::{Library, text};
use crate::page::Page;

/// The screen of a server that is away.
pub(crate) const AWAY: &str = "away";

/// A screen, or a dialog over one.
pub(crate) struct Screen {
    pub(crate) name: &'static str,
    pub(crate) path: String,
    /// A selector of what is there when all is loaded.
    ready: &'static str,
    /// What is done then, and what each step shows.
    steps: Vec<(Step, &'static str)>,
}

/// What is done on a screen.
enum Step {
    /// Presses a key with the focus nowhere.
    Press(char),
    Click(&'static str),
    /// Clicks the control of this name.
    Choose(&'static str),
    Run(&'static str),
    /// Ends the server, for the rest of the visit.
    EndServer,
}

impl Step {
    async fn act(&self, page: &Page) {
        match self {
            Step::Press(key) => {
                page.run("document.activeElement.blur()", json!(null)).await;
                page.press(&[*key]).await;
            }
            Step::Click(css) => page.click(css).await,
            Step::Choose(name) => page.choose(name).await,
            Step::Run(script) => drop(page.run(script, json!(null)).await),
            Step::EndServer => page.host.kill(),
        }
    }
}

impl Screen {
    fn new(name: &'static str, path: &str, ready: &'static str) -> Screen {
        Screen { name, path: path.to_owned(), ready, steps: Vec::new() }
    }

    fn then(mut self, step: Step, shown: &'static str) -> Screen {
        self.steps.push((step, shown));
        self
    }

    /// Opens it, and waits until everything on it is there.
    pub(crate) async fn open(&self, page: &Page) {
        page.open(&self.path).await;
        page.find(self.ready).await;
        for (step, shown) in &self.steps {
            step.act(page).await;
            page.find(shown).await;
        }
        let settled = "!document.querySelector('.skel, .waits, [aria-label=Loading]') && !document.querySelector('.screen[aria-busy=true]') \
            && [...document.images].every((image) => image.complete || !image.checkVisibility() || image.getBoundingClientRect().top > innerHeight)";
        page.until(&format!("{} is complete", self.name), settled).await;
        // What an observer of sizes or of visibility draws comes with the next frames.
        let drawn = "const [, done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done(null)))";
        page.client.execute_async(drawn, vec![json!(null)]).await.expect("two frames");
    }
}

/// Makes all hits of later searches weak, and searches. A real gallery with weak hits is large.
const ASK_IN_VAIN: &str = "const real = window.fetch;
    window.fetch = async (path, how) => {
        const answer = await real(path, how);
        if (path !== '/v1/search') return answer;
        const found = await answer.json();
        for (const hit of found.results) hit.weak = true;
        return Response.json(found);
    };
    const link = document.createElement('a');
    link.href = '/?q=a+blue+room';
    document.body.append(link);
    link.click();
    link.remove()";

/// Drops a film that is never sent whole, and a file that is no film.
const DROP_FILES: &str = "const real = window.fetch;
    window.fetch = (path, how) => (String(path).startsWith('/v1/uploads') ? new Promise(() => {}) : real(path, how));
    const transfer = new DataTransfer();
    for (const name of ['a film.mp4', 'notes.txt']) transfer.items.add(new File(['some bytes'], name));
    const event = (name) => new DragEvent(name, { dataTransfer: transfer, bubbles: true, cancelable: true });
    document.body.dispatchEvent(event('dragover'));
    document.body.dispatchEvent(event('drop'))";

/// Every screen but the question for a key. The last one leaves no server.
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
        new("compare", &format!("/?{clip}"), card).then(Step::Press('c'), "#compare .strip img"),
        new("weak", "/models", "#here tbody tr").then(Step::Run(ASK_IN_VAIN), ".weak-note"),
        new("export-hits", "/?q=a+yellow+room", card)
            .then(Step::Click(".results .card .pick"), ".dock:not([hidden])")
            .then(Step::Choose("Export"), "dialog#export"),
        new("nothing", "/?q=cauliflower&sources=spoken", ".empty.nothing"),
        new("watch", &format!("/v/{film}?t=3&in=2&out=3.5&{clip}"), "#hits .hitrow[data-hit]"),
        new("transcript", &format!("/v/{lecture}?t=5&q=variance&tab=transcript"), "#transcript .cue"),
        new("details", &format!("/v/{lecture}?tab=details"), "#video-title"),
        new("gone", "/v/00000000-0000-7000-8000-000000000000", ".watch-state .empty"),
        new("reels", "/reels", ".reel-list .reel-item"),
        new("reel", &format!("/reels/{reel}"), ".reelrow"),
        new("exports", &format!("/reels/{reel}"), ".reelrow")
            .then(Step::Choose("Export"), "#exports .export"),
        new("share", &format!("/reels/{reel}"), ".reelrow").then(Step::Choose("Share"), "dialog#share"),
        new("shared", &format!("/shared/{reel}?{}", text(&link["query"])), ".shared-clips li"),
        new("library", "/library", ".library .card"),
        new("library-list", "/library?view=list", "table.videos tbody tr"),
        new("tag", "/library", ".library .card")
            .then(Step::Click(".library .card .pick"), ".dock:not([hidden])")
            .then(Step::Choose("Tag"), "dialog#tags"),
        new("trash", "/library?show=trash", ".library .empty"),
        new("activity", "/activity", "#failed .job"),
        new("alerts", "/activity?tab=alerts", "#alerts .job"),
        new("webhooks", "/activity?tab=webhooks", "#webhooks .job"),
        new("insights", "/insights", ".dash .stat"),
        new("searches", "/insights?list=slow", "#searches tbody tr"),
        new("models", "/models", "#here tbody tr"),
        new("keys", "/library", ".library .card").then(Step::Press('?'), "dialog#keys .keyrow"),
        new("uploads", "/library", ".library .card")
            .then(Step::Run(DROP_FILES), ".tray [data-state=sending]")
            .then(Step::Choose("Pause all"), ".tray [data-state=paused]"),
        new(AWAY, "/library", ".library .card")
            .then(Step::EndServer, ".library")
            .then(Step::Run("dispatchEvent(new Event('offline'))"), ".notice.away:not([hidden])"),
    ]
}
