//! Tests of accepted and refused filters, with the position of the error.

use serde_json::{Value, json};

use super::*;
use crate::catalog::database::{Sql, Value as Bound};

#[track_caller]
fn check(source: Value, expected: Option<&str>) {
    let pointer = Filter::parse(&source).err().map(|error| error.pointer);
    assert_eq!(pointer.as_deref(), expected, "{source}");
}

#[test]
fn well_formed_filters_are_accepted() {
    let filters = [
        json!({"all": []}),
        json!({"any": []}),
        json!({"not": {"all": []}}),
        json!({"field": "metadata.event", "eq": "vault"}),
        json!({"field": "metadata.event", "in": []}),
        json!({"field": "metadata.event", "in": ["vault", 3, true]}),
        json!({"field": "metadata.a.b.c", "exists": false}),
        json!({"field": "metadata.a\\.b", "eq": 1.5}),
        json!({"field": "metadata.'; DROP TABLE spans; --", "gt": "\u{0}"}),
        json!({"field": "duration", "lt": 1e300}),
        json!({"field": "duration", "in": [1, 2.5]}),
        json!({"field": "recorded_at", "gte": "2024-07-01"}),
        json!({"field": "created_at", "lt": "2024-07-01T12:00:00+02:00"}),
        json!({"field": "title", "lte": "m"}),
        json!({"field": "video_id", "eq": "01900000-0000-7000-8000-000000000000"}),
        json!({"field": "level", "in": ["clip", "video"]}),
        json!({"field": "tags", "eq": " Dive "}),
        json!({"field": "tags", "in": []}),
        json!({"field": "tags", "exists": false}),
        json!({"field": "folder", "in": ["a/b", ""]}),
        json!({"field": "folder", "under": "Season 2026"}),
    ];
    for filter in filters {
        check(filter, None);
    }
}

#[test]
fn a_mistake_is_named_by_its_pointer() {
    let cases = [
        (json!(null), ""),
        (json!([]), ""),
        (json!({}), ""),
        (json!({"all": [], "any": []}), ""),
        (json!({"every": []}), "/every"),
        (json!({"a/b~": []}), "/a~1b~0"),
        (json!({"all": {}}), "/all"),
        (json!({"all": [{"all": []}, 3]}), "/all/1"),
        (json!({"not": [{"all": []}]}), "/not"),
        (json!({"field": 3, "eq": 1}), "/field"),
        (json!({"field": "metadata"}), "/field"),
        (json!({"field": "metadata.", "eq": 1}), "/field"),
        (json!({"field": "metadata.a..b", "eq": 1}), "/field"),
        (json!({"field": "metadata.a\\b", "eq": 1}), "/field"),
        (json!({"field": "metadata.a\\", "eq": 1}), "/field"),
        (json!({"field": "bytes", "eq": 1}), "/field"),
        (json!({"field": format!("metadata.{}", "x".repeat(600)), "eq": 1}), "/field"),
        (json!({"field": "title"}), ""),
        (json!({"field": "title", "eq": "a", "in": []}), ""),
        (json!({"field": "title", "like": "a"}), "/like"),
        (json!({"field": "title", "eq": 3}), "/eq"),
        (json!({"field": "title", "eq": "a\u{0}"}), "/eq"),
        (json!({"field": "title", "exists": 1}), "/exists"),
        (json!({"all": [{"field": "duration", "gte": "3"}]}), "/all/0/gte"),
        (json!({"field": "duration", "in": 3}), "/in"),
        (json!({"field": "duration", "in": [3, "4"]}), "/in/1"),
        (json!({"field": "recorded_at", "lt": "yesterday"}), "/lt"),
        (json!({"field": "recorded_at", "lt": 3}), "/lt"),
        (json!({"field": "video_id", "eq": "x"}), "/eq"),
        (json!({"field": "video_id", "lt": "01900000-0000-7000-8000-000000000000"}), "/lt"),
        (json!({"field": "level", "eq": "scene"}), "/eq"),
        (json!({"field": "level", "gt": "clip"}), "/gt"),
        (json!({"field": "tags", "eq": "a,b"}), "/eq"),
        (json!({"field": "tags", "in": ["a", 3]}), "/in/1"),
        (json!({"field": "tags", "lt": "a"}), "/lt"),
        (json!({"field": "tags", "under": "a"}), "/under"),
        (json!({"field": "folder", "eq": "a//b"}), "/eq"),
        (json!({"field": "folder", "gte": "a"}), "/gte"),
        (json!({"field": "folder", "under": 3}), "/under"),
        (json!({"field": "title", "under": "a"}), "/under"),
        (json!({"field": "metadata.x", "eq": null}), "/eq"),
        (json!({"field": "metadata.x", "eq": {}}), "/eq"),
        (json!({"field": "metadata.x", "in": [1, []]}), "/in/1"),
        (json!({"field": "metadata.x", "lt": true}), "/lt"),
    ];
    for (source, pointer) in cases {
        check(source, Some(pointer));
    }
}

#[test]
fn depth_size_and_values_are_bounded() {
    let test = json!({"field": "metadata.x", "eq": 1});
    let nested = |depth| (1..depth).fold(test.clone(), |inner, _| json!({"not": inner}));
    check(nested(MAX_DEPTH), None);
    check(nested(MAX_DEPTH + 1), Some(&"/not".repeat(MAX_DEPTH)));
    for list in ["all", "any"] {
        let nested = |depth| (1..depth).fold(test.clone(), |inner, _| json!({list: [inner]}));
        check(nested(MAX_DEPTH), None);
        check(nested(MAX_DEPTH + 1), Some(&format!("/{list}/0").repeat(MAX_DEPTH)));
    }
    check(json!({"all": vec![test.clone(); MAX_NODES - 1]}), None);
    check(json!({"all": vec![test; MAX_NODES]}), Some(&format!("/all/{}", MAX_NODES - 1)));
    check(json!({"field": "metadata.x", "in": vec![1; MAX_VALUES]}), None);
    check(json!({"field": "metadata.x", "in": vec![1; MAX_VALUES + 1]}), Some("/in"));
    let many = json!({"field": "metadata.x", "in": vec![1; MAX_VALUES]});
    check(json!({"all": [many, {"field": "duration", "eq": 1}]}), Some("/all/1/eq"));
}

#[test]
fn the_longest_path_is_stored_and_may_be_asked_for() {
    for (length, expected) in
        [(attributes::MAX_PATH_BYTES, None), (attributes::MAX_PATH_BYTES + 1, Some("/field"))]
    {
        let name = "x".repeat(length - 1);
        check(json!({"field": format!("metadata.{name}"), "eq": 1}), expected);
        let stored = attributes::attributes(&json!({name: 1}));
        assert_eq!(stored.len(), usize::from(expected.is_none()), "{length}");
    }
}

#[test]
fn a_filter_survives_being_written_and_read() {
    let source =
        json!({"any": [{"field": "metadata.x", "in": [1, "é"]}, {"not": {"field": "duration", "lt": 3}}]});
    let filter = Filter::parse(&source).unwrap();
    assert_eq!(filter.to_json(), &source);
    let text = serde_json::to_string(&filter).unwrap();
    assert_eq!(serde_json::from_str::<Filter>(&text).unwrap(), filter);
    assert!(serde_json::from_str::<Filter>(r#"{"field":"nonsense","eq":1}"#).is_err());
}

/// Values go to the database as bound parameters: filters that differ in values and names alone are one statement.
#[test]
fn a_statement_holds_no_value_of_its_filter() {
    let hostile = "'; DROP TABLE spans; -- $1 ? \" \u{0} \\";
    let filter = |name: &str, text: &str, number: f64| {
        let tests = json!([
            {"field": format!("metadata.{name}"), "in": [text, number, true]},
            {"field": format!("metadata.{name}"), "gte": text},
            {"not": {"field": format!("metadata.{name}"), "exists": false}},
            {"field": "title", "lt": text.replace('\u{0}', "")},
            {"field": "duration", "eq": number},
        ]);
        Filter::parse(&json!({"any": tests})).unwrap()
    };
    let (plain, other) = (filter("x", "y", 1.0), filter("it's $2", hostile, -1e300));
    let text = |statement: fn(&Filter) -> (Sql, Vec<Bound>), filter: &Filter| match statement(filter).0 {
        Sql::Built(text) => text,
        _ => panic!("a filter's statement is built"),
    };
    for statement in [Filter::to_sql, Filter::videos_to_sql] {
        assert_eq!(text(statement, &plain), text(statement, &other));
        assert!(!text(statement, &other).contains("DROP"));
    }
}
