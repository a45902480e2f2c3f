//! Regions of text around blocks that show something new.

use super::blocks::{Grid, SIDE};
use super::table::Place;

/// Blocks without text between two words of a line, at most.
const GAP: usize = 3;
/// More regions than this are read as one: they are a new slide.
const MOST_REGIONS: usize = 6;

/// The regions to read: each is a group of blocks with text that holds a new one, with a margin. `texts` marks the blocks
/// that may hold text; `new` lists the blocks to read.
pub(super) fn regions(grid: Grid, texts: &[bool], new: &[usize]) -> Vec<Place> {
    let mut seen = vec![false; texts.len()];
    let groups = new.iter().filter_map(|block| group(grid, texts, *block, &mut seen));
    let mut found = merged(groups.map(|place| with_margin(grid, place)).collect());
    if found.len() > MOST_REGIONS {
        found = found.into_iter().reduce(Place::and).into_iter().collect();
    }
    found
}

/// The place of the blocks that are connected with this one; `None` if it was seen.
fn group(grid: Grid, texts: &[bool], block: usize, seen: &mut [bool]) -> Option<Place> {
    if std::mem::replace(&mut seen[block], true) {
        return None;
    }
    let columns = grid.columns();
    let (mut open, mut place) = (vec![block], grid.place(block));
    while let Some(block) = open.pop() {
        place = place.and(grid.place(block));
        let (row, column) = (block / columns, block % columns);
        let near_columns = column.saturating_sub(GAP)..=(column + GAP).min(columns - 1);
        for row in row.saturating_sub(1)..=(row + 1).min(grid.rows() - 1) {
            for column in near_columns.clone() {
                let near = row * columns + column;
                if texts[near] && !seen[near] {
                    seen[near] = true;
                    open.push(near);
                }
            }
        }
    }
    Some(place)
}

fn with_margin(grid: Grid, place: Place) -> Place {
    Place {
        left: place.left.saturating_sub(SIDE),
        top: place.top.saturating_sub(SIDE),
        right: (place.right + SIDE).min(grid.width),
        bottom: (place.bottom + SIDE).min(grid.height),
    }
}

/// Places of which none touches another.
fn merged(mut places: Vec<Place>) -> Vec<Place> {
    let mut done: Vec<Place> = Vec::new();
    while let Some(place) = places.pop() {
        match done.iter().position(|other| other.touches(place)) {
            Some(at) => places.push(done.swap_remove(at).and(place)),
            None => done.push(place),
        }
    }
    done.sort_by_key(|place| (place.top, place.left));
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws blocks as rows of characters: `#` may hold text, `!` is new, `.` neither. Regions are in blocks.
    #[track_caller]
    fn check(rows: &[&str], expected: &[[usize; 4]]) {
        let grid = Grid { width: rows[0].len() * SIDE, height: rows.len() * SIDE };
        let blocks: Vec<char> = rows.iter().flat_map(|row| row.chars()).collect();
        let texts: Vec<bool> = blocks.iter().map(|it| *it != '.').collect();
        let new: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at] == '!').collect();
        let found = regions(grid, &texts, &new);
        let found: Vec<[usize; 4]> =
            found.iter().map(|it| [it.left, it.top, it.right, it.bottom].map(|pixel| pixel / SIDE)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_new_digit_is_read_with_its_line() {
        check(&["............", ".##.!.......", "............"], &[[0, 0, 6, 3]]);
    }

    #[test]
    fn lines_without_news_are_left_alone() {
        check(&["##....", "......", "......", "......", "!!...."], &[[0, 3, 3, 5]]);
        check(&["##....", "......"], &[]);
    }

    #[test]
    fn regions_that_touch_are_one() {
        check(&["!.......!", "........."], &[[0, 0, 2, 2], [7, 0, 9, 2]]);
        check(&["!...", "....", "!..."], &[[0, 0, 2, 3]]);
    }

    #[test]
    fn many_regions_are_a_slide() {
        let lines: Vec<&str> = (0..40).map(|row| if row % 5 == 0 { "!.." } else { "..." }).collect();
        check(&lines, &[[0, 0, 2, 37]]);
    }
}
