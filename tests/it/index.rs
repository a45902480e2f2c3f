//! The graph against brute force on real embeddings. CLIP's text vectors are strongly anisotropic (mean cosine 0.75),
//! unlike any generated set.

use std::path::Path;
use std::sync::Arc;

use reprise_index::{Codes, Collection, Filter, Index, Level, Mode, Settings, SpaceInfo, UnitVector};
use reprise_tests::test_data;

const AT: Collection = Collection { space: 1, level: Level::Clip };
const FILES: [&str; 4] = ["lvis_v1", "oid", "o365", "coco"];
/// Settings that build a segment even for only 2,148 vectors.
const EAGER: Settings =
    Settings { segment_from: 64, seal_from: 1 << 40, codes: Codes::Int8, memory: None, build_threads: 1 };

/// The rows of a two-dimensional little-endian f2 or f4 array in a `.npy` file of version 1 or 2.
fn read_npy(path: &Path) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let (length, start) = match bytes[6] {
        1 => (usize::from(u16::from_le_bytes([bytes[8], bytes[9]])), 10),
        _ => (u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize, 12),
    };
    let header = std::str::from_utf8(&bytes[start..start + length]).unwrap();
    assert!(header.contains("'fortran_order': False"), "{header}");
    let shape = header.split("'shape': (").nth(1).unwrap().split(')').next().unwrap();
    let columns: usize = shape.split(',').nth(1).unwrap().trim().parse().unwrap();
    let data = &bytes[start + length..];
    let values: Vec<f32> = if header.contains("'<f2'") {
        data.chunks_exact(2).map(|pair| f16_to_f32(u16::from_le_bytes([pair[0], pair[1]]))).collect()
    } else {
        assert!(header.contains("'<f4'"), "{header}");
        data.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
    };
    values.chunks_exact(columns).map(<[f32]>::to_vec).collect()
}

/// Converts a finite half-precision number.
fn f16_to_f32(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        _ => (1.0 + fraction / 1024.0) * 2.0_f32.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// All vectors of the test data; `None` without it.
fn real_vectors() -> Option<Vec<UnitVector>> {
    let mut vectors = Vec::new();
    for name in FILES {
        let path = test_data(&format!("vectors/clip_vitb32_text_{name}.npy"))?;
        vectors.extend(read_npy(&path).iter().map(|raw| UnitVector::from_raw(raw).unwrap().0));
    }
    Some(vectors)
}

/// Mean recall at 10 against brute force, and the number of answers from the graph. Compares scores, because several
/// files share some prompts.
fn recall(index: &Index, queries: &[UnitVector], filter: &Filter) -> (f64, usize) {
    let (mut found, mut wanted, mut walked) = (0, 0, 0);
    for query in queries {
        let truth = index.search(AT, query, 10, filter, Mode::Exact).unwrap();
        let got = index.search(AT, query, 10, filter, Mode::Auto).unwrap();
        assert_eq!(got.hits.len(), truth.hits.len());
        let worst = truth.hits.last().map_or(-1.0, |hit| hit.score);
        found += got.hits.iter().filter(|hit| hit.score >= worst).count();
        wanted += truth.hits.len();
        walked += usize::from(!got.exact);
    }
    (found as f64 / wanted as f64, walked)
}

#[track_caller]
fn check(index: &Index, queries: &[UnitVector], filter: &Filter, expected: f64) {
    let (got, walked) = recall(index, queries, filter);
    assert!(got >= expected, "recall@10 is {got}, not {expected}");
    assert!(walked * 2 > queries.len(), "only {walked} of {} searches used the graph", queries.len());
}

#[test]
fn the_graph_finds_what_brute_force_finds_among_real_embeddings() {
    let Some(vectors) = real_vectors() else { return };
    assert_eq!(vectors.len(), 2_148);
    let index = Index::with_settings(EAGER);
    index.declare(&SpaceInfo { key: 1, id: "clip".into(), dim: 512 }).unwrap();
    for (key, vector) in (0..).zip(&vectors) {
        index.insert(AT, key, vector).unwrap();
    }
    let queries: Vec<UnitVector> = vectors.iter().step_by(5).cloned().collect();
    let half = Filter { only: Some(Arc::new((0..2_148).filter(|key| key % 2 == 0).collect())) };
    index.seal(AT);
    check(&index, &queries, &Filter::default(), 0.99);
    check(&index, &queries, &half, 0.99);
    for key in (0..2_148).filter(|key| key % 5 < 2) {
        index.remove(AT, key);
    }
    check(&index, &queries, &Filter::default(), 0.99);
}

#[test]
fn real_embeddings_survive_a_snapshot_bit_for_bit() {
    let Some(vectors) = real_vectors() else { return };
    let space = SpaceInfo { key: 1, id: "clip".into(), dim: 512 };
    let index = Index::new();
    index.declare(&space).unwrap();
    for (key, vector) in (0..).zip(&vectors) {
        index.insert(AT, key, vector).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    index.save(folder.path(), 12).unwrap();
    let loaded = Index::load(folder.path(), &[space], Settings::default()).unwrap();
    assert_eq!(loaded.seq, 12);
    for (key, vector) in (0..).zip(&vectors) {
        assert_eq!(loaded.index.vector(AT, key).as_ref(), Some(vector));
    }
}
