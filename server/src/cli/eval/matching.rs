//! Recall between two sets of rows that belong together by their ids.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use reprise_encoders::rows::{Rows, UnitRows};
use reprise_index::eval::{first_right, recall_at};

/// Recall in percent by cutoff.
pub(super) type Recall = BTreeMap<usize, f64>;

/// Rows with their ids, of which several may have one.
pub(super) struct Side {
    rows: UnitRows,
    ids: Vec<String>,
}

impl Side {
    /// # Errors
    /// Another number of ids than rows, or a row of norm 0.
    pub(super) fn new(rows: &Rows, ids: Vec<String>) -> anyhow::Result<Side> {
        ensure!(rows.len() == ids.len(), "{} vectors for {} ids", rows.len(), ids.len());
        Ok(Side { rows: rows.units()?, ids })
    }

    /// Every row of `self` asked against all of `gallery`: right is what has the row's id.
    ///
    /// # Errors
    /// Rows of different lengths, or none.
    pub(super) fn find_in(&self, gallery: &Side, cutoffs: &[usize]) -> anyhow::Result<Recall> {
        let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
        for (row, id) in gallery.ids.iter().enumerate() {
            by_id.entry(id).or_default().push(row);
        }
        let mut ranks = Vec::with_capacity(self.ids.len());
        gallery.rows.scores(&self.rows, |query, scores| {
            let right = by_id.get(&self.ids[query][..]).map_or(&[][..], Vec::as_slice);
            ranks.push(first_right(scores, right));
        })?;
        recall_at(&ranks, cutoffs).context("there is nothing to ask or to find")
    }
}

/// Numbers as ids, for vectors that belong together by their place.
pub(super) fn by_place(rows: usize) -> Vec<String> {
    (0..rows).map(|row| row.to_string()).collect()
}

/// A bar of `length` things; none where JSON is printed.
///
/// # Errors
/// Never in practice.
pub(super) fn bar(hidden: bool, length: usize, what: &str) -> anyhow::Result<ProgressBar> {
    if hidden {
        return Ok(ProgressBar::hidden());
    }
    let template = format!("encoding {{wide_bar}} {{pos}}/{{len}} {what}, {{eta}} left");
    Ok(ProgressBar::new(length as u64).with_style(ProgressStyle::with_template(&template)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(rows: &[[f32; 2]], ids: &[&str]) -> Side {
        let rows = Rows::new(rows.concat(), 2).unwrap();
        Side::new(&rows, ids.iter().map(|id| (*id).to_owned()).collect()).unwrap()
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
}
