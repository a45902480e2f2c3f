//! Segmentation: against PySceneDetect, and on a lecture that PySceneDetect does not cut.

mod goldens;
mod lecture;
