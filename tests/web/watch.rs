//! The screen of a video: its hits, its score over time, marks by pointer, and subtitle files.

use std::path::Path;

use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use serde_json::{Value, json};

use crate::Setting;
use crate::films::{COLOURS, Recipe, scene_start};
use crate::library::{self, SAID, TWINS, subrip};
use crate::page::Page;

/// Adds a film of these scenes. Returns the video's id.
async fn film(page: &Page, folder: &Path, colours: &[&str]) -> Option<String> {
    Some(library::add_film(page, folder, &Recipe::plain("film.mp4"), colours).await?.0)
}

async fn until_time(page: &Page, what: &str, seconds: f64) {
    page.until(&format!("{what}: {seconds} s"), &format!("Math.abs(player.currentTime - {seconds}) < 0.05"))
        .await;
}

/// Presses the mouse at a share of the width of an element, moves it to others, and lets go.
async fn drag(page: &Page, css: &str, shares: &[f64]) {
    page.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'nearest' })", json!(css)).await;
    let side = |name: &str| format!("document.querySelector('{css}').getBoundingClientRect().{name}");
    let (x, width) = (page.number(&side("x")).await, page.number(&side("width")).await);
    let y = page.number(&side("y")).await + page.number(&side("height")).await / 2.0;
    let to = |share: f64| PointerAction::MoveTo { duration: None, x: x + width * share, y };
    let mut actions = MouseActions::new("mouse".to_owned())
        .then(to(shares[0]))
        .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT });
    for &share in &shares[1..] {
        actions = actions.then(to(share));
    }
    actions = actions.then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
    page.client.perform_actions(actions).await.expect("a drag");
}

#[tokio::test]
async fn hits_are_listed_drawn_and_stepped_through() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &TWINS).await else { return };
        let end = scene_start(1);
        page.open(&format!("/v/{id}?t=0m4s&clip={id}&start=0&end={end}")).await;
        page.player_settled().await;
        until_time(page, "the address's time", 4.0).await;
        page.until("the hits are listed", "document.querySelectorAll('#hits .hitrow').length > 0").await;
        page.until("the score is drawn", "document.querySelector('#timeline .area').getAttribute('d')").await;
        page.choose("By time").await;
        page.choose("Best first").await;
        page.press(&['1']).await;
        let twin = (scene_start(3), scene_start(4));
        page.until(
            "the twin is the best hit",
            &format!("player.currentTime > {} && player.currentTime < {}", twin.0 - 0.01, twin.1),
        )
        .await;
        page.until("it is the current one", "document.querySelector('#hits .hitrow[data-hit=\"0\"].now')")
            .await;
        let status = page.text("document.getElementById('hit-number').textContent").await;
        assert!(status.starts_with("Hit 1 of "), "{status}");
        page.press(&['n']).await;
        page.until("the next in time", &format!("player.currentTime >= {}", twin.1 - 0.01)).await;
        page.press(&['p', 'p']).await;
        page.until("those before", &format!("player.currentTime < {}", twin.0)).await;
        drag(page, "#timeline .film", &[0.75]).await;
        until_time(page, "a press on the timeline", scene_start(6) * 0.75).await;
        page.until_address(&format!("t={}", 8)).await;
    })
    .await;
}

#[tokio::test]
async fn a_range_is_dragged_with_the_pointer_and_kept_in_the_address() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &COLOURS).await else { return };
        page.open(&format!("/v/{id}?t=0")).await;
        page.player_settled().await;
        page.until("the shots are known", "document.querySelectorAll('#shots .hitrow').length === 6").await;
        page.press(&['s']).await;
        page.until_says("0:00 – 0:01.901").await;
        page.press(&['z']).await;
        page.until(
            "the timeline shows the marks large",
            "Number.parseFloat(document.querySelector('#timeline .view').style.width) < 99",
        )
        .await;
        page.press_with(crate::page::SHIFT, 'z').await;
        page.until(
            "all of it",
            "Number.parseFloat(document.querySelector('#timeline .view').style.width) === 100",
        )
        .await;
        let length = scene_start(6);
        let from = scene_start(1) / length;
        let handle = "[data-edge=end]";
        let at = format!("Number(document.querySelector('{handle}')?.getAttribute('aria-valuenow'))");
        // The handle is a few pixels wide: shares of the timeline say how far to drag.
        drag(page, "#timeline .range", &[0.995, 1.5, 2.0]).await;
        let end = page.number(&at).await;
        assert!(
            (end - 2.0 * from * length).abs() < 0.15,
            "dragged to {} s, the range ends at {end} s",
            2.0 * from * length
        );
        page.find(handle).await.send_keys("\u{e012}\u{e012}").await.expect("arrows");
        page.until("two frames less", &format!("Math.abs({at} - {end} + 2 * 1001 / 30000) < 0.003")).await;
        let end = page.number(&at).await;
        page.until_address(&format!("&out={end}")).await;
        let kept = page.text("location.pathname + location.search").await;
        page.open(&kept).await;
        page.until("the address keeps the range", &format!("{at} === {end}")).await;
        page.click("#find").await;
        page.until_results().await;
    })
    .await;
}

#[tokio::test]
async fn subtitle_files_dropped_on_a_video_are_its_own_and_can_be_deleted() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &COLOURS).await else { return };
        page.open(&format!("/v/{id}")).await;
        page.player_settled().await;
        let file = folder.join("film.en.srt");
        std::fs::write(&file, "no cue\n").expect("a file");
        page.drop_files(&[&file]).await;
        page.until("the refusal is said", "!toast.hidden && !toast.innerText.includes('Added')").await;
        std::fs::write(&file, subrip(&SAID)).expect("a file");
        page.drop_files(&[&file]).await;
        page.until_message("Added English: 6 lines").await;
        page.choose("Transcript").await;
        page.until_count("#transcript .cue[data-place]", 6).await;
        page.until(
            "they are captions, too",
            "player.textTracks.length === 1 && player.textTracks[0].language === 'en'",
        )
        .await;
        assert_eq!(page.count(".tray .up[data-state]").await, 0, "it went to the library");
        page.open("/?q=regularisation&sources=spoken").await;
        page.until(
            "they are found",
            "document.querySelector('.snip mark')?.textContent === 'regularisation'",
        )
        .await;
        page.click(".results a.thumb").await;
        page.player_settled().await;
        page.choose("Transcript").await;
        page.choose("Languages and files").await;
        page.choose("Delete English").await;
        page.until_message("Deleted English").await;
        page.until_says("Nothing is known of what is said here").await;
        page.choose("Undo").await;
        page.until_count("#transcript .cue[data-place]", 6).await;
        page.run("document.activeElement.blur()", Value::Null).await;
    })
    .await;
}
