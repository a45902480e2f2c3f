//! Stored forms of values: JSON, names of enum values, lists of keys.

use reprise_encoders::Cause;
use serde::de::DeserializeOwned;

use crate::catalog::database::{Row, Value};
use crate::catalog::error::CatalogError;
use crate::terms::{Level, SpanKey};

/// Parses a stored JSON text.
pub(in crate::catalog) fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, CatalogError> {
    serde_json::from_str(text)
        .map_err(|error| CatalogError::Damaged(Cause::in_context(format!("{text:.80}"), error)))
}

pub(in crate::catalog) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, CatalogError> {
    serde_json::to_string(value).map_err(|error| CatalogError::Invalid(error.into()))
}

pub(in crate::catalog) fn named<T: Copy>(name: &str, names: &[(T, &str)]) -> Result<T, CatalogError> {
    let found = names.iter().find(|(_, known)| *known == name);
    found
        .map(|(value, _)| *value)
        .ok_or_else(|| CatalogError::Damaged(format!("unknown name {name:?}").into()))
}

pub(in crate::catalog) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Video => "video",
        Level::Clip => "clip",
        Level::Moment => "moment",
        Level::Passage => "passage",
    }
}

pub(in crate::catalog) fn level(row: &Row) -> Result<Level, CatalogError> {
    let names =
        [Level::Video, Level::Clip, Level::Moment, Level::Passage].map(|level| (level, level_name(level)));
    named(&row.get::<String>("level")?, &names)
}

/// Keys in the databases' form.
pub(in crate::catalog) fn keys(keys: &[SpanKey]) -> Value {
    Value::Ints(keys.iter().map(|key| key.number().cast_signed()).collect())
}
