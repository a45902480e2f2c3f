//! The filterable values of a metadata object, each with its path.
//!
//! They are stored as rows beside the object. One SQL statement then has the same meaning on both databases and can use
//! an index; the databases' JSON functions compare, convert and quote differently.

use serde_json::{Map, Value};

/// Longest stored path, in bytes. Postgres can't index much longer values.
pub(super) const MAX_PATH_BYTES: usize = 512;

/// One value inside a metadata object.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::catalog) struct Attribute {
    /// In the form of [`path`].
    pub(in crate::catalog) path: Vec<u8>,
    /// `null`, `boolean`, `number`, `string`, or `container` (an object or array).
    pub(in crate::catalog) kind: &'static str,
    /// The number, or 1 for true and 0 for false.
    pub(in crate::catalog) number: Option<f64>,
    /// The string as bytes: Postgres texts can't hold NUL, and its collations do not compare bytes.
    pub(in crate::catalog) text: Option<Vec<u8>>,
}

/// The path of nested field names: a JSON pointer.
pub(super) fn path(names: &[String]) -> Vec<u8> {
    names.iter().flat_map(|name| format!("/{}", escape(name)).into_bytes()).collect()
}

/// All filterable values of a metadata object. The elements of an array have the array's path.
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

/// Escapes a key as a part of a JSON pointer.
pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
