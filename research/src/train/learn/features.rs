//! The input of stages 1 and 2: a feature vector for every frame of every clip, in memory.

use std::path::Path;

use candle_core::{Device, Tensor};

use super::TrainError;

/// Frame features of all clips.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Values per frame.
    pub width: usize,
    /// First frame of each clip in `values`, and the total number of frames.
    starts: Vec<usize>,
    /// Feature vectors of all frames, `[frames, width]`, flat.
    values: Vec<f32>,
}

impl Features {
    /// Zeros, for clips with the given numbers of frames.
    pub fn zeros(frames: &[usize], width: usize) -> Self {
        let mut starts = vec![0];
        for count in frames {
            starts.push(starts.last().copied().unwrap_or(0) + count);
        }
        let values = vec![0.0; starts.last().copied().unwrap_or(0) * width];
        Features { width, starts, values }
    }

    /// Number of clips.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no clips.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of frames of a clip.
    pub fn frames(&self, clip: usize) -> usize {
        self.starts[clip + 1] - self.starts[clip]
    }

    /// The feature vector of one frame.
    pub fn frame(&self, clip: usize, frame: usize) -> &[f32] {
        &self.values[(self.starts[clip] + frame) * self.width..][..self.width]
    }

    /// Feature vectors of a clip, writable: `[frames, width]`, flat.
    pub fn clip_mut(&mut self, clip: usize) -> &mut [f32] {
        &mut self.values[self.starts[clip] * self.width..self.starts[clip + 1] * self.width]
    }

    /// Mean and standard deviation of each value over all frames.
    pub fn moments(&self) -> (Vec<f32>, Vec<f32>) {
        let count = (self.values.len() / self.width.max(1)).max(1) as f64;
        let (mut sums, mut squares) = (vec![0_f64; self.width], vec![0_f64; self.width]);
        for frame in self.values.chunks_exact(self.width.max(1)) {
            for ((sum, square), value) in sums.iter_mut().zip(&mut squares).zip(frame) {
                *sum += f64::from(*value);
                *square += f64::from(*value) * f64::from(*value);
            }
        }
        let means: Vec<f64> = sums.iter().map(|sum| sum / count).collect();
        let deviation = |(square, mean): (f64, &f64)| (square / count - mean * mean).max(0.0).sqrt() + 1e-3;
        let deviations = squares.into_iter().zip(&means).map(|it| deviation(it) as f32).collect();
        (means.iter().map(|mean| *mean as f32).collect(), deviations)
    }

    /// Writes a `.npy` file of the shape `[frames, width]`.
    ///
    /// # Errors
    /// [`TrainError::File`] if the file can't be written.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let rows = self.values.len() / self.width.max(1);
        let part = path.with_extension("part");
        let tensor = Tensor::from_slice(&self.values, (rows, self.width), &Device::Cpu)?;
        tensor.write_npy(&part).map_err(|error| TrainError::file(path, error))?;
        std::fs::rename(&part, path).map_err(|error| TrainError::file(path, error))
    }

    /// Reads a file of [`Features::save`], for clips with the given numbers of frames.
    ///
    /// # Errors
    /// [`TrainError::File`] if the file can't be read or has another number of frames.
    pub fn load(path: &Path, frames: &[usize]) -> Result<Self, TrainError> {
        let tensor = Tensor::read_npy(path).map_err(|error| TrainError::file(path, error))?;
        let (rows, width) = tensor.dims2().map_err(|error| TrainError::file(path, error))?;
        let mut features = Features::zeros(frames, width);
        if features.values.len() != rows * width {
            let expected = frames.iter().sum::<usize>();
            let why = format!("it holds {rows} frames, the clips have {expected}; run `train frames` again");
            return Err(TrainError::file(path, why));
        }
        features.values = tensor.flatten_all()?.to_vec1()?;
        Ok(features)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_come_back_from_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.npy");
        let mut features = Features::zeros(&[2, 1], 2);
        features.clip_mut(0).copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
        features.clip_mut(1).copy_from_slice(&[5.0, 6.0]);
        features.save(&path).unwrap();
        assert_eq!(Features::load(&path, &[2, 1]).unwrap(), features);
        assert_eq!((features.frame(0, 1), features.frames(1)), (&[3.0, 4.0][..], 1));
        assert!(matches!(Features::load(&path, &[2, 2]), Err(TrainError::File { .. })));
    }

    #[test]
    fn moments_are_over_all_frames() {
        let mut features = Features::zeros(&[1, 1], 1);
        features.clip_mut(0)[0] = 1.0;
        features.clip_mut(1)[0] = 5.0;
        let (mean, deviation) = features.moments();
        assert!((mean[0] - 3.0).abs() < 1e-6 && (deviation[0] - 2.001).abs() < 1e-5);
    }
}
