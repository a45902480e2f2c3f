//! Sends every worked example of the contract to a library that holds its ids.

use reqwest::{RequestBuilder, Response, multipart};
use serde_json::Value;

use super::contract;
use super::library::Library;

/// Operations whose examples are sent last, in this order: later ones would miss what they remove.
const LAST: [&str; 12] = [
    "putSubtitles",
    "deleteAlert",
    "deleteWebhook",
    "deleteUpload",
    "deleteEvaluation",
    "deleteExport",
    "deleteReel",
    "resegmentVideo",
    "deleteSubtitles",
    "deleteClip",
    "revokeApiKey",
    "deleteVideo",
];
/// The folder of the examples' files.
const FOLDER: &str = "/srv/videos";

/// One example.
struct Example<'a> {
    method: &'a str,
    path: &'a str,
    operation: &'a Value,
    /// Content type and value.
    body: Option<(&'a str, &'a Value)>,
}

#[tokio::test]
async fn every_example_does_what_the_contract_says() {
    let file = contract();
    let library = Library::start().await;
    let mut examples = examples(&file);
    examples.sort_by_key(|it| LAST.iter().position(|name| it.operation["operationId"] == **name));
    assert!(examples.len() > 40, "{}", examples.len());
    for example in &examples {
        example.check(&library).await;
    }
}

fn examples(file: &Value) -> Vec<Example<'_>> {
    let mut examples = Vec::new();
    for (path, item) in file["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let example = |body| Example { method, path, operation, body };
            let Some(contents) = operation["requestBody"]["content"].as_object() else {
                examples.push(example(None));
                continue;
            };
            for (kind, content) in contents {
                let values = content["examples"].as_object().into_iter().flatten();
                examples.extend(values.map(|(_, it)| example(Some((kind.as_str(), &it["value"])))));
            }
        }
    }
    examples
}

impl Example<'_> {
    async fn check(&self, library: &Library) {
        let mut request = library.request(&self.method.to_uppercase(), &self.place());
        for (name, value) in self.parameters("header") {
            request = request.header(name, value);
        }
        let response = self.with_body(request, library).await.send().await.unwrap();
        self.check_answer(library, response).await;
    }

    async fn check_answer(&self, library: &Library, response: Response) {
        let name = self.operation["operationId"].as_str().unwrap();
        let status = response.status();
        let kind = response.headers().get("content-type").map(|it| it.to_str().unwrap().to_owned());
        let bytes = response.bytes().await.unwrap();
        let said = String::from_utf8_lossy(&bytes);
        let documented = &self.operation["responses"][status.as_str()];
        assert!(status.is_success() && !documented.is_null(), "{name} {:?}: {status} {said}", self.body);
        let kinds = documented["content"].as_object().into_iter().flatten().map(|(kind, _)| kind.as_str());
        let is_documented = |kind: &str| kinds.clone().any(|it| kind.starts_with(it.trim_end_matches('*')));
        assert!(kind.as_deref().is_none_or(is_documented), "{name}: {kind:?}");
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if let Some(job) = answer["job"]["id"].as_str() {
            library.job_end(job).await;
        }
    }

    /// The path and query string with the parameters' examples.
    fn place(&self) -> String {
        let mut path = self.path.to_owned();
        for (name, value) in self.parameters("path") {
            path = path.replace(&format!("{{{name}}}"), &value);
        }
        let query: Vec<String> = self
            .parameters("query")
            .map(|(name, value)| format!("{name}={}", value.replace(' ', "%20")))
            .collect();
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }

    fn parameters(&self, place: &'static str) -> impl Iterator<Item = (&str, String)> {
        let all = self.operation["parameters"].as_array().into_iter().flatten();
        let named = all.filter(move |it| it["in"] == place && !it["example"].is_null());
        named.map(|it| (it["name"].as_str().unwrap(), text(&it["example"])))
    }

    async fn with_body(&self, request: RequestBuilder, library: &Library) -> RequestBuilder {
        let Some((kind, value)) = self.body else { return request };
        match kind {
            "multipart/form-data" => request.multipart(form(value, library).await),
            _ => {
                let folder = library.file().parent().unwrap().display().to_string();
                request.header("content-type", kind).body(text(value).replace(FOLDER, &folder))
            }
        }
    }
}

async fn form(parts: &Value, library: &Library) -> multipart::Form {
    let mut form = multipart::Form::new();
    for (name, value) in parts.as_object().unwrap() {
        form = match name.as_str() {
            "file" if value.as_str().is_some_and(|it| it.ends_with(".jpg")) => {
                form.file("file", library.picture()).await.unwrap()
            }
            "file" => form.file("file", library.file()).await.unwrap(),
            _ => form.text(name.clone(), text(value)),
        };
    }
    form
}

/// A string as it is, anything else as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
