//! What a window of 1440x900 shows of each main screen before anybody scrolls.

use std::path::Path;

use serde_json::json;

use crate::page::Page;
use crate::{Setting, library, screens};

/// Screens, and what of each lies in the window as a whole: the first that matches each selector.
const SHOWN: [(&str, &[&str]); 11] = [
    ("search", &[".ask textarea", ".ask [type=submit]", ".home .recent a"]),
    (
        "words",
        &[
            ".ask textarea",
            ".toolbar h1",
            ".toolbar .filter",
            ".facet",
            "[data-place='0']",
            "[data-place='7']",
        ],
    ),
    ("grouped", &[".ask textarea", ".toolbar h1", ".group", ".group [data-place='0']"]),
    (
        "clip",
        &[
            ".ask textarea",
            ".aside.query .pair figure",
            ".pair figure + figure",
            ".toolbar h1",
            "[data-place='0']",
            "[data-place='5']",
        ],
    ),
    (
        "watch",
        &[
            "#player",
            ".transport",
            "#hits",
            "[data-hit]",
            "#timeline .film",
            "#timeline",
            "[data-edge=start]",
            "[data-edge=end]",
            "#marked",
            "#change",
            "#find",
            "#add-to-reel",
        ],
    ),
    (
        "transcript",
        &[
            "#player",
            ".transport",
            "#find-in-transcript",
            "#transcript .cue",
            "#timeline .film",
            "#change",
            "#find",
        ],
    ),
    (
        "reel",
        &[
            ".screen video:not(.away)",
            ".transport",
            ".reelrow",
            ".track",
            "[data-side=end]",
            "[aria-label=Share]",
        ],
    ),
    ("library", &[".library .side", ".toolbar .filter input", ".library .card", "#add-videos"]),
    ("activity", &["#running", "#failed .job"]),
    ("insights", &[".dash .stat", ".dash .stat:nth-child(2)"]),
    ("models", &["#here tbody tr"]),
];

/// Screens that have no more than the window shows.
const WHOLE: [&str; 3] = ["watch", "transcript", "reel"];

/// What does not lie in the window, one a line.
async fn outside(page: &Page, selectors: &[&str]) -> String {
    let script = "const lies = (box) => box.width > 0 && box.height > 0 && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight + 0.5 && box.right <= innerWidth + 0.5;
        return arguments[0].filter((css) => {
            const it = document.querySelector(css);
            return !it?.checkVisibility() || !lies(it.getBoundingClientRect());
        }).map((css) => `${css} ${JSON.stringify(document.querySelector(css)?.getBoundingClientRect() ?? null)}`).join('\\n')";
    page.run(script, json!(selectors)).await.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_main_parts_of_each_screen_are_in_sight_at_once() {
    crate::visit(Setting::default(), async |page, folder: &Path| {
        let Some(library) = library::furnish(page, folder).await else { return };
        let window = json!({"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        page.tell_browser("Emulation.setDeviceMetricsOverride", window).await;
        // The start lists the last searches.
        page.open("/?q=a+yellow+room").await;
        page.until_results().await;
        let all = screens::all(page, &library).await;
        let mut found = Vec::new();
        for (name, selectors) in SHOWN {
            let screen = all.iter().find(|it| it.name == name).expect("a screen of this name");
            screen.open(page).await;
            page.picture(&format!("window-{name}")).await;
            let mut problems = outside(page, selectors).await;
            let height = page.number("document.documentElement.scrollHeight").await;
            if WHOLE.contains(&name) && height > 900.0 {
                problems += &format!("\nit is {height} px high");
            }
            if !problems.is_empty() {
                found.push(format!("{name} ({}):\n{problems}", screen.path));
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n\n"));
    })
    .await;
}
