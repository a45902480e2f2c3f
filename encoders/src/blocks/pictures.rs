//! The tower of pictures of a model that has one beside a tower of texts.

use candle_core::{Result, Tensor};

use super::q_former::QFormer;
use super::vision_transformer::VisionTransformer;

/// The tower of pictures.
#[derive(Debug)]
pub(crate) enum Pictures {
    /// Whose pictures, or those of a clip, become a vector each.
    Transformer(VisionTransformer),
    /// BLIP-2's.
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

    /// Floating-point operations of one picture's products, where they are known.
    pub(crate) fn operations(&self) -> Option<f64> {
        match self {
            Pictures::Transformer(tower) => Some(tower.operations()),
            Pictures::QFormer(_) => None,
        }
    }

    /// Pictures that must come together, as a clip; `None` where each stands by itself.
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

    /// What the vector of a clip is.
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

    /// (pictures, dim) of (pictures, 3, side, side) pixels, picture after picture in one slice; where pictures must
    /// come together, (clips, dim), clip after clip.
    pub(crate) fn forward(&self, pixels: &[f32]) -> Result<Tensor> {
        match self {
            Pictures::Transformer(tower) => tower.forward(pixels),
            Pictures::QFormer(tower) => tower.forward(pixels),
        }
    }
}
