//! The number formats of matrix products.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The number format of the matrix products inside a model's towers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    F32,
    /// 8-bit integers; weights scaled per output channel, activations per row; patches and attention in bf16. CPU only. Fastest
    /// with AVX-512 VNNI; without AVX2 it is the same as [`Precision::F32`].
    Int8,
    /// bfloat16: 16 bits with the exponent range of f32. On a CPU without AMX or a fast AVX512-BF16 it
    /// saves memory and is about as fast as [`Precision::F32`]; without AVX2 it is the same.
    Bf16,
    /// 16-bit floats of IEEE 754, up to 65,504. GPU only.
    F16,
}

impl Precision {
    pub(crate) const ALL: [Precision; 4] = [Precision::F32, Precision::Int8, Precision::Bf16, Precision::F16];

    /// The name in flags and answers.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Int8 => "int8",
            Precision::Bf16 => "bf16",
            Precision::F16 => "f16",
        }
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Precision::ALL.into_iter().find(|it| it.name() == name);
        known.ok_or_else(|| format!("{name:?} is no precision: give f32, int8, bf16 or f16"))
    }
}

/// The device does not support the precision; the caller should choose another precision or device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("models can't multiply in {} on {device}: {why}", precision.name())]
pub struct PrecisionError {
    /// The requested precision.
    pub precision: Precision,
    /// The device's name.
    pub device: String,
    /// The reason, and what to request instead.
    pub why: &'static str,
}
