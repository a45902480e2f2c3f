//! What the query log keeps of a query: all of it, or hashes that nobody can look up without the library's secret.

use clap::ValueEnum;
use hmac::digest::Key;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use uuid::Uuid;

use crate::catalog::{LONGEST_LOGGED_TEXT, LoggedExample, LoggedExamples, LoggedQuery, Secret};
use crate::terms::SearchKind;

/// Longest filter that the log keeps with its values, in bytes of JSON.
const LONGEST_FILTER: usize = 16 << 10;
/// Hex digits of a hash: 128 bits.
const HASH_DIGITS: usize = 32;
/// Names of a filter's values. `exists` stays: it tells nothing about a value.
const VALUES: [&str; 6] = ["eq", "in", "lt", "lte", "gt", "gte"];

/// What the query log keeps of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum QueryLogMode {
    /// Texts, clips, times and filters
    #[default]
    Full,
    /// A keyed hash of each query, and filters without their values
    Hashed,
    /// Nothing: searches are not logged
    Off,
}

/// A query as it was sent.
#[derive(Debug, Clone, Default)]
pub struct AskedQuery<'a> {
    /// Its text, or the change to a clip.
    pub text: Option<&'a str>,
    /// The stored clip.
    pub clip: Option<Uuid>,
    /// The stored video.
    pub video: Option<Uuid>,
    /// First millisecond in the video or upload, inclusive.
    pub start_ms: Option<i64>,
    /// Millisecond after the last.
    pub end_ms: Option<i64>,
    /// SHA-256 of the uploaded file.
    pub upload: Option<&'a str>,
    /// Several examples.
    pub examples: Option<AskedExamples<'a>>,
    /// The filter.
    pub filter: Option<&'a Value>,
}

/// Examples as they were sent. None of them has a filter, or examples of its own.
#[derive(Debug, Clone, Default)]
pub struct AskedExamples<'a> {
    /// Those to be like.
    pub like: Vec<AskedQuery<'a>>,
    /// Those not to be like.
    pub unlike: Vec<AskedQuery<'a>>,
}

/// Turns queries into what the log keeps of them.
#[derive(Debug, Clone)]
pub(super) struct QueryKeeper {
    mode: QueryLogMode,
    secret: Secret,
}

impl QueryKeeper {
    pub(super) fn new(mode: QueryLogMode, secret: Secret) -> QueryKeeper {
        QueryKeeper { mode, secret }
    }

    /// What the log keeps of a query. Of a clip that was hashed not even the times are kept.
    pub(super) fn keep(&self, kind: SearchKind, asked: &AskedQuery<'_>) -> LoggedQuery {
        let hashed = LoggedQuery {
            hash: self.hash(kind, asked),
            uploaded: asked.upload.is_some(),
            filter: asked.filter.map(without_values),
            filtered: asked.filter.is_some(),
            ..LoggedQuery::default()
        };
        if self.mode != QueryLogMode::Full {
            return hashed;
        }
        let is_short = |filter: &&Value| filter.to_string().len() <= LONGEST_FILTER;
        LoggedQuery {
            text: asked.text.map(|text| storable(text, LONGEST_LOGGED_TEXT)),
            clip: asked.clip,
            video: asked.video,
            start_ms: asked.start_ms,
            end_ms: asked.end_ms,
            examples: asked.examples.as_ref().map(kept_examples),
            filter: asked.filter.filter(is_short).cloned().or(hashed.filter),
            ..hashed
        }
    }

    /// HMAC-SHA256 with a secret of the library, so that a list of common queries finds none. Case and white space of the text
    /// do not count.
    fn hash(&self, kind: SearchKind, asked: &AskedQuery<'_>) -> String {
        let mut query = vec![json!(kind.name())];
        query.extend(parts(asked));
        query.extend(asked.examples.as_ref().map(|examples| {
            let side = |side: &[AskedQuery<'_>]| side.iter().map(parts).collect::<Vec<_>>();
            json!([side(&examples.like), side(&examples.unlike)])
        }));
        let query = Value::from(query);
        let mut key = Key::<Hmac<Sha256>>::default();
        key[..self.secret.bytes().len()].copy_from_slice(self.secret.bytes());
        let bytes = Hmac::<Sha256>::new(&key).chain_update(query.to_string()).finalize().into_bytes();
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        digits[..HASH_DIGITS].to_owned()
    }
}

/// What makes two queries of a kind equal, beside their examples.
fn parts(asked: &AskedQuery<'_>) -> [Value; 6] {
    let text = asked.text.map(plain);
    let AskedQuery { clip, video, start_ms, end_ms, upload, .. } = asked;
    [json!(text), json!(clip), json!(video), json!(start_ms), json!(end_ms), json!(upload)]
}

fn kept_examples(asked: &AskedExamples<'_>) -> LoggedExamples {
    // Together they are no longer than one text may be.
    let most = LONGEST_LOGGED_TEXT / (asked.like.len() + asked.unlike.len()).max(1);
    let one = |example: &AskedQuery<'_>| LoggedExample {
        text: example.text.map(|text| storable(text, most)),
        clip: example.clip,
        video: example.video,
        start_ms: example.start_ms,
        end_ms: example.end_ms,
        uploaded: example.upload.is_some(),
    };
    let side = |side: &[AskedQuery<'_>]| side.iter().map(one).collect();
    LoggedExamples { like: side(&asked.like), unlike: side(&asked.unlike) }
}

/// A text without what does not count: case and white space.
pub fn plain(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

/// The text's first `most` characters, without what no database can store.
fn storable(text: &str, most: usize) -> String {
    text.chars().take(most).map(|it| if it == '\0' { char::REPLACEMENT_CHARACTER } else { it }).collect()
}

/// The filter's fields and operators, with null for each value.
fn without_values(filter: &Value) -> Value {
    match filter {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| {
                let value = if VALUES.contains(&name.as_str()) { Value::Null } else { without_values(value) };
                (name.clone(), value)
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(without_values).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper(mode: QueryLogMode) -> QueryKeeper {
        QueryKeeper::new(mode, Secret::from([7; 32]))
    }

    fn of_text(text: &str) -> AskedQuery<'_> {
        AskedQuery { text: Some(text), ..AskedQuery::default() }
    }

    fn hash(asked: &AskedQuery<'_>) -> String {
        keeper(QueryLogMode::Hashed).keep(SearchKind::Text, asked).hash
    }

    #[track_caller]
    fn check(filter: Value, expected: Value) {
        let asked = AskedQuery { filter: Some(&filter), ..AskedQuery::default() };
        assert_eq!(keeper(QueryLogMode::Hashed).keep(SearchKind::Text, &asked).filter, Some(expected));
        assert_eq!(keeper(QueryLogMode::Full).keep(SearchKind::Text, &asked).filter, Some(filter));
    }

    #[test]
    fn a_hashed_query_tells_nothing_but_that_two_are_equal() {
        let asked = AskedQuery {
            clip: Some(Uuid::from_u128(1)),
            video: Some(Uuid::from_u128(2)),
            start_ms: Some(3),
            end_ms: Some(4),
            ..of_text("a dive")
        };
        let kept = keeper(QueryLogMode::Hashed).keep(SearchKind::Composed, &asked);
        let nothing = LoggedQuery { hash: kept.hash.clone(), ..LoggedQuery::default() };
        assert_eq!(kept, nothing);
        assert_eq!(kept.hash.len(), HASH_DIGITS);
        assert_eq!(hash(&of_text("A  dive\n")), hash(&of_text("a dive")));
        assert_ne!(hash(&of_text("a dive")), hash(&of_text("a dove")));
        assert_ne!(hash(&asked), hash(&AskedQuery { start_ms: Some(5), ..asked.clone() }));
    }

    #[test]
    fn examples_are_kept_or_hashed() {
        let asked = |like: &'static str, unlike: &'static str| {
            let examples = AskedExamples { like: vec![of_text(like)], unlike: vec![of_text(unlike)] };
            AskedQuery { examples: Some(examples), ..AskedQuery::default() }
        };
        assert_eq!(hash(&asked("A  dive", "a fall")), hash(&asked("a dive", "a fall")));
        assert_ne!(hash(&asked("a dive", "a fall")), hash(&asked("a fall", "a dive")));
        let keep = |mode| keeper(mode).keep(SearchKind::Examples, &asked("A  dive", "a fall")).examples;
        assert_eq!(keep(QueryLogMode::Hashed), None);
        let text =
            |text: &str| vec![LoggedExample { text: Some(text.to_owned()), ..LoggedExample::default() }];
        assert_eq!(
            keep(QueryLogMode::Full),
            Some(LoggedExamples { like: text("A  dive"), unlike: text("a fall") })
        );
        let long = "x".repeat(LONGEST_LOGGED_TEXT);
        let examples = AskedExamples { like: vec![of_text(&long); 3], unlike: vec![of_text(&long)] };
        let asked = AskedQuery { examples: Some(examples), ..AskedQuery::default() };
        let kept = keeper(QueryLogMode::Full).keep(SearchKind::Examples, &asked).examples.unwrap();
        assert_eq!(kept.unlike[0].text.as_ref().map(String::len), Some(LONGEST_LOGGED_TEXT / 4));
    }

    #[test]
    fn a_hash_needs_the_secret() {
        let other = QueryKeeper::new(QueryLogMode::Hashed, Secret::from([8; 32]));
        let theirs = other.keep(SearchKind::Text, &of_text("a dive")).hash;
        assert_ne!(theirs, hash(&of_text("a dive")));
        assert_eq!(
            keeper(QueryLogMode::Full).keep(SearchKind::Text, &of_text("a dive")).hash,
            hash(&of_text("a dive"))
        );
    }

    #[test]
    fn a_hashed_filter_keeps_fields_without_values() {
        check(json!({"field": "title", "eq": "secret"}), json!({"field": "title", "eq": null}));
        check(json!({"field": "metadata.x", "exists": true}), json!({"field": "metadata.x", "exists": true}));
        check(
            json!({"all": [{"not": {"field": "a", "in": ["x", 1]}}, {"any": [{"field": "b", "lt": 2}]}]}),
            json!({"all": [{"not": {"field": "a", "in": null}}, {"any": [{"field": "b", "lt": null}]}]}),
        );
    }

    #[test]
    fn long_queries_are_cut() {
        let text = "é\0".repeat(LONGEST_LOGGED_TEXT);
        let kept = keeper(QueryLogMode::Full).keep(SearchKind::Text, &of_text(&text)).text.unwrap();
        assert_eq!((kept.chars().count(), kept.contains('\0')), (LONGEST_LOGGED_TEXT, false));
        let filter = json!({"field": "title", "eq": "x".repeat(LONGEST_FILTER)});
        let asked = AskedQuery { filter: Some(&filter), ..AskedQuery::default() };
        let kept = keeper(QueryLogMode::Full).keep(SearchKind::Text, &asked);
        assert_eq!(kept.filter, Some(json!({"field": "title", "eq": null})));
    }
}
