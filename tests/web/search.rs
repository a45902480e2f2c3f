//! Searching by text, by a marked range and by a file; playing a hit and coming back.

use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};

use crate::Setting;
use crate::films::{self, COLOURS, Recipe, scene_start};
use crate::page::Page;
use crate::playback::check_picture;

/// Scenes 0 and 3 look alike; the others don't.
const TWINS: [&str; 6] = [COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[0], COLOURS[3], COLOURS[4]];

/// Waits until the player runs past `start`. Returns its time in seconds.
async fn playing_from(page: &Page, start: f64) -> f64 {
    page.player_settled().await;
    page.until("the hit plays", &format!("!player.paused && player.currentTime > {start}")).await;
    page.number("player.currentTime").await
}

#[tokio::test]
async fn a_text_finds_clips_and_a_click_plays_from_the_hit_and_back_returns() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("film.mp4"), &COLOURS) else { return };
        page.open("/").await;
        let id = page.upload(&file).await;
        page.type_into("#search-text", "a yellow room").await;
        page.click("#search-form button[type=submit]").await;
        page.results().await;
        assert_eq!(
            page.number("document.querySelectorAll('#results .hit').length").await,
            6.0,
            "every clip is ranked"
        );
        assert!(
            page.text("document.getElementById('model-notice').textContent")
                .await
                .contains("knows nothing yet")
        );

        let later = page
            .number(
                "[...document.querySelectorAll('#results .hit')].findIndex((hit) => hit.dataset.start > 3)",
            )
            .await;
        let (start, end) = page.hit_range(later as usize).await;
        page.get(&format!(
            "document.querySelectorAll('#results .hit h3 a')[{later}].setAttribute('id', 'chosen')"
        ))
        .await;
        page.click("#chosen").await;
        let now = playing_from(page, start).await;
        assert!(now >= start && now < end + 1.0, "the hit is {start} to {end} s, the player is at {now} s");
        let url = page.client.current_url().await.expect("an address");
        assert_eq!(url.path(), format!("/v/{id}"));
        let shown = page.look().await;
        let (_, frames) = films::frames(&file);
        check_picture(&shown, &frames, shown.element_seconds, 3, "playing from the hit");

        page.client.back().await.expect("back");
        page.until("the same results", "document.querySelectorAll('#results .hit').length === 6").await;
        assert_eq!(
            page.text("document.activeElement.id").await,
            "chosen",
            "reading goes on at the hit that was left"
        );
        page.client.forward().await.expect("forward");
        page.player_settled().await;
    })
    .await;
}

#[tokio::test]
async fn a_marked_range_finds_the_scene_that_looks_like_it() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("twins.mp4"), &TWINS) else { return };
        page.open("/").await;
        let id = page.upload(&file).await;
        page.open(&format!("/v/{id}?t=0")).await;
        page.player_settled().await;
        page.until("the clips are listed", "document.querySelectorAll('.clip').length === 6").await;
        page.press(&['[']).await;
        let marked = "document.getElementById('marked-range').textContent";
        page.until("the range runs to the end of its clip", &format!("{marked} === '0:00–0:01.901'")).await;
        page.find(".handle[data-side=end]").await.send_keys("\u{e012}\u{e012}").await.expect("arrow keys");
        page.until("the end moved by 0.2 s", &format!("{marked} === '0:00–0:01.701'")).await;

        page.click("#search-range").await;
        page.results().await;
        let (start, _) = page.hit_range(0).await;
        assert!(
            (start - scene_start(3)).abs() < 0.0015,
            "the twin starts at {} s, the first hit at {start} s",
            scene_start(3)
        );
        page.click("#results .hit h3 a").await;
        let now = playing_from(page, scene_start(3)).await;
        assert!(now < scene_start(4) + 1.0, "the player is at {now} s");
    })
    .await;
}

#[tokio::test]
async fn a_range_is_dragged_with_the_pointer() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("film.mp4"), &COLOURS) else { return };
        page.open("/").await;
        let id = page.upload(&file).await;
        page.open(&format!("/v/{id}?t=0")).await;
        page.player_settled().await;
        page.until("the clips are listed", "document.querySelectorAll('.clip').length === 6").await;
        page.click("#mark-start").await;
        let box_of = |css: &str, value: &str| format!("(() => {{ const box = document.querySelector('{css}').getBoundingClientRect(); return {value}; }})()");
        page.get("document.querySelector('.track').scrollIntoView({block: 'center'})").await;
        let from = (page.number(&box_of(".handle[data-side=end]", "box.x + box.width / 2")).await, page.number(&box_of(".track", "box.y + box.height / 2")).await);
        let middle = page.number(&box_of(".track", "box.x + box.width / 2")).await;
        let to = |x: f64| PointerAction::MoveTo { duration: None, x, y: from.1 };
        let drag = MouseActions::new("mouse".to_owned())
            .then(to(from.0))
            .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT })
            .then(to(middle - 20.0))
            .then(to(middle))
            .then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
        page.client.perform_actions(drag).await.expect("a drag");
        let end = page.number("Number(document.querySelector('.handle[data-side=end]').getAttribute('aria-valuenow'))").await;
        let half = scene_start(6) / 2.0;
        assert!((end - half).abs() < 0.1, "dragged to {half} s, the range ends at {end} s");
        assert!((page.number("player.currentTime").await - end).abs() < 0.1, "the player shows where the handle is");
    })
    .await;
}

#[tokio::test]
async fn a_file_as_query_finds_its_own_video_and_takes_a_modification() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(one) = films::make(folder, &Recipe::plain("one.mp4"), &COLOURS[..3]) else { return };
        let Some(other) = films::make(folder, &Recipe::plain("other.mp4"), &COLOURS[3..]) else { return };
        let Some(query) = films::make(folder, &Recipe::plain("query.mkv"), &COLOURS[4..5]) else { return };
        page.open("/").await;
        page.upload(&one).await;
        let wanted = page.upload(&other).await;
        page.type_into("#query-file", query.to_str().expect("a path")).await;
        page.results().await;
        assert_eq!(page.text("document.querySelector('#results .hit').dataset.video").await, wanted);
        assert!((page.hit_range(0).await.0 - scene_start(1)).abs() < 0.0015, "the red scene is the second");
        page.click("#results .hit h3 a").await;
        page.until(
            "its hits are marked in the video",
            "document.querySelectorAll('.timeline .marks li').length === 3",
        )
        .await;
        page.client.back().await.expect("back");
        page.results().await;

        page.click(".refine [name=heard]").await;
        page.type_into(".refine [name=modification]", "but brighter\u{e007}").await;
        page.until("the modification is in the address", "location.search.includes('mod=but+brighter')")
            .await;
        assert!(
            page.text("location.search").await.ends_with("&sources=visual%2Cspoken"),
            "and where it is looked for"
        );
        page.results().await;
        assert!(page.text("document.querySelector('.about').textContent").await.contains("composed"));
    })
    .await;
}

#[tokio::test]
async fn levels_groups_and_previews_are_there() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(one) = films::make(folder, &Recipe::plain("one.mp4"), &COLOURS[..3]) else { return };
        let Some(other) = films::make(folder, &Recipe::plain("other.mp4"), &COLOURS[3..]) else { return };
        page.open("/").await;
        page.upload(&one).await;
        page.upload(&other).await;
        page.open("/?q=anything&group=video").await;
        page.until("a group a video", "document.querySelectorAll('.group').length === 2").await;
        page.open("/?q=anything&level=both").await;
        page.until("full videos beside clips", "document.querySelectorAll('.hit[data-level=video]').length === 2 && document.querySelectorAll('.hit[data-level=clip]').length === 6").await;

        page.get("document.querySelector('.hit[data-level=clip] h3 a').focus()").await;
        page.until("the preview plays", "document.querySelector('video.preview')?.currentTime > 0").await;
        assert_eq!(page.get("document.querySelector('video.preview').muted").await, true);
        page.get("document.activeElement.blur()").await;
        page.until("the preview is gone", "!document.querySelector('video.preview')").await;
    })
    .await;
}

#[tokio::test]
async fn the_page_says_that_the_built_in_model_knows_drawings_only() {
    let setting = Setting { model: Some("builtin:sports"), ..Setting::default() };
    crate::visit(setting, async |page, _| {
        page.open("/").await;
        let notice = "document.getElementById('model-notice')";
        page.until("a notice", &format!("!{notice}.hidden")).await;
        let notice = page.text(&format!("{notice}.textContent")).await;
        assert!(notice.contains("trained on rendered clips"), "{notice}");
    })
    .await;
}
