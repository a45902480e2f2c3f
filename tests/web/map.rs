//! The map of the library: shots that a lasso chooses are searched with and collected.

use std::time::Duration;

use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use serde_json::Value;

use crate::Setting;
use crate::films::{COLOURS, Recipe};
use crate::library;
use crate::page::{Page, RIGHT};

/// Draws a lasso from the map's left side to a share of its width. Returns what the bar says of it.
async fn draw_lasso(page: &Page, share: f64) -> String {
    let canvas = "document.querySelector('#map canvas')";
    page.run("document.querySelector('#map canvas').scrollIntoView({ block: 'center' })", Value::Null).await;
    let side = async |name: &str| page.number(&format!("{canvas}.getBoundingClientRect().{name}")).await;
    let (x, y, width, height) = (side("x").await, side("y").await, side("width").await, side("height").await);
    let to = |right: f64, down: f64| PointerAction::MoveTo {
        duration: Some(Duration::from_millis(60)),
        x: x + width * right,
        y: y + height * down,
    };
    let mut actions = MouseActions::new("mouse".to_owned())
        .then(to(0.01, 0.01))
        .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT });
    for (right, down) in [(share / 2.0, 0.01), (share, 0.01), (share, 0.99), (0.01, 0.99), (0.01, 0.02)] {
        actions = actions.then(to(right, down));
    }
    actions = actions.then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
    page.client.perform_actions(actions).await.expect("a lasso");
    page.until("shots are chosen", "document.querySelector('.map-bar')?.checkVisibility()").await;
    page.text("document.querySelector('.map-bar .num').textContent").await
}

/// Numbers of ranges of the stored reels.
async fn collected(page: &Page) -> Value {
    let reels = page.host.server().get("/v1/reels").await.1;
    reels["items"][0]["ranges"].clone()
}

#[tokio::test]
async fn a_lasso_searches_and_r_collects() {
    crate::visit(Setting::default(), async |page, folder| {
        for (name, colours) in [("one.mp4", &COLOURS[..]), ("other.mp4", &COLOURS[1..5])] {
            if library::add_film(page, folder, &Recipe::plain(name), colours).await.is_none() {
                return;
            }
        }
        page.open("/insights").await;
        page.find("#map canvas").await;
        page.choose("Lasso").await;
        assert_eq!(draw_lasso(page, 0.99).await, "10 shots");
        page.picture("map-lasso").await;
        page.press(&['r']).await;
        page.until_message("Added 10 shots to New reel").await;
        assert_eq!(collected(page).await, 10);
        page.choose("Undo").await;
        page.until("the rail counts none", "!document.querySelector('.rail .badge')?.checkVisibility()")
            .await;
        page.choose("Clear the choice").await;
        page.until("nothing is chosen", "document.querySelector('.map-bar').hidden").await;

        page.run("document.querySelector('#map canvas').focus()", Value::Null).await;
        page.press(&[RIGHT]).await;
        page.until("a shot is under the ring", "!document.querySelector('.map-card').hidden").await;
        page.press(&['r']).await;
        page.until_message("Added 1 shot to").await;
        assert_eq!(collected(page).await, 1);

        // The search looks for others.
        let few = draw_lasso(page, 0.5).await;
        let few: usize = few.split(' ').next().and_then(|it| it.parse().ok()).expect("a number");
        assert!((1..10).contains(&few), "{few} shots in the left half");
        page.choose("Find more like these").await;
        page.until_address("/?like=").await;
        page.until_results().await;
        page.until_count(".ask .token.like", few).await;
    })
    .await;
}
