//! Area under the ROC curve: how well a score separates two groups.

/// The probability that a positive scores higher than a negative; equal scores count half (Hanley and McNeil, Radiology
/// 143, 1982). `None` if a group is empty.
pub fn auroc(positives: &[f32], negatives: &[f32]) -> Option<f64> {
    if positives.is_empty() || negatives.is_empty() {
        return None;
    }
    let mut sorted = negatives.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let won: f64 = positives
        .iter()
        .map(|score| {
            let below = sorted.partition_point(|it| it < score);
            let not_above = sorted.partition_point(|it| it <= score);
            below as f64 + (not_above - below) as f64 / 2.0
        })
        .sum();
    Some(won / (positives.len() * negatives.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(positives: &[f32], negatives: &[f32], expected: Option<f64>) {
        assert_eq!(auroc(positives, negatives), expected);
    }

    #[test]
    fn it_is_the_share_of_pairs_in_order() {
        check(&[2.0, 3.0], &[0.0, 1.0], Some(1.0));
        check(&[0.0, 1.0], &[2.0, 3.0], Some(0.0));
        check(&[1.0, 3.0], &[0.0, 2.0], Some(0.75));
        check(&[1.0], &[1.0], Some(0.5));
        check(&[1.0, 1.0], &[1.0, 0.0], Some(0.75));
        check(&[], &[1.0], None);
        check(&[1.0], &[], None);
    }
}
