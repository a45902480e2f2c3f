//! A server with an API key: the page asks for it once, then pictures and films load with it.

use crate::Setting;
use crate::films::{self, COLOURS, Recipe};

/// A key with characters that a cookie must encode.
const KEY: &str = "a key; with, odd signs";

#[tokio::test]
async fn the_page_asks_for_the_key_until_it_is_right_and_then_plays() {
    crate::visit(Setting { key: Some(KEY), ..Setting::default() }, async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("film.mp4"), &COLOURS[..2]) else { return };
        page.open("/").await;
        page.type_into("dialog input", "wrong\u{e007}").await;
        page.until("it asks again", "document.querySelector('dialog input')?.value === ''").await;
        page.type_into("dialog input", &format!("{KEY}\u{e007}")).await;
        let id = page.upload(&file).await;
        page.until(
            "the thumbnail is a picture",
            "document.querySelector('.card.video img')?.naturalWidth > 0",
        )
        .await;
        page.open(&format!("/v/{id}?t=1")).await;
        page.player_settled().await;
        assert!(
            page.number("document.querySelectorAll('dialog').length").await == 0.0,
            "asked once for the tab"
        );
    })
    .await;
}
