//! The walk of a student: a lecture with its subtitles, a paragraph of notes, and the minute where it was said.

use serde_json::json;

use crate::Setting;
use crate::films::{self, COLOURS, Recipe};
use crate::library::subrip;
use crate::page::{CONTROL, ENTER, KEEP_COPIES, Page};

/// What is said, by the second. The film lasts 114 s.
const LECTURE: [(usize, &str); 16] = [
    (2, "welcome back, today the subject is tokenization"),
    (9, "a tokenizer cuts a text into small pieces"),
    (16, "the simplest one splits at every white space"),
    (23, "its vocabulary becomes far too large"),
    (30, "characters give the smallest vocabulary of all"),
    (37, "but each piece then carries very little meaning"),
    (44, "subwords are the compromise that everybody uses"),
    (51, "frequent words stay whole, rare ones fall apart"),
    (58, "byte pair encoding begins with single characters"),
    (65, "it merges the pair of symbols that occurs most often"),
    (72, "and repeats that until the vocabulary is full"),
    (79, "the order of the merges is the model"),
    (86, "unigram works the other way round and removes pieces"),
    (93, "it keeps those whose loss would hurt the likelihood most"),
    (100, "<img src=x onerror=\"window.ran = true\"> is a piece, too"),
    (107, "next week we train one on our own corpus"),
];

/// Notes about what is said from 58 s to 79 s, in other words and much longer than a query.
const NOTES: &str = "Byte pair encoding: the algorithm begins with single characters and looks for the pair of \
    symbols that occurs most often in the corpus. It merges that pair into one new symbol, then repeats the merges \
    until the vocabulary is full.";

#[tokio::test]
async fn a_student_lands_on_the_minute_of_a_paragraph() {
    crate::visit(Setting::default(), async |page, folder| {
        let scenes: Vec<_> = COLOURS.into_iter().cycle().take(60).collect();
        let Some(film) = films::make(folder, &Recipe::plain("tokenizers.mp4"), &scenes) else { return };
        let Some(other) = films::make(folder, &Recipe::plain("holidays.mp4"), &COLOURS[..2]) else { return };
        let subtitles = folder.join("tokenizers.en.srt");
        std::fs::write(&subtitles, subrip(&LECTURE)).expect("a subtitle file");
        page.open("/library").await;
        page.until_says("Nothing here yet").await;
        page.drop_files(&[&film, &other, &subtitles]).await;
        page.until_says("1 subtitle file").await;
        page.until_added(2).await;
        page.picture("student-1-added").await;
        paste_notes(page).await;
        follow(page).await;
        find_and_mark(page).await;
        copy_link(page).await;
    })
    .await;
}

async fn paste_notes(page: &Page) {
    page.open("/").await;
    page.until("the box has the focus", "document.activeElement.matches('.ask textarea')").await;
    page.choose("Everywhere").await;
    page.choose("Said").await;
    page.click(".home .ask textarea").await;
    let paste = "const transfer = new DataTransfer();
        transfer.setData('text/plain', arguments[0]);
        const box = document.activeElement;
        if (box.dispatchEvent(new ClipboardEvent('paste', { clipboardData: transfer, bubbles: true, cancelable: true })))
            document.execCommand('insertText', false, arguments[0])";
    page.run(paste, json!(NOTES)).await;
    page.until_says(&format!("{} words", NOTES.split_whitespace().count())).await;
    page.press(&[ENTER]).await;
    page.until_results().await;
    page.until_address("&sources=spoken").await;
    page.until("what was said is marked", "document.querySelector('[data-place=\"0\"] .snip mark')").await;
    page.picture("student-2-notes").await;
    page.click(".results [data-place='0'] a.thumb").await;
    page.player_settled().await;
    let at = page.number("player.currentTime").await;
    assert!((56.0..80.0).contains(&at), "the paragraph is about 58 to 79 s, the player stands at {at} s");
}

/// The line that is said now.
const NOW: &str = "document.querySelector('#transcript .cue.now')";

async fn follow(page: &Page) {
    page.choose("Transcript").await;
    page.until_count("#transcript .cue[data-place]", LECTURE.len()).await;
    page.until("a line is current", NOW).await;
    assert!(!page.holds("window.ran").await, "a cue ran as a script");
    page.click("#transcript [data-place='10']").await;
    page.until("the click seeks", "Math.abs(player.currentTime - 72) < 0.1").await;
    page.until("the line follows", &format!("{NOW}?.dataset.place === '10'")).await;
    page.run("player.playbackRate = 4", json!(null)).await;
    page.press(&['k']).await;
    page.until("the lines follow the playback", &format!("{NOW}?.dataset.place === '11'")).await;
    let seen = format!(
        "((row, list) => row.top >= list.top && row.bottom <= list.bottom + 1)({NOW}.getBoundingClientRect(), transcript.getBoundingClientRect())"
    );
    page.until("the line is in sight", &seen).await;
    page.press(&['k']).await;
    page.until("it pauses", "player.paused").await;
    page.picture("student-3-transcript").await;
}

async fn find_and_mark(page: &Page) {
    page.press_with(CONTROL, 'f').await;
    page.until("the field has the focus", "document.activeElement.id === 'find-in-transcript'").await;
    page.type_keys("vocabulary").await;
    page.until_says(" of 3").await;
    page.press(&[ENTER]).await;
    let found = "document.querySelector('#transcript .cue.at')";
    page.until("it goes to a line with the word", &format!("/vocabulary/.test({found}?.textContent)")).await;
    page.find("#find-in-transcript").await.clear().await.expect("an empty field");
    page.click("#transcript [data-place='8']").await;
    page.until("the line's time", "Math.abs(player.currentTime - 58) < 0.1").await;
}

async fn copy_link(page: &Page) {
    page.run(KEEP_COPIES, json!(null)).await;
    page.click("#more").await;
    page.choose("Copy link at").await;
    page.until("the link is copied", "window.copied").await;
    let link = page.text("window.copied").await;
    page.client.goto(&link).await.expect("the link opens");
    page.player_settled().await;
    page.until("it opens at its time", "Math.abs(player.currentTime - 58) < 0.1").await;
    page.picture("student-4-link").await;
}
