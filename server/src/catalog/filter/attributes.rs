//! What a filter sees of a metadata object: its values, each at a path.
//!
//! They are stored beside the object as rows, so that one SQL statement means the same on both databases
//! and finds a value by an index; JSON functions differ in how they compare, convert and quote.

use serde_json::{Map, Value};

/// Longest path that is stored. Postgres can't index much longer values.
pub(super) const MAX_PATH_BYTES: usize = 512;

/// One value inside a metadata object.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::catalog) struct Attribute {
    /// As [`path`] makes it.
    pub(in crate::catalog) path: Vec<u8>,
    /// `null`, `boolean`, `number`, `string`, or `container` (an object or array).
    pub(in crate::catalog) kind: &'static str,
    /// The number, or 1 for true and 0 for false.
    pub(in crate::catalog) number: Option<f64>,
    /// The string. As bytes: Postgres texts can't hold NUL, and its collations are not bytewise.
    pub(in crate::catalog) text: Option<Vec<u8>>,
}

/// The path of a value under these names: a JSON pointer.
pub(super) fn path(names: &[String]) -> Vec<u8> {
    names.iter().flat_map(|name| format!("/{}", escape(name)).into_bytes()).collect()
}

/// All values of a metadata object that a filter can name. The elements of an array lie at the array's path.
pub(in crate::catalog) fn attributes(metadata: &Value) -> Vec<Attribute> {
    let mut found = Vec::new();
    if let Value::Object(object) = metadata {
        add_object(&mut found, "", object);
    }
    found
}

fn add_object(found: &mut Vec<Attribute>, parent: &str, object: &Map<String, Value>) {
    for (name, value) in object {
        let path = format!("{parent}/{}", escape(name));
        if path.len() > MAX_PATH_BYTES {
            continue;
        }
        add(found, &path, value);
        match value {
            Value::Object(object) => add_object(found, &path, object),
            Value::Array(elements) => {
                let scalars = elements.iter().filter(|element| !element.is_array() && !element.is_object());
                scalars.for_each(|element| add(found, &path, element));
            }
            _ => {}
        }
    }
}

fn add(found: &mut Vec<Attribute>, path: &str, value: &Value) {
    let (kind, number, text) = match value {
        Value::Null => ("null", None, None),
        Value::Bool(value) => ("boolean", Some(f64::from(u8::from(*value))), None),
        Value::Number(number) => ("number", number.as_f64(), None),
        Value::String(text) => ("string", None, Some(text.clone().into_bytes())),
        Value::Array(_) | Value::Object(_) => ("container", None, None),
    };
    found.push(Attribute { path: path.as_bytes().to_vec(), kind, number, text });
}

/// A key as a part of a JSON pointer.
pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
