//! Clustered vectors with anisotropic noise: uniform random vectors would mislead.

use reprise_index::UnitVector;

/// Draws clustered vectors; every run draws the same ones.
pub(crate) struct Source {
    state: u64,
    centres: Vec<Vec<f32>>,
    common: Vec<f32>,
}

impl Source {
    /// A source of vectors of `dim` values.
    pub(crate) fn new(dim: usize) -> Source {
        let mut source = Source { state: 42, centres: Vec::new(), common: Vec::new() };
        source.common = source.normal(dim);
        source.centres = (0..200).map(|_| source.normal(dim)).collect();
        source
    }

    fn uniform(&mut self) -> f32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 40) as f32 / (1 << 24) as f32
    }

    /// Nearly normal values that shrink towards the end: a few directions carry most of the variance.
    fn normal(&mut self, dim: usize) -> Vec<f32> {
        let mut value = |at: usize| {
            let sum: f32 = (0..4).map(|_| self.uniform() - 0.5).sum();
            sum / (1.0 + at as f32 / 16.0).sqrt()
        };
        (0..dim).map(&mut value).collect()
    }

    pub(crate) fn vector(&mut self) -> UnitVector {
        loop {
            let centre = (self.uniform() * 199.0) as usize;
            let noise = self.normal(self.common.len());
            let values: Vec<f32> = noise
                .iter()
                .zip(&self.centres[centre])
                .zip(&self.common)
                .map(|((noise, centre), common)| noise * 0.6 + centre + common)
                .collect();
            if let Some((unit, _)) = UnitVector::from_raw(&values) {
                return unit;
            }
        }
    }
}
