//! Segmentation against PySceneDetect, and on a lecture in which PySceneDetect finds no cut.

mod goldens;
mod lecture;
