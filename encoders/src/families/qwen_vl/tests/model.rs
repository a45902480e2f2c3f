//! Values of the tower and the decoder.

use candle_core::{Device, Tensor};

use super::super::config::Config;
use super::super::model::{QwenVl, Sequence};
use super::super::positions::Positions;
use super::cases::{is_counted, positions, sequence};
use super::fixture::{Fixture, check, each};
use crate::Precision;
use crate::device::Placement;

#[test]
fn both_layouts_of_config_json_say_the_same() {
    each(|fixture| {
        let json = std::fs::read(fixture.folder.join("config.v5.json")).unwrap();
        let saved = Config::parse(&json).unwrap();
        let published = fixture.config();
        assert_eq!(Config { ends: published.ends.clone(), ..saved }, published);
    });
}

#[test]
fn the_towers_features_are_the_references() {
    each(|fixture| {
        let model = fixture.model();
        for media in fixture.names(".features") {
            let grid = grid(fixture, &media);
            let visual = fixture.visual(&media, &grid, 1.0);
            let output = model.tower.forward(&[&visual], &|| {}).unwrap();
            let check = |part: &str, got: &Tensor| {
                let name = format!("{media}.{part}");
                check(&format!("{} {name}", fixture.name), got, fixture.tensor(&name).unwrap());
            };
            check("tower", &output.hidden);
            check("features", &output.features);
            for (level, got) in output.levels.iter().enumerate() {
                check(&format!("deepstack.{level}"), got);
            }
        }
    });
}

fn grid(fixture: &Fixture, media: &str) -> serde_json::Value {
    let notes = std::fs::read(fixture.folder.join("../notes.json")).unwrap();
    let notes: serde_json::Value = serde_json::from_slice(&notes).unwrap();
    notes[fixture.name]["grids"][media].clone()
}

#[test]
fn several_pictures_and_videos_at_once_do_not_mix() {
    each(|fixture| {
        let model = fixture.model();
        let visual = |media: &str| fixture.visual(media, &grid(fixture, media), 1.0);
        let both = [visual("wide"), visual("long"), visual("four")];
        let output = model.tower.forward(&both.iter().collect::<Vec<_>>(), &|| {}).unwrap();
        let names = ["wide", "long", "four"].map(|media| format!("{media}.features"));
        let expected = names.map(|name| fixture.tensor(&name).unwrap());
        let what = format!("{} tower of three", fixture.name);
        check(&what, &output.features, &Tensor::cat(&expected, 0).unwrap());
    });
}

/// Hidden states after the final norm, and the vector of the last token at norm 1.
fn outputs(model: &QwenVl, sequence: &Sequence) -> [Tensor; 2] {
    let hidden = model.decoder.normed(&model.hidden(&[sequence], None, &|| {}).unwrap()).unwrap();
    [hidden, unit(&model.last_hidden(&[sequence], &|| {}).unwrap())]
}

fn unit(rows: &Tensor) -> Tensor {
    crate::blocks::layers::divided_by_norm(rows).unwrap()
}

fn vector(json: &serde_json::Value) -> Tensor {
    let values: Vec<f32> =
        json.as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect();
    Tensor::new(&values[..], &Device::Cpu).unwrap().unsqueeze(0).unwrap()
}

#[test]
fn hidden_states_and_vectors_are_the_references() {
    each(|fixture| {
        let model = fixture.model();
        for (name, case) in fixture.cases() {
            let sequence = sequence(fixture, case);
            let what = format!("{} {name}", fixture.name);
            // With the positions of transformers 5, which differ from training's in long videos.
            let given = positions(&case["positions"]);
            let given = Positions { next: 0, of_tokens: given };
            let [hidden, pooled] = outputs(&model, &sequence.clone().with_positions(given));
            check(&what, &hidden, fixture.tensor(&format!("{name}.hidden")).unwrap());
            check(&what, &pooled, &vector(&case["vector"]));
            if let Some(trained) = case.get("as_trained") {
                let [hidden, pooled] = outputs(&model, &sequence);
                check(&what, &pooled, &vector(&trained["vector"]));
                if let Some(expected) = fixture.tensor(&format!("{name}.hidden.as_trained")) {
                    check(&what, &hidden, expected);
                }
            } else if !is_counted(name) {
                check(&what, &outputs(&model, &sequence)[1], &vector(&case["vector"]));
            }
        }
    });
}

/// Vectors of all cases with layers on `placement`.
fn vectors(fixture: &Fixture, placement: &Placement) -> Tensor {
    let model = QwenVl::load(fixture.config(), &fixture.weights().placed(placement)).unwrap();
    let sequences: Vec<Sequence> = fixture.cases().map(|(_, case)| sequence(fixture, case)).collect();
    unit(&model.last_hidden(&sequences.iter().collect::<Vec<_>>(), &|| {}).unwrap())
}

/// The least cosine of two vectors in the same row.
fn least_cosine(one: &Tensor, other: &Tensor) -> f32 {
    let cosines = (one * other).unwrap().sum(1).unwrap();
    cosines.min(0).unwrap().to_scalar().unwrap()
}

#[test]
fn other_precisions_and_operations_give_nearly_the_same_vectors() {
    each(|fixture| {
        let floats = vectors(fixture, &Placement::default());
        let operations = vectors(fixture, &Placement::as_on_a_gpu(Precision::F32));
        check(&format!("{} operations", fixture.name), &operations, &floats);
        let halves = vectors(fixture, &Placement::as_on_a_gpu(Precision::F16));
        let [bf16, bytes] = [Precision::Bf16, Precision::Int8]
            .map(|precision| vectors(fixture, &Placement::new(Device::Cpu, precision).unwrap()));
        let [halves, bf16, bytes] = [halves, bf16, bytes].map(|it| least_cosine(&it, &floats));
        eprintln!("{} cosines: f16 {halves}, bf16 {bf16}, int8 {bytes}", fixture.name);
        assert!(halves > 0.999 && bf16 > 0.999 && bytes > 0.98, "{halves} {bf16} {bytes}");
    });
}

#[test]
fn a_batch_gives_the_vectors_of_its_sequences_alone() {
    each(|fixture| {
        let model = fixture.model();
        let batch = &fixture.expected["batch"];
        let names = batch["cases"].as_array().unwrap();
        let case = |name: &serde_json::Value| &fixture.expected["cases"][name.as_str().unwrap()];
        let given = |case: &serde_json::Value| {
            let positions = Positions { next: 0, of_tokens: positions(&case["positions"]) };
            sequence(fixture, case).with_positions(positions)
        };
        let sequences: Vec<Sequence> = names.iter().map(|name| given(case(name))).collect();
        let all: Vec<&Sequence> = sequences.iter().collect();
        let vectors = unit(&model.last_hidden(&all, &|| {}).unwrap());
        for at in 0..all.len() {
            let what = format!("{} batch {at}", fixture.name);
            check(&what, &vectors.narrow(0, at, 1).unwrap(), &vector(&batch["vectors"][at]));
            let alone = unit(&model.last_hidden(&[all[at]], &|| {}).unwrap());
            check(&what, &vectors.narrow(0, at, 1).unwrap(), &alone);
        }
        left_padding_hides_nothing_but_pads(batch, &sequences);
    });
}

/// The reference's left-padded rows are our sequences: the same ids and positions where its mask is 1.
fn left_padding_hides_nothing_but_pads(batch: &serde_json::Value, sequences: &[Sequence]) {
    for (at, sequence) in sequences.iter().enumerate() {
        let mask = super::cases::numbers(&batch["mask"][at]);
        let pads = mask.iter().filter(|mark| **mark == 0).count();
        assert_eq!(super::cases::numbers(&batch["ids"][at])[pads..], *sequence.ids());
        let axes: Vec<_> = (0..3)
            .map(|axis| super::cases::numbers(&batch["positions"][axis][at])[pads..].to_vec())
            .collect();
        let ours: Vec<_> = (0..3)
            .map(|axis| sequence.positions().of_tokens.iter().map(|place| place[axis]).collect::<Vec<_>>())
            .collect();
        assert_eq!(axes, ours);
    }
}
