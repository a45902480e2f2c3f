//! The spans that a filter selects: a table of cases, and random filters against an evaluation in plain Rust.

use std::cmp::Ordering;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reprise_server::catalog::{Filter, Span, Video, VideoPatch, instant};
use reprise_server::terms::{KeySet, Level};
use serde_json::{Value, json};

use super::samples::{add, add_ready, clip, video};
use super::{ALL, Opened, on_both};

on_both!(
    each_case_selects_what_it_says,
    built_in_fields_are_those_of_the_video,
    changed_metadata_is_seen_at_once,
    random_filters_select_what_the_oracle_selects,
);

/// Checks the selected spans. `expected` holds the index in `ids` of each selected span's video.
async fn check(opened: &Opened, ids: &[uuid::Uuid], filter: &Value, expected: &[usize]) {
    let parsed = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let keys = opened
        .catalog
        .view(ALL)
        .keys_matching(&parsed)
        .await
        .unwrap_or_else(|error| panic!("{filter}: {error}"));
    let spans = opened.catalog.view(ALL).spans_by_key(&keys.iter().collect::<Vec<_>>()).await.unwrap();
    let videos = opened.catalog.view(ALL).videos_matching(Some(&parsed)).await.unwrap();
    let distinct: std::collections::BTreeSet<_> = spans.iter().map(|shown| shown.span.video).collect();
    assert_eq!(videos.len(), distinct.len(), "videos of {filter}");
    let mut found: Vec<usize> =
        spans.iter().map(|shown| ids.iter().position(|id| *id == shown.span.video).unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, expected, "{} selects of {filter}", opened.catalog.kind());
}

fn objects() -> Vec<Value> {
    vec![
        json!({}),
        json!({"x": 1}),
        json!({"x": 1.5}),
        json!({"x": -1e300}),
        json!({"x": "1"}),
        json!({"x": "B"}),
        json!({"x": "a"}),
        json!({"x": "é"}),
        json!({"x": true}),
        json!({"x": false}),
        json!({"x": null}),
        json!({"x": []}),
        json!({"x": [1, "a", true, null, [7], {"y": 8}]}),
        json!({"x": {"y": 1}}),
        json!({"x": {"y": {"z": "deep"}}}),
        json!({"x.y": 1, "it's": "quo\"ted", "": 0, "/~": "slash", "漢": "字", "\u{0}": "\u{0}"}),
        json!({"x": u64::MAX}),
        json!({"x": 9_007_199_254_740_993_i64}),
    ]
}

fn cases() -> Vec<(Value, Vec<usize>)> {
    let x = |operator: &str, value: Value| json!({"field": "metadata.x", operator: value});
    vec![
        (x("eq", json!(1)), vec![1, 12]),
        (x("eq", json!(1.0)), vec![1, 12]),
        (x("eq", json!("1")), vec![4]),
        (x("eq", json!(true)), vec![8, 12]),
        (x("eq", json!(false)), vec![9]),
        (x("eq", json!("é")), vec![7]),
        (x("eq", json!("e\u{301}")), vec![]),
        (x("eq", json!("A")), vec![]),
        (x("in", json!([])), vec![]),
        (x("in", json!([1.5, "a", false, "nothing"])), vec![2, 6, 9, 12]),
        (x("lt", json!(1)), vec![3]),
        (x("lte", json!(1)), vec![1, 3, 12]),
        (x("gt", json!(1)), vec![2, 16, 17]),
        (x("gte", json!(1.5)), vec![2, 16, 17]),
        (x("gt", json!("B")), vec![6, 7, 12]),
        (x("gte", json!("B")), vec![5, 6, 7, 12]),
        (x("lt", json!("a")), vec![4, 5]),
        (x("lt", json!("\u{10ffff}")), vec![4, 5, 6, 7, 12]),
        (x("gte", json!("")), vec![4, 5, 6, 7, 12]),
        // Numbers are 64-bit floats on both sides.
        (x("eq", json!(9_007_199_254_740_992_i64)), vec![17]),
        (x("eq", json!(18_446_744_073_709_551_615_u64)), vec![16]),
        (x("gte", json!(1e308)), vec![]),
        (x("exists", json!(true)), vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17]),
        (x("exists", json!(false)), vec![0, 10, 15]),
        (json!({"not": x("eq", json!(1))}), vec![0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17]),
        (json!({"not": x("exists", json!(true))}), vec![0, 10, 15]),
        (json!({"not": {"not": x("lt", json!(1))}}), vec![3]),
        (json!({"all": [x("gt", json!(0)), x("lt", json!(1.2))]}), vec![1, 12]),
        (json!({"any": [x("eq", json!("a")), x("eq", json!(-1e300))]}), vec![3, 6, 12]),
        (json!({"any": []}), vec![]),
        (json!({"not": {"all": []}}), vec![]),
        (json!({"all": [{"all": []}, x("eq", json!("B"))]}), vec![5]),
        (json!({"field": "metadata.x.y", "eq": 1}), vec![13]),
        (json!({"field": "metadata.x.y", "exists": true}), vec![13, 14]),
        (json!({"field": "metadata.x.y.z", "gte": "deep"}), vec![14]),
        (json!({"field": "metadata.x\\.y", "eq": 1}), vec![15]),
        (json!({"field": "metadata.it's", "eq": "quo\"ted"}), vec![15]),
        (json!({"field": "metadata./~", "exists": true}), vec![15]),
        (json!({"field": "metadata./~", "lt": "t"}), vec![15]),
        (json!({"field": "metadata.漢", "eq": "字"}), vec![15]),
        (json!({"field": "metadata.\u{0}", "eq": "\u{0}"}), vec![15]),
        (json!({"field": "metadata.' OR 1=1 --", "exists": true}), vec![]),
        (json!({"field": "metadata.$1", "eq": "$1"}), vec![]),
        (json!({"field": "metadata.%", "eq": 1}), vec![]),
    ]
}

async fn each_case_selects_what_it_says(opened: &Opened) {
    let mut ids = vec![];
    for (number, metadata) in objects().into_iter().enumerate() {
        let mut new = video(&format!("video {number}"));
        new.metadata = metadata;
        ids.push(add_ready(&opened.catalog, new, 1, &[]).await.id);
    }
    let everything: Vec<usize> = (0..ids.len()).collect();
    let whole = json!({"field": "level", "eq": "video"});
    check(opened, &ids, &whole, &everything).await;
    for (filter, expected) in cases() {
        check(opened, &ids, &json!({"all": [whole, filter]}), &expected).await;
    }
}

async fn built_in_fields_are_those_of_the_video(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut ids = vec![];
    for (title, clips, recorded_at) in [
        ("a", 1, Some("2024-07-01")),
        ("B", 2, Some("2024-07-01T01:00:00+02:00")),
        ("é", 12, Some("2024-07-01T00:00:00.001Z")),
        ("", 0, None),
    ] {
        let mut new = video(title);
        new.recorded_at = recorded_at.map(str::to_owned);
        ids.push(if clips == 0 {
            add(catalog, new).await.0.id
        } else {
            add_ready(catalog, new, clips, &[]).await.id
        });
    }
    // The last video has no known length yet, but already a given clip.
    catalog.view(ALL).add_given_clip(ids[3], clip(0, 10, json!({}))).await.unwrap().unwrap();
    let created = instant::format(catalog.view(ALL).video(ids[0]).await.unwrap().unwrap().created_at_ms);
    let at_video = |filter: Value| json!({"all": [{"any": [{"field": "level", "eq": "video"}, {"field": "title", "eq": ""}]}, filter]});
    let test = |field: &str, operator: &str, value: Value| at_video(json!({"field": field, operator: value}));
    let cases = [
        (test("duration", "lt", json!(2)), vec![0]),
        (test("duration", "lte", json!(2)), vec![0, 1]),
        (test("duration", "eq", json!(2.0001)), vec![1]),
        (test("duration", "in", json!([1, 12])), vec![0, 2]),
        (test("duration", "gt", json!(1e300)), vec![]),
        (test("duration", "gt", json!(-1e300)), vec![0, 1, 2]),
        (test("duration", "exists", json!(false)), vec![3]),
        (test("recorded_at", "gte", json!("2024-07-01")), vec![0, 2]),
        (test("recorded_at", "lt", json!("2024-07-01T00:00:00Z")), vec![1]),
        (test("recorded_at", "eq", json!("2024-06-30T23:00:00Z")), vec![1]),
        (test("recorded_at", "exists", json!(true)), vec![0, 1, 2]),
        (test("created_at", "gte", json!(created)), vec![0, 1, 2, 3]),
        (test("created_at", "lt", json!("2020-01-01")), vec![]),
        (test("title", "gte", json!("a")), vec![0, 2]),
        (test("title", "lt", json!("a")), vec![1, 3]),
        (test("title", "in", json!(["é", "b"])), vec![2]),
        (test("video_id", "eq", json!(ids[1])), vec![1]),
        (test("video_id", "in", json!([ids[1], uuid::Uuid::nil(), ids[2]])), vec![1, 2]),
        (test("video_id", "exists", json!(true)), vec![0, 1, 2, 3]),
        (json!({"field": "level", "eq": "moment"}), vec![]),
        (
            json!({"all": [{"field": "level", "in": ["clip", "moment"]}, {"field": "duration", "eq": 2}]}),
            vec![1, 1],
        ),
    ];
    for (filter, expected) in cases {
        check(opened, &ids, &filter, &expected).await;
    }
}

async fn changed_metadata_is_seen_at_once(opened: &Opened) {
    let catalog = &*opened.catalog;
    let stored = add_ready(catalog, video("a"), 1, &[]).await;
    let (given, _) =
        catalog.view(ALL).add_given_clip(stored.id, clip(0, 10, json!({"x": 1}))).await.unwrap().unwrap();
    let count = async |value: i64| {
        let filter = Filter::parse(&json!({"field": "metadata.x", "eq": value})).unwrap();
        catalog.view(ALL).keys_matching(&filter).await.unwrap().len()
    };
    assert_eq!((count(1).await, count(2).await), (1, 0));
    let patch = VideoPatch { metadata: Some(json!({"x": 2})), ..VideoPatch::default() };
    catalog.view(ALL).update_video(stored.id, patch).await.unwrap();
    assert_eq!((count(1).await, count(2).await), (1, 2));
    catalog.view(ALL).update_clip(given.id, json!({"x": null}), None).await.unwrap();
    assert_eq!((count(1).await, count(2).await), (0, 2));
    catalog.view(ALL).update_clip(given.id, json!({}), None).await.unwrap();
    assert_eq!((count(1).await, count(2).await), (0, 3));
    catalog.view(ALL).delete_video(stored.id).await.unwrap();
    assert_eq!((count(1).await, count(2).await), (0, 0));
}

/// Whether a span of the video matches, evaluated from the filter's JSON alone.
fn holds(filter: &Value, video: &Video, span: &Span) -> bool {
    let (key, inner) = filter.as_object().unwrap().iter().next().unwrap();
    match key.as_str() {
        "all" => inner.as_array().unwrap().iter().all(|inner| holds(inner, video, span)),
        "any" => inner.as_array().unwrap().iter().any(|inner| holds(inner, video, span)),
        "not" => !holds(inner, video, span),
        _ => test_holds(filter, video, span),
    }
}

fn test_holds(test: &Value, video: &Video, span: &Span) -> bool {
    let field = test["field"].as_str().unwrap();
    let (operator, wanted) = test.as_object().unwrap().iter().find(|(key, _)| *key != "field").unwrap();
    let (found, exists) = match field {
        "duration" => one(video.facts.as_ref().map(|facts| json!(facts.duration_ms as f64 / 1000.0))),
        "title" => one(Some(json!(video.title))),
        "level" => one(Some(json!(if span.level == Level::Clip { "clip" } else { "video" }))),
        _ => metadata(field.strip_prefix("metadata.").unwrap(), video, span),
    };
    let any = |accepts: fn(Ordering) -> bool, wanted: &Value| {
        found.iter().any(|found| compare(found, wanted).is_some_and(accepts))
    };
    let ordered = |accepts| !wanted.is_boolean() && any(accepts, wanted);
    match operator.as_str() {
        "exists" => exists == wanted.as_bool().unwrap(),
        "eq" => any(Ordering::is_eq, wanted),
        "in" => wanted.as_array().unwrap().iter().any(|wanted| any(Ordering::is_eq, wanted)),
        "lt" => ordered(Ordering::is_lt),
        "lte" => ordered(Ordering::is_le),
        "gt" => ordered(Ordering::is_gt),
        "gte" => ordered(Ordering::is_ge),
        _ => unreachable!("{operator}"),
    }
}

fn one(value: Option<Value>) -> (Vec<Value>, bool) {
    let exists = value.is_some();
    (value.into_iter().collect(), exists)
}

/// The values at a path without escapes, and whether the path exists.
fn metadata(path: &str, video: &Video, span: &Span) -> (Vec<Value>, bool) {
    let mut names = path.split('.');
    let top = names.next().unwrap();
    let from_clip = span.metadata.get(top);
    let mut value = from_clip.or_else(|| video.metadata.get(top));
    for name in names {
        value = value.and_then(|value| value.as_object()?.get(name));
    }
    match value {
        None | Some(Value::Null) => (vec![], false),
        Some(Value::Array(elements)) => (elements.clone(), true),
        Some(value) => (vec![value.clone()], true),
    }
}

fn compare(found: &Value, wanted: &Value) -> Option<Ordering> {
    match (found, wanted) {
        (Value::Number(found), Value::Number(wanted)) => found.as_f64()?.partial_cmp(&wanted.as_f64()?),
        (Value::String(found), Value::String(wanted)) => Some(found.as_bytes().cmp(wanted.as_bytes())),
        (Value::Bool(found), Value::Bool(wanted)) => Some(found.cmp(wanted)),
        _ => None,
    }
}

/// Few values, so that filters often match. Each kind includes values that are easily confused.
fn scalar() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        (-2..3_i64).prop_map(|value| json!(value)),
        prop_oneof![Just(0.1), Just(0.3), Just(-0.0), Just(1.0), Just(1e300), Just(5e-324)]
            .prop_map(|value| json!(value)),
        prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(9_007_199_254_740_993)]
            .prop_map(|value| json!(value)),
        any::<f64>().prop_filter("JSON", |value| value.is_finite()).prop_map(|value| json!(value)),
        Just(json!(u64::MAX)),
    ];
    let text = prop_oneof!["[abAB01éß\\\\\"'%_\u{0}]{0,2}", Just("true".to_owned()), Just("0.1".to_owned())];
    prop_oneof![number, text.prop_map(|text| json!(text)), any::<bool>().prop_map(|value| json!(value))]
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![Just("x"), Just("y"), Just("é"), Just("'\"")].prop_map(str::to_owned)
}

fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![4 => scalar(), 1 => Just(Value::Null)];
    let value = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|values| json!(values)),
            prop::collection::btree_map(names(), inner, 0..3).prop_map(|values| json!(values)),
        ]
    });
    prop::collection::btree_map(names(), value, 0..4).prop_map(|values| json!(values))
}

fn filter() -> impl Strategy<Value = Value> {
    let field =
        prop::collection::vec(names(), 1..3).prop_map(|names| format!("metadata.{}", names.join(".")));
    let ordered = scalar().prop_filter("order", |value| !value.is_boolean());
    let operator = prop_oneof![
        scalar().prop_map(|value| ("eq", value)),
        prop::collection::vec(scalar(), 0..4).prop_map(|values| ("in", json!(values))),
        any::<bool>().prop_map(|value| ("exists", json!(value))),
        (prop_oneof![Just("lt"), Just("lte"), Just("gt"), Just("gte")], ordered),
    ];
    let test = prop_oneof![
        8 => (field, operator).prop_map(|(field, (operator, value))| json!({"field": field, operator: value})),
        1 => (0..4_i64).prop_map(|seconds| json!({"field": "duration", "lt": seconds})),
        1 => prop_oneof![Just("clip"), Just("video")].prop_map(|level| json!({"field": "level", "eq": level})),
    ];
    test.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|inner| json!({"all": inner})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|inner| json!({"any": inner})),
            inner.prop_map(|inner| json!({"not": inner})),
        ]
    })
}

async fn random_filters_select_what_the_oracle_selects(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut runner = TestRunner::deterministic();
    let mut sample =
        |strategy: &dyn Fn() -> BoxedStrategy<Value>| strategy().new_tree(&mut runner).unwrap().current();
    let mut all: Vec<(Video, Span)> = vec![];
    for number in 0..40 {
        let mut new = video(&format!("video {number}"));
        new.metadata = sample(&|| object().boxed());
        new.given = (0..3).map(|_| clip(0, 500, sample(&|| object().boxed()))).collect();
        let stored = add_ready(catalog, new, 1 + number % 3, &[]).await;
        let spans = catalog.view(ALL).clips(stored.id, None, 100).await.unwrap();
        all.extend(spans.into_iter().map(|span| (stored.clone(), span)));
    }
    let clips = json!({"field": "level", "eq": "clip"});
    let mut selected = 0;
    for _ in 0..400 {
        let filter = json!({"all": [clips, sample(&|| filter().boxed())]});
        let expected: KeySet = all
            .iter()
            .filter(|(video, span)| holds(&filter, video, span))
            .map(|(_, span)| span.key)
            .collect();
        let parsed = Filter::parse(&filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
        let found = catalog
            .view(ALL)
            .keys_matching(&parsed)
            .await
            .unwrap_or_else(|error| panic!("{filter}: {error}"));
        if let Some(key) = (&(&found - &expected) | &(&expected - &found)).iter().next() {
            let (video, span) = all.iter().find(|(_, span)| span.key == key).unwrap();
            let (of_video, of_clip) = (&video.metadata, &span.metadata);
            panic!("{filter}\nselected {}: {of_video}\noverlaid by {of_clip}", found.contains(key));
        }
        selected += u64::from(!found.is_empty() && found.len() < all.len() as u64);
    }
    assert!(selected > 100, "too few filters that tell spans apart: {selected}");
}
