//! Vectors of one kind, one per row, and their files: `.npy` and `.safetensors`.

use std::path::{Path, PathBuf};

use half::{bf16, f16};
use reprise_encoders::Cause;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

mod error;
pub mod npy;

pub use error::RowsError;

/// Name of the tensor in a written `.safetensors` file.
const TENSOR: &str = "vectors";

/// A table of finite values, `[rows, dim]`: one vector per row.
///
/// Invariant: `values.len()` is a multiple of `dim`, and `dim` is not 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    values: Vec<f32>,
    dim: usize,
}

impl Rows {
    /// Rows of `dim` values from flat `values`.
    ///
    /// # Errors
    /// `dim` is 0, the last row is too short, or a value is not finite.
    pub fn new(values: Vec<f32>, dim: usize) -> Result<Self, RowsError> {
        let wrong = |why: &str| Err(RowsError { path: PathBuf::new(), why: why.into() });
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return wrong("rows must have values, and all the same number");
        }
        if !values.iter().all(|value| value.is_finite()) {
            return wrong("rows must have finite values only");
        }
        Ok(Rows { values, dim })
    }

    /// Reads `[rows, dim]` floats from a `.npy` file, or the only tensor of a `.safetensors` file.
    ///
    /// # Errors
    /// The file can't be read, or has another format or shape.
    pub fn read(path: &Path) -> Result<Self, RowsError> {
        let rows = match is_safetensors(path) {
            false => {
                let npy::Table { values, columns } = npy::read_floats(path)?;
                Rows::new(values, columns)
            }
            true => {
                let (values, dim) = only_tensor(path).map_err(|error| wrong(path, error))?;
                Rows::new(values, dim)
            }
        };
        rows.map_err(|error| RowsError { path: path.to_owned(), ..error })
    }

    /// Writes `[rows, dim]`, f32. The name's ending decides the format: `.safetensors`, otherwise `.npy`. Readers
    /// never find a partial file.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), RowsError> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        match is_safetensors(path) {
            true => {
                let bytes: Vec<u8> = self.values.iter().flat_map(|value| value.to_le_bytes()).collect();
                let view = TensorView::new(Dtype::F32, vec![self.len(), self.dim], &bytes);
                let view = view.map_err(|error| wrong(path, error))?;
                safetensors::serialize_to_file([(TENSOR, view)], None, &partial)
                    .map_err(|error| wrong(path, error))?;
            }
            false => npy::write(&partial, &self.values, self.dim).map_err(|error| wrong(path, error))?,
        }
        std::fs::rename(&partial, path).map_err(|error| wrong(path, error))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Values per row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All values, `[rows, dim]`, flat.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Divides each row by its norm.
    ///
    /// # Errors
    /// A row has norm 0.
    pub fn into_units(mut self) -> Result<Rows, RowsError> {
        for (number, row) in self.values.chunks_exact_mut(self.dim).enumerate() {
            let norm = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            if norm == 0.0 {
                return Err(wrong(Path::new(""), format!("row {number} has norm 0")));
            }
            row.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
        }
        Ok(self)
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim)
    }
}

/// The values and the row length of the one tensor of a `.safetensors` file.
fn only_tensor(path: &Path) -> Result<(Vec<f32>, usize), Cause> {
    let bytes = std::fs::read(path)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let tensors = file.tensors();
    let [(_, tensor)] = &tensors[..] else { return Err("it must hold one tensor".into()) };
    let [_, dim] = tensor.shape() else {
        return Err(format!("its shape is {:?}, but (rows, columns) is needed", tensor.shape()).into());
    };
    let data = tensor.data();
    let values = match tensor.dtype() {
        Dtype::F32 => {
            data.chunks_exact(4).map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect()
        }
        Dtype::F16 => data.chunks_exact(2).map(|it| f16::from_le_bytes([it[0], it[1]]).to_f32()).collect(),
        Dtype::BF16 => data.chunks_exact(2).map(|it| bf16::from_le_bytes([it[0], it[1]]).to_f32()).collect(),
        other => {
            return Err(
                format!("it holds numbers of kind {other:?}, floats of 16 or 32 bits are needed").into()
            );
        }
    };
    Ok((values, *dim))
}

fn is_safetensors(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "safetensors")
}

fn wrong(path: &Path, why: impl Into<Cause>) -> RowsError {
    RowsError { path: path.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f32], dim: usize, expected: Result<usize, &str>) {
        match (Rows::new(values.to_vec(), dim), expected) {
            (Ok(rows), Ok(count)) => assert_eq!((rows.len(), rows.iter().count()), (count, count)),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn rows_are_whole_and_finite() {
        check(&[1.0, 2.0, 3.0, 4.0], 2, Ok(2));
        check(&[], 3, Ok(0));
        check(&[1.0, 2.0, 3.0], 2, Err("same number"));
        check(&[1.0], 0, Err("must have values"));
        check(&[1.0, f32::NAN], 2, Err("finite"));
    }

    #[test]
    fn both_kinds_of_file_give_back_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let rows = Rows::new(vec![1.0, -2.5, 1e-30, 4.0, 5.0, 6.0], 3).unwrap();
        for name in ["a.npy", "a.safetensors"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "what stood there before").unwrap();
            rows.write(&path).unwrap();
            assert_eq!(Rows::read(&path).unwrap(), rows, "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half-written is left");
        std::fs::write(folder.path().join("b.npy"), "no table").unwrap();
        let error = Rows::read(&folder.path().join("b.npy")).unwrap_err();
        assert!(error.to_string().contains("b.npy"), "{error}");
    }

    #[test]
    fn directions_have_norm_1() {
        let units = Rows::new(vec![3.0, 4.0, 0.0, -1e-30], 2).unwrap().into_units().unwrap();
        assert_eq!(units.values(), [0.6, 0.8, 0.0, -1.0]);
        let error = Rows::new(vec![1.0, 0.0, 0.0, 0.0], 2).unwrap().into_units().unwrap_err();
        assert_eq!(error.to_string(), "row 1 has norm 0");
    }
}
