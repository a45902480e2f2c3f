//! Reports of the figures, as a table and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use reprise_index::eval::{CUTOFFS, Figures};

/// The cutoffs K of the reported recall.
pub const RECALL_AT: [usize; 4] = [1, 5, 10, 50];

/// One method's figures by kind of query.
#[derive(Debug, Clone)]
pub struct Row {
    /// The method.
    pub method: String,
    /// The space of the vectors.
    pub space: String,
    /// Figures by kind of query, with exact search.
    pub figures: BTreeMap<String, Figures>,
    /// Figures by kind of query, through the index's graph.
    pub through_index: BTreeMap<String, Figures>,
}

/// One line per method, kind and way of searching, in percent.
pub fn table(rows: &[Row]) -> Vec<String> {
    let head = |name: &str, at: &[usize]| {
        at.iter().map(|k| format!("{:>8}", format!("{name}@{k}"))).collect::<String>()
    };
    let mut lines = vec![format!(
        "{:<15} {:<15} {:<7} {:>7}{}{}  space",
        "method",
        "queries",
        "search",
        "number",
        head("mAP", &CUTOFFS),
        head("R", &RECALL_AT),
    )];
    for row in rows {
        let exact = row.figures.iter().map(|(kind, figures)| (kind, "exact", figures));
        let index = row.through_index.iter().map(|(kind, figures)| (kind, "index", figures));
        for (kind, search, figures) in exact.chain(index) {
            let values = figures.map.values().chain(figures.recall.values());
            let values: String = values.map(|value| format!("{value:>8.2}")).collect();
            let (method, number) = (&row.method, figures.queries);
            lines.push(format!("{method:<15} {kind:<15} {search:<7} {number:>7}{values}  {}", row.space));
        }
    }
    lines
}

/// (better, worse): the order of methods in the paper (arXiv 2506.05274).
const BETTER: [(&str, &str); 6] = [
    ("two_stage", "order_blind"),
    ("two_stage", "text_only"),
    ("two_stage", "video_only"),
    ("order_blind", "stage2_only"),
    ("stage2_only", "average_frames"),
    ("text_only", "video_only"),
];

/// One sentence for each kind of query where two methods rank opposite to the paper, by mAP at the largest cutoff.
pub fn inversions(rows: &[Row]) -> Vec<String> {
    let figure = |method: &str, kind: &str| -> Option<f64> {
        let row = rows.iter().find(|row| row.method == method)?;
        row.figures.get(kind)?.map.values().next_back().copied()
    };
    let kinds: BTreeSet<&String> = rows.iter().flat_map(|row| row.figures.keys()).collect();
    let sentence = |kind: &str, (better, worse): (&str, &str)| -> Option<String> {
        let (one, other) = (figure(better, kind)?, figure(worse, kind)?);
        let turned = one <= other;
        turned.then(|| {
            format!("Not as in the paper: on {kind}, {worse} ({other:.1}) beats {better} ({one:.1}).")
        })
    };
    kinds.into_iter().flat_map(|kind| BETTER.into_iter().filter_map(|pair| sentence(kind, pair))).collect()
}

/// `{method: {kind: {"map": {...}, "recall": {...}, "queries"}}}`, in percent.
pub fn json(rows: &[Row]) -> serde_json::Value {
    rows.iter().map(|row| (row.method.clone(), serde_json::json!(row.figures))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let figures = Figures {
            map: CUTOFFS.map(|k| (k, k as f64)).into(),
            recall: RECALL_AT.map(|k| (k, 100.0 - k as f64)).into(),
            queries: 7,
        };
        let figures = BTreeMap::from([("seen_pairs".to_owned(), figures)]);
        let (method, space) = ("two_stage".to_owned(), "sports-123456".to_owned());
        vec![Row { method, space, through_index: figures.clone(), figures }]
    }

    #[test]
    fn what_stands_the_other_way_round_than_in_the_paper_is_said() {
        let said = |of_order_blind: f64| {
            let mut rows = [rows(), rows()].concat();
            rows[1].method = "order_blind".to_owned();
            rows[1]
                .figures
                .values_mut()
                .for_each(|figures| *figures.map.get_mut(&50).unwrap() = of_order_blind);
            inversions(&rows)
        };
        assert!(said(40.0).is_empty());
        let expected = "Not as in the paper: on seen_pairs, order_blind (60.0) beats two_stage (50.0).";
        assert_eq!(said(60.0), [expected]);
    }

    #[test]
    fn json_has_a_figure_by_method_kind_and_cutoff() {
        let json = json(&rows());
        let seen = &json["two_stage"]["seen_pairs"];
        assert_eq!(seen["queries"], 7);
        assert_eq!(seen["map"]["50"], 50.0);
        assert_eq!(seen["recall"]["1"], 99.0);
        assert_eq!(seen["map"].as_object().unwrap().len(), 4);
    }

    #[test]
    fn the_table_has_a_line_a_method_kind_and_search() {
        let lines = table(&rows());
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("mAP@50") && lines[0].contains("R@1"), "{}", lines[0]);
        for (line, search) in lines[1..].iter().zip(["exact", "index"]) {
            let parts = ["two_stage", "seen_pairs", search, "50.00", "99.00", "sports-123456"];
            assert!(parts.into_iter().all(|part| line.contains(part)), "{line}");
        }
    }
}
