//! Every screen on a phone, with text of twice the size, and while it loads.

use std::path::Path;

use serde_json::{Value, json};

use crate::films::{COLOURS, Recipe};
use crate::page::Page;
use crate::screens::{self, Screen};
use crate::{Setting, library};

/// Most that the contents of a screen may move while it loads, as the Layout Instability API counts.
const MOST_SHIFT: f64 = 0.02;

/// Visits every screen of a full library and collects what `problems` finds.
async fn visit_all(setting: Setting, problems: impl AsyncFn(&Page, &Screen) -> String) {
    crate::visit(setting, async |page, folder: &Path| {
        let Some(library) = library::furnish(page, folder).await else { return };
        let mut found = Vec::new();
        for screen in screens::all(page, &library).await {
            screen.open(page).await;
            let text = problems(page, &screen).await;
            if !text.is_empty() {
                found.push(format!("{} ({}):\n{text}", screen.name, screen.path));
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n\n"));
    })
    .await;
}

/// Elements in sight that stick out of the window, unless they lie in a box that scrolls or hides.
const STICKS_OUT: &str = "(() => {
    const clips = (it) => it.parentElement && (it.parentElement === document.body ? false
        : getComputedStyle(it.parentElement).overflowX !== 'visible' || clips(it.parentElement));
    return [...document.querySelectorAll('body *')].filter((it) => it.checkVisibility({ visibilityProperty: true })
        && !it.closest('.sr, .skip, [popover]') && it.getBoundingClientRect().right > innerWidth + 0.5 && !clips(it))
        .map((it) => it.outerHTML.slice(0, 140)).join('\\n');
})()";

/// Controls in sight of which a part can't be reached: outside of the window, or cut off by a box that does not scroll.
const CUT_OFF: &str = "(() => {
    const inside = (it) => {
        const box = it.getBoundingClientRect();
        for (let around = it.parentElement; around && around !== document.body; around = around.parentElement) {
            const style = getComputedStyle(around);
            if (['auto', 'scroll'].includes(style.overflowX) || style.textOverflow === 'ellipsis') return true;
            if (!['hidden', 'clip'].includes(style.overflowX)) continue;
            const outer = around.getBoundingClientRect();
            if (box.left < outer.left - 1 || box.right > outer.right + 1) return false;
        }
        return box.left >= -0.5 && box.right <= innerWidth + 0.5;
    };
    return [...document.querySelectorAll('a[href], button, input, select, textarea, [role=slider]')]
        .filter((it) => it.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && it.getBoundingClientRect().width > 0
            && !it.closest('.sr, .skip, .tl, .track') && !inside(it))
        .map((it) => it.outerHTML.slice(0, 140)).join('\\n');
})()";

#[tokio::test]
async fn nothing_scrolls_sideways_on_a_phone() {
    visit_all(Setting { phone: true, ..Setting::default() }, async |page, screen| {
        page.picture(&format!("phone-{}", screen.name)).await;
        let mut problems = page.text(STICKS_OUT).await;
        if page.number("innerWidth").await != 390.0 {
            problems += "\nit is zoomed out to fit";
        }
        if page.number("document.documentElement.scrollWidth").await > 390.0 {
            problems += "\nit scrolls sideways";
        }
        problems
    })
    .await;
}

#[tokio::test]
async fn with_text_of_twice_the_size_no_control_is_cut_off() {
    visit_all(Setting::default(), async |page, screen| {
        page.run("document.documentElement.style.fontSize = '200%'", Value::Null).await;
        let drawn = "const [, done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done(null)))";
        page.client.execute_async(drawn, vec![json!(null)]).await.expect("two frames");
        page.picture(&format!("large-text-{}", screen.name)).await;
        page.text(CUT_OFF).await
    })
    .await;
}

/// Keeps what moves in `shifts`, as (score, what moved).
const OBSERVE: &str = "window.shifts = [];
    const keep = (entries) => shifts.push(...entries.filter((it) => !it.hadRecentInput).map(({ value, sources }) =>
        [value, ...sources.map(({ node }) => `${node?.nodeName} ${node?.className ?? node?.parentElement?.className}`)]));
    window.shiftObserver = new PerformanceObserver((list) => keep(list.getEntries()));
    shiftObserver.observe({ type: 'layout-shift', buffered: true });
    window.allShifts = () => { keep(shiftObserver.takeRecords()); return shifts; }";

/// Gives the answers to requests under way in the reverse order of the requests, so late that what says that the page
/// waits is drawn.
const ANSWER_LAST_FIRST: &str = "{
    const real = window.fetch, open = new Set();
    const aWhile = () => new Promise((resolve) => { setTimeout(resolve, 200); });
    let asked = 0;
    window.fetch = async (...request) => {
        const number = asked++;
        open.add(number);
        try {
            const answer = await real(...request);
            do {
                await aWhile();
            } while ([...open].some((other) => other > number));
            return answer;
        } finally {
            open.delete(number);
        }
    };
}";

/// What moved on the page since it was opened, where it is more than may move.
async fn moved(page: &Page) -> String {
    let sum = page.number("allShifts().reduce((sum, [value]) => sum + value, 0)").await;
    if sum >= MOST_SHIFT { format!("{sum:.3}: {}", page.get("shifts").await) } else { String::new() }
}

#[tokio::test]
async fn nothing_moves_while_a_screen_loads() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(library) = library::furnish(page, folder).await else { return };
        // The first visit of all learns which model is here, and says so in a line; later ones know it from the start.
        page.open("/?q=anything").await;
        page.until("the line", "!document.getElementById('model-notice').hidden").await;
        page.run_at_start(OBSERVE).await;
        let mut found = Vec::new();
        // Here no picture's shape is known. The results are left first: a picture that still loads there would make it known.
        page.open("/models").await;
        page.run("localStorage.removeItem('reprise_ratio')", Value::Null).await;
        page.open("/?q=anything").await;
        page.until(
            "a picture",
            "[...document.querySelectorAll('.results img')].some((it) => it.naturalWidth)",
        )
        .await;
        page.until("the pictures' shape", "localStorage.getItem('reprise_ratio') > 1").await;
        found.push(("the first results".to_owned(), moved(page).await));
        // The line that says that the server is away may push the rest down.
        let screens = screens::all(page, &library).await;
        for order in ["as they come", "the last request's first"] {
            for screen in screens.iter().filter(|it| it.name != screens::AWAY) {
                screen.open(page).await;
                let name = format!("{} ({}), answers {order}", screen.name, screen.path);
                found.push((name, moved(page).await));
            }
            page.run_at_start(ANSWER_LAST_FIRST).await;
        }
        found.retain(|(_, moved)| !moved.is_empty());
        let found: Vec<String> = found.iter().map(|(name, moved)| format!("{name}: {moved}")).collect();
        assert!(found.is_empty(), "{}", found.join("\n\n"));
    })
    .await;
}

/// Finds no video, and keeps in `shapes` what is remembered of the pictures' shape.
const NO_VIDEO_IS_FOUND: &str = "window.shapes = [];
    const realSet = Storage.prototype.setItem, realFetch = window.fetch;
    Storage.prototype.setItem = function (name, value) {
        if (name === 'reprise_ratio') shapes.push(value);
        realSet.call(this, name, value);
    };
    window.fetch = (path, how) => String(path).startsWith('/v1/videos/')
        ? Promise.resolve(new Response('{}', { status: 404 })) : realFetch(path, how)";

/// A guess that is remembered would move the cards of the next search.
#[tokio::test]
async fn a_guessed_shape_of_pictures_is_not_remembered() {
    crate::visit(Setting::default(), async |page, folder| {
        let plain = Recipe::plain("two_rooms.mp4");
        let Some(_) = library::add_film(page, folder, &plain, &COLOURS[..2]).await else { return };
        page.run_at_start(NO_VIDEO_IS_FOUND).await;
        page.open("/?q=anything").await;
        page.until("the pictures' shape", "localStorage.getItem('reprise_ratio') > 1").await;
        let shapes = page.text("shapes.join(' ')").await;
        assert!(shapes.split(' ').all(|shape| shape == "1.78"), "{shapes}");
    })
    .await;
}
