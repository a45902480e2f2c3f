//! Servers that are killed during an upload.

use std::io::Write;
use std::net::TcpStream;

use reprise_tests::server::Server;

use super::{Uploading, header};
use crate::faults::bed::{Random, until};

/// A part whose request ends before its bytes.
fn broken_part(server: &Server, path: &str, offset: usize, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.base().trim_start_matches("http://")).unwrap();
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: {offset}\r\n\
         Content-Type: application/offset+octet-stream\r\nContent-Length: {}\r\n\r\n",
        bytes.len() + 1
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_after_its_server_was_killed() {
    let mut it = Uploading::start(&[]);
    let (_, bytes) = it.film("film", 1 << 20);
    let path = it.begin(bytes.len()).await;
    let mut random = Random(7);
    let mut offset = 0;
    for round in 0..6 {
        let until = offset + 1 + random.below((bytes.len() / 8) as u64) as usize;
        it.send(&path, offset, &bytes[offset..until]).await;
        offset = until;
        // Every second time in the middle of a part.
        let stream = (round % 2 == 1)
            .then(|| broken_part(&it.server, &path, offset, &bytes[offset..offset + bytes.len() / 16]));
        let folder = it.data();
        let Uploading { folder: kept, server } = it;
        server.kill();
        drop(stream);
        it = Uploading { folder: kept, server: Server::start(&folder, &[]) };
        let told = it.offset(&path).await.expect("the upload is there");
        assert!(told >= offset, "{told} of {offset} acknowledged bytes are left");
        offset = told;
    }
    let last = it.send(&path, offset, &bytes[offset..]).await;
    it.check_made(&last, &bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_arrived_before_a_connection_broke_is_kept() {
    let it = Uploading::start(&[]);
    let (_, bytes) = it.film("film", 1 << 20);
    let path = it.begin(bytes.len()).await;
    drop(broken_part(&it.server, &path, 0, &bytes[..500_000]));
    let arrived = async || it.offset(&path).await.filter(|offset| *offset == 500_000);
    let offset = until("the bytes have arrived", arrived).await;
    // The same request again: its offset is too small by now.
    assert_eq!(it.part(&path, 0, &bytes[..10]).send().await.unwrap().status(), 409);
    let last = it.send(&path, offset, &bytes[offset..]).await;
    assert_eq!(header(&last, "reprise-duplicate").as_deref(), Some("false"));
    it.check_made(&last, &bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_request_at_a_time_sends_bytes() {
    let it = Uploading::start(&["--timeout-seconds", "5"]);
    let (_, bytes) = it.film("film", 10 << 20);
    let path = it.begin(bytes.len()).await;
    let sent = 9 << 20;
    let stream = broken_part(&it.server, &path, 0, &bytes[..sent]);
    // An offset that moves shows that the first request has the upload. Asking for it takes no lock.
    let moved = async || it.offset(&path).await.filter(|offset| *offset > 0);
    let offset = until("the first request is sending", moved).await;
    assert!(offset < sent, "the first request has ended: {offset}");
    it.server.refused(it.part(&path, offset, b"x"), 423).await;
    it.server.refused(it.request("DELETE", &path), 423).await;
    // The first one sends nothing more: it is cut off, and what it has sent is kept.
    until("the slow sender is cut off", async || it.offset(&path).await.filter(|offset| *offset == sent))
        .await;
    drop(stream);
    let last = it.send(&path, sent, &bytes[sent..]).await;
    it.check_made(&last, &bytes).await;
}
