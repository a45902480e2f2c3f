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

/// The parts of a server.
pub struct App {
    /// Its settings.
    pub config: Config,
    /// What is known.
    pub catalog: Arc<Catalog>,
    /// The models.
    pub spaces: Spaces,
    /// What is searched.
    pub vectors: Arc<Vectors>,
    /// The files.
    pub storage: Storage,
    /// Announces a deleted video to the purge.
    pub deleted: Notify,
    /// Places for decoding queries.
    pub query_decodes: Arc<Semaphore>,
    /// Places for rendering pictures and video for people.
    pub renders: Semaphore,
    /// Queries worth trying, which the page offers; set once, by a demo.
    pub examples: OnceLock<Vec<Example>>,
    /// Whether requests should be sent here.
    pub ready: AtomicBool,
}

/// A query as a link of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// What is asked, in words.
    pub title: String,
    /// Path and query of the page's address.
    pub href: String,
}

impl App {
    /// Whether requests should be sent here: started, not closing, and every model has a living worker.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) && self.spaces.alive()
    }
}
