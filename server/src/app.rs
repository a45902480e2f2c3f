//! The parts of a running server as one struct. `start` opens and closes them.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use crate::access::{Caller, Downloads, Gate, LinkSigner};
use crate::catalog::{Catalog, CatalogError, Hold, Secret, View, instant};
use crate::config::Config;
use crate::models::Spaces;
use crate::probes::Probes;
use crate::query_frames::QueryFrames;
use crate::query_log::QueryLog;
use crate::speech::Speech;
use crate::storage::{Derived, Storage};
use crate::vectors::Vectors;

/// The parts of a running server.
pub struct App {
    /// Settings.
    pub config: Config,
    /// The catalog database.
    pub catalog: Arc<Catalog>,
    /// The loaded embedding spaces.
    pub spaces: Spaces,
    /// What writes down speech; `None` if this process does not.
    pub speech: Option<Arc<Speech>>,
    /// The vector index.
    pub vectors: Arc<Vectors>,
    /// Storage for files.
    pub storage: Storage,
    /// Wakes the purge after a video was deleted.
    pub deleted: Notify,
    /// The key that signs cursors.
    pub cursor_secret: Secret,
    /// Signs links to media.
    pub links: LinkSigner,
    /// The log of searches.
    pub query_log: QueryLog,
    /// Finds the callers of requests.
    pub gate: Gate,
    /// Limits uploads of videos that arrive at once.
    pub uploads: Arc<Semaphore>,
    /// Limits uploads of query clips that arrive at once.
    pub query_uploads: Arc<Semaphore>,
    /// Limits concurrent decodes for queries.
    pub query_decodes: Arc<Semaphore>,
    /// The probes of recent uploads.
    pub probes: Probes,
    /// Frames of recent query ranges.
    pub query_frames: QueryFrames,
    /// The downloads that the audit log has.
    pub downloads: Downloads,
    /// Limits concurrent renders.
    pub renders: Renders,
    /// Places for fills, one a runner. A start holds them while it measures the time that the fills take.
    pub fills: Arc<Semaphore>,
    /// Limits exports that are made at once.
    pub exports: Arc<Semaphore>,
    /// One evaluation runs at a time: it must not hold up the ingest.
    pub evaluations: Arc<Semaphore>,
    /// The text of one video is read at a time.
    pub readings: Arc<Semaphore>,
    /// One map is made at a time.
    pub maps: Arc<Semaphore>,
    /// Example queries for the web page. A demo sets them once.
    pub examples: OnceLock<Vec<Example>>,
    /// Whether the server has started and is not closing.
    pub ready: AtomicBool,
    /// Keeps other servers from the embedded database.
    pub hold: Hold,
}

/// Places for renders. Each kind of derived file has its own, so that long ones don't hold up short ones.
pub struct Renders {
    thumbnails: Semaphore,
    previews: Semaphore,
    renditions: Semaphore,
    sprites: Semaphore,
}

impl Default for Renders {
    fn default() -> Renders {
        Renders {
            thumbnails: Semaphore::new(2),
            previews: Semaphore::new(2),
            renditions: Semaphore::new(1),
            sprites: Semaphore::new(1),
        }
    }
}

impl Renders {
    /// The places of a kind.
    pub fn lane(&self, kind: Derived) -> &Semaphore {
        match kind {
            Derived::Thumbnail => &self.thumbnails,
            Derived::Preview => &self.previews,
            Derived::Rendition => &self.renditions,
            Derived::Sprites => &self.sprites,
        }
    }
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

/// The service as one caller may use it. It reads and changes the caller's videos only.
#[derive(Clone)]
pub struct Authorized {
    app: Arc<App>,
    caller: Caller,
}

impl Authorized {
    /// The service for this caller.
    pub fn new(app: Arc<App>, caller: Caller) -> Authorized {
        Authorized { app, caller }
    }

    /// The service for the holder of a key, at work that outlives its request. `owner`: the key's id; `None` for a caller
    /// without one. `None` if the key was revoked or has expired.
    ///
    /// # Errors
    /// The catalog failed.
    pub async fn for_owner(app: &Arc<App>, owner: Option<Uuid>) -> Result<Option<Authorized>, CatalogError> {
        let Some(id) = owner else { return Ok(Some(Authorized::new(Arc::clone(app), Caller::unlimited()))) };
        let key = app.catalog.key(id).await?.map(|held| held.key);
        let valid = key.filter(|key| key.is_valid_at(instant::now_ms()));
        Ok(valid.map(|key| Authorized::new(Arc::clone(app), Caller::of_key(Arc::new(key)))))
    }

    /// The catalog as the caller sees it.
    pub fn view(&self) -> View<'_> {
        self.app.catalog.view(self.caller.visibility()).of_key(self.caller.key_id())
    }

    /// The service itself, for work that outlives the request.
    pub fn shared(&self) -> &Arc<App> {
        &self.app
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl Deref for Authorized {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}
