//! Modification texts between two labels: from templates, or from a language model behind an OpenAI-compatible endpoint
//! with a prompt like the paper's.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::CovrError;
use super::label::{Label, word_difference};
use super::pairs::Change;
use crate::synth::draw::Draw;
use reprise_encoders::Cause;

/// Most words of a text: TF-CoVR's text normaliser keeps no more.
const LONGEST: usize = 30;

const CARRIERS: [&str; 8] = [
    "show {}",
    "show it {}",
    "the same but {}",
    "change it to {}",
    "find one {}",
    "now {}",
    "i want it {}",
    "this again, {}",
];

/// A text from a template, with the words of the target that the query lacks.
pub fn from_template(query: &Label, target: &Label, change: Change, draw: &mut Draw) -> String {
    let difference = word_difference(&query.action, &target.action);
    let what = match change {
        Change::Event => format!("on {}", target.event_name()),
        Change::Temporal if difference.added.is_empty() => {
            format!("without {}", difference.removed.trim_start_matches("with "))
        }
        Change::Temporal => match difference.added.split(' ').next() {
            Some("with" | "without" | "on" | "in" | "off" | "to") => difference.added,
            _ => format!("with {}", with_noun(&difference.added, &target.action)),
        },
    };
    let text = draw.pick(&CARRIERS).replace("{}", &what);
    text.split_whitespace().take(LONGEST).collect::<Vec<_>>().join(" ")
}

/// Adds the following noun to a bare number.
fn with_noun(added: &str, action: &str) -> String {
    let counted = added.parse::<f64>().ok().and_then(|_| {
        let mut words = action.split_whitespace();
        words.find(|it| *it == added).and_then(|_| words.next())
    });
    counted.map_or_else(|| added.to_owned(), |noun| format!("{added} {}", noun.trim_end_matches(',')))
}

/// A language model that writes modification texts.
#[derive(Debug, Clone)]
pub struct Writer {
    http: reqwest::Client,
    endpoint: String,
    model: String,
    api_key: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: String,
}

/// Attempts per pair at the endpoint.
const ATTEMPTS: usize = 3;

impl Writer {
    /// `endpoint` is the base address, `https://host/v1`.
    ///
    /// # Errors
    /// The HTTP client cannot be created.
    #[expect(clippy::disallowed_methods, reason = "the provider is installed here")]
    pub fn new(endpoint: &str, model: &str, api_key: Option<String>) -> Result<Writer, CovrError> {
        // Fails only if a provider exists already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(60))
            .build()
            .map_err(|error| CovrError::Endpoint(error.into()))?;
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        Ok(Writer { http, endpoint, model: model.to_owned(), api_key })
    }

    /// Writes the text from `query` to `target`.
    ///
    /// # Errors
    /// The endpoint is unreachable, refuses, or writes no usable text in three attempts.
    pub async fn write(&self, query: &Label, target: &Label) -> Result<String, CovrError> {
        let mut last = Cause::from("it was not asked");
        for _ in 0..ATTEMPTS {
            match self.ask(query, target).await {
                Ok(text) => match usable(&text) {
                    Some(text) => return Ok(text),
                    None => last = format!("{text:?} is empty or longer than {LONGEST} words").into(),
                },
                Err(error) => last = error,
            }
        }
        let pair = format!("{:?} to {:?}", query.text, target.text);
        Err(CovrError::Endpoint(Cause::in_context(pair, last)))
    }

    async fn ask(&self, query: &Label, target: &Label) -> Result<String, Cause> {
        let body = json!({
            "model": self.model,
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": prompt(query, target)},
            ],
            "max_tokens": 60,
        });
        let mut request = self.http.post(format!("{}/chat/completions", self.endpoint)).json(&body);
        if let Some(key) = &self.api_key {
            request = request.bearer_auth(key);
        }
        let answer = request.send().await.and_then(reqwest::Response::error_for_status);
        // The address may contain a key, which the error's own text would repeat.
        let answer = answer.map_err(reqwest::Error::without_url)?;
        let answer: Answer = answer.json().await.map_err(reqwest::Error::without_url)?;
        let first = answer.choices.into_iter().next();
        first.map(|it| it.message.content).ok_or_else(|| "the answer holds no choice".into())
    }
}

const SYSTEM: &str = "You write short instructions for video search. Given what a query video shows and what \
the wanted video shows, you write one instruction that turns the first into the second. Name only what \
changes. At most 19 words, no quotation marks, no explanation.";

/// Few-shot examples of both kinds of change, for length and tone.
const EXAMPLES: [(&str, &str, &str); 4] = [
    (
        "(FX) salto forward stretched with 1 twist",
        "(FX) salto forward stretched with 2 twist",
        "show with 2 twists",
    ),
    ("(UB) giant circle backward", "(UB) giant circle backward with 0.5 turn", "add half a turn"),
    ("(FX) salto backward tucked", "(BB) salto backward tucked", "show this on the balance beam"),
    ("Forward, 1.5 Soms.Pike, Entry", "Inward, 1.5 Soms.Pike, Entry", "show as an inward dive"),
];

fn prompt(query: &Label, target: &Label) -> String {
    let line =
        |query: &str, target: &str| format!("Query video: {query}\nWanted video: {target}\nInstruction:");
    let mut prompt = String::new();
    for (query, target, text) in EXAMPLES {
        prompt.push_str(&format!("{} {text}\n\n", line(query, target)));
    }
    prompt + &line(&query.text, &target.text)
}

/// The first line without quotation marks, if it is usable.
fn usable(text: &str) -> Option<String> {
    let line = text.trim().lines().next()?.trim();
    let line =
        line.strip_prefix("Instruction:").unwrap_or(line).trim().trim_matches(['"', '\'', '“', '”']).trim();
    (1..=LONGEST).contains(&line.split_whitespace().count()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::draw::Purpose;

    #[track_caller]
    fn check(query: &str, target: &str, change: Change, expected: &str) {
        let mut draw = Draw::new(1, 0, Purpose::Modification, 0);
        let text = from_template(&Label::new(query), &Label::new(target), change, &mut draw);
        assert!(text.ends_with(expected), "{text:?}");
    }

    #[test]
    fn templates_name_what_changes() {
        check("(FX) salto tucked", "(FX) salto piked", Change::Temporal, "with piked");
        check("(FX) leap", "(FX) leap with 1 turn", Change::Temporal, "with 1 turn");
        check("(FX) leap with 1 turn", "(FX) leap", Change::Temporal, "without 1 turn");
        check("(BB) 1 turn on one leg", "(BB) 2 turn on one leg", Change::Temporal, "with 2 turn");
        check("(FX) salto", "(BB) salto", Change::Event, "on balance beam");
    }

    #[test]
    fn only_short_answers_are_used() {
        let cases = [
            ("\"show with 2 turns\"", Some("show with 2 turns")),
            ("Instruction: add a turn\nBecause ...", Some("add a turn")),
            ("  ", None),
            (&"word ".repeat(31), None),
        ];
        for (text, expected) in cases {
            assert_eq!(usable(text).as_deref(), expected);
        }
    }

    #[test]
    fn the_prompt_ends_where_the_model_goes_on() {
        let prompt = prompt(&Label::new("(FX) a"), &Label::new("(FX) b"));
        assert!(prompt.ends_with("Query video: (FX) a\nWanted video: (FX) b\nInstruction:"));
    }
}
