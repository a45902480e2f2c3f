//! A field of the metadata by its name, and its values in a hit.

use serde_json::Value;

use super::metadata_names;

/// A field of the metadata: `metadata.x`, or `metadata.x.y` inside an object, written as in a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataField {
    name: String,
    path: Vec<String>,
}

impl MetadataField {
    /// Parses a name such as `metadata.team`.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn parse(name: &str) -> Result<MetadataField, String> {
        let Some(rest) = name.strip_prefix("metadata.") else {
            return Err("unknown field; expected `metadata.…`".to_owned());
        };
        Ok(MetadataField { name: name.to_owned(), path: metadata_names(rest)? })
    }

    /// The name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The numbers, texts and booleans that a filter on this field compares: the value, or those in an array. A clip with
    /// the top-level field hides its video's.
    pub fn values<'a>(&self, of_video: &'a Value, of_clip: &'a Value) -> Vec<&'a Value> {
        let own = self.path.first().is_some_and(|top| of_clip.get(top).is_some());
        let metadata = if own { of_clip } else { of_video };
        let value = self.path.iter().try_fold(metadata, |inside, name| inside.as_object()?.get(name));
        let is_scalar = |value: &&Value| value.is_string() || value.is_number() || value.is_boolean();
        match value {
            Some(Value::Array(elements)) => elements.iter().filter(is_scalar).collect(),
            value => value.into_iter().filter(is_scalar).collect(),
        }
    }
}
