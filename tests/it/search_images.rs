//! Searches by a still image: an upload, or a stored video at a time.

use std::path::{Path, PathBuf};

use reprise_tests::film::{Store, ffmpeg, film, run};
use reprise_tests::server::Server;
use serde_json::{Value, json};

/// A picture of one colour, in the format of the name's ending.
fn picture(folder: &Path, name: &str, colour: &str) -> PathBuf {
    let file = folder.join(name);
    let source = format!("color=c={colour}:s=160x120");
    run(ffmpeg().args(["-f", "lavfi", "-i", &source, "-frames:v", "1"]).arg(&file));
    file
}

/// A server with one film of red, bars and blue, and the film's id.
async fn library(folder: &Path, options: &[&str]) -> (Server, String) {
    let data = folder.join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, options);
    let cut = [("segmentation", json!({"policy": "content"}))];
    let shots = ["color=c=red", "smptebars", "color=c=blue"];
    let video = server.ingest_with(&film(folder, "film", &shots, Store::Lossless), &cut).await;
    (server, video["id"].as_str().unwrap().to_owned())
}

/// The hits' shots, best first.
fn shots(answer: &Value) -> Vec<usize> {
    let hits = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    hits.map(|hit| (hit["start"].as_f64().unwrap() / 2.0).round() as usize).collect()
}

#[tokio::test]
async fn images_find_what_they_show() {
    let folder = tempfile::tempdir().unwrap();
    let (server, video) = library(folder.path(), &[]).await;
    uploads_of_every_format_are_searched(&server, folder.path()).await;
    a_stored_video_is_searched_at_a_time(&server, &video).await;
    images_are_changed_and_mixed(&server, &video, folder.path()).await;
    what_is_wrong_is_refused_with_a_pointer(&server, &video, folder.path()).await;
}

async fn uploads_of_every_format_are_searched(server: &Server, folder: &Path) {
    for (name, colour, shot) in
        [("a.png", "red", 0), ("a.jpg", "red", 0), ("a.webp", "red", 0), ("b.png", "blue", 2)]
    {
        let file = picture(folder, name, colour);
        let (status, answer) =
            server.search_upload(&json!({"query": {"image": {"upload": true}}}), &file).await;
        assert_eq!(status, 200, "{name}: {answer}");
        assert_eq!(shots(&answer)[0], shot, "{name}: {answer}");
        assert!(answer["results"][0]["score"].as_f64().unwrap() > 0.99, "{name}: {answer}");
        let info = &answer["query_info"];
        assert_eq!((&info["kind"], &info["frames"]), (&json!("image"), &json!(1)), "{name}");
    }
}

async fn a_stored_video_is_searched_at_a_time(server: &Server, video: &str) {
    let at = |at: f64| json!({"image": {"video_id": video, "at": at}});
    let found = server.search(&json!({"query": at(1.0), "exclude": {"self": false}})).await;
    assert_eq!((shots(&found)[0], shots(&found).len()), (0, 3), "{found}");
    assert!(found["results"][0]["score"].as_f64().unwrap() > 0.9999, "one colour, one vector: {found}");
    // Between two frames the earlier one is on the screen.
    let between = server.search(&json!({"query": at(1.013), "exclude": {"self": false}})).await;
    assert_eq!(found["results"], between["results"]);
    // The clip that shows it is the query itself.
    let others = server.search(&json!({"query": at(5.0)})).await;
    assert!(!shots(&others).contains(&2) && shots(&others).len() == 2, "{others}");
    let logged = server.get(&format!("/v1/searches/{}", others["search_id"].as_str().unwrap())).await.1;
    assert_eq!(
        (&logged["kind"], &logged["query"]["video_id"], &logged["query"]["start"]),
        (&json!("image"), &json!(video), &json!(5.0))
    );
    let (status, alert) =
        server.post("/v1/alerts", &json!({"name": "Red", "search": {"query": at(1.0)}})).await;
    assert_eq!(status, 201, "{alert}");
}

async fn images_are_changed_and_mixed(server: &Server, video: &str, folder: &Path) {
    let red = picture(folder, "mixed.png", "red");
    let changed = json!({"query": {"image": {"upload": true}, "modification": "in blue"}});
    let (status, answer) = server.search_upload(&changed, &red).await;
    assert_eq!((status.as_u16(), &answer["query_info"]["kind"]), (200, &json!("composed")), "{answer}");
    // One file, and examples that are stored.
    let blue = json!({"image": {"video_id": video, "at": 5.0}});
    let mixed = json!({"query": {"like": [blue], "unlike": [{"image": {"upload": true}}]}, "exclude": {"self": false}});
    let (status, answer) = server.search_upload(&mixed, &red).await;
    assert_eq!((status.as_u16(), shots(&answer)[0]), (200, 2), "{answer}");
    let clip = film(folder, "clip", &["color=c=red"], Store::Lossless);
    let mixed = json!({"query": {"like": [{"upload": true, "start": 0.5, "end": 1.5}]}});
    let (status, answer) = server.search_upload(&mixed, &clip).await;
    assert_eq!((status.as_u16(), shots(&answer)[0]), (200, 0), "{answer}");
}

async fn what_is_wrong_is_refused_with_a_pointer(server: &Server, video: &str, folder: &Path) {
    let nobody = "01890000-0000-7000-8000-000000000000";
    let image = |image: Value| json!({"query": {"image": image}});
    let cases = [
        (image(json!({})), 422, "/query/image"),
        (image(json!({"upload": true})), 422, "/query/image/upload"),
        (image(json!({"upload": true, "at": 1})), 422, "/query/image"),
        (image(json!({"video_id": video})), 422, "/query/image"),
        (image(json!({"video_id": video, "at": -1})), 422, "/query/image/at"),
        (image(json!({"video_id": video, "at": 7})), 422, "/query/image/at"),
        (image(json!({"video_id": nobody, "at": 1})), 404, "/query/image/video_id"),
        (json!({"query": {"image": {"video_id": video, "at": 1}, "text": "x"}}), 422, "/query"),
        (json!({"query": {"image": {"video_id": video, "at": 1}, "start": 1}}), 422, "/query/start"),
        (
            json!({"query": {"like": [{"text": "x"}, {"image": {"upload": true}}]}}),
            422,
            "/query/like/1/image/upload",
        ),
        (
            json!({"query": {"like": [{"text": "x"}], "unlike": [{"upload": true}]}}),
            422,
            "/query/unlike/0/upload",
        ),
    ];
    for (body, status, pointer) in cases {
        let problem = server.refused(server.request("POST", "/v1/search").json(&body), status).await;
        assert_eq!(
            problem["errors"][0]["pointer"].as_str().unwrap_or_default(),
            pointer,
            "{body}: {problem}"
        );
    }
    let red = picture(folder, "red.png", "red");
    let cut_off = folder.join("cut.png");
    std::fs::write(&cut_off, &std::fs::read(&red).unwrap()[..40]).unwrap();
    let text = folder.join("text.png");
    std::fs::write(&text, "no picture at all").unwrap();
    let upload = json!({"image": {"upload": true}});
    let two = json!({"like": [upload, {"upload": true}]});
    for (query, file, status, pointer) in [
        (upload.clone(), &cut_off, 415, "file"),
        (upload.clone(), &text, 415, "file"),
        (json!({"upload": true}), &red, 415, "file"),
        (two, &red, 422, "/query/like/1/upload"),
        (json!({"text": "x"}), &red, 422, "/query/upload"),
    ] {
        let (got, problem) = server.search_upload(&json!({"query": query}), file).await;
        assert_eq!(got, status, "{query}: {problem}");
        assert_eq!(
            problem["errors"][0]["pointer"].as_str().unwrap_or_default(),
            pointer,
            "{query}: {problem}"
        );
    }
}
