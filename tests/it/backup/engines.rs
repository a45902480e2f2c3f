//! A shared engine that has seen more than the backup follows the restored library.

use reprise_tests::postgres::vector_database;

use super::{prints, shown};
use crate::faults::bed::{Bed, assert_whole, text, until, videos};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_outlived_the_library_follows_the_restored_one() {
    let Some(url) = vector_database().await else { return };
    let engine = ["--index-engine", "pgvector", "--index-url", url.as_str(), "--index-check-seconds", "0.5"];
    let (bed, restored) = (Bed::sqlite(), Bed::sqlite());
    let server = bed.start(&engine);
    server.ingest(&bed.film(0, 2)).await;
    let backup = bed.folder().join("backup");
    prints(&bed, &["backup", shown(&backup)]);
    server.ingest(&bed.film(1, 3)).await;
    assert!(server.stop(), "it did not stop well");

    prints(&restored, &["restore", shown(&backup)]);
    let server = restored.start(&engine);
    // Its spans take the keys under which the engine has vectors of the lost video.
    server.ingest(&restored.film(2, 2)).await;
    let has_the_same = async || {
        let (_, stats) = server.get("/v1/stats").await;
        let live = stats["index"].as_array()?.iter().filter_map(|level| level["live"].as_i64()).sum::<i64>();
        (stats["catalog_seq"] == stats["index_seq"] && Some(live) == stats["vectors"].as_i64()).then_some(())
    };
    until("the engine holds what the library holds", has_the_same).await;
    let left = videos(&server).await;
    assert_eq!(left.len(), 2, "{left:?}");
    for video in left {
        assert_whole(&server, text(&video, "/id")).await;
    }
}
