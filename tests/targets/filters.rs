//! Filters: JSON to a query of the catalog, and to a set of keys.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use reprise_server::catalog::filter::{MAX_NODES, MAX_VALUES};
use reprise_server::catalog::{self, Catalog, Filter, VideoFilter, Visibility};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// A catalog in a folder of its own.
struct Library {
    runtime: Runtime,
    catalog: Arc<Catalog>,
    _folder: TempDir,
}

fn library() -> &'static Mutex<Library> {
    static LIBRARY: OnceLock<Mutex<Library>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let url = catalog::embedded_url(folder.path());
        let catalog = runtime.block_on(catalog::open(&url)).expect("a new catalog opens");
        Mutex::new(Library { runtime, catalog, _folder: folder })
    })
}

/// A filter that is read is written as it was, is within its limits, and is a query that the database understands.
pub(super) fn run(bytes: &[u8]) {
    let Ok(source) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(filter) = Filter::parse(&source) else { return };
    assert_eq!(filter.to_json(), &source);
    assert_eq!(serde_json::from_value::<Filter>(source.clone()).expect("the same source"), filter);
    assert!(source.to_string().matches("\"field\"").count() <= MAX_NODES + MAX_VALUES);
    let library = library().lock().unwrap_or_else(PoisonError::into_inner);
    let matching = |seen: &Visibility| {
        let view = library.catalog.view(seen);
        library.runtime.block_on(async {
            assert!(view.keys_matching(&filter).await.expect("the database understands it").is_empty());
            assert!(
                view.videos_matching(Some(&filter)).await.expect("the database understands it").is_empty()
            );
        });
    };
    matching(&Visibility::All);
    if let Ok(limited) = VideoFilter::parse(&source) {
        matching(&Visibility::Matching(Arc::new(limited)));
    }
}
