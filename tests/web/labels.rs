//! The library: tags, folders, the trash, each with its way back; the list and its filter.

use crate::Setting;
use crate::films::{COLOURS, Recipe};
use crate::library;
use crate::page::{CONTROL, ENTER, ESCAPE};

#[tokio::test]
async fn videos_are_tagged_deleted_and_brought_back() {
    crate::visit(Setting::default(), async |page, folder| {
        for (name, colours) in
            [("one.mp4", &COLOURS[..2]), ("two.mp4", &COLOURS[2..4]), ("three.mp4", &COLOURS[4..])]
        {
            if library::add_film(page, folder, &Recipe::plain(name), colours).await.is_none() {
                return;
            }
        }
        page.open("/library?sort=name").await;
        page.until_count(".library .card", 3).await;
        page.press(&['f']).await;
        page.type_keys("two").await;
        page.until_count(".library .card", 1).await;
        page.until_address("q=two").await;
        page.open("/library?sort=name").await;
        page.until_count(".library .card", 3).await;

        page.click(".library .card .pick").await;
        page.choose("Tag").await;
        page.type_into("dialog input", &format!("finals{ENTER}")).await;
        page.press(&[ENTER]).await;
        page.until_message("Changed the tags of 1 video").await;
        page.until_says("finals").await;
        page.press(&[ESCAPE]).await;

        page.press_with(CONTROL, 'a').await;
        page.until_says("3 selected").await;
        page.choose("Delete").await;
        page.until_message("Moved 3 videos to the trash").await;
        page.until_says("Nothing here yet").await;
        page.choose("Undo").await;
        page.until_count(".library .card", 3).await;
        page.choose("More about One").await;
        page.choose("Delete").await;
        page.until_count(".library .card", 2).await;
        page.open("/library?show=trash").await;
        page.until_says("Goes for good in 7 days").await;
        page.choose("Restore One").await;
        page.until_says("The trash is empty").await;
        page.open("/library?view=list").await;
        page.until_count("table.videos tbody tr", 3).await;
        page.picture("library-list").await;
    })
    .await;
}

/// Makes every page of a list of videos hold one video.
const SHORT_PAGES: &str = "const whole = window.fetch;
    window.fetch = (path, how) => whole(String(path).replace('limit=200', 'limit=1').replace('limit=1000', 'limit=1'), how);";

#[tokio::test]
async fn a_long_list_is_read_a_page_at_a_time() {
    crate::visit(Setting::default(), async |page, folder| {
        for (name, colours) in
            [("film 10.mp4", &COLOURS[..2]), ("film 9.mp4", &COLOURS[2..4]), ("raw.mp4", &COLOURS[4..])]
        {
            if library::add_film(page, folder, &Recipe::plain(name), colours).await.is_none() {
                return;
            }
        }
        page.run_at_start(SHORT_PAGES).await;
        page.open("/library?sort=name").await;
        page.until_count(".library .card", 3).await;
        let titles = "[...document.querySelectorAll('.library .card b')].map((it) => it.textContent).join()";
        assert_eq!(page.text(titles).await, "Film 9,Film 10,Raw");
        let later =
            "performance.getEntriesByType('resource').filter((it) => it.name.includes('cursor=')).length";
        assert!(page.number(later).await >= 2.0, "the list came in one page");
        page.until_says("3 videos").await;
        page.until_says("Added this week").await;
        page.open("/library?view=list&show=week").await;
        page.until_count("table.videos tbody tr", 3).await;
        page.press_with(CONTROL, 'a').await;
        page.until_says("3 selected").await;
        page.open("/library?show=failed").await;
        page.until_says("No video is like this").await;
    })
    .await;
}
