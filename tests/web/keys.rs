//! A server with an API key: the page asks for it once, then pictures and films load with it.

use crate::Setting;
use crate::films::{self, COLOURS, Recipe};

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
