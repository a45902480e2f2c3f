//! Subtitles on the page: upload, snippets, timeline and hits.

use std::path::{Path, PathBuf};

use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use serde_json::{Value, json};

use crate::Setting;
use crate::films::{self, COLOURS, Recipe, scene_start};
use crate::page::Page;

/// Scenes 0 and 3 look alike; the others don't.
const TWINS: [&str; 6] = [COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[0], COLOURS[3], COLOURS[4]];

/// Subtitles whose second cue would run as a script if the page treated it as markup.
const SAID: &str = "WEBVTT

00:00:02.500 --> 00:00:03.500
today we look at the bias of an estimator

00:00:06.250 --> 00:00:07.000
the variance &lt;img src=x onerror=\"window.ran = true\"&gt; of it

00:00:08.000 --> 00:00:09.000
and the bias again
";

fn subtitles(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, SAID).expect("a subtitle file");
    path
}

/// Uploads a film of these scenes. Returns the video's id.
async fn film(page: &Page, folder: &Path, colours: &[&str]) -> Option<String> {
    let file = films::make(folder, &Recipe::plain("film.mp4"), colours)?;
    page.open("/").await;
    Some(page.upload(&file).await)
}

/// Adds the subtitles on the page of the video.
async fn add_subtitles(page: &Page, id: &str, folder: &Path) {
    page.open(&format!("/v/{id}")).await;
    page.player_settled().await;
    page.type_into("#subtitle-file", subtitles(folder, "film.en.vtt").to_str().expect("a path")).await;
    page.until("the track is listed", "document.querySelector('.tracks [data-language=en]')").await;
}

/// Times from which the server plays a query's hits in one video, best first.
async fn hit_times(page: &Page, id: &str, query: Value) -> Vec<f64> {
    let body = json!({"query": query, "limit": 10, "filter": {"field": "video_id", "eq": id}});
    let client = reprise_server::https::client().no_proxy().build().expect("a client");
    let request = client.post(format!("{}/v1/search", page.address)).json(&body);
    let answer: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    let from = |hit: &Value| hit["page_url"].as_str()?.rsplit("t=").next()?.parse().ok();
    answer["results"].as_array().expect("hits").iter().filter_map(from).collect()
}

/// Keeps the player paused after a seek, so that a test can read its time.
async fn hold_still(page: &Page) {
    page.client
        .execute("HTMLMediaElement.prototype.play = async () => {}; player.pause()", Vec::new())
        .await
        .expect("a script");
}

async fn stands_at(page: &Page, what: &str, seconds: f64) {
    page.until(
        &format!("{what} at {seconds} s"),
        &format!("Math.abs(player.currentTime - {seconds}) < 0.05"),
    )
    .await;
}

#[tokio::test]
async fn subtitles_added_on_the_page_are_found_by_their_words_and_never_become_markup() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &COLOURS).await else { return };
        add_subtitles(page, &id, folder).await;

        page.open("/?q=the+variance+of+it&sources=spoken").await;
        page.results().await;
        assert_eq!(page.number("document.querySelectorAll('#results .hit').length").await, 1.0);
        let text = page.text("document.querySelector('.hit .evidence').textContent").await;
        assert_eq!(text, "“the variance <img src=x onerror=\"window.ran = true\"> of it”");
        assert_eq!(page.text("document.querySelector('.hit .evidence mark').textContent").await, "variance");
        assert_eq!(page.get("document.querySelector('.hit .evidence img')").await, Value::Null);
        assert_eq!(
            page.text("[...document.querySelectorAll('.hit .source')].map((it) => it.textContent).join()")
                .await,
            "said"
        );
        assert_eq!(page.text("document.querySelector('.hit .opens').textContent").await, "0:06");

        page.click("#results .hit h3 a").await;
        page.player_settled().await;
        let address = page.client.current_url().await.expect("an address");
        assert_eq!(address.query(), Some("t=5.25&q=the+variance+of+it&sources=spoken"));
        page.until(
            "the snippet is under the player",
            "document.querySelector('.hit-status mark')?.textContent === 'variance'",
        )
        .await;
        assert_eq!(page.get("document.querySelector('.hit-status img')").await, Value::Null);
        assert_eq!(page.get("Boolean(window.ran)").await, false, "a cue ran as a script");
        assert_eq!(
            page.text("document.querySelector('.timeline .area').getAttribute('d')").await,
            "",
            "what is only said has no score of what is seen"
        );
    })
    .await;
}

#[tokio::test]
async fn subtitles_are_captions_of_the_player_and_can_be_replaced_and_deleted() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &COLOURS).await else { return };
        add_subtitles(page, &id, folder).await;
        page.until("the player has captions", "player.textTracks.length === 1").await;
        assert_eq!(page.text("player.textTracks[0].kind").await, "captions");
        assert_eq!(page.text("player.textTracks[0].language").await, "en");
        page.get("(player.textTracks[0].mode = 'showing')").await;
        page.until("they are loaded", "player.textTracks[0].cues?.length === 3").await;
        assert!((page.number("player.textTracks[0].cues[0].startTime").await - 2.5).abs() < 0.0015);

        page.type_into("#subtitle-file", subtitles(folder, "other.en.vtt").to_str().expect("a path")).await;
        page.click("dialog [data-confirm]").await;
        page.until(
            "it says so",
            "document.querySelector('.subtitles').textContent.includes('other.en.vtt can be searched')",
        )
        .await;
        page.until("still one", "player.textTracks.length === 1 && player.textTracks[0].mode === 'showing'")
            .await;
        page.click("[data-action=delete-subtitles]").await;
        page.click("dialog [data-confirm]").await;
        page.until("the list is empty", "!document.querySelector('.tracks [data-language]')").await;
        page.until("the captions are gone", "player.textTracks.length === 0").await;
        page.open("/?q=bias&sources=spoken").await;
        page.until("nothing is found any more", "document.querySelector('#results .empty')").await;
    })
    .await;
}

#[tokio::test]
async fn subtitles_dropped_on_a_video_are_its_own_and_a_bad_file_says_why() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &COLOURS[..2]).await else { return };
        page.open(&format!("/v/{id}?q=bias&sources=spoken")).await;
        page.player_settled().await;
        page.until("nothing is said yet", "document.querySelector('.hit-status')?.textContent.startsWith('No hits')").await;
        let drop = "const [name, text] = arguments;
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], name));
            document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));";
        page.client.execute(drop, vec!["talk.de.srt".into(), "no cue\n".into()]).await.expect("a drop");
        page.until("the refusal is shown", "document.querySelector('.subtitles').textContent.includes('talk.de.srt: ')").await;
        page.client.execute(drop, vec!["talk.de.vtt".into(), SAID.into()]).await.expect("a drop");
        page.until("the track is listed", "document.querySelector('.tracks [data-language=de]')").await;
        page.until("it is found at once", "document.querySelectorAll('.timeline .marks li').length > 0").await;
        assert_eq!(page.get("document.querySelector('.upload')").await, Value::Null, "it went to the library");
    })
    .await;
}

#[tokio::test]
async fn the_timeline_shows_scores_and_hits_and_a_press_seeks() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &TWINS).await else { return };
        let end = scene_start(1);
        page.open(&format!("/v/{id}?t=0m4s&clip={id}&start=0&end={end}")).await;
        page.player_settled().await;
        assert!(page.number("player.currentTime").await >= 4.0, "0m4s is 4 s");
        hold_still(page).await;
        page.until("the scores are drawn", "document.querySelector('.timeline .area').getAttribute('d')")
            .await;
        let label = page.text("document.querySelector('.timeline svg').getAttribute('aria-label')").await;
        assert!(label.contains("5 hits in this video"), "all scenes but the query's own: {label}");
        assert_eq!(page.number("document.querySelectorAll('.timeline .marks li').length").await, 5.0);
        let best = page
            .text("document.querySelector('.timeline [data-rank=\"1\"]').getAttribute('aria-label')")
            .await;
        assert!(best.contains("0:05.705–"), "the twin is the best hit: {best}");

        page.get("document.querySelector('.timeline').scrollIntoView({block: 'center'})").await;
        let side =
            |name: &str| format!("document.querySelector('.timeline .plot').getBoundingClientRect().{name}");
        let x = page.number(&side("x")).await + page.number(&side("width")).await * 0.75;
        let y = page.number(&side("y")).await + 20.0;
        let press = MouseActions::new("mouse".to_owned())
            .then(PointerAction::MoveTo { duration: None, x, y })
            .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT })
            .then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
        page.client.perform_actions(press).await.expect("a press");
        stands_at(page, "the press", scene_start(6) * 0.75).await;
        let head = page.number("parseFloat(document.querySelector('.timeline .head').style.left)").await;
        assert!((head - 75.0).abs() < 1.0, "the playhead follows: {head} %");

        page.click(".timeline [data-rank='1']").await;
        let clip = json!({"clip": {"video_id": id, "start": 0, "end": end}});
        stands_at(page, "the best hit", hit_times(page, &id, clip).await[0]).await;

        let drawn = "document.querySelector('.timeline .area')?.getAttribute('d')";
        let path = page.text(drawn).await;
        page.open(&format!("/v/{id}?clip={id}&start=0&end={end}&mod=but+brighter")).await;
        page.until("a composed query is drawn too", &format!("{drawn} && {drawn} !== {}", json!(path))).await;
    })
    .await;
}

#[tokio::test]
async fn keys_and_buttons_go_from_hit_to_hit() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &TWINS).await else { return };
        let end = scene_start(1);
        let clip = json!({"clip": {"video_id": id, "start": 0, "end": end}});
        let mut times = hit_times(page, &id, clip).await;
        times.sort_by(f64::total_cmp);
        assert_eq!(times.len(), 5);
        page.open(&format!("/v/{id}?clip={id}&start=0&end={end}")).await;
        page.player_settled().await;
        hold_still(page).await;
        page.until("the hits are there", "document.querySelectorAll('.timeline .marks li').length === 5")
            .await;
        page.press(&['n']).await;
        stands_at(page, "the first hit", times[0]).await;
        page.press(&['n']).await;
        stands_at(page, "the second", times[1]).await;
        page.click("#next-hit").await;
        stands_at(page, "the third", times[2]).await;
        let status = page.text("document.querySelector('.hit-status').textContent").await;
        assert!(status.starts_with("Hit 3 of 5, "), "{status}");
        page.press(&['p']).await;
        stands_at(page, "the second again", times[1]).await;
        page.click("#previous-hit").await;
        stands_at(page, "the first again", times[0]).await;
        page.press(&['p']).await;
        page.until(
            "there is none before",
            "document.getElementById('announcer').textContent.includes('no further hit')",
        )
        .await;
        stands_at(page, "still the first", times[0]).await;
    })
    .await;
}

#[tokio::test]
async fn where_to_look_is_chosen_beside_the_search_and_kept_in_the_address() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(id) = film(page, folder, &COLOURS).await else { return };
        add_subtitles(page, &id, folder).await;
        page.open("/?q=bias&sources=visual").await;
        page.results().await;
        assert_eq!(page.text("document.getElementById('search-sources').value").await, "visual");
        assert_eq!(
            page.get("document.querySelector('.hit .evidence')").await,
            Value::Null,
            "nothing that is said"
        );
        page.find("#search-sources").await.select_by_value("spoken").await.expect("a choice");
        page.until("the address has it", "location.search === '?q=bias&sources=spoken'").await;
        page.until("only what is said", "document.querySelectorAll('#results .hit .evidence').length === 2")
            .await;
        assert_eq!(page.number("document.querySelectorAll('#results .hit').length").await, 2.0);
        page.type_into("#search-text", " again\u{e007}").await;
        page.until("the next search keeps it", "location.search === '?q=bias+again&sources=spoken'").await;
        page.find("#search-sources").await.select_by_value("").await.expect("a choice");
        page.until("and both are the default", "location.search === '?q=bias+again'").await;
    })
    .await;
}
