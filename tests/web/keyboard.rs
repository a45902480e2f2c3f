//! The page with the keyboard alone: a key exists for every action of the pointer.

use crate::Setting;
use crate::films::{COLOURS, Recipe};
use crate::library;
use crate::page::{DOWN, ENTER, ESCAPE, LEFT, Page, RIGHT, SHIFT, TAB};

/// The place of the card that has the focus.
const FOCUSED: &str = "document.activeElement.closest('.results [data-place]')?.dataset.place";

async fn until_focused(page: &Page, place: usize) {
    page.until(&format!("the focus on card {place}"), &format!("{FOCUSED} === '{place}'")).await;
    let ring = "((it) => [it, it.querySelector('.thumb'), it.closest('.card')].some((one) => one && getComputedStyle(one).outlineStyle === 'solid'))(document.activeElement)";
    page.until("the focus is visible", ring).await;
}

/// Tabs until the condition holds; few steps must do.
async fn tab_until(page: &Page, what: &str, condition: &str) {
    for _ in 0..24 {
        if page.holds(condition).await {
            return;
        }
        page.press(&[TAB]).await;
    }
    panic!(
        "{what} is not reached by Tab; the focus is on {}",
        page.text("document.activeElement.outerHTML").await
    );
}

#[tokio::test]
async fn keys_alone_search_choose_play_and_mark() {
    crate::visit(Setting::default(), async |page, folder| {
        if library::add_film(page, folder, &Recipe::plain("film.mp4"), &COLOURS).await.is_none() {
            return;
        }
        page.open("/models").await;
        page.until_heading("Models").await;
        page.press(&['/']).await;
        page.until("the search has the focus", "document.activeElement.matches('.ask textarea')").await;
        page.type_keys("red").await;
        page.press(&[ENTER]).await;
        page.until_results().await;
        tab_until(page, "the first card", &format!("{FOCUSED} === '0'")).await;
        until_focused(page, 0).await;
        page.press(&[RIGHT]).await;
        until_focused(page, 1).await;
        page.press(&[LEFT, DOWN]).await;
        page.until("a row lower", &format!("Number({FOCUSED}) >= 1")).await;
        let place = page.text(FOCUSED).await.parse().expect("a place");
        until_focused(page, place).await;
        page.press(&['x']).await;
        page.until_says("1 selected").await;
        page.press(&[ESCAPE]).await;
        page.until("nothing is selected", "document.querySelector('.dock').hidden").await;
        page.press(&['r']).await;
        page.until_message("Added 1 moment").await;
        page.press(&[' ']).await;
        page.until("a look at it", "document.querySelector('dialog#look')").await;
        page.press(&[ESCAPE]).await;
        until_focused(page, place).await;

        page.press(&[ENTER]).await;
        page.player_settled().await;
        watch_keys(page).await;
        page.back().await;
        page.until_results().await;
        until_focused(page, place).await;
    })
    .await;
}

async fn watch_keys(page: &Page) {
    let time = page.number("player.currentTime").await;
    page.press(&['k']).await;
    page.until("it plays", &format!("!player.paused && player.currentTime > {time}")).await;
    page.press(&['k']).await;
    page.until("it pauses", "player.paused").await;
    page.player_settled().await;
    let time = page.number("player.currentTime").await;
    page.press(&[RIGHT]).await;
    // It stood anywhere in its frame.
    let frame = "((time) => Math.floor((time * 30000) / 1001))";
    page.until("a frame on", &format!("{frame}(player.currentTime) === {frame}({time}) + 1")).await;
    page.press_with(SHIFT, LEFT).await;
    page.until("a second back", &format!("player.currentTime < {time} - 0.5 || player.currentTime < 0.01"))
        .await;
    page.press(&['s']).await;
    page.until("the shot is marked", "document.getElementById('marked')").await;
    page.until_address("&in=").await;
    page.press_with('\u{e00a}', 'x').await;
    page.until("no marks", "!document.getElementById('marked')").await;
    page.press(&['i']).await;
    page.until("the in handle", "document.querySelector('[data-edge=start]').checkVisibility()").await;
    page.press(&['?']).await;
    page.until(
        "the list of keys",
        "document.querySelector('dialog#keys')?.innerText.includes('Mark the shot')",
    )
    .await;
    page.press(&[ESCAPE]).await;
    page.until("it is closed", "!document.querySelector('dialog')").await;
}

#[tokio::test]
async fn letter_keys_do_nothing_in_fields_and_can_be_switched_off() {
    crate::visit(Setting::default(), async |page, folder| {
        if library::add_film(page, folder, &Recipe::plain("film.mp4"), &COLOURS[..2]).await.is_none() {
            return;
        }
        page.open("/?q=red").await;
        page.until_results().await;
        page.press(&['/']).await;
        page.type_keys("glxr?").await;
        assert_eq!(page.text("document.activeElement.value").await, "glxr?");
        assert_eq!(page.text("location.pathname").await, "/");
        assert!(
            page.holds("document.querySelector('.dock').hidden && !document.querySelector('dialog')").await
        );
        page.press(&[TAB]).await;
        page.press(&['g', 'l']).await;
        page.until_heading("Library").await;

        page.choose("Settings").await;
        page.choose("Switch letter keys off").await;
        page.press(&['g', 's', '?', '/']).await;
        assert_eq!(page.text("location.pathname").await, "/library");
        assert!(!page.holds("document.querySelector('dialog')").await);
        page.choose("Settings").await;
        page.choose("Switch letter keys on").await;
        page.press(&['g', 's']).await;
        page.until_heading("Find a moment").await;
    })
    .await;
}

#[tokio::test]
async fn every_control_is_reached_by_tab_and_menus_by_arrows() {
    crate::visit(Setting::default(), async |page, folder| {
        if library::add_film(page, folder, &Recipe::plain("film.mp4"), &COLOURS[..2]).await.is_none() {
            return;
        }
        page.open("/library").await;
        page.until_count(".library .card", 1).await;
        page.press(&[TAB]).await;
        assert!(
            page.holds("document.activeElement.matches('.skip')").await,
            "the first is the way past the rail"
        );
        page.press(&[ENTER]).await;
        tab_until(page, "the order", "document.activeElement.id === 'library-sort'").await;
        page.press(&[ENTER]).await;
        page.until(
            "the menu's choice has the focus",
            "document.activeElement.matches('.menu [aria-checked=true]')",
        )
        .await;
        page.press(&[DOWN, DOWN, ENTER]).await;
        page.until_address("sort=name").await;
        page.until("the focus is back", "document.activeElement.id === 'library-sort'").await;
        tab_until(page, "the film", "document.activeElement.matches('.library .card a.thumb')").await;
        page.press(&['r']).await;
        page.until_says("Added 1 video to").await;
        let reels = page.host.server().get("/v1/reels").await.1;
        assert_eq!(reels["items"][0]["ranges"], 1, "{reels}");
        page.press(&['x']).await;
        page.until_says("1 selected").await;
        tab_until(page, "the dock", "document.activeElement.matches('.dock [aria-label=Tag]')").await;
    })
    .await;
}
