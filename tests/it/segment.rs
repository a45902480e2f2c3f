//! Where videos are cut: against PySceneDetect, and on a lecture that it leaves in one piece.

mod goldens;
mod lecture;
