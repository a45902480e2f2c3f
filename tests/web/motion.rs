//! What moves by itself, and that nothing does for people who ask for less motion; light and dark.

use fantoccini::actions::{InputSource, MouseActions, PointerAction};

use crate::Setting;
use crate::films::{COLOURS, Recipe};
use crate::library;
use crate::page::Page;

/// Counts the starts of all players.
const COUNT: &str = "window.plays = 0;
    const play = HTMLMediaElement.prototype.play;
    HTMLMediaElement.prototype.play = function () { window.plays += 1; return play.call(this); };
    addEventListener('play', (event) => { if (event.target.autoplay) window.plays += 1; }, true)";

/// Puts the pointer on a hit of a clip search, and looks at a hit beside the query.
async fn look_around(page: &Page, id: &str) {
    page.open(&format!("/?clip={id}&start=0&end=1.5")).await;
    page.until_results().await;
    page.until("the query's clip is there", "document.querySelector('.aside.query video')?.readyState >= 2")
        .await;
    let place = |axis: &str| {
        format!(
            "((box) => box.{axis})(document.querySelector('[data-place=\"1\"] .thumb').getBoundingClientRect())"
        )
    };
    let (x, y) = (page.number(&place("x")).await + 30.0, page.number(&place("y")).await + 30.0);
    let hover = MouseActions::new("mouse".to_owned()).then(PointerAction::MoveTo { duration: None, x, y });
    page.client.perform_actions(hover).await.expect("the pointer moves");
    page.until(
        "the hit stands beside the query",
        "document.querySelector('.aside.query .pair')?.innerText.includes('Hit 2')",
    )
    .await;
    page.press(&['c']).await;
    page.until("both are there", "((all) => all.length === 2 && all.every((it) => it.readyState >= 2))([...document.querySelectorAll('#compare video')])").await;
}

#[tokio::test]
async fn nothing_plays_by_itself_with_reduced_motion() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some((id, _)) = library::add_film(page, folder, &Recipe::plain("film.mp4"), &COLOURS).await else { return };
        page.run_at_start(COUNT).await;
        look_around(page, &id).await;
        assert!(page.number("plays").await >= 3.0, "loops play where nobody minds");

        page.prefer(&[("prefers-reduced-motion", "reduce")]).await;
        look_around(page, &id).await;
        assert_eq!(page.number("plays").await, 0.0, "{}", page.text("document.body.innerText").await);
        page.open(&format!("/v/{id}?in=0&out=1.5")).await;
        page.player_settled().await;
        page.until("the range is marked", "document.getElementById('marked')").await;
        assert_eq!(page.number("plays").await, 0.0);
        let moving = "document.getAnimations().filter((it) => it.playState === 'running' && it.effect.getComputedTiming().duration > 50).length";
        assert_eq!(page.number(moving).await, 0.0, "no animation runs");
    })
    .await;
}

#[tokio::test]
async fn the_theme_follows_the_system_until_it_is_chosen() {
    crate::visit(Setting::default(), async |page, _| {
        let ground = "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number).reduce((sum, one) => sum + one)";
        let mut seen = Vec::new();
        for theme in ["light", "dark"] {
            page.prefer(&[("prefers-color-scheme", theme)]).await;
            page.open("/library").await;
            page.until_says("Nothing here yet").await;
            seen.push(page.number(ground).await);
        }
        assert!(seen[0] > 600.0 && seen[1] < 150.0, "light and dark are {seen:?}");
        page.choose("Settings").await;
        page.choose("Light").await;
        page.until("it is light", &format!("{ground} > 600")).await;
        page.open("/models").await;
        page.until("and stays so", &format!("{ground} > 600")).await;
        page.press_with(crate::page::SHIFT, 'd').await;
        page.until("the key turns it", &format!("{ground} < 150")).await;
    })
    .await;
}
