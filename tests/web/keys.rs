//! A server with an API key: the page asks for it once, then pictures and films load with it, until the last tab is closed.

use fantoccini::wd::WindowHandle;
use serde_json::Value;

use crate::Setting;
use crate::films::{self, COLOURS, Recipe};
use crate::page::Page;

/// A key with characters that a cookie must encode.
const KEY: &str = "a key; with, odd signs";

#[tokio::test]
async fn the_page_asks_for_the_key_until_it_is_right_and_then_plays() {
    crate::visit(Setting { key: Some(KEY), ..Setting::default() }, async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("film.mp4"), &COLOURS[..2]) else { return };
        page.open("/library").await;
        page.type_into("#key-needed #key", "wrong\u{e007}").await;
        page.until_says("does not know this key").await;
        page.type_into("#key-needed #key", &format!("{KEY}\u{e007}")).await;
        page.until_says("Nothing here yet").await;
        page.drop_files(&[&file]).await;
        page.until_added(1).await;
        page.until("its picture", "document.querySelector('.library .card img.front')?.naturalWidth > 0")
            .await;
        page.click(".library .card a.thumb").await;
        page.player_settled().await;
        assert_eq!(page.count("dialog").await, 0, "asked once for the tab");
    })
    .await;
}

#[tokio::test]
async fn a_late_refusal_of_no_key_does_not_ask_again() {
    crate::visit(Setting { key: Some(KEY), ..Setting::default() }, async |page, _| {
        page.open("/library").await;
        page.find("#key-needed #key").await;
        // This request carries no key. The page hears its refusal after the person has given one.
        let ask = "const [done] = arguments; const usual = window.fetch; \
            window.fetch = (...sent) => { window.fetch = usual; const refusal = usual(...sent); \
                return new Promise((resolve) => { window.hear = () => resolve(refusal); }); }; \
            import('/static/js/core/api.js').then((it) => { window.late = it.get('/v1/stats'); done(); })";
        page.client.execute_async(ask, Vec::new()).await.expect("a request");
        page.type_into("#key-needed #key", &format!("{KEY}\u{e007}")).await;
        page.until_says("Nothing here yet").await;
        let hear = "const [done] = arguments; window.hear(); window.late.then(() => done('answered'), (error) => done(String(error)))";
        let heard = page.client.execute_async(hear, Vec::new()).await.expect("an answer");
        assert_eq!(heard, "answered");
        assert_eq!(page.count("dialog").await, 0, "asked once");
    })
    .await;
}

/// What the server answers to a request with the cookie alone, as media elements make it.
async fn status_by_cookie(page: &Page) -> Value {
    let ask = "const [done] = arguments; fetch('/v1/stats').then(({ status }) => done(status), (error) => done(String(error)))";
    page.client.execute_async(ask, Vec::new()).await.expect("an answer")
}

/// Opens another tab, as the person does. Returns it; it is the current one.
async fn open_tab(page: &Page) -> WindowHandle {
    let made = page.client.new_window(true).await.expect("a tab");
    let tab: WindowHandle = made.handle;
    page.client.switch_to_window(tab.clone()).await.expect("the tab");
    tab
}

/// Closes a tab, and goes to another one.
async fn close_tab(page: &Page, tab: &WindowHandle, other: &WindowHandle) {
    page.client.switch_to_window(tab.clone()).await.expect("the tab");
    page.client.close_window().await.expect("it closes");
    page.client.switch_to_window(other.clone()).await.expect("the other tab");
}

#[tokio::test]
async fn the_key_ends_with_the_last_tab() {
    crate::visit(Setting { key: Some(KEY), ..Setting::default() }, async |page, _| {
        let first = page.client.window().await.expect("a tab");
        page.open("/library").await;
        page.type_into("#key-needed #key", &format!("{KEY}\u{e007}")).await;
        page.until_says("Nothing here yet").await;
        assert_eq!(status_by_cookie(page).await, 200);
        let left = "const [done] = arguments; cookieStore.get('reprise_key').then(({ expires }) => done((expires - Date.now()) / 1000))";
        let left = page.client.execute_async(left, Vec::new()).await.expect("a cookie with an end");
        assert!((1.0..=151.0).contains(&left.as_f64().unwrap_or(f64::NAN)), "the cookie ends in {left} s");
        page.open("/models").await;
        page.until_heading("Models").await;
        assert_eq!(page.count("dialog").await, 0, "a reload does not ask");

        // A second tab takes the key over, and goes on without the first.
        let second = open_tab(page).await;
        page.open("/library").await;
        page.until_says("Nothing here yet").await;
        close_tab(page, &first, &second).await;
        page.until("the second tab writes the cookie", "document.cookie.includes('reprise_key=')").await;
        assert_eq!(status_by_cookie(page).await, 200);

        // This one is not of the page, so that it keeps nothing.
        let last = open_tab(page).await;
        page.open("/livez").await;
        close_tab(page, &second, &last).await;
        page.until("the cookie goes", "!document.cookie.includes('reprise_key=')").await;
        assert_eq!(status_by_cookie(page).await, 401);
        page.open("/library").await;
        page.find("#key-needed #key").await;
    })
    .await;
}
