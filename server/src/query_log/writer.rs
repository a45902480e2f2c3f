//! Writes the query log in batches, and forgets old searches every hour.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::queue::{QueryLog, Waiting};
use crate::catalog::{Catalog, NewSearchPage};
use crate::telemetry::names;

/// How long a page waits for others: so many writes a second at most.
const GATHER: Duration = Duration::from_millis(250);
/// Most pages of one transaction.
const MOST_AT_ONCE: usize = 256;
/// Interval of forgetting old searches.
const FORGET_EVERY: Duration = Duration::from_secs(3600);

impl QueryLog {
    /// Writes pages until `closing`, and then those that still wait. Forgets searches after this many days. A second call ends
    /// at once.
    pub async fn write(&self, catalog: &Catalog, days: u32, closing: CancellationToken) {
        let Some(mut receiver) = self.receiver() else { return };
        let mut forget = interval(FORGET_EVERY);
        forget.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::new();
        while !closing.is_cancelled() {
            tokio::select! {
                () = closing.cancelled() => break,
                _ = forget.tick() => self.forget(catalog, days).await,
                _ = receiver.recv_many(&mut batch, 1) => {
                    self.gather(&closing).await;
                    self.write_batch(catalog, &mut receiver, &mut batch).await;
                }
            }
        }
        receiver.close();
        while !batch.is_empty() || !receiver.is_empty() {
            self.write_batch(catalog, &mut receiver, &mut batch).await;
        }
    }

    /// Waits for further pages, unless somebody wants to read.
    async fn gather(&self, closing: &CancellationToken) {
        tokio::select! {
            () = closing.cancelled() => {}
            () = self.hurry.notified() => {}
            () = sleep(GATHER) => {}
        }
    }

    /// Writes the batch, filled up with what waits. A batch that can't be written is dropped and counted.
    async fn write_batch(
        &self,
        catalog: &Catalog,
        receiver: &mut mpsc::Receiver<Waiting>,
        batch: &mut Vec<Waiting>,
    ) {
        while batch.len() < MOST_AT_ONCE
            && let Ok(waiting) = receiver.try_recv()
        {
            batch.push(waiting);
        }
        // The room is free again once the pages are written.
        let (pages, room): (Vec<NewSearchPage>, Vec<_>) = batch.drain(..).map(Waiting::into_parts).unzip();
        if let Err(error) = catalog.log_searches(&pages).await {
            tracing::warn!(%error, pages = pages.len(), "searches can't be logged");
            metrics::counter!(names::QUERY_LOG_DROPPED.name, "reason" => "database")
                .increment(pages.len() as u64);
        }
        drop(room);
        self.written.send_modify(|written| *written += pages.len() as u64);
    }

    async fn forget(&self, catalog: &Catalog, days: u32) {
        match catalog.forget_searches(i64::from(days) * 24 * 3600 * 1000).await {
            Ok(0) => {}
            Ok(searches) => tracing::info!(searches, "forgot old searches"),
            Err(error) => tracing::warn!(%error, "old searches can't be forgotten yet"),
        }
    }
}
