//! The table of token embeddings, in the number format of the model's layers: a byte a value in int8, two in bf16.

use candle_core::{DType, Device, Result, Tensor};

use crate::device::{Placement, Precision};

/// Rows by token id.
#[derive(Debug)]
pub(crate) enum EmbeddingRows {
    /// (vocabulary, width), f32 or bf16.
    Floats(Tensor),
    /// `byte * scale`, with a scale for each row.
    Bytes {
        /// Row after row.
        values: Vec<i8>,
        scales: Vec<f32>,
        width: usize,
    },
}

impl EmbeddingRows {
    /// The rows of `table`, (vocabulary, width), f32, in the placement's precision.
    pub(crate) fn new(table: Tensor, placement: &Placement) -> Result<EmbeddingRows> {
        match placement.precision() {
            Precision::F32 | Precision::F16 => Ok(EmbeddingRows::Floats(table)),
            Precision::Bf16 => Ok(EmbeddingRows::Floats(table.to_dtype(DType::BF16)?)),
            Precision::Int8 => EmbeddingRows::bytes(&table),
        }
    }

    fn bytes(table: &Tensor) -> Result<EmbeddingRows> {
        let (vocabulary, width) = table.dims2()?;
        let (mut values, mut scales) =
            (Vec::with_capacity(vocabulary * width), Vec::with_capacity(vocabulary));
        for row in 0..vocabulary {
            let row: Vec<f32> = table.get(row)?.to_vec1()?;
            let most = row.iter().fold(0_f32, |most, value| most.max(value.abs()));
            let scale = if most > 0.0 { most / 127.0 } else { 1.0 };
            values.extend(row.iter().map(|value| (value / scale).round() as i8));
            scales.push(scale);
        }
        Ok(EmbeddingRows::Bytes { values, scales, width })
    }

    /// (ids, width), f32, on `device`. The ids must be in the vocabulary.
    ///
    /// # Errors
    /// An id outside.
    pub(crate) fn of(&self, ids: &[u32], device: &Device) -> Result<Tensor> {
        let (values, scales, width) = match self {
            EmbeddingRows::Floats(table) => {
                return table.index_select(&Tensor::new(ids, device)?, 0)?.to_dtype(DType::F32);
            }
            EmbeddingRows::Bytes { values, scales, width } => (values, scales, *width),
        };
        let mut rows = Vec::with_capacity(ids.len() * width);
        for id in ids.iter().map(|id| *id as usize) {
            let Some(scale) = scales.get(id) else {
                candle_core::bail!("token {id} of a vocabulary of {}", scales.len());
            };
            rows.extend(values[id * width..][..width].iter().map(|byte| f32::from(*byte) * scale));
        }
        Tensor::from_vec(rows, (ids.len(), width), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_tables_give_the_rows_within_half_a_step() {
        let values = [3.0_f32, -1.5, 0.01, 0.0, 0.0, 0.0, 127.0, -127.0, 5.0];
        let table = Tensor::from_slice(&values, (3, 3), &Device::Cpu).unwrap();
        let rows = |precision| {
            let placement = Placement::new(Device::Cpu, precision).ok()?;
            let rows = EmbeddingRows::new(table.clone(), &placement).unwrap();
            assert!(rows.of(&[3], &Device::Cpu).is_err());
            Some(rows.of(&[2, 0, 1, 2], &Device::Cpu).unwrap().to_vec2::<f32>().unwrap())
        };
        let floats = rows(Precision::F32).unwrap();
        assert_eq!(floats[1], values[..3]);
        let rounded = [[127.0, -127.0, 5.0], [3.0, -1.5, 0.010_009_766], [0.0; 3], [127.0, -127.0, 5.0]];
        assert_eq!(rows(Precision::Bf16).unwrap(), rounded);
        // Int8 needs a processor with byte products.
        let Some(bytes) = rows(Precision::Int8) else { return };
        for (bytes, floats) in bytes.iter().zip(&floats) {
            let step = floats.iter().fold(0_f32, |most, value| most.max(value.abs())) / 127.0;
            assert!(bytes.iter().zip(floats).all(|(a, b)| (a - b).abs() <= 0.501 * step), "{bytes:?}");
        }
    }
}
