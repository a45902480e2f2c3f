//! Segmentation: against PySceneDetect, on a lecture that PySceneDetect does not cut, and each policy's invariants.

mod goldens;
mod lecture;
mod policy;
