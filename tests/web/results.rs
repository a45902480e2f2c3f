//! What results say of themselves: that none stands out, that there are more, what is folded, and what is not wanted.

use std::path::Path;

use reprise_tests::film::{Store, film};
use serde_json::{Value, json};

use crate::Setting;
use crate::films::{COLOURS, Recipe};
use crate::library;
use crate::page::{DOWN, Page, SHIFT};

/// Adds a film of 60 clips, so that searches have a background that hits can stand above.
async fn add_many(page: &Page, folder: &Path) {
    let colour = |at: u32| format!("color=c=0x{:06x}", at * 0x07_2b_61 % 0xff_ff_ff);
    let colours: Vec<String> = (0..30).map(colour).collect();
    let shots: Vec<&str> = colours.iter().map(String::as_str).collect();
    let file = film(folder, "many", &shots, Store::Web);
    let cut = json!({"policy": "fixed", "params": {"every_seconds": 1}});
    page.host.server().ingest_with(&file, &[("segmentation", cut)]).await;
}

/// Words for which no hit stands out.
async fn vain_words(page: &Page) -> &'static str {
    for words in
        ["a violin", "seven geese", "a somersault in the rain", "the bias of an estimator", "a market"]
    {
        let answer = page.host.server().search(&json!({"query": {"text": words}, "limit": 60})).await;
        let hits = answer["results"].as_array().expect("hits");
        if !hits.is_empty() && hits.iter().all(|hit| hit["weak"] == true) {
            return words;
        }
    }
    panic!("some hit stands out for every text");
}

#[tokio::test]
async fn where_no_hit_stands_out_the_page_says_so() {
    crate::visit(Setting::default(), async |page, folder| {
        add_many(page, folder).await;
        let words = vain_words(page).await.replace(' ', "+");
        page.open(&format!("/?q={words}")).await;
        page.until_results().await;
        page.until_heading("Nearest moments").await;
        page.until_says("None stands out. Much else in the library matches about as well.").await;
        assert!(page.count(".results .card[data-place]").await > 1, "the nearest are shown all the same");
        page.picture("results-weak").await;
        // A narrower search offers a way out.
        page.open(&format!("/?q={words}&length=l")).await;
        page.until_results().await;
        page.click(".weak-note .btn").await;
        page.until("without the filter", "!location.search.includes('length=')").await;
        page.until_results().await;
    })
    .await;
}

/// The clip of the first card.
const FIRST: &str = "document.querySelector('.results:not(.stale) [data-place=\"0\"]')?.dataset.clip";

#[tokio::test]
async fn what_is_not_wanted_is_searched_away_and_can_be_taken_back() {
    crate::visit(Setting::default(), async |page, folder| {
        if library::add_film(page, folder, &Recipe::plain("film.mp4"), &COLOURS).await.is_none() {
            return;
        }
        page.open("/?q=a+yellow+room").await;
        page.until_results().await;
        let first = page.text(FIRST).await;
        page.press(&[DOWN]).await;
        page.until("the focus is on the first", "document.activeElement.closest('[data-place=\"0\"]')").await;
        page.press_with(SHIFT, 'l').await;
        page.until_message("Searching for less like this").await;
        page.until_address("&unlike=").await;
        page.until("another leads", &format!("{FIRST} && {FIRST} !== '{first}'")).await;
        page.until(
            "the box names it",
            "/^Not like Film, 0:\\d\\d/.test(document.querySelector('.ask .token.unlike')?.innerText)",
        )
        .await;
        page.picture("results-unlike").await;
        page.choose("Undo").await;
        page.until(
            "it leads again",
            &format!("!location.search.includes('unlike') && {FIRST} === '{first}'"),
        )
        .await;
        // With the pointer, and taken out of the box.
        let button = "document.querySelector(\".results [data-place='0'] [data-act=unlike]\").click()";
        page.run(button, Value::Null).await;
        page.until("another leads", &format!("{FIRST} && {FIRST} !== '{first}'")).await;
        page.click(".ask .token.unlike .out").await;
        page.until(
            "it leads again",
            &format!("!location.search.includes('unlike') && {FIRST} === '{first}'"),
        )
        .await;
    })
    .await;
}

/// Keeps back the details of videos until `answerDetails` is called.
const HOLD_DETAILS: &str = "{
    const real = window.fetch;
    const released = new Promise((resolve) => { window.answerDetails = resolve; });
    window.fetch = async (path, how) => {
        if (String(path).startsWith('/v1/videos/')) await released;
        return real(path, how);
    };
}";

#[tokio::test]
async fn hits_are_compared_with_a_clip_whose_details_come_late() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some((id, _)) = library::add_film(page, folder, &Recipe::plain("film.mp4"), &COLOURS).await
        else {
            return;
        };
        let clip = format!("/?clip={id}&start=0&end=1.5");
        // The first results wait for details, which say what shape pictures have.
        page.open(&clip).await;
        page.until_results().await;
        page.run_at_start(HOLD_DETAILS).await;
        page.open(&clip).await;
        page.until_results().await;
        page.press(&['c', 'c']).await;
        let loaded =
            "performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/compare.js'))";
        page.until("the dialog's module is loaded", loaded).await;
        page.run("answerDetails()", Value::Null).await;
        page.until("a dialog", "document.querySelector('dialog[open]')").await;
        page.until(
            "the query's clip and the hit",
            "document.querySelectorAll('#compare video').length === 2",
        )
        .await;
        assert_eq!(page.count("dialog").await, 1, "the second key opens no second dialog");
    })
    .await;
}

#[tokio::test]
async fn hits_that_look_alike_are_a_pile_that_unfolds_in_place() {
    crate::visit(Setting::default(), async |page, folder| {
        add_many(page, folder).await;
        page.open("/?q=a+blue+room").await;
        page.until_results().await;
        let pile = "document.querySelector('.results .card.pile')";
        page.until("a pile", pile).await;
        page.until(
            "it is said",
            "/\\d hits folded/.test(document.querySelector('.results .toolbar').textContent)",
        )
        .await;
        let clip = page.text(&format!("{pile}.dataset.clip")).await;
        let number =
            page.number(&format!("Number({pile}.querySelector('.more').textContent)")).await as usize;
        assert!(number >= 2, "a pile of {number}");
        page.run("document.querySelector('.results .card.pile a.thumb').focus()", Value::Null).await;
        page.press(&['e']).await;
        page.until_count(".results .card.unfolded", number).await;
        let times = "[...document.querySelectorAll('.card.unfolded .at')].map((it) => it.textContent).join()";
        let times = page.text(times).await;
        assert!(times.split(',').is_sorted(), "in the order of time: {times}");
        page.picture("results-unfolded").await;
        page.press(&['e']).await;
        page.until_count(".results .card.unfolded", 0).await;
        let focused = format!("document.activeElement.closest('.card.pile')?.dataset.clip === '{clip}'");
        page.until("the focus is on the pile", &focused).await;
        page.click(".results .card.pile .more").await;
        page.until_count(".results .card.unfolded", number).await;
    })
    .await;
}

/// Asks for four hits where the page asks for many, and repeats groups until there are many.
const FEW_AND_MANY: &str = "const real = window.fetch;
    window.fetch = async (path, how) => {
        const body = typeof how?.body === 'string' ? how.body.replace('\"limit\":300', '\"limit\":4') : how?.body;
        const answer = await real(path, how && { ...how, body });
        if (path !== '/v1/search') return answer;
        const found = await answer.json();
        if (found.groups) {
            found.groups = Array(40).fill(found.groups).flat();
            found.facets.counts.find(({ by }) => by === 'video').other_values = 98;
            found.next_cursor = 'more';
        }
        return Response.json(found);
    }";

#[tokio::test]
async fn a_list_that_ends_before_the_hits_do_says_so() {
    crate::visit(Setting::default(), async |page, folder| {
        for (name, colours) in [("one.mp4", &COLOURS[..4]), ("other.mp4", &COLOURS[4..])] {
            if library::add_film(page, folder, &Recipe::plain(name), colours).await.is_none() {
                return;
            }
        }
        page.run_at_start(FEW_AND_MANY).await;
        let video = "document.querySelectorAll('.facet .pickrow').length";
        for (order, said, heading) in [
            ("&sort=time", "Only the best 4 of 6 moments are listed.", "4+ moments"),
            ("&sort=newest", "Only the best 4 of 6 moments are listed.", "4+ moments"),
            ("&group=video", "Only the first 80 of 100 videos are listed.", "240 moments in 80 videos+"),
        ] {
            page.open(&format!("/?q=a+yellow+room{order}")).await;
            page.until_results().await;
            page.until_says(said).await;
            page.until_heading(heading).await;
            assert!(page.number(video).await > 0.0, "there is something to filter with");
        }
        page.open("/?q=a+yellow+room").await;
        page.until_results().await;
        page.until_heading("6 moments").await;
        assert_eq!(page.count(".results .cut").await, 0, "all hits are listed");
    })
    .await;
}

/// The number beside a value of a facet.
fn counted(value: &str) -> String {
    format!(
        "[...document.querySelectorAll('.facet .pickrow')].find((it) => it.textContent.startsWith('{value}'))?.querySelector('.count')?.textContent"
    )
}

#[tokio::test]
async fn folders_and_tags_are_listed_with_their_hits() {
    crate::visit(Setting::default(), async |page, folder| {
        for (name, colours, labels) in [
            ("one.mp4", &COLOURS[..4], json!({"folder": "Sports/day 1", "tags": ["finals"]})),
            ("other.mp4", &COLOURS[4..], json!({"folder": "Lectures", "tags": ["finals", "maths"]})),
        ] {
            let Some((id, _)) = library::add_film(page, folder, &Recipe::plain(name), colours).await else {
                return;
            };
            library::label(page, &id, &labels).await;
        }
        page.open("/?q=a+yellow+room").await;
        page.until_results().await;
        for (value, hits) in [("Sports", 4), ("Lectures", 2), ("finals", 6), ("maths", 2)] {
            page.until(&format!("{hits} hits in {value}"), &format!("{} === '{hits}'", counted(value))).await;
        }
        page.choose("Sports").await;
        page.until_address("folder=Sports").await;
        page.until_count(".results .card[data-place]", 4).await;
        page.until("none elsewhere", &format!("{} === '0'", counted("Lectures"))).await;
        page.until("fewer with the tag", &format!("{} === '4'", counted("finals"))).await;
    })
    .await;
}
