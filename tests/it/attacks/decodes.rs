//! Queries whose decoding takes for ever.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::json;

/// Attempts of a query behind one that was given up.
const ATTEMPTS: usize = 5;

#[tokio::test]
async fn a_decode_that_nobody_waits_for_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (data, slow) = (folder.path().join("data"), folder.path().join("slow"));
    std::fs::create_dir(&data).unwrap();
    // Busy for ever, so that it is not taken for stalled, with the pipe to its reader open.
    let script = format!(
        "#!/bin/sh\n[ -e {} ] && exec cat /dev/zero 3>&1 >/dev/null\nexec ffmpeg \"$@\"\n",
        slow.display()
    );
    let ffmpeg = folder.path().join("ffmpeg");
    std::fs::write(&ffmpeg, script).unwrap();
    std::fs::set_permissions(&ffmpeg, std::fs::Permissions::from_mode(0o755)).unwrap();
    let environment = [("REPRISE_FFMPEG", ffmpeg.as_path()), ("REPRISE_NO_SANDBOX", Path::new("true"))];
    let limits = ["--query-decodes", "1", "--timeout-seconds", "4"];
    let server = Server::try_start_with(&data, &limits, &environment).unwrap();
    let file = film(folder.path(), "film", &["testsrc2"], Store::Web);
    server.ingest(&file).await;

    std::fs::write(&slow, "").unwrap();
    let query = json!({"query": {"upload": true}});
    let (status, problem) = server.search_upload(&query, &file).await;
    assert_eq!(status, 504, "{problem}");
    std::fs::remove_file(&slow).unwrap();
    for attempt in 1..=ATTEMPTS {
        let (status, answer) = server.search_upload(&query, &file).await;
        if status == 200 {
            return;
        }
        assert!(status == 504 && attempt < ATTEMPTS, "the first decode holds the only place: {answer}");
    }
}
