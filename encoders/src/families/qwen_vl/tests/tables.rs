//! The reference's tables: sizes, frames, times, windows, axes.

use serde_json::Value;

use super::super::positions::times;
use super::super::prompt::seconds;
use super::super::rotary::tests::axes;
use super::super::windows::Windows;
use super::cases::numbers;
use super::fixture::{folder, grid_of};
use crate::area::{Lift, SizeRule};
use crate::resize::Pixels;
use crate::sample::even::{FrameCount, indices};

/// Calls `check` with each row of a table.
fn each(table: &str, check: impl Fn(&Value)) {
    let Some(folder) = folder() else { return };
    let tables: Value = serde_json::from_slice(&std::fs::read(folder.join("tables.json")).unwrap()).unwrap();
    let rows = tables[table].as_array().unwrap();
    assert!(!rows.is_empty());
    rows.iter().for_each(check);
}

fn number(row: &Value, name: &str) -> u32 {
    row[name].as_u64().unwrap() as u32
}

fn rule(row: &Value, lift: Lift) -> SizeRule {
    let [factor, least, most] = ["factor", "min_pixels", "max_pixels"].map(|name| number(row, name));
    SizeRule { factor, min_pixels: least.into(), max_pixels: most.into(), lift }
}

fn size(row: &Value) -> Pixels {
    Pixels { width: number(row, "width"), height: number(row, "height") }
}

#[track_caller]
fn same(got: Option<Pixels>, expected: &Value, row: &Value) {
    let got = got.map(|it| vec![it.height, it.width]);
    let expected = expected.is_array().then(|| numbers(expected));
    assert_eq!(got, expected, "{row}");
}

#[test]
fn sizes_are_the_references() {
    each("sizes", |row| {
        same(rule(row, Lift::After).of(size(row)).ok(), &row["transformers"], row);
        same(rule(row, Lift::Before).of(size(row)).ok(), &row["qwen_vl_utils"], row);
    });
}

#[test]
fn sizes_of_clips_are_the_references() {
    each("clip_sizes", |row| {
        let frames = number(row, "frames") as usize;
        same(rule(row, Lift::After).of_clip(size(row), frames).ok(), &row["transformers"], row);
    });
}

#[test]
fn pictures_of_gme_are_resized_twice() {
    each("gme_sizes", |row| {
        let rule =
            |min_pixels, max_pixels| SizeRule { factor: 28, min_pixels, max_pixels, lift: Lift::Before };
        let first = rule(4 * 784, 16_384 * 784).of(size(row)).unwrap();
        same(Some(first), &row["first"], row);
        same(rule(256 * 784, 1280 * 784).of(first).ok(), &row["second"], row);
    });
}

#[test]
fn frames_are_the_references() {
    each("frames", |row| {
        let (total, wish) = (number(row, "total") as usize, &row["wish"]);
        let wanted = match wish["nframes"].as_u64() {
            Some(count) => FrameCount::Exactly(count as usize),
            None => {
                let at_most = wish["max_frames"].as_u64().unwrap_or(768) as usize;
                FrameCount::PerSecond { rate: wish["fps"].as_f64().unwrap(), at_most }
            }
        };
        let count = wanted.of(total, row["fps"].as_f64().unwrap());
        assert_eq!(count, row["count"].as_u64().map(|count| count as usize), "{row}");
        let (Some(count), Some(expected)) = (count, row["taken"].as_array()) else { return };
        let expected: Vec<i64> = expected.iter().map(|index| index.as_i64().unwrap()).collect();
        let got: Vec<i64> = indices(total, count).into_iter().map(|index| index as i64).collect();
        // -1 stands for frames that the table leaves out.
        match expected.iter().position(|index| *index == -1) {
            None => assert_eq!(got, expected, "{row}"),
            Some(gap) => {
                let behind = expected.len() - gap - 1;
                assert_eq!(got[..gap], expected[..gap], "{row}");
                assert_eq!(got[got.len() - behind..], expected[gap + 1..], "{row}");
            }
        }
    });
}

#[test]
fn times_are_written_as_the_reference_does() {
    each("timestamps", |row| {
        let fps = row["fps"].as_f64().unwrap();
        let mut times: Vec<f64> =
            row["indices"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap() / fps).collect();
        times.resize(times.len().next_multiple_of(2), *times.last().unwrap());
        let got: Vec<String> = times.chunks(2).map(seconds).collect();
        let expected: Vec<&str> =
            row["text"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        assert_eq!(got, expected, "{row}");
    });
}

#[test]
fn time_positions_are_the_references() {
    each("time_positions", |row| {
        let [step, per_second] = ["second_per_grid", "tokens_per_second"].map(|it| row[it].as_f64().unwrap());
        let got = times(step, per_second as f32, number(row, "count") as usize);
        assert_eq!(got, numbers(&row["ids"]), "{row}");
    });
}

#[test]
fn windows_are_the_references() {
    each("windows", |row| {
        let windows = Windows::of(&[grid_of(&row["grid"])], 2, 4);
        assert_eq!(windows.order, numbers(&row["order"]), "{row}");
        let mut bounds = vec![0];
        windows.lengths.iter().for_each(|tokens| bounds.push(bounds[bounds.len() - 1] + 4 * *tokens as u32));
        assert_eq!(bounds, numbers(&row["bounds"]), "{row}");
    });
}

#[test]
fn pairs_follow_the_references_axes() {
    let Some(folder) = folder() else { return };
    let tables: Value = serde_json::from_slice(&std::fs::read(folder.join("tables.json")).unwrap()).unwrap();
    for (name, is_interleaved) in [("interleaved", true), ("chunked", false)] {
        let sections = numbers(&tables[name]["section"]);
        let sections = [0, 1, 2].map(|axis| sections[axis] as usize);
        let got: Vec<u32> = axes(sections, is_interleaved).into_iter().map(|axis| axis as u32).collect();
        assert_eq!(got, numbers(&tables[name]["axis_of_pair"]));
    }
}
