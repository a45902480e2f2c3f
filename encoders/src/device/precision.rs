//! The number formats in which layers multiply.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// In which numbers the layers inside a model's towers multiply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    F32,
    /// 8-bit integers: weights by output channel, activations by row as they come. On the CPU alone; on processors
    /// without AVX-512 VNNI the same as [`Precision::F32`].
    Int8,
    /// 16-bit floats with the exponents of 32-bit ones. On a GPU alone.
    Bf16,
    /// 16-bit floats of IEEE 754, up to 65,504. On a GPU alone.
    F16,
}

impl Precision {
    pub(crate) const ALL: [Precision; 4] = [Precision::F32, Precision::Int8, Precision::Bf16, Precision::F16];

    /// As it is written in flags and answers.
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

/// The device does not multiply in such numbers; the caller should ask for others, or for another device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("models can't multiply in {} on {device}: {why}", precision.name())]
pub struct PrecisionError {
    /// The numbers that were asked for.
    pub precision: Precision,
    /// The device's name.
    pub device: String,
    /// The reason, and what to ask for instead.
    pub why: &'static str,
}
