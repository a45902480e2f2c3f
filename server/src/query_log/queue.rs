//! The query log's queue: bounded in entries and bytes. What does not fit is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use uuid::Uuid;

use super::privacy::{AskedQuery, QueryKeeper, QueryLogMode};
use crate::catalog::{LoggedExample, LoggedQuery, NewSearchPage, SearchHit, Secret};
use crate::telemetry::names;
use crate::terms::SearchKind;

/// Most pages that wait to be written.
const MOST_WAITING: usize = 2048;
/// Most bytes of pages that wait to be written, roughly.
const MOST_BYTES: usize = 16 << 20;
/// Bytes of a page without its hits, roughly.
const PAGE_BYTES: usize = 512;
/// Longest wait for pages to be written.
const PATIENCE: Duration = Duration::from_secs(2);

/// The log of searches.
pub struct QueryLog {
    mode: QueryLogMode,
    keeper: QueryKeeper,
    sender: mpsc::Sender<Waiting>,
    /// The other end, until the writer takes it.
    receiver: Mutex<Option<mpsc::Receiver<Waiting>>>,
    room: Arc<Semaphore>,
    added: AtomicU64,
    pub(super) written: watch::Sender<u64>,
    /// Asks the writer to write at once.
    pub(super) hurry: Notify,
}

/// A page that waits to be written, and the room that it takes.
pub(super) struct Waiting {
    page: NewSearchPage,
    room: OwnedSemaphorePermit,
}

impl Waiting {
    /// The page, and its room, which is free when it is dropped.
    pub(super) fn into_parts(self) -> (NewSearchPage, OwnedSemaphorePermit) {
        (self.page, self.room)
    }
}

impl QueryLog {
    /// A log with this mode. `secret` is the key of its hashes.
    pub fn new(mode: QueryLogMode, secret: Secret) -> QueryLog {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        QueryLog {
            mode,
            keeper: QueryKeeper::new(mode, secret),
            sender,
            receiver: Mutex::new(Some(receiver)),
            room: Arc::new(Semaphore::new(MOST_BYTES)),
            added: AtomicU64::new(0),
            written: watch::Sender::new(0),
            hurry: Notify::new(),
        }
    }

    /// The id of a new search. `None`: searches are not logged.
    pub fn next_id(&self) -> Option<Uuid> {
        (self.mode != QueryLogMode::Off).then(Uuid::now_v7)
    }

    /// What the log keeps of a query.
    pub fn keep(&self, kind: SearchKind, asked: &AskedQuery<'_>) -> LoggedQuery {
        self.keeper.keep(kind, asked)
    }

    /// Hands a page to the writer. Never waits: without room the page is dropped and counted. Returns whether there was room.
    pub fn add(&self, page: NewSearchPage) -> bool {
        let bytes = u32::try_from(bytes(&page)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(bytes);
        let sent = room.is_ok_and(|room| self.sender.try_send(Waiting { page, room }).is_ok());
        if sent {
            self.added.fetch_add(1, Ordering::Release);
        } else {
            metrics::counter!(names::QUERY_LOG_DROPPED.name, "reason" => "overload").increment(1);
        }
        sent
    }

    /// Waits until everything is written that was added before, at most 2 s.
    pub async fn settled(&self) {
        let added = self.added.load(Ordering::Acquire);
        let mut written = self.written.subscribe();
        if *written.borrow() >= added {
            return;
        }
        self.hurry.notify_one();
        // Late pages are missing from a list, and come with the next one.
        let _ = tokio::time::timeout(PATIENCE, written.wait_for(|written| *written >= added)).await;
    }

    /// The end of the queue that the writer reads; only the first call gets it.
    pub(super) fn receiver(&self) -> Option<mpsc::Receiver<Waiting>> {
        self.receiver.lock().take()
    }
}

/// The memory of a page, roughly.
fn bytes(page: &NewSearchPage) -> usize {
    let query = page.first.as_ref().map(|first| &first.search.query);
    let text = query.and_then(|query| query.text.as_ref()).map_or(0, String::len);
    let filter = query.and_then(|query| query.filter.as_ref()).map_or(0, |filter| filter.to_string().len());
    let examples = query.and_then(|query| query.examples.as_ref()).map_or(0, |examples| {
        let all = examples.like.iter().chain(&examples.unlike);
        all.map(|it| size_of::<LoggedExample>() + it.text.as_ref().map_or(0, String::len)).sum()
    });
    PAGE_BYTES + text + examples + filter + page.hits.len() * size_of::<SearchHit>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::Level;

    fn log() -> QueryLog {
        QueryLog::new(QueryLogMode::Full, Secret::from([7; 32]))
    }

    fn page(hits: usize) -> NewSearchPage {
        let hit = SearchHit {
            rank: 1,
            span: Uuid::nil(),
            video: Uuid::nil(),
            level: Level::Clip,
            start_ms: 0,
            end_ms: 1,
            inside: false,
            score: 0.5,
            visual: None,
            spoken: None,
            screen: None,
            full_video: None,
        };
        let search = Uuid::now_v7();
        NewSearchPage { search, first: None, hits: vec![hit; hits], shown: 1, exhausted: true }
    }

    /// Adds pages of `hits` hits until one is dropped. Returns the number of pages before it.
    fn room_for(log: &QueryLog, hits: usize) -> usize {
        (0..1_000_000).take_while(|_| log.add(page(hits))).count()
    }

    #[test]
    fn pages_beyond_the_room_are_dropped_and_there_is_room_again_after_a_write() {
        let log = log();
        assert_eq!(room_for(&log, 0), MOST_WAITING);
        let mut receiver = log.receiver().unwrap();
        assert!(log.receiver().is_none(), "there is one writer");
        for _ in 0..3 {
            receiver.try_recv().unwrap();
        }
        assert_eq!(room_for(&log, 0), 3);
    }

    #[test]
    fn long_pages_take_more_room() {
        let log = log();
        let most = MOST_BYTES / (1000 * size_of::<SearchHit>());
        let fits = room_for(&log, 1000);
        assert!((most / 2..=most).contains(&fits) && fits < MOST_WAITING, "{fits} of {most}");
        let mut receiver = log.receiver().unwrap();
        let waiting = receiver.try_recv().unwrap();
        assert!(!log.add(page(1000)), "what is being written takes room");
        drop(waiting);
        assert!(log.add(page(1000)));
    }

    #[test]
    fn a_dropped_page_is_counted() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            let log = log();
            room_for(&log, 0);
            room_for(&log, 0);
        });
        let shown = handle.render();
        assert!(shown.contains("reprise_query_log_dropped_total{reason=\"overload\"} 2"), "{shown}");
    }

    #[test]
    fn a_log_that_is_off_names_no_search() {
        assert_eq!(QueryLog::new(QueryLogMode::Off, Secret::random()).next_id(), None);
        assert!(log().next_id().is_some());
    }
}
