//! Worked examples: one or more requests of every operation. A test sends each of them to a library that holds their ids.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// By operation id: `parameters`, the value of each by its name; `bodies`, by content type and title; `answers`, by content
/// type.
static EXAMPLES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default());

/// Adds the examples of an operation to it.
pub(super) fn add(operation: &mut Value) {
    let examples = &EXAMPLES[operation["operationId"].as_str().unwrap_or_default()];
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let value = &examples["parameters"][parameter["name"].as_str().unwrap_or_default()];
        if !value.is_null() {
            parameter["example"] = value.clone();
        }
    }
    for (kind, answer) in examples["answers"].as_object().into_iter().flatten() {
        operation["responses"]["200"]["content"][kind]["example"] = answer.clone();
    }
    for (kind, bodies) in examples["bodies"].as_object().into_iter().flatten() {
        let all = bodies.as_object().into_iter().flatten();
        let named = all.map(|(title, value)| (key(title), json!({"summary": title, "value": value})));
        operation["requestBody"]["content"][kind]["examples"] = Value::Object(named.collect::<Map<_, _>>());
    }
}

/// The key of an example in the file: its title in lower case, with underscores for spaces.
fn key(title: &str) -> String {
    title.to_lowercase().replace(' ', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_json() {
        assert!(EXAMPLES.as_object().is_some_and(|all| all.len() > 30));
    }
}
