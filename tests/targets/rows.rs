//! Tables of vectors: `.npy` and `.safetensors`.

use std::path::Path;

use reprise_research::rows::{Rows, npy};

/// The file's ending. The first byte chooses.
fn read(folder: &Path, bytes: &[u8]) -> Option<Rows> {
    let (first, content) = bytes.split_first()?;
    let path = folder.join(if first % 2 == 0 { "rows.npy" } else { "rows.safetensors" });
    std::fs::write(&path, content).ok()?;
    if let Ok(table) = npy::read_integers(&path) {
        assert_eq!(table.values.len() % table.columns, 0);
        assert!(table.values.len() * 4 <= content.len());
    }
    let rows = Rows::read(&path).ok()?;
    assert!(rows.len() * rows.dim() * 2 <= content.len(), "more values than the file has");
    Some(rows)
}

/// What is read is finite, no more than the file holds, and comes back after it was written.
pub(super) fn run(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(rows) = read(folder.path(), bytes) else { return };
    assert!(rows.values().iter().all(|value| value.is_finite()));
    for name in ["again.npy", "again.safetensors"] {
        let path = folder.path().join(name);
        rows.write(&path).expect("the folder can be written");
        assert_eq!(Rows::read(&path).expect("what was written is read"), rows);
    }
}
