//! Rows of equal width, their dot products and distances.

/// Rows are padded with zeros to a multiple of this: then the compiler uses vector instructions.
const LANES: usize = 8;

/// Rows of one width, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    values: Vec<f32>,
    width: usize,
}

impl Rows {
    /// No rows; `width` is raised to a multiple of 8.
    pub(super) fn new(width: usize) -> Rows {
        Rows { values: Vec::new(), width: width.max(1).next_multiple_of(LANES) }
    }

    /// Adds a row of zeros.
    pub(super) fn add(&mut self) -> &mut [f32] {
        let start = self.values.len();
        self.values.resize(start + self.width, 0.0);
        &mut self.values[start..]
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// # Panics
    /// If there is no such row.
    pub(super) fn row(&self, number: usize) -> &[f32] {
        &self.values[number * self.width..(number + 1) * self.width]
    }

    pub(super) fn row_mut(&mut self, number: usize) -> &mut [f32] {
        &mut self.values[number * self.width..(number + 1) * self.width]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.width)
    }
}

/// The dot product of rows of one length.
pub(super) fn dot(one: &[f32], other: &[f32]) -> f32 {
    let (mut sums, (ones, rest)) = ([0.0_f32; LANES], one.as_chunks::<LANES>());
    let (others, other_rest) = other.as_chunks::<LANES>();
    for (one, other) in ones.iter().zip(others) {
        for lane in 0..LANES {
            sums[lane] += one[lane] * other[lane];
        }
    }
    let rest: f32 = rest.iter().zip(other_rest).map(|(one, other)| one * other).sum();
    sums.iter().sum::<f32>() + rest
}

/// The square of the Euclidean distance.
pub(super) fn squared_distance(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for (one, other) in one.as_chunks::<LANES>().0.iter().zip(other.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            let apart = one[lane] - other[lane];
            sums[lane] += apart * apart;
        }
    }
    sums.iter().sum()
}
