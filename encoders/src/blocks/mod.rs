//! The parts that families share: layers, towers, and the encoder around two towers.

pub(crate) mod assembly;
pub(crate) mod bert;
pub(crate) mod checks;
pub(crate) mod cross_attention;
pub(crate) mod embedding_rows;
pub(crate) mod layers;
pub(crate) mod openai_names;
pub(crate) mod padding;
pub(crate) mod patches;
pub(crate) mod pictures;
pub(crate) mod pixels;
pub(crate) mod q_former;
pub(crate) mod text_transformer;
pub(crate) mod transformer;
pub(crate) mod two_towers;
pub(crate) mod vision_transformer;
