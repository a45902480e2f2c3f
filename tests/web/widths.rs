//! The page fits a phone.

use crate::Setting;
use crate::films::{self, COLOURS, Recipe};
use crate::page::Page;

async fn check(page: &Page, path: &str, ready: &str) {
    page.open(path).await;
    page.find(ready).await;
    assert_eq!(page.number("innerWidth").await, 360.0, "{path} zoomed out to fit");
    let wide = "[...document.querySelectorAll('body *')].filter((it) => it.checkVisibility() \
         && !it.closest('.visually-hidden, .skip') && it.getBoundingClientRect().right > 360.5) \
         .map((it) => it.outerHTML.slice(0, 120)).join('\\n')";
    assert_eq!(page.text(wide).await, "", "{path}: nothing sticks out");
    assert!(page.number("document.documentElement.scrollWidth").await <= 360.0, "{path} scrolls sideways");
}

#[tokio::test]
async fn nothing_scrolls_sideways_at_phone_width() {
    crate::visit(Setting { phone: true, ..Setting::default() }, async |page, folder| {
        let recipe = Recipe::plain(
            "a_very_long_name_without_a_single_space_in_it_that_no_line_of_a_phone_can_hold.mp4",
        );
        let Some(file) = films::make(folder, &recipe, &COLOURS) else { return };
        page.open("/").await;
        let id = page.upload(&file).await;
        check(page, "/", ".card.video").await;
        check(page, "/?q=anything&level=both", "#results .hit").await;
        check(page, &format!("/?clip={id}&start=0&end=1"), "#results .hit").await;
        check(page, &format!("/v/{id}?t=1"), ".clip").await;
        check(page, &format!("/v/{id}?t=1&clip={id}&start=0&end=1"), ".timeline .marks li").await;
    })
    .await;
}
