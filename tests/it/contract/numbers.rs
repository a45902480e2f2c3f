//! The numbers of the file: each says its unit or its range, and has its bounds.

use std::collections::HashSet;

use serde_json::Value;

use super::contract;

/// Numbers without a least value: scores of models, distances from a mean, and clocks that may begin before 0.
const OPEN_BELOW: [&str; 3] = ["score", "z", "media_offset"];
/// Numbers of requests that only the server's settings, its disk or the thing itself bounds.
const OPEN_ABOVE: [&str; 11] = [
    "Upload-Length",
    "Upload-Offset",
    "cursor",
    "every_seconds",
    "max_clip_seconds",
    "min_clip_seconds",
    "requests_per_minute",
    "searches_at_once",
    "sheet",
    "stored_bytes",
    "stored_seconds",
];
/// Words that say what a number counts or measures.
const UNITS: [&str; 12] = [
    "byte",
    "cosine",
    "deviation",
    "frames",
    "http status",
    "number",
    "pixel",
    "place",
    "rank",
    "second",
    "token",
    "weight",
];
/// Keys below which are values, and not schemas.
const VALUES: [&str; 4] = ["default", "enum", "example", "examples"];

/// A place of the file, with the name and the description of its property, parameter or header.
#[derive(Debug, Clone)]
struct Place<'a> {
    at: String,
    name: &'a str,
    said: &'a str,
    value: &'a Value,
    /// Whether it describes the items of a list.
    is_item: bool,
}

#[test]
fn every_number_has_a_unit_or_a_range_and_bounds() {
    let file = contract();
    let mut sent = HashSet::new();
    for operation in
        file["paths"].as_object().unwrap().values().flat_map(|it| it.as_object().unwrap().values())
    {
        named_schemas(&file, &operation["requestBody"], &mut sent);
    }
    let mut numbers = Vec::new();
    let whole = Place { at: "#".to_owned(), name: "", said: "", value: &file, is_item: false };
    gather(whole, &mut numbers);
    assert!(numbers.len() > 250, "{}", numbers.len());
    for number in &numbers {
        let mut above = number.at.split('/');
        let is_of_schema =
            above.any(|it| it == "schemas") && above.next().is_some_and(|it| sent.contains(it));
        check(number, is_of_schema || number.at.contains("/parameters/"));
    }
}

/// `is_sent`: clients send it.
fn check(number: &Place, is_sent: bool) {
    let Place { at, name, said, value, is_item } = number;
    let has = |bound: &str| value[bound].is_number();
    let is_measured = UNITS.iter().any(|unit| said.to_lowercase().contains(unit));
    assert!(is_measured || has_range(said), "{at} has neither a unit nor a range: {said:?}");
    if *is_item {
        assert!(
            has("minimum") || has_range(said),
            "{at}: the list does not say the range of its items: {said:?}"
        );
        return;
    }
    let is_bounded = has("minimum") || has("exclusiveMinimum");
    assert!(is_bounded || OPEN_BELOW.contains(name), "{at} has no least value");
    assert!(!is_sent || has("maximum") || OPEN_ABOVE.contains(name), "{at} has no largest value");
}

/// Whether a description has a range, such as `0 to 1` or `from 1`.
fn has_range(said: &str) -> bool {
    let is_number = |word: &str| word.trim_start_matches('-').starts_with(|it: char| it.is_ascii_digit());
    let words: Vec<&str> = said.split_whitespace().collect();
    let two_ends = words.windows(3).any(|it| is_number(it[0]) && it[1] == "to" && is_number(it[2]));
    two_ends || words.windows(2).any(|it| it[0] == "from" && is_number(it[1]))
}

/// The numbers at this place and below it.
fn gather<'a>(place: Place<'a>, numbers: &mut Vec<Place<'a>>) {
    let value = place.value;
    if let Some(items) = value.as_array() {
        for (number, item) in items.iter().enumerate() {
            gather(Place { at: format!("{}/{number}", place.at), value: item, ..place.clone() }, numbers);
        }
    }
    let Some(fields) = value.as_object() else { return };
    let is_names = ["/properties", "/headers", "/schemas"].iter().any(|it| place.at.ends_with(it));
    let (name, said) = match is_names {
        true => ("", ""),
        false => (
            value["name"].as_str().unwrap_or(place.name),
            value["description"].as_str().unwrap_or(place.said),
        ),
    };
    let is_number = |kind: &Value| kind == "integer" || kind == "number";
    let kinds = value["type"].as_array().into_iter().flatten().chain([&value["type"]]);
    if !is_names && kinds.into_iter().any(is_number) {
        numbers.push(Place { name, said, ..place.clone() });
    }
    for (key, value) in fields.iter().filter(|(key, _)| is_names || !VALUES.contains(&key.as_str())) {
        let at = format!("{}/{}", place.at, key.replace('/', "~1"));
        let name = if is_names { key.as_str() } else { name };
        let is_item = !is_names && (key == "items" || place.is_item);
        gather(Place { at, name, said, value, is_item }, numbers);
    }
}

/// Adds the names of the schemas that a part of the file refers to.
fn named_schemas<'a>(file: &'a Value, part: &'a Value, names: &mut HashSet<&'a str>) {
    let reference = part["$ref"].as_str().and_then(|it| it.strip_prefix("#/components/schemas/"));
    if let Some(name) = reference
        && names.insert(name)
    {
        named_schemas(file, &file["components"]["schemas"][name], names);
    }
    match part {
        Value::Object(fields) => fields.values().for_each(|it| named_schemas(file, it, names)),
        Value::Array(items) => items.iter().for_each(|it| named_schemas(file, it, names)),
        _ => {}
    }
}
