//! Rotary position embedding: the angles, and the rotation of a head's values.

/// Rotary position embedding (RoPE, arXiv 2104.09864): cosine and sine per token for each pair of values.
#[derive(Debug, Clone)]
pub(crate) struct RotaryAngles {
    /// (tokens, half of a head's values): the tokens of one sequence, for all sequences, or those of each one.
    cos: Vec<f32>,
    sin: Vec<f32>,
    pairs: RotaryPairs,
}

/// Which values of a head are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RotaryPairs {
    /// Values 0 and 1, 2 and 3, and so on.
    Neighbours,
    /// A value of the first half and the one at its place in the second half.
    Halves,
}

impl RotaryAngles {
    /// From `angles` of shape (tokens, half of a head's values).
    pub(crate) fn new(angles: &[f32], pairs: RotaryPairs) -> Self {
        RotaryAngles {
            cos: angles.iter().map(|angle| angle.cos()).collect(),
            sin: angles.iter().map(|angle| angle.sin()).collect(),
            pairs,
        }
    }

    /// The angles of `count` tokens of heads of `size` values, from token `first` on.
    ///
    /// # Panics
    /// If there are fewer tokens.
    pub(crate) fn part(&self, first: usize, count: usize, size: usize) -> Self {
        let half = size / 2;
        let part = |all: &[f32]| all[first * half..][..count * half].to_vec();
        RotaryAngles { cos: part(&self.cos), sin: part(&self.sin), pairs: self.pairs }
    }

    /// Whether these are the angles of each token, or of each token of any sequence, of heads of `size` values.
    pub(in super::super) fn fit(&self, batch: usize, tokens: usize, size: usize) -> bool {
        let sequence = tokens * (size / 2);
        size.is_multiple_of(2) && [sequence, sequence * batch].contains(&self.cos.len())
    }

    /// Whether there are angles for exactly `tokens` tokens with heads of `size` values.
    pub(in super::super) fn fit_tokens(&self, tokens: usize, size: usize) -> bool {
        size.is_multiple_of(2) && self.cos.len() == tokens * (size / 2)
    }

    /// Rotates the values of one head of a token; tokens count over all sequences.
    #[inline(always)]
    pub(in super::super) fn turn(&self, token: usize, values: &[f32], into: &mut [f32]) {
        let half = values.len() / 2;
        let start = token * half % self.cos.len();
        let (cos, sin) = (&self.cos[start..][..half], &self.sin[start..][..half]);
        match self.pairs {
            RotaryPairs::Neighbours => {
                let pairs = values.chunks_exact(2).zip(into.chunks_exact_mut(2));
                for ((pair, into), (cos, sin)) in pairs.zip(cos.iter().zip(sin)) {
                    into[0] = pair[0] * cos - pair[1] * sin;
                    into[1] = pair[0] * sin + pair[1] * cos;
                }
            }
            RotaryPairs::Halves => {
                let (first, second) = values.split_at(half);
                let (into_first, into_second) = into.split_at_mut(half);
                for at in 0..half {
                    into_first[at] = first[at] * cos[at] - second[at] * sin[at];
                    into_second[at] = first[at] * sin[at] + second[at] * cos[at];
                }
            }
        }
    }
}
