//! The walk of an editor: from a folder of films to a film of the best moments, an edit list, and a link for others.

use std::path::Path;

use reprise_tests::film::ffprobe;
use reprise_tests::server::Server;
use serde_json::Value;

use crate::Setting;
use crate::films::{self, COLOURS, Recipe};
use crate::page::{ALT, DOWN, ENTER, ESCAPE, LEFT, Page, RIGHT, SHIFT};

/// The key of the editor's server: whoever gets a link has none.
const KEY: &str = "the-editor";

#[tokio::test]
async fn an_editor_finds_moments_and_hands_over_a_reel() {
    crate::visit(Setting { key: Some(KEY), ..Setting::default() }, async |page, folder| {
        let Some(first) = films::make(folder, &Recipe::plain("first_half.mp4"), &COLOURS) else { return };
        let Some(second) = films::make(folder, &Recipe::plain("second_half.mp4"), &COLOURS[2..5]) else {
            return;
        };
        add_films(page, &[&first, &second]).await;
        find_by_text(page).await;
        mark_and_ask_for_another(page).await;
        compare_and_select(page).await;
        arrange(page).await;
        export(page, folder).await;
        share(page).await;
    })
    .await;
}

async fn add_films(page: &Page, films: &[&Path]) {
    page.open("/").await;
    page.type_into("#key-needed #key", &format!("{KEY}{ENTER}")).await;
    page.until_heading("Nothing here yet").await;
    page.picture("editor-1-first-start").await;
    page.choose_files(".home .drop input[accept]", films).await;
    page.until_added(2).await;
    page.choose("Library").await;
    page.until_count(".library .card[data-state=ready]", 2).await;
    page.until_says("First half").await;
    page.picture("editor-2-library").await;
}

async fn find_by_text(page: &Page) {
    page.press(&['/']).await;
    page.until("the box has the focus", "document.activeElement.matches('.ask textarea')").await;
    page.type_keys("a yellow room").await;
    page.press(&[ENTER]).await;
    page.until_results().await;
    page.until_address("/?q=a+yellow+room").await;
    assert_eq!(page.count(".results .card[data-place]").await, 9, "every shot is ranked");
    page.picture("editor-3-words").await;
    page.click(".results [data-place='0'] a.thumb").await;
    page.player_settled().await;
    page.until(
        "the hit's video",
        "/^(First|Second) half$/.test(document.querySelector('main h1').textContent)",
    )
    .await;
    page.until("its hits are listed", "document.querySelector('#hits .hitrow.now')").await;
}

/// Marks eleven frames with keys, and searches for the same in another colour.
async fn mark_and_ask_for_another(page: &Page) {
    page.press(&['[']).await;
    for _ in 0..10 {
        page.press(&[RIGHT]).await;
        page.player_settled().await;
    }
    page.press(&[']']).await;
    page.until_says("11 frames").await;
    page.until_address("&in=").await;
    page.until_address("&out=").await;
    page.picture("editor-4-marked").await;
    page.press(&['.']).await;
    page.until("the box has the focus", "document.activeElement.id === 'change'").await;
    page.type_keys("but brighter").await;
    page.press(&[ENTER]).await;
    page.until_address("&mod=but+brighter").await;
    page.until_results().await;
    page.until(
        "the clip is beside its hits",
        "document.querySelector('.aside.query video')?.readyState >= 2",
    )
    .await;
    page.picture("editor-5-changed").await;
}

async fn compare_and_select(page: &Page) {
    page.press(&['c']).await;
    page.until("two loops", "document.querySelectorAll('#compare video').length === 2").await;
    page.until("the first hit", "document.querySelector('#compare').innerText.includes('Hit 1 of')").await;
    page.press(&[RIGHT]).await;
    page.until("the second hit", "document.querySelector('#compare').innerText.includes('Hit 2 of')").await;
    page.until(
        "both are there",
        "[...document.querySelectorAll('#compare video')].every((it) => it.readyState >= 2)",
    )
    .await;
    page.picture("editor-6-compare").await;
    page.press(&[ESCAPE]).await;
    page.until("the focus is on the second hit", "!document.querySelector('dialog') && document.activeElement.closest('[data-place]')?.dataset.place === '1'").await;
    page.press(&['x', LEFT, 'x']).await;
    page.until_says("2 selected").await;
    page.picture("editor-7-selected").await;
    page.press(&['r']).await;
    page.until_message("Added 2 moments to New reel").await;
    page.until("the rail counts them", "document.querySelector('.rail .badge')?.textContent === '2'").await;
}

/// The open reel as the server has it.
async fn stored(page: &Page, server: &Server) -> Value {
    let id = page.text("location.pathname.split('/')[2]").await;
    server.send(server.request("GET", &format!("/v1/reels/{id}")).bearer_auth(KEY)).await.1
}

async fn arrange(page: &Page) {
    page.press(&['g', 'r']).await;
    page.until_heading("Reels").await;
    page.click(".reel-item a").await;
    page.until_count(".reelrow", 2).await;
    page.until("the player is ready", "document.querySelector('.screen video:not(.away)')?.readyState >= 2")
        .await;
    let server = page.host.server();
    let before = stored(page, &server).await;
    page.press_with(ALT, DOWN).await;
    page.until_message("Moved clip 1 to place 2").await;
    let moved = stored(page, &server).await;
    assert_eq!(moved["ranges"][1]["start"], before["ranges"][0]["start"], "{moved}");

    page.find(".track [data-side=end]").await.send_keys(&LEFT.to_string()).await.expect("an arrow");
    page.until_message("Trimmed clip 2").await;
    let trimmed = stored(page, &server).await;
    let end = |reel: &Value| reel["ranges"][1]["end"].as_f64().unwrap_or(f64::NAN);
    let frame = end(&moved) - end(&trimmed);
    assert!((frame - 1001.0 / 30000.0).abs() < 0.002, "trimmed by a frame, not by {frame} s");

    page.click("#tab-notes").await;
    page.type_into("[aria-label='Note of clip 1']", &format!("the start{ENTER}")).await;
    page.until_message("Changed the note").await;
    assert_eq!(stored(page, &server).await["ranges"][0]["note"], "the start");
    page.press_with('\u{e009}', 'z').await;
    page.click("#tab-clips").await;
    page.choose("Rename").await;
    page.find("dialog input").await.clear().await.expect("an empty field");
    page.type_into("dialog input", &format!("The best{ENTER}")).await;
    page.until_heading("The best").await;
    page.picture("editor-8-reel").await;
}

/// Exports in the format that is chosen, and fetches the file. Returns where it is.
async fn made(page: &Page, folder: &Path, format: &str) -> std::path::PathBuf {
    let kind = format.split(',').next().expect("a kind").to_uppercase();
    let link = format!(
        "[...document.querySelectorAll('#exports [data-state=succeeded]')].find((it) => it.innerText.includes(', {kind}'))?.querySelector('a[download]')"
    );
    page.until(&format!("the {kind} is made"), &link).await;
    let address = page.text(&format!("{link}.href")).await;
    let name = page.text(&format!("{link}.download")).await;
    let answer = page.host.server().client().get(&address).send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "the address carries its own right: {address}");
    let file = folder.join(name);
    std::fs::write(&file, answer.bytes().await.expect("the file")).expect("it can be kept");
    file
}

async fn export(page: &Page, folder: &Path) {
    let length: f64 = {
        let ranges = stored(page, &page.host.server()).await["ranges"].as_array().cloned().expect("ranges");
        ranges.iter().filter_map(|it| Some(it["end"].as_f64()? - it["start"].as_f64()?)).sum()
    };
    page.press_with(SHIFT, 'e').await;
    page.choose("Export").await;
    let film = ffprobe(&made(page, folder, "MP4").await);
    let seconds: f64 = film["format"]["duration"].as_str().and_then(|it| it.parse().ok()).expect("a length");
    assert!((seconds - length).abs() < 0.15, "the reel is {length} s, its film {seconds} s");
    let format = page.find("#exports [aria-label=Format]").await;
    format.select_by_label("EDL: CMX 3600").await.expect("a format");
    page.choose("Export").await;
    let list = std::fs::read_to_string(made(page, folder, "EDL").await).expect("an edit list is text");
    assert!(list.starts_with("TITLE: The best") && list.contains("002  "), "{list}");
    page.picture("editor-9-exported").await;
    page.press(&[ESCAPE]).await;
    page.until("the dialog is closed", "!document.querySelector('dialog')").await;
}

async fn share(page: &Page) {
    page.choose("Share").await;
    page.choose("Make and copy").await;
    page.until("the link", "document.querySelector('#share [aria-label=Link]').value").await;
    let link = page.text("document.querySelector('#share [aria-label=Link]').value").await;
    // Another person: no key and no cookie.
    page.run("sessionStorage.clear(); localStorage.clear()", Value::Null).await;
    page.client.delete_all_cookies().await.expect("no cookies");
    page.client.goto(&link).await.expect("the link opens");
    page.until_heading("The best").await;
    page.until_count(".shared-clips li", 2).await;
    page.until(
        "its first clip is there",
        "document.querySelector('.screen video:not(.away)')?.readyState >= 2",
    )
    .await;
    page.press(&['k']).await;
    page.until(
        "it plays to its last clip",
        "document.querySelector('.shared-clips li:last-child .reelrow.on')",
    )
    .await;
    assert_eq!(page.count("dialog, .rail .nav").await, 0, "nobody is asked for a key");
    page.picture("editor-10-shared").await;
    let broken = link.replace("/shared/", "/reels/");
    page.client.goto(&broken).await.expect("an address");
    page.find("#key-needed").await;
}
