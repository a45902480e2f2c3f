//! Recall between two sets of vectors that are matched by id.

use std::collections::{BTreeMap, HashMap};

use crate::rows::Rows;
use anyhow::{Context, ensure};
use reprise_index::Aggregation;
use reprise_index::eval::{Vectors, VectorsError, ranks, recall_at};
use serde::Serialize;

use crate::encode::LongTexts;

/// Recall in percent by cutoff.
pub(super) type Recall = BTreeMap<usize, f64>;

/// How texts beyond the model's limit are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reading {
    /// All windows, as in a search by default.
    Windows,
    /// The mean of all windows.
    Mean,
    /// The first window, as in the papers.
    Truncate,
}

impl Reading {
    pub(super) const ALL: [Reading; 3] = [Reading::Windows, Reading::Mean, Reading::Truncate];

    pub(super) fn name(self) -> &'static str {
        match self {
            Reading::Windows => "windows",
            Reading::Mean => "mean",
            Reading::Truncate => "truncate",
        }
    }
}

/// Vectors with ids; several vectors may have the same id.
pub(super) struct Side {
    /// Unit vectors.
    rows: Rows,
    ids: Vec<String>,
    /// Number of rows per id, in order; `None`: one row each.
    windows: Option<Vec<usize>>,
}

impl Side {
    /// # Errors
    /// The numbers of ids and rows differ, or a row has norm 0.
    pub(super) fn new(rows: Rows, ids: Vec<String>) -> anyhow::Result<Side> {
        ensure!(rows.len() == ids.len(), "{} vectors for {} ids", rows.len(), ids.len());
        Ok(Side { rows: rows.into_units()?, ids, windows: None })
    }

    /// Texts encoded by `reading`.
    ///
    /// # Errors
    /// The numbers of ids and texts differ, or a row has norm 0.
    pub(super) fn of_texts(texts: &LongTexts, reading: Reading, ids: Vec<String>) -> anyhow::Result<Side> {
        match reading {
            Reading::Mean => Side::new(texts.means.clone(), ids),
            Reading::Truncate => Side::new(texts.truncated.clone(), ids),
            Reading::Windows => {
                let counts = texts.counts.clone();
                ensure!(counts.len() == ids.len(), "{} texts for {} ids", counts.len(), ids.len());
                let windows = counts.iter().any(|count| *count > 1).then_some(counts);
                Ok(Side { rows: texts.windows.clone().into_units()?, ids, windows })
            }
        }
    }

    /// Searches `gallery` with all of `self`; an answer is relevant if its id is equal.
    ///
    /// # Errors
    /// No vectors, or vectors of different lengths.
    pub(super) fn find_in(&self, gallery: &Side, cutoffs: &[usize]) -> anyhow::Result<Recall> {
        let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, id) in gallery.ids.iter().enumerate() {
            by_id.entry(id).or_default().push(at);
        }
        let right = |query: usize| by_id.get(&self.ids[query][..]).map_or(&[][..], Vec::as_slice);
        let join = |scores: &[f32]| Aggregation::default().score(scores.iter().copied());
        let ranks = ranks(&self.vectors()?, &gallery.vectors()?, right, &join)?;
        recall_at(&ranks, cutoffs).context("there is nothing to ask or to find")
    }

    fn vectors(&self) -> Result<Vectors<'_>, VectorsError> {
        match &self.windows {
            Some(counts) => Vectors::grouped(self.rows.values(), self.rows.dim(), counts),
            None => Vectors::new(self.rows.values(), self.rows.dim()),
        }
    }
}

/// Row numbers as ids, for vectors that correspond row by row.
pub(super) fn by_place(rows: usize) -> Vec<String> {
    (0..rows).map(|row| row.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(rows: &[[f32; 2]], ids: &[&str]) -> Side {
        let rows = Rows::new(rows.concat(), 2).unwrap();
        Side::new(rows, ids.iter().map(|id| (*id).to_owned()).collect()).unwrap()
    }

    #[track_caller]
    fn check(queries: &Side, gallery: &Side, expected: [f64; 2]) {
        let recall = queries.find_in(gallery, &[1, 2]).unwrap();
        assert_eq!(recall.into_values().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn rows_of_one_id_find_each_other_whatever_their_length() {
        let gallery = side(&[[1.0, 0.0], [0.0, 3.0], [1.0, 1.0]], &["a", "b", "c"]);
        check(&side(&[[5.0, 0.1], [0.1, 0.2]], &["a", "b"]), &gallery, [50.0, 100.0]);
        check(&side(&[[-1.0, 0.0]], &["a"]), &gallery, [0.0, 0.0]);
        check(&side(&[[0.0, 1.0], [0.0, 1.0]], &["z", "b"]), &gallery, [50.0, 50.0]);
        let several = side(&[[1.0, 0.0], [0.0, 1.0]], &["a", "a"]);
        check(&side(&[[0.0, 1.0]], &["a"]), &several, [100.0, 100.0]);
    }

    #[test]
    fn a_text_of_several_windows_is_found_by_the_best_of_them() {
        let gallery = side(&[[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]], &["a", "b", "c"]);
        let rows = |rows: &[[f32; 2]]| Rows::new(rows.concat(), 2).unwrap();
        let texts = LongTexts {
            windows: rows(&[[0.4, 0.6], [0.0, 1.0], [1.0, 0.0]]),
            counts: vec![2, 1],
            means: rows(&[[0.2, 0.8], [1.0, 0.0]]),
            truncated: rows(&[[0.8, 0.6], [1.0, 0.0]]),
        };
        for (reading, to_clip) in [
            (Reading::Windows, [100.0, 100.0]),
            (Reading::Mean, [100.0, 100.0]),
            (Reading::Truncate, [50.0, 50.0]),
        ] {
            let texts = Side::of_texts(&texts, reading, vec!["b".to_owned(), "a".to_owned()]).unwrap();
            check(&texts, &gallery, to_clip);
            // c has no text.
            assert_eq!(gallery.find_in(&texts, &[1]).unwrap()[&1].round(), 67.0);
        }
    }
}
