//! The parts of a running server as one struct. `start` opens and closes them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio::sync::{Notify, Semaphore};

use crate::catalog::Catalog;
use crate::config::Config;
use crate::models::Spaces;
use crate::storage::Storage;
use crate::vectors::Vectors;

/// The parts of a running server.
pub struct App {
    /// Settings.
    pub config: Config,
    /// The catalog database.
    pub catalog: Arc<Catalog>,
    /// The loaded embedding spaces.
    pub spaces: Spaces,
    /// The vector index.
    pub vectors: Arc<Vectors>,
    /// Storage for files.
    pub storage: Storage,
    /// Wakes the purge after a video was deleted.
    pub deleted: Notify,
    /// Limits concurrent decodes for queries.
    pub query_decodes: Arc<Semaphore>,
    /// Limits concurrent renders of thumbnails, previews and renditions.
    pub renders: Semaphore,
    /// Example queries for the web page. A demo sets them once.
    pub examples: OnceLock<Vec<Example>>,
    /// Whether the server has started and is not closing.
    pub ready: AtomicBool,
}

/// An example query, as a link on the web page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// The query in words.
    pub title: String,
    /// Path and query string of the page's address.
    pub href: String,
}

impl App {
    /// Whether the server accepts requests: started, not closing, and every model has a running worker.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) && self.spaces.alive()
    }
}
