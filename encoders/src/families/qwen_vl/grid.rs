//! Pictures and videos as grids of patches.

use serde::Serialize;

/// The patches of a picture or video: temporal patches, rows and columns. A temporal patch covers two frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Grid {
    /// Temporal patches; 1 for a picture.
    pub(crate) frames: usize,
    /// Rows of patches, a multiple of the merge size.
    pub(crate) rows: usize,
    /// Columns of patches, a multiple of the merge size.
    pub(crate) columns: usize,
}

impl Grid {
    /// Patches of one temporal patch.
    pub(crate) fn area(&self) -> usize {
        self.rows * self.columns
    }

    /// All patches.
    pub(crate) fn patches(&self) -> usize {
        self.frames * self.area()
    }

    /// The decoder's tokens: `merge * merge` patches each.
    pub(crate) fn tokens(&self, merge: usize) -> usize {
        self.patches() / (merge * merge)
    }

    /// Row and column of each patch of one temporal patch, in the tower's order: patches of a merged token are
    /// neighbours.
    pub(crate) fn places(&self, merge: usize) -> Vec<[usize; 2]> {
        let mut places = Vec::with_capacity(self.area());
        for row in (0..self.rows).step_by(merge) {
            for column in (0..self.columns).step_by(merge) {
                let inside = (0..merge * merge).map(|at| [row + at / merge, column + at % merge]);
                places.extend(inside);
            }
        }
        places
    }
}

/// Whether the model reads a picture or a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VisualKind {
    Picture,
    Video,
}

/// A picture or video, ready for the tower.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Visual {
    pub(crate) kind: VisualKind,
    pub(crate) grid: Grid,
    /// `grid.patches()` rows of `3 * 2 * patch * patch` values: channel, frame, row, column.
    pub(crate) patches: Vec<f32>,
    /// Seconds of each frame from the start, two a temporal patch; empty for a picture.
    pub(crate) times: Vec<f64>,
    /// Seconds that a temporal patch stands for: two over the sampled frames per second. 0 for a picture.
    pub(crate) step: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_of_a_merged_token_are_neighbours() {
        let grid = Grid { frames: 3, rows: 2, columns: 4 };
        let expected = [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [0, 3], [1, 2], [1, 3]];
        assert_eq!(grid.places(2), expected);
        assert_eq!((grid.area(), grid.patches(), grid.tokens(2)), (8, 24, 6));
    }
}
