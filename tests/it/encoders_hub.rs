//! Models from a hub; a local server takes its place.

use std::path::Path;
use std::time::{Duration, Instant};

use reprise_encoders::{Embedder, LoadError, LoadOptions, load_with};
use reprise_tests::hub::{COMMIT, Fault, Hub};

use crate::encoders::folder;

/// Name of the weights file in these tests.
const WEIGHTS: &str = "model.safetensors";

/// A hub with these models: `org/whole` (one weight file), `org/sharded`, `org/bare` (only a config.json),
/// `org/sentence` and `org/e5-tiny` (sentence encoders, the second without modules), `org/siglip`, `org/eva` and
/// `org/open-clip` (in OpenCLIP's layout, the second in PyTorch's format), `org/pickled` (PyTorch's format, in
/// parts), `org/aim` (another architecture) and `org/gated` (requires the token `secret`).
fn hub() -> Hub {
    let bare = ["preprocessor_config.json", WEIGHTS, "tokenizer.json"];
    Hub::start()
        .with("org/whole", &folder("legacy"), &[])
        .with("org/sharded", &folder("wordpiece"), &[])
        .with("org/bare", &folder("legacy"), &bare)
        .with("org/sentence", &folder("sentence/cls"), &[])
        .with("org/e5-tiny", &folder("sentence/e5-tiny"), &[])
        .with("org/pickled", &folder("sentence/mean"), &[WEIGHTS])
        .with("org/siglip", &folder("siglip/two"), &[])
        .with("org/eva", &folder("open-clip/eva"), &[])
        .with("org/open-clip", &folder("open-clip/clip"), &[])
        .with("org/aim", &folder("covr/bert"), &[])
        .with("org/gated", &folder("legacy"), &[])
        .closed("org/gated", "secret")
}

fn options(hub: &Hub, cache: &Path) -> LoadOptions {
    LoadOptions {
        endpoint: Some(hub.endpoint.clone()),
        cache: Some(cache.to_owned()),
        token: Some(String::new()),
        offline: Some(false),
        patience: Some(Duration::from_millis(100)),
        ..LoadOptions::default()
    }
}

fn load(hub: &Hub, model: &str, cache: &Path) -> Result<Embedder, LoadError> {
    load_with(&model.parse().unwrap(), &options(hub, cache))
}

/// The space id of a model loaded from its folder.
fn id_of(variant: &str) -> String {
    let local = reprise_encoders::load(&folder(variant).to_str().unwrap().parse().unwrap(), 1).unwrap();
    local.space.id
}

#[test]
fn a_hub_model_is_the_space_of_its_folder_and_is_downloaded_once() {
    let cache = tempfile::tempdir().unwrap();
    let hub = hub();
    for (model, variant) in [
        ("org/whole", "legacy"),
        ("org/sharded", "wordpiece"),
        ("org/whole@main", "legacy"),
        ("org/sentence", "sentence/cls"),
        ("org/e5-tiny", "sentence/e5-tiny"),
        ("org/siglip", "siglip/two"),
        ("org/eva", "open-clip/eva"),
        ("org/open-clip", "open-clip/clip"),
    ] {
        let loaded = load(&hub, model, cache.path()).unwrap();
        assert_eq!(loaded.space.id, id_of(variant), "{model}");
        assert_eq!(loaded.space.model, model);
        let asked = hub.asked().len();
        assert!(asked > 0);
        load(&hub, model, cache.path()).unwrap();
        assert_eq!(hub.asked().len(), asked, "of {model} nothing is asked for again, nor what it lacks");
    }
}

#[test]
fn weights_in_pytorchs_format_serve_where_there_are_no_others() {
    let (hub, cache) = (hub(), tempfile::tempdir().unwrap());
    // Equal tensors in another format give the same space.
    assert_eq!(load(&hub, "org/pickled", cache.path()).unwrap().space.id, id_of("sentence/mean"));
    assert_eq!(hub.asked_for("pytorch_model-00002-of-00002.bin"), [0]);
}

#[test]
fn the_cache_is_that_of_the_hubs_own_client() {
    let (hub, cache) = (hub(), tempfile::tempdir().unwrap());
    load(&hub, "org/sentence", cache.path()).unwrap();
    let model = cache.path().join("models--org--sentence");
    assert_eq!(std::fs::read_to_string(model.join("refs/main")).unwrap(), COMMIT);
    let snapshot = model.join("snapshots").join(COMMIT);
    for (file, up) in [("config.json", "../../blobs"), ("1_Pooling/config.json", "../../../blobs")] {
        let link = std::fs::read_link(snapshot.join(file)).unwrap();
        assert_eq!(link.parent().unwrap(), Path::new(up));
        let body = std::fs::read(folder("sentence/cls").join(file)).unwrap();
        assert_eq!(std::fs::read(model.join("blobs").join(link.file_name().unwrap())).unwrap(), body);
    }
    let left: Vec<_> = std::fs::read_dir(model.join("blobs")).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none()), "nothing incomplete is left: {left:?}");
}

#[test]
fn a_closed_model_loads_with_the_right_token_and_says_which_is_wrong() {
    let (hub, cache) = (hub(), tempfile::tempdir().unwrap());
    for (token, expected) in [("", "HF_TOKEN"), ("other", "/org/gated and set HF_TOKEN"), ("secret", "")] {
        let options = LoadOptions { token: Some(token.to_owned()), ..options(&hub, cache.path()) };
        let said = load_with(&"org/gated".parse().unwrap(), &options).err().map(|error| error.to_string());
        assert_eq!(said.is_some(), !expected.is_empty(), "{token}: {said:?}");
        assert!(said.unwrap_or_default().contains(expected), "{token}");
    }
    assert!(hub.asked().iter().any(|it| it.authorization == "Bearer secret"));
}

/// Loads `model` from a failing hub twice, with one cache. Checks both errors, and the first byte of each request for
/// the weights.
#[track_caller]
fn check(hub: Hub, model: &str, first: &[&str], second: &[&str], asked: &[usize]) {
    let cache = tempfile::tempdir().unwrap();
    for (attempt, says) in [first, second].into_iter().enumerate() {
        let started = Instant::now();
        match load(&hub, model, cache.path()) {
            Ok(loaded) => {
                assert!(says.is_empty(), "attempt {attempt} succeeded");
                assert_eq!(loaded.space.id, id_of("legacy"));
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!says.is_empty() && says.iter().all(|said| text.contains(said)), "{attempt}: {text}");
            }
        }
        assert!(started.elapsed() < Duration::from_secs(60), "it ends in bounded time");
    }
    assert_eq!(hub.asked_for(WEIGHTS), asked);
}

#[test]
fn a_download_that_is_cut_goes_on_where_it_stopped() {
    let hub = hub().failing(WEIGHTS, Fault::Cut(1000), 2);
    check(hub, "org/whole", &[], &[], &[0, 1000, 2000]);
    // A download abandoned earlier also resumes, at the next start.
    let hub = self::hub().failing(WEIGHTS, Fault::Cut(1000), 5);
    check(hub, "org/whole", &["byte 5000 of"], &[], &[0, 1000, 2000, 3000, 4000, 5000]);
}

#[test]
fn a_hub_that_sends_the_whole_file_again_is_understood() {
    let hub = hub().failing(WEIGHTS, Fault::Cut(1000), 1).failing(WEIGHTS, Fault::Whole, 1);
    check(hub, "org/whole", &[], &[], &[0, 1000]);
}

#[test]
fn a_hub_that_falls_silent_is_given_up_in_bounded_time() {
    let hub = hub().failing(WEIGHTS, Fault::Silent(1000), 1);
    check(hub, "org/whole", &[], &[], &[0, 1000]);
    let hub = self::hub().failing(WEIGHTS, Fault::Silent(0), 5);
    check(hub, "org/whole", &["can't be read", "HF_ENDPOINT"], &[], &[0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_hub_that_sends_next_to_nothing_is_given_up_in_bounded_time() {
    let (hub, cache) = (hub().failing(WEIGHTS, Fault::Trickle(1000), 5), tempfile::tempdir().unwrap());
    let error = load(&hub, "org/whole", cache.path()).err().unwrap().to_string();
    assert!(error.contains("hardly any bytes come"), "{error}");
    load(&hub, "org/whole", cache.path()).unwrap();
    let asked = hub.asked_for(WEIGHTS);
    assert_eq!(asked.len(), 6);
    assert!(asked.is_sorted() && asked[1] > 1000, "what came is not asked for again: {asked:?}");
}

#[test]
fn a_hub_that_fails_for_a_moment_is_asked_again() {
    let hub = hub().failing(WEIGHTS, Fault::Status(503), 3).failing("config.json", Fault::Status(500), 1);
    check(hub, "org/whole", &[], &[], &[0]);
    let hub = self::hub().failing("config.json", Fault::Status(502), 4);
    check(hub, "org/whole", &["502"], &[], &[0]);
}

#[test]
fn what_comes_damaged_is_no_model_and_is_not_kept() {
    let hub = hub().failing(WEIGHTS, Fault::Damaged, 1);
    check(hub, "org/whole", &[], &[], &[0, 0]);
    let hub = self::hub().failing(WEIGHTS, Fault::Damaged, 2);
    check(hub, "org/whole", &[WEIGHTS, "SHA-256", "nothing of it is kept"], &[], &[0, 0, 0]);
    let hub = self::hub().failing("config.json", Fault::Damaged, 2);
    check(hub, "org/whole", &["config.json", "git hash"], &[], &[0]);
    // The resumed part is damaged, so the next request asks for the whole file. Its answer is damaged too.
    let cut = self::hub().failing(WEIGHTS, Fault::Cut(1000), 1).failing(WEIGHTS, Fault::Damaged, 2);
    check(cut, "org/whole", &["SHA-256"], &[], &[0, 1000, 0, 0]);
}

#[test]
fn a_size_that_is_not_what_was_said_is_no_model() {
    let length = folder("legacy").join(WEIGHTS).metadata().unwrap().len();
    for wrong in [length - 1, length + 1] {
        // The first answer states the file's size.
        let hub = hub().failing(WEIGHTS, Fault::Size(wrong), 1);
        check(hub, "org/whole", &["is said to have"], &[], &[0, 0, 0]);
    }
}

#[test]
fn a_model_that_is_too_large_for_the_disk_is_refused_before_it_is_there() {
    let hub = hub().failing(WEIGHTS, Fault::Size(1 << 60), 1);
    check(hub, "org/whole", &["no space left", "HF_HOME", "org/whole"], &[], &[0]);
}

#[test]
fn a_disk_that_fills_up_is_named() {
    let (hub, cache) = (hub(), tempfile::tempdir().unwrap());
    load(&hub, "org/whole", cache.path()).unwrap();
    let snapshot = cache.path().join("models--org--whole/snapshots").join(COMMIT);
    let blob = snapshot.join(std::fs::read_link(snapshot.join(WEIGHTS)).unwrap());
    std::fs::remove_file(&blob).unwrap();
    std::os::unix::fs::symlink("/dev/full", blob.with_extension("incomplete")).unwrap();
    let error = load(&hub, "org/whole", cache.path()).err().unwrap();
    assert!(matches!(error, LoadError::NoSpace { .. }), "{error:?}");
}

#[test]
fn without_a_network_what_is_in_the_cache_loads() {
    let (hub, cache) = (hub(), tempfile::tempdir().unwrap());
    for (model, other) in [("org/whole", "org/sharded"), ("org/sentence", "org/pickled")] {
        load(&hub, model, cache.path()).unwrap();
        let options = LoadOptions { offline: Some(true), ..options(&hub, cache.path()) };
        let asked = hub.asked().len();
        assert!(load_with(&model.parse().unwrap(), &options).is_ok());
        let error = load_with(&other.parse().unwrap(), &options).err().unwrap();
        assert!(matches!(error, LoadError::Offline { .. }), "{error:?}");
        assert!(error.to_string().contains("HF_HUB_OFFLINE") && error.to_string().contains(other), "{error}");
        assert_eq!(hub.asked().len(), asked, "nobody is asked");
    }
}

/// Checks the error of loading `model`; no weights may be downloaded.
#[track_caller]
fn refused(model: &str, is_expected: fn(&LoadError) -> bool, says: &[&str]) {
    let (hub, cache) = (hub(), tempfile::tempdir().unwrap());
    let error = load(&hub, model, cache.path()).map(|_| ()).unwrap_err();
    assert!(is_expected(&error), "{error:?}");
    let text = error.to_string();
    assert!(says.iter().all(|said| text.contains(said)), "{text}");
    assert_eq!(hub.asked_for(WEIGHTS), [0; 0]);
}

#[test]
fn a_model_that_can_not_be_had_says_why() {
    let not_found = |error: &LoadError| matches!(error, LoadError::NotFound { .. });
    refused("org/nothing", not_found, &["org/nothing", "name and revision"]);
    refused("org/whole@other", not_found, &["org/whole@other"]);
    let unauthorized = |error: &LoadError| matches!(error, LoadError::Unauthorized { .. });
    refused("org/gated", unauthorized, &["org/gated", "HF_TOKEN"]);
    let missing = |error: &LoadError| matches!(error, LoadError::MissingFile { model, file } if model == "org/bare" && file == "preprocessor_config.json");
    refused("org/bare", missing, &["org/bare has no preprocessor_config.json"]);
    let unsupported = |error: &LoadError| matches!(error, LoadError::Unsupported(_));
    refused("org/aim", unsupported, &["aim", "folders"]);
}

#[test]
fn another_architecture_is_refused_before_its_weights_are_downloaded() {
    let [cache, other, captions] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    std::fs::write(other.path().join("config.json"), r#"{"model_type": "gpt2"}"#).unwrap();
    let config = r#"{"model_type": "blip-2", "architectures": ["Blip2ForConditionalGeneration"]}"#;
    std::fs::write(captions.path().join("config.json"), config).unwrap();
    let hub = hub().with("org/other", other.path(), &[]).with("org/captions", captions.path(), &[]);
    let error = load(&hub, "org/captions", cache.path()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("Blip2ForImageTextRetrieval"), "{error}");
    let error = load(&hub, "org/other", cache.path()).map(|_| ()).unwrap_err();
    assert!(matches!(&error, LoadError::Architecture { found, .. } if found == "gpt2"), "{error:?}");
    // The loader may also request OpenCLIP's configuration.
    let is_small = |path: &str| path.ends_with("config.json") || path.starts_with("/api/");
    assert!(hub.asked().iter().all(|it| is_small(&it.path)), "{:?}", hub.asked());
}

#[test]
fn a_hub_that_does_not_answer_is_a_network_error() {
    let cache = tempfile::tempdir().unwrap();
    // Nobody listens there. A port that was just freed may be another test's.
    let endpoint = Some("http://127.0.0.1:1".to_owned());
    let options = LoadOptions { endpoint, ..options(&hub(), cache.path()) };
    let error = load_with(&"org/whole".parse().unwrap(), &options).map(|_| ()).unwrap_err();
    assert!(matches!(error, LoadError::Network { .. }), "{error:?}");
    assert!(error.to_string().contains("HF_ENDPOINT"), "{error}");
}
