//! Modification texts from a language model behind an OpenAI-compatible endpoint, with a prompt like the paper's and a
//! check of each answer.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::CovrError;
use super::check::fault;
use super::label::Label;
use super::modification::Difference;
use reprise_encoders::Cause;

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

/// An answer that the check refused.
#[derive(Debug, Clone)]
struct Refused {
    text: String,
    why: String,
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

    /// Writes the text from `query` to `target`. `None` if each of three answers names too little or too much; the next
    /// request says why.
    ///
    /// # Errors
    /// The endpoint is unreachable or refuses in all three attempts.
    pub async fn write(&self, query: &Label, target: &Label) -> Result<Option<String>, CovrError> {
        let mut failed = None;
        let mut refused = None;
        for _ in 0..ATTEMPTS {
            match self.ask(&prompt(query, target, refused.as_ref())).await {
                Ok(answer) => {
                    let text = first_line(&answer);
                    match fault(&text, query, target) {
                        None => return Ok(Some(text)),
                        Some(why) => refused = Some(Refused { text, why }),
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        match (refused, failed) {
            (None, Some(error)) => {
                let pair = format!("{:?} to {:?}", query.text, target.text);
                Err(CovrError::Endpoint(Cause::in_context(pair, error)))
            }
            (Some(Refused { text, why }), _) => {
                tracing::debug!(
                    query = query.text,
                    target = target.text,
                    text,
                    why,
                    "refused a modification"
                );
                Ok(None)
            }
            (None, None) => Ok(None),
        }
    }

    async fn ask(&self, prompt: &str) -> Result<String, Cause> {
        let body = json!({
            "model": self.model,
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": prompt},
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
the wanted video shows, you write one instruction that turns the first into the second, as a coach would say it. Name \
all that changes and nothing else. At most 19 words, no quotation marks, no explanation.";

/// One of the prompt's examples.
struct Example {
    query: &'static str,
    target: &'static str,
    change: &'static str,
    text: &'static str,
}

/// Few-shot examples of each kind of change, for length and tone.
const EXAMPLES: [Example; 6] = [
    Example {
        query: "(FX) salto forward stretched with 1 twist",
        target: "(FX) salto forward stretched with 2 twist",
        change: "with two twists",
        text: "show it with two twists instead of one",
    },
    Example {
        query: "(UB) giant circle backward",
        target: "(UB) giant circle backward with 0.5 turn to handstand",
        change: "with half a turn and to handstand",
        text: "add half a turn to handstand",
    },
    Example {
        query: "(FX) switch leap with 1 turn",
        target: "(FX) switch leap",
        change: "without the turn",
        text: "drop the turn",
    },
    Example {
        query: "(FX) switch leap with 1 turn",
        target: "(FX) salto backward tucked",
        change: "a salto backward tucked",
        text: "do a tucked salto backward instead",
    },
    Example {
        query: "(FX) salto backward tucked",
        target: "(BB) salto backward tucked",
        change: "on balance beam",
        text: "show this on the balance beam",
    },
    Example {
        query: "Forward, 1.5 Soms.Pike, Entry",
        target: "Inward, 1.5 Soms.Pike, Entry",
        change: "as an inward dive",
        text: "make it an inward dive",
    },
];

fn prompt(query: &Label, target: &Label, refused: Option<&Refused>) -> String {
    let line = |query: &str, target: &str, change: &str| {
        format!("Query video: {query}\nWanted video: {target}\nWhat changes: {change}\nInstruction:")
    };
    let mut prompt = String::new();
    for Example { query, target, change, text } in EXAMPLES {
        prompt.push_str(&format!("{} {text}\n\n", line(query, target, change)));
    }
    if let Some(Refused { text, why }) = refused {
        prompt.push_str(&format!("Not {text:?}: {why}.\n\n"));
    }
    prompt + &line(&query.text, &target.text, &Difference::between(query, target).said())
}

/// The first line, without quotation marks.
fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    let line = line.strip_prefix("Instruction:").unwrap_or(line).trim();
    line.trim_matches(['"', '\'', '“', '”']).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::grammar::built_in;
    use super::*;

    #[track_caller]
    fn check(answer: &str, expected: &str) {
        assert_eq!(first_line(answer), expected);
    }

    #[test]
    fn an_answer_is_its_first_line() {
        check("\"show with 2 turns\"", "show with 2 turns");
        check("Instruction: add a turn\nBecause ...", "add a turn");
        check("  ", "");
    }

    #[test]
    fn the_prompt_ends_where_the_model_goes_on() {
        let grammars = built_in().unwrap();
        let [query, target] =
            ["(FX) salto forward tucked", "(FX) salto forward piked"].map(|it| Label::new(it, &grammars));
        let refused = Refused { text: "show it".to_owned(), why: "it does not say \"piked\"".to_owned() };
        let prompt = prompt(&query, &target, Some(&refused));
        let end = "Query video: (FX) salto forward tucked\nWanted video: (FX) salto forward piked\nWhat changes: piked\nInstruction:";
        assert!(prompt.ends_with(end), "{prompt}");
        assert!(prompt.contains("Not \"show it\": it does not say"), "{prompt}");
    }

    #[test]
    fn the_examples_pass_the_check() {
        let grammars = built_in().unwrap();
        for Example { query, target, change, text } in EXAMPLES {
            let [query, target] = [query, target].map(|it| Label::new(it, &grammars));
            assert_eq!(fault(text, &query, &target), None, "{text:?}");
            assert_eq!(Difference::between(&query, &target).said(), change);
        }
    }
}
