//! Readable names for the page's contents and actions.

use std::path::Path;
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::{Client, Locator};
use serde::Deserialize;
use serde_json::Value;

use crate::films::{self, Frame};

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// A browser tab with the page.
pub(crate) struct Page {
    pub(crate) client: Client,
    pub(crate) address: String,
}

/// The player's state at one moment.
#[derive(Debug, Deserialize)]
pub(crate) struct Shown {
    /// Time on the media element's own clock, in seconds.
    pub(crate) element_seconds: f64,
    pub(crate) source: String,
    pub(crate) picture: Vec<f64>,
}

impl Page {
    pub(crate) fn new(client: Client, address: String) -> Page {
        Page { client, address }
    }

    /// Opens a path of the server, as if typed into the address bar.
    pub(crate) async fn open(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.address)).await.expect("the page opens");
    }

    pub(crate) async fn find(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        found.unwrap_or_else(|error| panic!("{css} did not appear: {error}"))
    }

    pub(crate) async fn click(&self, css: &str) {
        self.find(css).await.click().await.unwrap_or_else(|error| panic!("{css} can't be clicked: {error}"));
    }

    pub(crate) async fn type_into(&self, css: &str, text: &str) {
        self.find(css)
            .await
            .send_keys(text)
            .await
            .unwrap_or_else(|error| panic!("{css} takes no keys: {error}"));
    }

    /// Presses keys one after the other, on the focused element.
    pub(crate) async fn press(&self, keys: &[char]) {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for &value in keys {
            actions = actions.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        }
        self.client.perform_actions(actions).await.expect("keys are pressed");
    }

    /// The value of a JavaScript expression.
    pub(crate) async fn get(&self, expression: &str) -> Value {
        let value = self.client.execute(&format!("return {expression}"), Vec::new()).await;
        value.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    pub(crate) async fn text(&self, expression: &str) -> String {
        self.get(expression).await.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn number(&self, expression: &str) -> f64 {
        self.get(expression).await.as_f64().unwrap_or(f64::NAN)
    }

    /// Waits until a JavaScript expression is true. The failure message contains `what`.
    pub(crate) async fn until(&self, what: &str, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.get(&format!("Boolean({expression})")).await != Value::Bool(true) {
            assert!(Instant::now() < deadline, "{what}: never happened");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Uploads a file through the page's input and waits until it is searchable. Returns the video's id.
    pub(crate) async fn upload(&self, file: &Path) -> String {
        self.type_into("#upload-input", file.to_str().expect("a readable path")).await;
        let title = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        self.ready(title).await
    }

    /// Waits until the video with this title is searchable. Returns its id.
    pub(crate) async fn ready(&self, title: &str) -> String {
        let title = Value::from(title).to_string();
        let card = format!(
            "[...document.querySelectorAll('.card.video')].find((card) => card.querySelector('h3').textContent === {title})"
        );
        let ended = format!("['ready', 'failed'].includes({card}?.dataset.state)");
        self.until(&format!("the job of {title} ends"), &ended).await;
        let state = self.text(&format!("{card}.dataset.state")).await;
        assert_eq!(state, "ready", "{}", self.text(&format!("{card}.innerText")).await);
        self.text(&format!("{card}.dataset.id")).await
    }

    /// Waits for results.
    pub(crate) async fn results(&self) {
        self.until("results", "document.querySelector('#results .hit')").await;
    }

    /// Start and end of the hit at index `place`, from 0.
    pub(crate) async fn hit_range(&self, place: usize) -> (f64, f64) {
        let hit = format!("document.querySelectorAll('#results .hit')[{place}].dataset");
        (self.number(&format!("Number({hit}.start)")).await, self.number(&format!("Number({hit}.end)")).await)
    }

    /// Waits until the player has opened its source and has finished seeking.
    pub(crate) async fn player_settled(&self) {
        let settled = "document.querySelector('.player')?.getAttribute('aria-busy') === 'false' \
             && player.readyState >= 2 && !player.seeking";
        self.until("the player is ready", settled).await;
    }

    /// Pauses the player and reads its state.
    pub(crate) async fn look(&self) -> Shown {
        let script = r"
            const [columns, rows] = arguments;
            const media = document.getElementById('player');
            media.pause();
            const canvas = document.createElement('canvas');
            canvas.width = media.videoWidth;
            canvas.height = media.videoHeight;
            const context = canvas.getContext('2d');
            context.drawImage(media, 0, 0);
            const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
            const sums = new Array(columns * rows * 3).fill(0);
            const counts = new Array(columns * rows).fill(0);
            for (let y = 0; y < canvas.height; y += 1) {
                for (let x = 0; x < canvas.width; x += 1) {
                    const cell = Math.floor(y * rows / canvas.height) * columns + Math.floor(x * columns / canvas.width);
                    counts[cell] += 1;
                    for (let channel = 0; channel < 3; channel += 1) {
                        sums[cell * 3 + channel] += data[(y * canvas.width + x) * 4 + channel];
                    }
                }
            }
            return {
                element_seconds: media.currentTime, source: media.currentSrc,
                picture: sums.map((sum, index) => sum / counts[Math.floor(index / 3)]),
            };";
        let shown = self.client.execute(script, vec![films::COLUMNS.into(), films::ROWS.into()]).await;
        serde_json::from_value(shown.expect("a picture")).expect("a picture")
    }

    /// The page's text and log, for failure messages.
    pub(crate) async fn transcript(&self) -> String {
        let text =
            self.client.execute("return location.href + '\\n' + document.body.innerText", Vec::new()).await;
        text.ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Index of the frame on screen at `seconds`.
pub(crate) fn frame_at(frames: &[Frame], seconds: f64) -> usize {
    // The API rounds times down to the millisecond: a frame starts up to 1 ms after its stated time.
    frames
        .iter()
        .rposition(|frame| (frame.seconds * 1000.0 + 1e-6).floor() <= (seconds * 1000.0).round())
        .unwrap_or(0)
}
