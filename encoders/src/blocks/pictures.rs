//! The picture tower of a two-tower model.

use candle_core::{Result, Tensor};

use super::pixels::PixelBatch;
use super::q_former::QFormer;
use super::vision_transformer::VisionTransformer;

/// The picture tower.
#[derive(Debug)]
pub(crate) enum Pictures {
    /// One vector per picture, or per clip.
    Transformer(VisionTransformer),
    /// BLIP-2's, one vector per picture.
    QFormer(QFormer),
}

impl Pictures {
    /// Tokens of one picture.
    pub(crate) fn tokens(&self) -> usize {
        match self {
            Pictures::Transformer(tower) => tower.tokens(),
            Pictures::QFormer(tower) => tower.tokens(),
        }
    }

    /// Floating-point operations of one picture's matrix products, if known.
    pub(crate) fn operations(&self) -> Option<f64> {
        match self {
            Pictures::Transformer(tower) => Some(tower.operations()),
            Pictures::QFormer(_) => None,
        }
    }

    /// Pictures per clip; `None` if the tower encodes each picture alone.
    pub(crate) fn frames(&self) -> Option<usize> {
        match self {
            Pictures::Transformer(tower) => tower.frames(),
            Pictures::QFormer(_) => None,
        }
    }

    /// Values per vector.
    pub(crate) fn dim(&self) -> usize {
        match self {
            Pictures::Transformer(tower) => tower.dim(),
            Pictures::QFormer(tower) => tower.dim(),
        }
    }

    /// The pooling that makes a clip's vector; part of the space's id.
    pub(crate) fn pooling(&self) -> &'static str {
        match self {
            Pictures::Transformer(tower) if tower.is_joint() => "the clip's class token",
            Pictures::Transformer(tower) if tower.frames().is_some() => "mean of the frames' vectors",
            Pictures::Transformer(_) => "mean of the frames' unit vectors",
            Pictures::QFormer(_) => {
                "mean of the frames' unit vectors, of the mean of their queries' unit vectors"
            }
        }
    }

    /// Encodes pictures to (pictures, dim). A tower with [`Pictures::frames`] returns (clips, dim) instead.
    pub(crate) fn forward(&self, pixels: &PixelBatch) -> Result<Tensor> {
        match self {
            Pictures::Transformer(tower) => tower.forward(pixels),
            Pictures::QFormer(tower) => tower.forward(pixels),
        }
    }
}
