//! Kept features of frames.

use reprise_server::storage::features::{Features, Row};

/// Values of a row.
const WIDTH: usize = 3;

/// Rows lie in order, a whole file loses nothing, and a damaged one can be continued.
pub(super) fn run(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("features");
    std::fs::write(&path, bytes).expect("the folder can be written");
    let all = |features: &mut Features| features.rows(i64::MIN..i64::MAX).ok();
    let is_whole = Features::is_whole(&path, WIDTH);
    let unchecked = Features::open(&path, WIDTH, false).ok().and_then(|mut features| all(&mut features));
    let Ok(mut features) = Features::open(&path, WIDTH, true) else {
        assert!(!is_whole);
        return;
    };
    let rows = all(&mut features).expect("checked blocks can be read");
    assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(rows.iter().all(|(_, row)| row.len() == WIDTH));
    if is_whole {
        let bits = |rows: &[Row]| -> Vec<_> {
            rows.iter()
                .map(|(ms, row)| (*ms, row.iter().map(|it| it.to_bits()).collect::<Vec<_>>()))
                .collect()
        };
        assert_eq!(unchecked.as_deref().map(bits), Some(bits(&rows)));
    }
    let Some(next_ms) = features.last_ms().unwrap_or(0).checked_add(1) else { return };
    features.add(&[(next_ms, &[1.0; WIDTH])]).expect("a row can be added");
    let mut again = Features::open(&path, WIDTH, false).expect("it was cut to whole blocks");
    assert_eq!(all(&mut again).expect("it is whole").len(), rows.len() + 1);
}
