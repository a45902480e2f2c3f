//! A proxy that cuts connections after so many bytes of their client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::faults::bed::Random;

/// A proxy that cuts connections until it has cut enough of them.
pub(super) struct Cutter {
    base: String,
    left: Arc<AtomicUsize>,
}

/// How often and where to cut.
#[derive(Clone, Copy)]
pub(super) struct Cuts {
    pub(super) number: usize,
    /// A connection is cut after less than this many bytes of its client.
    pub(super) before: u64,
    pub(super) seed: u64,
}

impl Cutter {
    /// Starts a proxy to a server's `http://…`.
    pub(super) async fn start(server: &str, cuts: Cuts) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (to, left) =
            (server.trim_start_matches("http://").to_owned(), Arc::new(AtomicUsize::new(cuts.number)));
        let counting = Arc::clone(&left);
        tokio::spawn(async move {
            let mut random = Random(cuts.seed);
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&to).await.unwrap();
                tokio::spawn(pass(client, server, random.below(cuts.before), Arc::clone(&counting)));
            }
        });
        Cutter { base, left }
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Number of cuts that are still to come.
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}

/// Passes bytes on both ways, until either side ends or the client has sent `most` bytes.
async fn pass(client: TcpStream, server: TcpStream, most: u64, left: Arc<AtomicUsize>) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let up = async {
        let (mut sent, mut piece) = (0, vec![0; 16 << 10]);
        while let Ok(read @ 1..) = from_client.read(&mut piece).await {
            let allowed = usize::try_from(most - sent).unwrap().min(read);
            let is_over = allowed < read && left.load(Ordering::SeqCst) > 0;
            let passed = if is_over { allowed } else { read };
            if to_server.write_all(&piece[..passed]).await.is_err() {
                return;
            }
            sent = (sent + passed as u64).min(most);
            if is_over {
                left.fetch_sub(1, Ordering::SeqCst);
                return;
            }
        }
    };
    let down = async {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
