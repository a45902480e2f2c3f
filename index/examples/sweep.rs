#![allow(missing_docs, clippy::all, clippy::print_stdout, clippy::unwrap_used, clippy::pedantic, unsafe_code)]
use reprise_index::*;
use std::collections::HashSet;
use std::sync::Arc;
fn npy(path: &str) -> (usize, usize, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    let len = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let head = String::from_utf8_lossy(&bytes[10..10 + len]).to_string();
    let at = head.find("'shape': (").unwrap() + 10;
    let shape: Vec<usize> = head[at..head[at..].find(')').unwrap() + at].split(',').map(|x| x.trim()).filter(|x| !x.is_empty()).map(|x| x.parse().unwrap()).collect();
    (shape[0], shape[1], bytes[10 + len..].to_vec())
}
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let set = &args[1];
    let codes: Vec<Codes> = args[2].split(',').map(|x| x.parse().unwrap()).collect();
    let widths: Vec<usize> = args.get(3).map_or(vec![18, 24, 32, 48, 64], |x| x.split(',').map(|x| x.parse().unwrap()).collect());
    let rounds: usize = args.get(4).map_or(3, |x| x.parse().unwrap());
    let dir = std::env::var("REPRISE_INDEX_DATA").unwrap() + "/";
    let (rows, dim, base) = npy(&format!("{dir}{set}.base.npy"));
    let (qrows, _, queries) = npy(&format!("{dir}{set}.queries.npy"));
    let (_, tcols, truth) = npy(&format!("{dir}{set}.truth.npy"));
    let floats = |bytes: &[u8]| -> Vec<f32> { bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect() };
    let base = floats(&base);
    let queries: Vec<UnitVector> = floats(&queries).chunks(dim).map(|v| UnitVector::from_unit(v.to_vec()).unwrap()).collect();
    let truth: Vec<HashSet<u64>> = truth.chunks_exact(8 * tcols).map(|row| row.chunks_exact(8).take(10).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()).collect();
    let at = Collection { space: 1, level: Level::Clip };
    let mut made = Vec::new();
    for &codes in &codes {
        let index = Index::with_settings(Settings { codes, seal_from: 1 << 40, ..Settings::default() });
        for row in 0..rows {
            index.fill(at, row as u64, &UnitVector::from_unit(base[row * dim..(row + 1) * dim].to_vec()).unwrap()).unwrap();
        }
        let c = cpu();
        index.seal_with(at, 1, &|_, _| ());
        println!("{set} {codes:?} build {:.2} cpu s, {} bytes a vector", cpu() - c, index.bytes(at) / rows as u64);
        made.push((codes, index));
    }
    let filter_share: Vec<u64> = if args.len() > 5 { vec![1000, 500, 100, 10] } else { vec![1000] };
    for share in filter_share {
        let filter = if share == 1000 { Filter::default() } else { Filter { only: Some(Arc::new((0..rows as u64).filter(|k| k.wrapping_mul(7919) % 1000 < share).collect())) } };
        let truth: Vec<HashSet<u64>> = if share == 1000 { truth.clone() } else {
            queries.iter().map(|q| made[0].1.search(at, q, 10, &filter, Mode::Exact).unwrap().hits.iter().map(|h| h.key).collect()).collect()
        };
        for &ef in &widths {
            for (codes, index) in &made {
                let mut times = Vec::new();
                let mut found = 0;
                let mode = if ef == 0 { Mode::Auto } else { Mode::Walk { ef } };
                for _ in 0..rounds {
                    let c = cpu();
                    found = 0;
                    let mut hits = Vec::new();
                    for query in queries.iter().cycle().take(4 * qrows) {
                        hits.push(index.search(at, query, 10, &filter, mode).unwrap().hits);
                    }
                    times.push((cpu() - c) / (4 * qrows) as f64 * 1e6);
                    for (hits, truth) in hits.iter().take(qrows).zip(&truth) {
                        found += hits.iter().filter(|h| truth.contains(&h.key)).count();
                    }
                }
                times.sort_by(f64::total_cmp);
                println!("{set} share {share} {codes:?} ef {ef} recall {:.4} {:.1} us (min {:.1})", found as f64 / (10 * qrows) as f64, times[rounds / 2], times[0]);
            }
        }
    }
}
