//! The frames that LoVR's released code samples from clips and full videos (arXiv 2505.13928): every K-th frame. In a
//! full video, the count continues across its clips.

/// Indices of the sampled frames of a clip of `frames` frames.
pub(super) fn of_clip(frames: usize, stride: usize) -> Vec<usize> {
    (0..frames).step_by(stride.max(1)).collect()
}

/// Indices of the clip's frames that are sampled for its full video. `before` is the number of the video's earlier
/// frames, modulo the stride. A short clip may have none.
pub(super) fn of_video(frames: usize, stride: usize, before: usize) -> Vec<usize> {
    let stride = stride.max(1);
    let first = (stride - before % stride) % stride;
    (first..frames).step_by(stride).collect()
}

/// The `before` of [`of_video`] for consecutive clips of these lengths.
pub(super) fn before(lengths: impl Iterator<Item = usize>, stride: usize) -> Vec<usize> {
    let next = |sum: &mut usize, frames: usize| {
        let before = *sum;
        *sum = (*sum + frames) % stride.max(1);
        Some(before)
    };
    lengths.scan(0, next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stride: usize, lengths: &[usize], expected: &[&[usize]]) {
        let before = before(lengths.iter().copied(), stride);
        let got: Vec<Vec<usize>> =
            lengths.iter().zip(before).map(|(&frames, before)| of_video(frames, stride, before)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn the_count_goes_on_from_clip_to_clip() {
        check(10, &[25, 40, 7, 30], &[&[0, 10, 20], &[5, 15, 25, 35], &[5], &[8, 18, 28]]);
        check(10, &[10, 3, 4], &[&[0], &[0], &[]]);
        check(1, &[2, 2], &[&[0, 1], &[0, 1]]);
        check(10, &[], &[]);
    }

    #[test]
    fn a_clip_begins_with_its_first_frame() {
        assert_eq!(of_clip(25, 10), [0, 10, 20]);
        assert_eq!(of_clip(1, 30), [0]);
        assert!(of_clip(0, 10).is_empty());
    }
}
