//! Chat templates: the folder's own (Jinja), else ChatML as all three models were trained with.

use std::io::{self, Write};

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, context};
use serde::Serialize;
use serde_json::Value;

use super::config::Generation;
use super::grid::VisualKind;
use super::prompt::placeholder;
use crate::generator::Role;
use crate::loading::ModelFiles;
use crate::{EncodeError, LoadError};

/// Files that may hold the template, the preferred first.
pub(super) const FILES: [&str; 3] = ["chat_template.jinja", "chat_template.json", "tokenizer_config.json"];

/// Steps that a template may take; those of the published ones take some hundred a message.
const MOST_STEPS: u64 = 1_000_000;
/// Longest prompt in bytes: some millions of tokens, more than a model reads.
const MOST_BYTES: usize = 16 << 20;

/// The system message of Qwen2-VL and Qwen2.5-VL where a conversation has none.
const SYSTEM: &str = "You are a helpful assistant.";

/// How messages become one prompt.
#[derive(Debug, Clone)]
pub(super) struct ChatTemplate {
    /// The folder's template; `None`: ChatML.
    source: Option<String>,
    generation: Generation,
}

/// A message without pixels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    pub(super) role: Role,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Visual(VisualKind),
}

impl Turn {
    pub(super) fn text(role: Role, text: &str) -> Turn {
        Turn { role, pieces: vec![Piece::Text(text.to_owned())] }
    }
}

/// A message in the form of transformers' templates.
#[derive(Serialize)]
struct TemplateMessage<'a> {
    role: Role,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Pieces(Vec<TemplatePiece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TemplatePiece<'a> {
    Text { text: &'a str },
    Image,
    Video,
}

impl ChatTemplate {
    /// ChatML.
    pub(super) fn plain(generation: Generation) -> ChatTemplate {
        ChatTemplate { source: None, generation }
    }

    /// The template of a model's folder.
    ///
    /// # Errors
    /// [`LoadError::BadFile`] for files that can't be read and templates that can't be parsed.
    pub(super) fn of(model: &ModelFiles, generation: Generation) -> Result<ChatTemplate, LoadError> {
        for file in FILES.into_iter().filter(|file| model.has(file)) {
            let bytes = model.read(file)?;
            let source = match file.ends_with(".jinja") {
                true => Some(String::from_utf8(bytes).map_err(|error| model.bad(file, error))?),
                false => in_json(&serde_json::from_slice(&bytes).map_err(|error| model.bad(file, error))?),
            };
            let Some(source) = source else { continue };
            environment().add_template("chat", &source).map_err(|error| model.bad(file, error))?;
            return Ok(ChatTemplate { source: Some(source), generation });
        }
        Ok(ChatTemplate::plain(generation))
    }

    /// The prompt of a conversation, up to where the model begins to answer.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] if the template refuses the conversation or fails.
    pub(super) fn render(&self, turns: &[Turn]) -> Result<String, EncodeError> {
        let Some(source) = &self.source else { return Ok(self.chat_ml(turns)) };
        let messages: Vec<TemplateMessage<'_>> = turns.iter().map(TemplateMessage::of).collect();
        let mut environment = environment();
        let bad = |error: Error| EncodeError::BadInput(error.into());
        environment.add_template("chat", source).map_err(bad)?;
        let template = environment.get_template("chat").map_err(bad)?;
        let mut prompt = Prompt::default();
        template
            .render_captured_to(context! { messages, add_generation_prompt => true }, &mut prompt)
            .map_err(bad)?;
        String::from_utf8(prompt.0).map_err(|error| EncodeError::BadInput(error.into()))
    }

    fn chat_ml(&self, turns: &[Turn]) -> String {
        let mut prompt = String::new();
        let has_system = turns.first().is_some_and(|turn| turn.role == Role::System);
        if !has_system && self.generation != Generation::Three {
            prompt.push_str(&format!("<|im_start|>system\n{SYSTEM}<|im_end|>\n"));
        }
        for turn in turns {
            let role = match turn.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            let pieces: String = turn.pieces.iter().map(Piece::in_prompt).collect();
            prompt.push_str(&format!("<|im_start|>{role}\n{pieces}<|im_end|>\n"));
        }
        prompt + "<|im_start|>assistant\n"
    }
}

/// A prompt as it grows, up to [`MOST_BYTES`].
#[derive(Default)]
struct Prompt(Vec<u8>);

impl Write for Prompt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::Error::other(format!("the prompt is longer than {MOST_BYTES} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Piece {
    fn in_prompt(&self) -> String {
        match self {
            Piece::Text(text) => text.clone(),
            Piece::Visual(kind) => placeholder(*kind),
        }
    }
}

impl TemplateMessage<'_> {
    fn of(turn: &Turn) -> TemplateMessage<'_> {
        // Some templates take texts alone.
        let content = match &turn.pieces[..] {
            [Piece::Text(text)] => Content::Text(text),
            pieces => Content::Pieces(pieces.iter().map(TemplatePiece::of).collect()),
        };
        TemplateMessage { role: turn.role, content }
    }
}

impl TemplatePiece<'_> {
    fn of(piece: &Piece) -> TemplatePiece<'_> {
        match piece {
            Piece::Text(text) => TemplatePiece::Text { text },
            Piece::Visual(VisualKind::Picture) => TemplatePiece::Image,
            Piece::Visual(VisualKind::Video) => TemplatePiece::Video,
        }
    }
}

/// transformers' settings for templates.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(MOST_STEPS));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |why: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, why))
    });
    environment
}

/// `chat_template` of a JSON file: a text, or texts by name.
fn in_json(file: &Value) -> Option<String> {
    match &file["chat_template"] {
        Value::String(source) => Some(source.clone()),
        Value::Array(named) => {
            let default = named.iter().find(|one| one["name"] == "default")?;
            default["template"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    const PARTS: [&str; 22] = [
        "{% for message in messages %}",
        "{% endfor %}",
        "{{ message.content }}",
        "{{ message['role'] | upper }}",
        "{% if loop.first %}",
        "{% else %}",
        "{% endif %}",
        "{% set x = namespace(value=0) %}",
        "{{ x.value }}",
        "{% set x.value = x.value + 1 %}",
        "{{ messages[0].content[-9] }}",
        "{{ messages | length // 0 }}",
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "|",
        "é\u{0}",
        "{{ 'a' * 99 }}",
        "{{ raise_exception(x) }}",
        "{% macro m(a) %}{{ m(a) }}{% endmacro %}{{ m(1) }}",
    ];

    /// Qwen2-VL's published template.
    const QWEN2_VL: &str = "{% set image_count = namespace(value=0) %}{% set video_count = namespace(value=0) %}\
        {% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system\n\
        You are a helpful assistant.<|im_end|>\n{% endif %}<|im_start|>{{ message['role'] }}\n\
        {% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n{% else %}\
        {% for content in message['content'] %}{% if content['type'] == 'image' or 'image' in content or \
        'image_url' in content %}{% set image_count.value = image_count.value + 1 %}{% if add_vision_id %}\
        Picture {{ image_count.value }}: {% endif %}<|vision_start|><|image_pad|><|vision_end|>\
        {% elif content['type'] == 'video' or 'video' in content %}\
        {% set video_count.value = video_count.value + 1 %}{% if add_vision_id %}Video \
        {{ video_count.value }}: {% endif %}<|vision_start|><|video_pad|><|vision_end|>\
        {% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endif %}\
        {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

    fn turns() -> Vec<Turn> {
        let visual = |kind| Piece::Visual(kind);
        let pieces =
            vec![visual(VisualKind::Picture), visual(VisualKind::Video), Piece::Text("what?".to_owned())];
        vec![Turn { role: Role::User, pieces }]
    }

    #[test]
    fn the_published_template_and_ours_say_the_same() {
        let ours = ChatTemplate::plain(Generation::Two);
        let published = ChatTemplate { source: Some(QWEN2_VL.to_owned()), ..ours.clone() };
        let prompt = ours.render(&turns()).unwrap();
        assert_eq!(prompt, published.render(&turns()).unwrap());
        assert!(prompt.starts_with("<|im_start|>system\nYou are") && prompt.ends_with("assistant\n"));
        let with_system = [vec![Turn::text(Role::System, "be brief")], turns()].concat();
        let prompt = ours.render(&with_system).unwrap();
        assert_eq!(prompt, published.render(&with_system).unwrap());
        assert!(
            prompt.starts_with("<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\n<|vision_start|>")
        );
        assert!(
            ChatTemplate::plain(Generation::Three).render(&turns()).unwrap().starts_with("<|im_start|>user")
        );
    }

    #[test]
    fn a_template_that_fails_or_never_ends_is_an_error() {
        let check = |source: &str| {
            let template = ChatTemplate { source: Some(source.to_owned()), generation: Generation::Two };
            assert!(matches!(template.render(&turns()), Err(EncodeError::BadInput(_))), "{source}");
        };
        check("{{ raise_exception('no') }}");
        check("{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}");
        check("{% if %}");
        check("{{ messages.missing() }}");
        // Few steps, much text.
        check(&format!("{{% for a in range(9999) %}}{}{{% endfor %}}", "x".repeat(4096)));
    }

    proptest! {
        /// Pieces of templates in any order are refused or give a bounded prompt.
        #[test]
        fn any_template_is_refused_or_renders(parts in vec(select(PARTS.to_vec()), 0..24)) {
            let template = ChatTemplate { source: Some(parts.concat()), generation: Generation::Two };
            match template.render(&turns()) {
                Ok(prompt) => prop_assert!(prompt.len() <= MOST_BYTES),
                Err(error) => prop_assert!(matches!(error, EncodeError::BadInput(_)), "{error}"),
            }
        }
    }

    #[test]
    fn a_json_file_holds_one_template_or_several_by_name() {
        let check = |json: &str, expected: Option<&str>| {
            assert_eq!(in_json(&serde_json::from_str(json).unwrap()).as_deref(), expected);
        };
        check(r#"{"chat_template": "a"}"#, Some("a"));
        check(
            r#"{"chat_template": [{"name": "tool", "template": "b"}, {"name": "default", "template": "a"}]}"#,
            Some("a"),
        );
        check("{}", None);
    }
}
