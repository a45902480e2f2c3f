//! Readable names for the page's contents and actions.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::{Element, ElementRef};
use fantoccini::{Client, Locator};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::browser::DevTools;
use crate::films::{self, Frame};
use crate::host::Host;

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(40);

pub(crate) const ENTER: char = '\u{e007}';
pub(crate) const TAB: char = '\u{e004}';
pub(crate) const ESCAPE: char = '\u{e00c}';
pub(crate) const LEFT: char = '\u{e012}';
pub(crate) const RIGHT: char = '\u{e014}';
pub(crate) const DOWN: char = '\u{e015}';
pub(crate) const SHIFT: char = '\u{e008}';
pub(crate) const CONTROL: char = '\u{e009}';
pub(crate) const ALT: char = '\u{e00a}';

/// A browser tab with the page, and the server behind it.
pub(crate) struct Page {
    pub(crate) client: Client,
    pub(crate) host: Host,
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
    pub(crate) fn new(client: Client, host: Host) -> Page {
        Page { client, host }
    }

    /// Opens a path of the server, as if typed into the address bar.
    pub(crate) async fn open(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.host.base)).await.expect("the page opens");
    }

    /// Goes back in the history.
    pub(crate) async fn back(&self) {
        self.client.back().await.expect("back");
    }

    pub(crate) async fn find(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        found.unwrap_or_else(|error| panic!("{css} did not appear: {error}"))
    }

    /// Clicks the first element as soon as it can be clicked: the page may draw it anew meanwhile.
    pub(crate) async fn click(&self, css: &str) {
        self.click_what(css, &format!("document.querySelector({})", json!(css))).await;
    }

    /// Clicks the button, link, tab or menu entry in sight whose name begins with `name`.
    pub(crate) async fn choose(&self, name: &str) {
        let all = "[...(document.querySelector('dialog[open]') ?? document).querySelectorAll('button, a[href], [role=tab]'), \
            ...document.querySelectorAll('.menu button')]";
        let named = format!(
            "{all}.find((it) => it.checkVisibility() && !it.disabled && (it.getAttribute('aria-label') ?? it.textContent).trim().startsWith({}))",
            json!(name)
        );
        self.click_what(name, &named).await;
    }

    async fn click_what(&self, what: &str, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let refused = match element(&self.get(expression).await) {
                None => "it is not there".to_owned(),
                Some(it) => match Element::from_element_id(self.client.clone(), it).click().await {
                    Ok(()) => return,
                    Err(error) => error.to_string(),
                },
            };
            assert!(Instant::now() < deadline, "{what} can't be clicked: {refused}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Types into the first element that matches.
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

    /// Presses a key while another one is held.
    pub(crate) async fn press_with(&self, held: char, value: char) {
        let actions = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value: held })
            .then(KeyAction::Down { value })
            .then(KeyAction::Up { value })
            .then(KeyAction::Up { value: held });
        self.client.perform_actions(actions).await.expect("keys are pressed");
    }

    /// Types a text at the focus, key by key.
    pub(crate) async fn type_keys(&self, text: &str) {
        self.press(&text.chars().collect::<Vec<_>>()).await;
    }

    /// The value of a JavaScript expression.
    pub(crate) async fn get(&self, expression: &str) -> Value {
        let value = self.client.execute(&format!("return {expression}"), Vec::new()).await;
        value.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Runs JavaScript with an argument.
    pub(crate) async fn run(&self, script: &str, argument: Value) -> Value {
        let value = self.client.execute(script, vec![argument]).await;
        value.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    pub(crate) async fn text(&self, expression: &str) -> String {
        self.get(expression).await.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn number(&self, expression: &str) -> f64 {
        self.get(expression).await.as_f64().unwrap_or(f64::NAN)
    }

    pub(crate) async fn holds(&self, expression: &str) -> bool {
        self.get(&format!("Boolean({expression})")).await == Value::Bool(true)
    }

    /// How many elements match.
    pub(crate) async fn count(&self, css: &str) -> usize {
        self.number(&format!("document.querySelectorAll({}).length", json!(css))).await as usize
    }

    /// Waits until a JavaScript expression is true. The failure message contains `what`.
    pub(crate) async fn until(&self, what: &str, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.holds(expression).await {
            assert!(Instant::now() < deadline, "{what}: never happened");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until so many elements match.
    pub(crate) async fn until_count(&self, css: &str, count: usize) {
        let expression = format!("document.querySelectorAll({}).length === {count}", json!(css));
        self.until(&format!("{count} of {css}"), &expression).await;
    }

    /// Waits until the page shows a text anywhere.
    pub(crate) async fn until_says(&self, text: &str) {
        let expression = format!("document.body.innerText.includes({})", json!(text));
        self.until(&format!("the page says “{text}”"), &expression).await;
    }

    /// Waits until the message at the bottom contains a text.
    pub(crate) async fn until_message(&self, text: &str) {
        let expression =
            format!("(({{ hidden, innerText }}) => !hidden && innerText.includes({}))(toast)", json!(text));
        self.until(&format!("the message “{text}”"), &expression).await;
    }

    /// Waits until path and parameters of the address contain a text.
    pub(crate) async fn until_address(&self, text: &str) {
        let expression = format!("(location.pathname + location.search).includes({})", json!(text));
        self.until(&format!("{text} in the address"), &expression).await;
    }

    /// Waits for the screen with this heading.
    pub(crate) async fn until_heading(&self, heading: &str) {
        let expression = format!("document.querySelector('main h1')?.textContent === {}", json!(heading));
        self.until(&format!("the heading “{heading}”"), &expression).await;
    }

    /// Drops files on the page, as from the desktop.
    pub(crate) async fn drop_files(&self, files: &[&Path]) {
        let input = "const input = document.createElement('input');
            input.type = 'file'; input.multiple = true; input.id = 'dropped';
            document.body.append(input)";
        self.run(input, Value::Null).await;
        self.type_into("#dropped", &paths(files)).await;
        let drop = "const input = document.getElementById('dropped');
            const transfer = new DataTransfer();
            for (const file of input.files) transfer.items.add(file);
            input.remove();
            const event = (name) => new DragEvent(name, { dataTransfer: transfer, bubbles: true, cancelable: true });
            document.body.dispatchEvent(event('dragover'));
            document.body.dispatchEvent(event('drop'))";
        self.run(drop, Value::Null).await;
    }

    /// Chooses files in a hidden file field.
    pub(crate) async fn choose_files(&self, css: &str, files: &[&Path]) {
        self.type_into(css, &paths(files)).await;
    }

    /// Waits until so many uploads are done, and no other one is under way.
    pub(crate) async fn until_added(&self, count: usize) {
        let expression = format!(
            "(() => {{ const states = [...document.querySelectorAll('.tray .up[data-state]')].map((it) => it.dataset.state);
                return states.length === {count} && states.every((state) => state === 'done'); }})()"
        );
        self.until(&format!("{count} uploads are done"), &expression).await;
    }

    /// Waits for results.
    pub(crate) async fn until_results(&self) {
        self.until("results", "document.querySelector('.results:not(.stale) .card[data-place]')").await;
    }

    /// Waits until the player has opened its source and has finished seeking.
    pub(crate) async fn player_settled(&self) {
        let settled = "document.querySelector('.screen')?.getAttribute('aria-busy') === 'false' \
             && player.readyState >= 2 && !player.seeking";
        self.until("the player is ready", settled).await;
    }

    /// Pauses the player and reads its state.
    pub(crate) async fn look(&self) -> Shown {
        self.look_at("#player").await
    }

    /// Pauses a media element and reads its state.
    pub(crate) async fn look_at(&self, css: &str) -> Shown {
        let script = r"
            const [[css, columns, rows]] = arguments;
            const media = document.querySelector(css);
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
        let shown = self.run(script, json!([css, films::COLUMNS, films::ROWS])).await;
        serde_json::from_value(shown).expect("a picture")
    }

    /// A command of Chromium's own protocol.
    pub(crate) async fn tell_browser(&self, name: &'static str, parameters: Value) {
        let command = DevTools { name, parameters };
        self.client.issue_cmd(command).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Makes the browser answer media queries as these: `("prefers-color-scheme", "dark")`.
    pub(crate) async fn prefer(&self, features: &[(&str, &str)]) {
        let features: Vec<_> =
            features.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        self.tell_browser("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }

    /// Runs a script in every document that is opened from now on, before its own scripts.
    pub(crate) async fn run_at_start(&self, script: &str) {
        self.tell_browser("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).await;
    }

    /// Keeps a picture of the window, in the folder `REPRISE_TEST_PICTURES` or `target/pictures`.
    pub(crate) async fn picture(&self, name: &str) {
        let folder = pictures();
        let Ok(picture) = self.client.screenshot().await else { return };
        std::fs::create_dir_all(&folder).expect("a folder for pictures");
        std::fs::write(folder.join(format!("{name}.png")), picture).expect("a picture can be written");
    }

    /// The page's address and text, for failure messages.
    pub(crate) async fn transcript(&self) -> String {
        let script = "return location.href + '\\n' + document.activeElement.outerHTML.slice(0, 200) + '\\n' + document.body.innerText";
        let text = self.client.execute(script, Vec::new()).await;
        text.ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Keeps what the page copies in `copied`: a test must not depend on the machine's clipboard.
pub(crate) const KEEP_COPIES: &str =
    "window.copied = ''; navigator.clipboard.writeText = async (text) => { window.copied = text; }";

/// Paths as a file field takes them from the driver.
fn paths(files: &[&Path]) -> String {
    let paths: Vec<_> = files.iter().map(|file| file.to_str().expect("a readable path")).collect();
    paths.join("\n")
}

fn pictures() -> PathBuf {
    let beside = || Some(std::env::current_exe().ok()?.ancestors().nth(3)?.join("pictures"));
    let named = std::env::var_os("REPRISE_TEST_PICTURES").map(PathBuf::from);
    named.or_else(beside).expect("a test has a path")
}

/// The element that a script returned.
fn element(value: &Value) -> Option<ElementRef> {
    Some(value.as_object()?.values().next()?.as_str()?.to_owned().into())
}

/// Index of the frame on screen at `seconds`.
pub(crate) fn frame_at(frames: &[Frame], seconds: f64) -> usize {
    // The API rounds times down to the millisecond: a frame starts up to 1 ms after its stated time.
    frames
        .iter()
        .rposition(|frame| (frame.seconds * 1000.0 + 1e-6).floor() <= (seconds * 1000.0).round())
        .unwrap_or(0)
}
