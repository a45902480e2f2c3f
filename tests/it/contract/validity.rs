//! The file alone: a validator's opinion, and the rules that it doesn't know.

use std::collections::HashSet;
use std::process::Command;

use serde_json::Value;

use super::{contract, run, tools};

#[test]
fn the_file_is_valid_openapi() {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, contract().to_string()).unwrap();
    run(Command::new(tools.join("python/bin/openapi-spec-validator")).args(["--errors", "all"]).arg(&file));
}

fn operations(file: &Value) -> impl Iterator<Item = (String, &Value)> {
    let paths = file["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(move |(method, it)| (format!("{method} {path}"), it))
    })
}

#[test]
fn every_operation_has_a_name_an_example_and_its_problems() {
    let file = contract();
    let mut names = HashSet::new();
    for (at, operation) in operations(&file) {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name} names two operations");
        assert!(
            name.chars().all(|it| it.is_ascii_alphabetic()) && name.starts_with(char::is_lowercase),
            "{name}"
        );
        assert!(operation["security"].is_array(), "{at} does not say who may use it");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let is_required = parameter["required"] == true;
            assert!(!is_required || !parameter["example"].is_null(), "{at}: {parameter} has no example");
            let is_described = parameter["description"].is_string() || parameter["$ref"].is_string();
            assert!(is_described, "{at}: {parameter}");
        }
        let bodies = operation["requestBody"]["content"].as_object();
        let has_example = bodies.is_none_or(|all| all.values().any(|it| it["examples"].is_object()));
        assert!(has_example, "{at} has no example of a body");
        for (status, response) in operation["responses"].as_object().unwrap() {
            let is_problem = status.starts_with(['4', '5']);
            assert_eq!(is_problem, response["$ref"].is_string(), "{at}: {status}");
        }
    }
    for (name, response) in file["components"]["responses"].as_object().unwrap() {
        assert!(response["content"]["application/problem+json"].is_object(), "{name}");
    }
}

#[test]
fn every_property_is_described() {
    let file = contract();
    for (name, schema) in file["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string(), "{name}");
        check_properties(name, schema);
    }
}

fn check_properties(name: &str, schema: &Value) {
    for (property, about) in schema["properties"].as_object().into_iter().flatten() {
        let forms = about["oneOf"].as_array().into_iter().flatten();
        let is_described = forms.chain([about]).any(|form| form["description"].is_string());
        assert!(is_described, "{name}.{property}");
    }
    for list in ["oneOf", "allOf"] {
        schema[list].as_array().into_iter().flatten().for_each(|form| check_properties(name, form));
    }
}

#[test]
fn forms_of_a_query_have_titles() {
    let file = contract();
    for name in [
        "Query",
        "SearchRequest",
        "EmbeddingInput",
        "Filter",
        "NewEvaluationQuery",
        "RelevantRange",
        "NewExport",
    ] {
        let forms = file["components"]["schemas"][name]["oneOf"].as_array().unwrap();
        for form in forms {
            let form = form["$ref"].as_str().unwrap().trim_start_matches('#');
            let title = file.pointer(form).unwrap()["title"].as_str();
            assert!(title.is_some_and(|it| !it.is_empty()), "{name}: {form}");
        }
    }
}
