//! `reprise index bench` from the outside, on small files of every number type that numpy writes.

use std::path::Path;
use std::process::{Command, Output};

use reprise_tests::server::binary;
use serde_json::Value;

const DIM: usize = 8;
const BASE: usize = 300;
const QUERIES: usize = 20;

/// Writes a file in numpy's format.
fn write(path: &Path, descr: &str, shape: &str, bytes: &[u8]) {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let text = format!("{text:<117}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.as_bytes());
    file.extend(bytes);
    std::fs::write(path, file).unwrap();
}

/// Pseudo-random rows of different directions and norms.
fn rows(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut value = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 22) as f32 - 2.0
    };
    (0..count * DIM).map(|_| value()).collect()
}

/// The rows with the highest cosines, best first.
fn nearest(base: &[f32], query: &[f32]) -> Vec<usize> {
    let norm = |row: &[f32]| row.iter().map(|value| f64::from(value * value)).sum::<f64>().sqrt();
    let cosine = |row: &[f32]| {
        row.iter().zip(query).map(|(a, b)| f64::from(a * b)).sum::<f64>() / norm(row) / norm(query)
    };
    let scores: Vec<f64> = base.chunks_exact(DIM).map(cosine).collect();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        let files = Files(tempfile::tempdir().unwrap());
        let (base, queries) = (rows(BASE, 1), rows(QUERIES, 2));
        let little = base.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
        let big = queries.iter().flat_map(|value| f64::from(*value).to_be_bytes()).collect::<Vec<_>>();
        write(&files.path("base.npy"), "<f4", &format!("({BASE}, {DIM})"), &little);
        write(&files.path("queries.npy"), ">f8", &format!("({QUERIES}, {DIM})"), &big);
        let truth: Vec<u8> = queries
            .chunks_exact(DIM)
            .flat_map(|query| nearest(&base, query).into_iter().take(100))
            .flat_map(|row| (row as u32).to_le_bytes())
            .collect();
        write(&files.path("truth.npy"), "<u4", &format!("({QUERIES}, 100)"), &truth);
        files
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn bench(&self, base: &str, more: &[&str]) -> Output {
        let mut command = Command::new(binary());
        command.args(["index", "bench", "--base"]).arg(self.path(base));
        command.arg("--queries").arg(self.path("queries.npy")).args(more).output().unwrap()
    }

    #[track_caller]
    fn report(&self, more: &[&str]) -> Value {
        let output = self.bench("base.npy", &[more, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    #[track_caller]
    fn refused(&self, base: &str, more: &[&str], expected: &str) {
        let output = self.bench(base, more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{said}");
    }
}

#[test]
fn what_few_vectors_recall_is_all_of_the_truth_given_or_found() {
    let files = Files::new();
    let truth = files.path("truth.npy");
    for more in [&["--truth", truth.to_str().unwrap()][..], &[]] {
        let report = files.report(&[more, &["--codes", "int8"]].concat());
        assert!(
            report["build_s"].as_f64().unwrap() > 0.0 && report["bytes"].as_u64().unwrap() > 0,
            "{report}"
        );
        let points = report["points"].as_array().unwrap();
        // Few rows never get a graph, so every search is exact.
        let widths: Vec<_> = points.iter().map(|it| (it["threads"].as_u64(), it["ef"].as_u64())).collect();
        assert_eq!(widths, [(Some(1), Some(10)), (Some(2), Some(10))], "it ends where nothing is missed");
        for point in points {
            assert_eq!(point["codes"], "int8");
            for recall in ["recall_at_1", "recall_at_10", "recall_at_100"] {
                assert_eq!(point[recall], 1.0, "{recall}: {point}");
            }
            let times = ["p50_us", "p95_us", "p99_us"].map(|it| point[it].as_f64().unwrap());
            assert!(times[0] > 0.0 && times.is_sorted() && point["qps"].as_f64().unwrap() > 0.0, "{point}");
        }
    }
}

#[test]
fn all_codes_are_reported_side_by_side() {
    let files = Files::new();
    let report = files.report(&["--threads", "1"]);
    for figure in ["build_s", "bytes"] {
        let codes: Vec<_> = report[figure].as_object().unwrap().keys().collect();
        assert_eq!(codes, ["f16", "f32", "int4", "int8"], "{figure}");
    }
    let codes: Vec<_> = report["points"].as_array().unwrap().iter().map(|it| it["codes"].clone()).collect();
    assert_eq!(codes, ["f32", "f16", "int8", "int4"]);
    let output = files.bench("base.npy", &["--threads", "1"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("300 vectors, 20 queries") && table.contains("qps"), "{table}");
}

#[test]
fn searches_with_filters_are_measured_when_asked_for() {
    let files = Files::new();
    let report = files.report(&["--threads", "1", "--codes", "int4", "--filters"]);
    let points = report["filtered"].as_array().unwrap();
    let shares: Vec<_> = points.iter().map(|it| it["share"].as_f64().unwrap()).collect();
    assert_eq!(shares, [1.0, 0.5, 0.1, 0.01]);
    // Few rows never get a graph, so every search is exact.
    assert!(
        points.iter().all(|it| it["recall_at_10"] == 1.0 && it["p50_us"].as_f64() > Some(0.0)),
        "{report}"
    );
    assert_eq!(files.report(&["--threads", "1", "--codes", "int4"])["filtered"], serde_json::json!([]));
    files.refused("base.npy", &["--engine", "hnsw_rs", "--filters"], "hnsw_rs has no filters");
}

#[test]
fn files_that_make_no_benchmark_are_refused() {
    let files = Files::new();
    write(&files.path("flat.npy"), "<f4", "(16,)", &[0; 64]);
    files.refused("flat.npy", &[], "its shape is (16), but (rows, columns) is needed");
    let mut zero = rows(3, 1);
    zero[DIM..2 * DIM].fill(0.0);
    let bytes: Vec<u8> = zero.iter().flat_map(|value| value.to_le_bytes()).collect();
    write(&files.path("zero.npy"), "<f4", &format!("(3, {DIM})"), &bytes);
    files.refused("zero.npy", &[], "row 1 has no direction");
    write(&files.path("long.npy"), "<f4", "(1, 16)", &[1; 64]);
    files.refused("long.npy", &[], "--base has vectors of 16 values, --queries of 8");
    write(&files.path("none.npy"), "<f4", "(0, 8)", &[]);
    files.refused("none.npy", &[], "nothing to search");
    files.refused("missing.npy", &[], "missing.npy");
    let truth = files.path("short.npy");
    write(&truth, "<i4", "(1, 1)", &[0; 4]);
    files.refused("base.npy", &["--truth", truth.to_str().unwrap()], "1 rows for 20 queries");
    let beyond = (BASE as i32).to_le_bytes().repeat(QUERIES);
    write(&truth, "<i4", &format!("({QUERIES}, 1)"), &beyond);
    files.refused("base.npy", &["--truth", truth.to_str().unwrap()], "names row 300, --base has 300");
}
