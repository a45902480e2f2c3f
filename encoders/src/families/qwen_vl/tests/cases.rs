//! One case of the reference: a prompt with its pictures and videos, and what the model makes of it.

use serde_json::Value;

use super::super::grid::Visual;
use super::super::model::Sequence;
use super::super::positions::Positions;
use super::super::prompt::expanded;
use super::super::rotary::Position;
use super::fixture::{Fixture, each};

pub(super) fn numbers(json: &Value) -> Vec<u32> {
    json.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as u32).collect()
}

/// The pictures and videos of a case, in the order of their tokens.
pub(super) fn visuals(fixture: &Fixture, case: &Value) -> Vec<Visual> {
    let step = case["second_per_grid_ts"][0].as_f64().unwrap_or(1.0);
    let one =
        |name: &str, grid: &str| case[name].as_str().map(|media| fixture.visual(media, &case[grid][0], step));
    one("image", "image_grid_thw").into_iter().chain(one("video", "video_grid_thw")).collect()
}

/// Three rows of positions, by token.
pub(super) fn positions(json: &Value) -> Vec<Position> {
    let axes: Vec<Vec<u32>> = json.as_array().unwrap().iter().map(numbers).collect();
    (0..axes[0].len()).map(|at| [axes[0][at], axes[1][at], axes[2][at]]).collect()
}

/// The case as a prompt of ours, with positions of ours.
pub(super) fn sequence(fixture: &Fixture, case: &Value) -> Sequence {
    Sequence::new(numbers(&case["ids"]), visuals(fixture, case), &fixture.config()).unwrap()
}

/// Whether the released code of this case's model gives no positions to the decoder.
pub(super) fn is_counted(name: &str) -> bool {
    name.starts_with("gme")
}

#[test]
fn prompts_become_the_references_ids() {
    each(|fixture| {
        let (tokenizer, config) = (fixture.tokenizer(), fixture.config());
        for (name, case) in fixture.cases() {
            // The reference kept the template's markers in this case; the others are as in training.
            if name.ends_with("markers-kept") {
                continue;
            }
            let prompt = case["prompt"].as_str().unwrap();
            let text = expanded(prompt, &visuals(fixture, case), &config).unwrap();
            assert_eq!(tokenizer.ids(&text).unwrap(), numbers(&case["ids"]), "{} {name}", fixture.name);
        }
    });
}

#[test]
fn positions_are_those_of_training() {
    each(|fixture| {
        for (name, case) in fixture.cases() {
            let trained = case.get("as_trained").unwrap_or(case);
            let sequence = sequence(fixture, case);
            let got = match is_counted(name) {
                true => Positions::counted(sequence.ids().len()),
                false => sequence.positions().clone(),
            };
            let what = format!("{} {name}", fixture.name);
            assert_eq!(got.of_tokens, positions(&trained["positions"]), "{what}");
            let delta = i64::from(got.next) - got.of_tokens.len() as i64;
            if !is_counted(name) {
                assert_eq!(Some(delta), trained["rope_delta"].as_i64(), "{what}");
            }
        }
    });
}

#[test]
fn pads_without_pictures_and_pictures_without_pads_are_the_callers_fault() {
    each(|fixture| {
        let config = fixture.config();
        let (_, case) = fixture.cases().find(|(name, _)| *name == "image-eol").unwrap();
        let (ids, visuals) = (numbers(&case["ids"]), visuals(fixture, case));
        let refused = |ids: &[u32], visuals: &[Visual]| {
            let error = Sequence::new(ids.to_vec(), visuals.to_vec(), &config).unwrap_err();
            assert!(matches!(error, crate::EncodeError::BadInput(_)), "{error}");
        };
        refused(&ids, &[]);
        let pad = ids.iter().position(|id| *id == config.ids.picture).unwrap();
        refused(&ids[..pad + 3], &visuals);
        refused(&[1, 2], &visuals);
        refused(&[], &[]);
        refused(&[config.text.vocabulary as u32], &[]);
        let cut = Visual { patches: vec![0.0; 3], ..visuals[0].clone() };
        refused(&ids, &[cut]);
        let prompt = case["prompt"].as_str().unwrap();
        assert!(expanded(prompt, &[], &config).is_err());
        assert!(expanded("no place", &visuals, &config).is_err());
    });
}

#[test]
fn special_tokens_in_a_users_text_are_ordinary_letters() {
    each(|fixture| {
        let (tokenizer, config) = (fixture.tokenizer(), fixture.config());
        let text = tokenizer.plain("<|im_end|> and <|image_pad|><|video_pad|>");
        let ids = tokenizer.ids(&text).unwrap();
        assert!(!ids.contains(&config.ids.picture) && !ids.contains(&config.ids.video), "{text}");
        assert!(!ids.contains(&tokenizer.id_of("<|im_end|>").unwrap()));
    });
}
