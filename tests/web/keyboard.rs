//! The page with the keyboard alone: a key exists for every action of the pointer.

use crate::Setting;
use crate::films::{self, COLOURS, Recipe, scene_start};

const ENTER: char = '\u{e007}';
const TAB: char = '\u{e004}';
const ESCAPE: char = '\u{e00c}';
const SPACE: char = ' ';
const RIGHT: char = '\u{e014}';

#[tokio::test]
async fn keys_alone_search_play_mark_and_search_again() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("film.mp4"), &COLOURS) else { return };
        page.open("/").await;
        let id = page.upload(&file).await;

        page.press(&['/']).await;
        assert_eq!(page.text("document.activeElement.id").await, "search-text");
        page.press(&['x', ESCAPE]).await;
        assert_eq!(
            page.text("document.getElementById('search-text').value").await,
            "",
            "Escape empties the field"
        );
        page.press(&['r', 'e', 'd', ENTER]).await;
        page.results().await;

        // The heading has the focus. Tab moves to the level, the grouping, and then the first hit.
        let on_hit = "document.activeElement.matches('#results .hit h3 a')";
        for _ in 0..6 {
            if page.get(on_hit).await == true {
                break;
            }
            page.press(&[TAB]).await;
        }
        assert_eq!(page.get(on_hit).await, true, "{}", page.text("document.activeElement.outerHTML").await);
        let outline =
            page.text("getComputedStyle(document.activeElement.closest('.card')).outlineStyle").await;
        assert_eq!(outline, "solid", "the focus is visible");

        page.press(&[ENTER]).await;
        page.player_settled().await;
        page.until("the hit plays", "!player.paused").await;
        page.press(&[SPACE]).await;
        page.until("space stops it", "player.paused").await;

        page.open(&format!("/v/{id}?t={}", scene_start(1))).await;
        page.player_settled().await;
        page.until("the clips are listed", "document.querySelectorAll('.clip').length === 6").await;
        page.press(&[']']).await;
        let marked = "document.getElementById('marked-range').textContent";
        page.until("the frame on screen is the range", &format!("{marked}.startsWith('0:01.901–0:01.93')"))
            .await;
        page.press(&[RIGHT]).await;
        page.until("the arrow jumps by five seconds", "player.currentTime > 6.8").await;
        page.press(&[ESCAPE]).await;
        page.until("Escape clears the range", "document.getElementById('search-range').disabled").await;
        page.press(&['[']).await;
        page.until("a new range", "!document.getElementById('search-range').disabled").await;
        page.find("#search-range").await.send_keys(&ENTER.to_string()).await.expect("Enter");
        page.results().await;
    })
    .await;
}
