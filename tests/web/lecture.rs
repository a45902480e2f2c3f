//! The walk of a student whose lecture has no subtitles: a service writes down what is said, and a question lands on the minute.

use reprise_tests::speech::{Said, StandIn, spoken_film};
use serde_json::json;

use crate::Setting;
use crate::page::{ENTER, ESCAPE, Page};

/// What the stand-in understands, by pitch.
const SENTENCES: [&str; 5] = [
    "welcome back, today the subject is tokenization",
    "a tokenizer cuts a text into small pieces",
    "bite pair encoding merges the pair that occurs most often",
    "unigram works the other way round",
    "next week we train one on our own corpus",
];
/// When each sentence begins, in seconds; it lasts 4 s.
const STARTS: [f64; 5] = [2.0, 21.0, 63.0, 80.0, 88.0];
const LENGTH: u32 = 94;

#[tokio::test]
async fn a_lecture_without_subtitles_answers_a_question_on_the_minute() {
    let service = StandIn::start(&SENTENCES);
    let transcribe_url = Some(&*service.url.clone().leak());
    crate::visit(Setting { transcribe_url, ..Setting::default() }, async |page, folder| {
        let said: Vec<Said> =
            (0..).zip(STARTS).map(|(sentence, start)| Said { start, end: start + 4.0, sentence }).collect();
        let film = spoken_film(folder, "tokenizers.mp4", LENGTH, &said);
        page.open("/library").await;
        page.until_says("Nothing here yet").await;
        page.drop_files(&[&film]).await;
        page.until_added(1).await;
        until_transcribed(page).await;
        ask(page).await;
        correct(page).await;
        transcribe_again(page).await;
    })
    .await;
}

/// Waits for the end of the one transcription.
async fn until_transcribed(page: &Page) {
    let server = page.host.server();
    let job = server.get("/v1/jobs?kind=transcribe").await.1["items"][0]["id"].clone();
    let ended = server.job_end(job.as_str().expect("a transcription")).await;
    assert_eq!((&ended["state"], &ended["note"]), (&json!("succeeded"), &json!(null)), "{ended}");
}

async fn ask(page: &Page) {
    page.open("/").await;
    page.until("the box has the focus", "document.activeElement.matches('.ask textarea')").await;
    page.choose("Everywhere").await;
    page.choose("Said").await;
    page.click(".home .ask textarea").await;
    page.type_keys("which pair is merged by pair encoding?").await;
    page.press(&[ENTER]).await;
    page.until_results().await;
    page.click(".results [data-place='0'] a.thumb").await;
    page.player_settled().await;
    let at = page.number("player.currentTime").await;
    assert!((58.0..68.0).contains(&at), "it was said at 63 s, the player stands at {at} s");
    page.choose("Transcript").await;
    page.until_count("#transcript .cue[data-place]", SENTENCES.len()).await;
    page.until_says("Written by whisper-1, a program.").await;
    page.picture("lecture-1-found").await;
}

/// The text of a line.
fn line(place: usize) -> String {
    format!("document.querySelector('#transcript [data-place=\"{place}\"]')?.lastElementChild.textContent")
}

async fn correct(page: &Page) {
    page.click("#transcript [data-place='2']").await;
    page.until("the click seeks", "Math.abs(player.currentTime - 63) < 0.3").await;
    page.press(&['e']).await;
    let field = "document.activeElement.matches('#transcript textarea')";
    page.until("the line is a field", field).await;
    page.press(&['x', ESCAPE]).await;
    page.until("Escape leaves it as it was", &format!("{} === {}", line(2), json!(SENTENCES[2]))).await;
    page.press(&['e']).await;
    page.until("the line is a field again", field).await;
    page.picture("lecture-2-field").await;
    page.run("document.activeElement.select()", json!(null)).await;
    page.type_keys("byte pair encoding <b>merges</b> pairs").await;
    page.press(&[ENTER]).await;
    page.until_message("Corrected the line.").await;
    page.until("the new text", &format!("{} === 'byte pair encoding <b>merges</b> pairs'", line(2))).await;
    page.until("the track is a person's", "!document.querySelector('.by-machine')").await;
    page.choose("Languages and files").await;
    for label in ["Download as .srt", "Download as .vtt", "Correct the line", "Transcribe"] {
        let shown = format!(
            "[...document.querySelectorAll('.menu button')].some((it) => it.textContent.startsWith({}))",
            json!(label)
        );
        page.until(label, &shown).await;
    }
    page.press(&[ESCAPE]).await;
    page.choose("Undo").await;
    page.until("the old text", &format!("{} === {}", line(2), json!(SENTENCES[2]))).await;
}

async fn transcribe_again(page: &Page) {
    page.choose("Languages and files").await;
    page.choose("Delete English").await;
    page.until_says("Nothing is known of what is said here").await;
    page.picture("lecture-3-nothing").await;
    page.choose("Transcribe").await;
    page.until_message("Transcribed what is said.").await;
    page.until_count("#transcript .cue[data-place]", SENTENCES.len()).await;
    page.until_says("Written by whisper-1, a program.").await;
}
