//! The metadata filter of the API: syntax, validation and meaning.
//!
//! A filter is a test, or `{"all": [..]}`, `{"any": [..]}`, `{"not": {..}}` of filters. A test names a field and
//! exactly one operator: `{"field": F, "eq" | "in" | "lt" | "lte" | "gt" | "gte" | "under" | "exists": V}`. `not` is boolean
//! negation; an empty `all` is true, an empty `any` is false.
//!
//! A test has the same meaning on both databases:
//! - Numbers compare with numbers, as 64-bit floats; strings with strings, byte by byte in UTF-8; booleans with
//!   booleans, by `eq` and `in` only. Other pairs do not match: a missing or null field matches only `exists: false`.
//! - An array matches if one of its numbers, strings or booleans matches.
//! - `in` matches if `eq` with one of its values matches.
//!
//! Built-in fields: `duration` (of the video, in seconds, rounded to milliseconds), `recorded_at` and `created_at` (RFC
//! 3339 instants or dates, compared as instants; a date means its first moment in UTC), `title`, `video_id` and `level`
//! (`eq`, `in`, `exists` only). Values must have the field's type.
//!
//! `tags` matches if one of the video's tags does (`eq`, `in`, `exists` only), `folder` is the path of its folder (`eq`, `in`,
//! `exists`, and `under`: the folder and all below it). Both are compared without case.
//!
//! `metadata.x` is the user's field x, `metadata.x.y` the field y of the object in x. In a name, `\.` is a dot and
//! `\\` a backslash. A given clip's metadata overlays its video's: if the clip has the top-level field, the video's
//! is ignored. A filter cannot use names longer than 512 bytes together.

pub(super) mod attributes;
mod field;
mod sql;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::instant;
use super::types::{Folder, Tag};
use crate::terms::Level;

pub use field::MetadataField;

/// Deepest nesting of a filter.
pub const MAX_DEPTH: usize = 8;
/// Largest number of tests and combinations in a filter.
pub const MAX_NODES: usize = 200;
/// Largest number of values in one `in`, and in all of a filter together.
pub const MAX_VALUES: usize = 1000;

/// A parsed and validated filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    source: Value,
    root: Node,
}

/// A filter on videos by what their owner says of them: each test names a field `metadata.…`, `tags` or `folder`.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoFilter(Filter);

/// An error in a filter; the caller's fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// The position, as a JSON pointer relative to the filter, e.g. `/all/0/gte`.
    pub pointer: String,
    /// The error, lower case, without a full stop.
    pub detail: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "filter{}: {}", self.pointer, self.detail)
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Parses a filter.
    ///
    /// # Errors
    /// [`FilterError`] with the first part that is unknown, of the wrong type or over a limit.
    pub fn parse(source: &Value) -> Result<Filter, FilterError> {
        let mut parser = Parser { nodes: 0, values: 0 };
        let root = parser.node(source, "", 1)?;
        Ok(Filter { source: source.clone(), root })
    }

    /// The JSON given to [`Filter::parse`].
    pub fn to_json(&self) -> &Value {
        &self.source
    }

    /// `filter`, for the spans of one video only. It may be one level deeper than a parsed one.
    pub fn within_video(filter: Option<Filter>, video: Uuid) -> Filter {
        let test = Node::Test(Field::BuiltIn(BuiltIn::VideoId), Test::In(vec![Scalar::Id(video)]));
        let mut sources = vec![json!({"field": "video_id", "eq": video})];
        let mut nodes = vec![test];
        if let Some(Filter { source, root }) = filter {
            sources.push(source);
            nodes.push(root);
        }
        Filter { source: json!({"all": sources}), root: Node::All(nodes) }
    }
}

impl VideoFilter {
    /// Parses a filter on metadata, tags and folders.
    ///
    /// # Errors
    /// As [`Filter::parse`], and for a test of another field.
    pub fn parse(source: &Value) -> Result<VideoFilter, FilterError> {
        let filter = Filter::parse(source)?;
        match filter.root.built_in() {
            None => Ok(VideoFilter(filter)),
            Some(field) => {
                let detail = "only fields `metadata.…`, `tags` and `folder` may be tested here";
                wrong("", format!("{detail}, not `{}`", field.name()))
            }
        }
    }

    /// The JSON given to [`VideoFilter::parse`].
    pub fn to_json(&self) -> &Value {
        self.0.to_json()
    }
}

impl Node {
    /// The first field that it tests which the owner of a video does not set.
    fn built_in(&self) -> Option<BuiltIn> {
        match self {
            Node::All(nodes) | Node::Any(nodes) => nodes.iter().find_map(Node::built_in),
            Node::Not(node) => node.built_in(),
            Node::Test(Field::BuiltIn(BuiltIn::Tags | BuiltIn::Folder) | Field::Metadata { .. }, _) => None,
            Node::Test(Field::BuiltIn(field), _) => Some(*field),
        }
    }
}

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Filter, D::Error> {
        Filter::parse(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Test(Field, Test),
}

#[derive(Debug, Clone, PartialEq)]
enum Field {
    BuiltIn(BuiltIn),
    /// The path of the value, and the path of its top-level field.
    Metadata {
        path: Vec<u8>,
        top: Vec<u8>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuiltIn {
    Duration,
    RecordedAt,
    CreatedAt,
    Title,
    VideoId,
    Level,
    Tags,
    Folder,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Exists(bool),
    /// Equal to any of these.
    In(Vec<Scalar>),
    Order(Order, Scalar),
    /// In this folder or below it.
    Under(Folder),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Scalar {
    Number(f64),
    Text(String),
    Bool(bool),
    /// Milliseconds: a duration or an instant.
    Ms(i64),
    Id(Uuid),
    Level(Level),
    /// The key of a tag or a folder.
    Key(Vec<u8>),
}

struct Parser {
    nodes: usize,
    values: usize,
}

fn wrong<T>(pointer: impl Into<String>, detail: impl Into<String>) -> Result<T, FilterError> {
    Err(FilterError { pointer: pointer.into(), detail: detail.into() })
}

impl Parser {
    fn node(&mut self, source: &Value, at: &str, depth: usize) -> Result<Node, FilterError> {
        if depth > MAX_DEPTH {
            return wrong(at, format!("nested deeper than {MAX_DEPTH}"));
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return wrong(at, format!("more than {MAX_NODES} tests and combinations"));
        }
        let Some(object) = source.as_object() else {
            return wrong(at, "expected an object with `all`, `any`, `not` or `field`");
        };
        if object.contains_key("field") {
            return self.test(object, at);
        }
        let mut entries = object.iter();
        let (Some((key, inner)), None) = (entries.next(), entries.next()) else {
            return wrong(at, "expected exactly one of `all`, `any`, `not`, or a test with `field`");
        };
        let at = format!("{at}/{}", attributes::escape(key));
        match key.as_str() {
            "all" => Ok(Node::All(self.nodes(inner, &at, depth)?)),
            "any" => Ok(Node::Any(self.nodes(inner, &at, depth)?)),
            "not" => Ok(Node::Not(Box::new(self.node(inner, &at, depth + 1)?))),
            _ => wrong(at, "unknown; expected `all`, `any`, `not` or `field`"),
        }
    }

    fn nodes(&mut self, source: &Value, at: &str, depth: usize) -> Result<Vec<Node>, FilterError> {
        let Some(list) = source.as_array() else {
            return wrong(at, "expected an array of filters");
        };
        let inner = list.iter().enumerate();
        inner.map(|(number, source)| self.node(source, &format!("{at}/{number}"), depth + 1)).collect()
    }

    fn test(&mut self, object: &Map<String, Value>, at: &str) -> Result<Node, FilterError> {
        let Some(name) = object.get("field").and_then(Value::as_str) else {
            return wrong(format!("{at}/field"), "expected a string");
        };
        let field =
            Field::parse(name).map_err(|detail| FilterError { pointer: format!("{at}/field"), detail })?;
        let mut operators = object.iter().filter(|(key, _)| *key != "field");
        let (Some((operator, value)), None) = (operators.next(), operators.next()) else {
            return wrong(
                at,
                "expected exactly one of `eq`, `in`, `lt`, `lte`, `gt`, `gte`, `under`, `exists`",
            );
        };
        let at = format!("{at}/{}", attributes::escape(operator));
        let test = match operator.as_str() {
            "exists" => match value {
                Value::Bool(wanted) => Test::Exists(*wanted),
                _ => return wrong(at, "expected true or false"),
            },
            "under" => Test::Under(self.folder(&field, value, &at)?),
            "eq" => Test::In(vec![self.scalar(&field, value, &at)?]),
            "in" => Test::In(self.list(&field, value, &at)?),
            "lt" => Test::Order(Order::Less, self.ordered(&field, value, &at)?),
            "lte" => Test::Order(Order::LessOrEqual, self.ordered(&field, value, &at)?),
            "gt" => Test::Order(Order::Greater, self.ordered(&field, value, &at)?),
            "gte" => Test::Order(Order::GreaterOrEqual, self.ordered(&field, value, &at)?),
            _ => {
                let detail =
                    "unknown operator; expected `eq`, `in`, `lt`, `lte`, `gt`, `gte`, `under` or `exists`";
                return wrong(at, detail);
            }
        };
        Ok(Node::Test(field, test))
    }

    fn list(&mut self, field: &Field, value: &Value, at: &str) -> Result<Vec<Scalar>, FilterError> {
        let Some(list) = value.as_array() else {
            return wrong(at, "expected an array of values");
        };
        if list.len() > MAX_VALUES {
            return wrong(at, format!("more than {MAX_VALUES} values"));
        }
        let values = list.iter().enumerate();
        values.map(|(number, value)| self.scalar(field, value, &format!("{at}/{number}"))).collect()
    }

    fn folder(&mut self, field: &Field, value: &Value, at: &str) -> Result<Folder, FilterError> {
        if *field != Field::BuiltIn(BuiltIn::Folder) {
            return wrong(at, "only `folder` has others below it");
        }
        self.scalar(field, value, at)?;
        Folder::parse(value.as_str().unwrap_or_default()).or_else(|detail| wrong(at, detail))
    }

    fn ordered(&mut self, field: &Field, value: &Value, at: &str) -> Result<Scalar, FilterError> {
        match self.scalar(field, value, at)? {
            Scalar::Bool(_) => wrong(at, "expected a number or a string; booleans have no order"),
            Scalar::Id(_) | Scalar::Level(_) | Scalar::Key(_) => {
                wrong(at, "this field has no order; use `eq` or `in`")
            }
            scalar => Ok(scalar),
        }
    }

    fn scalar(&mut self, field: &Field, value: &Value, at: &str) -> Result<Scalar, FilterError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return wrong(at, format!("more than {MAX_VALUES} values in one filter"));
        }
        field
            .scalar(value)
            .map_err(|detail| FilterError { pointer: at.to_owned(), detail: detail.to_owned() })
    }
}

impl Field {
    fn parse(name: &str) -> Result<Field, String> {
        if let Some(field) = BuiltIn::ALL.into_iter().find(|field| field.name() == name) {
            return Ok(Field::BuiltIn(field));
        }
        match name.strip_prefix("metadata.") {
            Some(rest) => Field::metadata(rest),
            None => {
                Err("unknown field; expected `duration`, `recorded_at`, `created_at`, `title`, `video_id`, \
                         `level`, `tags`, `folder` or `metadata.…`"
                    .to_owned())
            }
        }
    }

    fn metadata(names: &str) -> Result<Field, String> {
        let names = metadata_names(names)?;
        Ok(Field::Metadata { top: attributes::path(&names[..1]), path: attributes::path(&names) })
    }

    /// Checks that `value` has the field's type, and converts it.
    fn scalar(&self, value: &Value) -> Result<Scalar, &'static str> {
        match self {
            Field::BuiltIn(field) => field.scalar(value),
            Field::Metadata { .. } => match value {
                Value::String(text) => Ok(Scalar::Text(text.clone())),
                Value::Bool(value) => Ok(Scalar::Bool(*value)),
                _ => number(value).map(Scalar::Number).ok_or("expected a number, a string or a boolean"),
            },
        }
    }
}

impl BuiltIn {
    /// All built-in fields.
    const ALL: [BuiltIn; 8] = [
        BuiltIn::Duration,
        BuiltIn::RecordedAt,
        BuiltIn::CreatedAt,
        BuiltIn::Title,
        BuiltIn::VideoId,
        BuiltIn::Level,
        BuiltIn::Tags,
        BuiltIn::Folder,
    ];

    /// Its name in a filter.
    fn name(self) -> &'static str {
        match self {
            BuiltIn::Duration => "duration",
            BuiltIn::RecordedAt => "recorded_at",
            BuiltIn::CreatedAt => "created_at",
            BuiltIn::Title => "title",
            BuiltIn::VideoId => "video_id",
            BuiltIn::Level => "level",
            BuiltIn::Tags => "tags",
            BuiltIn::Folder => "folder",
        }
    }

    /// Checks that `value` has the field's type, and converts it.
    fn scalar(self, value: &Value) -> Result<Scalar, &'static str> {
        let text = || value.as_str().filter(|text| !text.contains('\0'));
        match self {
            BuiltIn::Duration => {
                number(value).map(|seconds| Scalar::Ms(to_ms(seconds))).ok_or("expected seconds")
            }
            BuiltIn::RecordedAt | BuiltIn::CreatedAt => text()
                .and_then(instant::parse)
                .map(Scalar::Ms)
                .ok_or("expected an RFC 3339 date or instant, e.g. `2024-07-01` or `2024-07-01T12:00:00Z`"),
            BuiltIn::Title => text()
                .map(|text| Scalar::Text(text.to_owned()))
                .ok_or("expected a string without NUL characters"),
            BuiltIn::VideoId => text()
                .and_then(|text| Uuid::try_parse(text).ok())
                .map(Scalar::Id)
                .ok_or("expected a video's id"),
            BuiltIn::Level => match value.as_str() {
                Some("video") => Ok(Scalar::Level(Level::Video)),
                Some("clip") => Ok(Scalar::Level(Level::Clip)),
                Some("moment") => Ok(Scalar::Level(Level::Moment)),
                Some("passage") => Ok(Scalar::Level(Level::Passage)),
                _ => Err("expected `video`, `clip`, `moment` or `passage`"),
            },
            BuiltIn::Tags => text()
                .and_then(|text| Tag::parse(text).ok())
                .map(|tag| Scalar::Key(tag.key().to_vec()))
                .ok_or("expected a tag: 1 to 60 characters without commas and control characters"),
            BuiltIn::Folder => text()
                .and_then(|text| Folder::parse(text).ok())
                .map(|folder| Scalar::Key(folder.key().to_vec()))
                .ok_or("expected the path of a folder, e.g. `season 2026/finals`"),
        }
    }
}

/// Rounds seconds to milliseconds. Values too large for any video stay too large.
fn to_ms(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// The names in what follows `metadata.`: at least one, none empty, and no longer path than is stored.
fn metadata_names(text: &str) -> Result<Vec<String>, String> {
    let names = split_names(text)?;
    if names.iter().any(String::is_empty) {
        return Err("a name between the dots is empty".to_owned());
    }
    if attributes::path(&names).len() > attributes::MAX_PATH_BYTES {
        return Err(format!("longer than {} bytes", attributes::MAX_PATH_BYTES));
    }
    Ok(names)
}

/// Splits at dots that are not escaped by a backslash.
fn split_names(text: &str) -> Result<Vec<String>, String> {
    let mut names = vec![];
    let mut name = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '.' => names.push(std::mem::take(&mut name)),
            '\\' => match characters.next() {
                Some(escaped @ ('.' | '\\')) => name.push(escaped),
                _ => return Err("a backslash must stand before a dot or a backslash".to_owned()),
            },
            _ => name.push(character),
        }
    }
    names.push(name);
    Ok(names)
}

#[cfg(test)]
mod tests;
