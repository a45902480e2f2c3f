//! reprise-house: the rules of the source tree, checked on the parsed source.
//!
//! Parses every module of every package with `syn` and resolves each `use` and each path to the file that defines the
//! item, through re-exports. These imports give the circles, the forbidden imports and the picture. Depends on no
//! other package of the workspace, so it builds in seconds.

mod circles;
mod error;
mod imports;
mod layers;
mod listed;
mod mentions;
mod packages;
mod parameters;
mod picture;
mod scope;
mod tree;
mod walls;

pub use circles::{Circle, file_circles, room, room_circles};
pub use error::HouseError;
pub use imports::{CrateImport, Import, Imports};
pub use listed::{LISTS, List};
pub use packages::{Dependency, Package, Target, packages};
pub use parameters::{Fault, FaultyFn, faulty_fns};
pub use picture::{PICTURE, picture};
pub use tree::{Tree, workspace};
pub use walls::{Breach, breaches, empty_walls, unlisted};

#[cfg(test)]
mod tests;
