//! The table of token embeddings: as it is, or a byte a value where a model is kept in int8.

use candle_core::{Device, Result, Tensor};

use crate::device::{Placement, Precision};

/// Rows by token id.
#[derive(Debug)]
pub(crate) enum EmbeddingRows {
    /// (vocabulary, width), f32.
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
        if placement.precision() != Precision::Int8 {
            return Ok(EmbeddingRows::Floats(table));
        }
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
            EmbeddingRows::Floats(table) => return table.index_select(&Tensor::new(ids, device)?, 0),
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
    fn bytes_give_the_rows_within_half_a_step() {
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
        // Int8 needs a processor with byte products.
        let Some(bytes) = rows(Precision::Int8) else { return };
        for (bytes, floats) in bytes.iter().zip(&floats) {
            let step = floats.iter().fold(0_f32, |most, value| most.max(value.abs())) / 127.0;
            assert!(bytes.iter().zip(floats).all(|(a, b)| (a - b).abs() <= 0.501 * step), "{bytes:?}");
        }
    }
}
