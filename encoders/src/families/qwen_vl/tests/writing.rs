//! Generated tokens.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::decoder::Head;
use super::super::model::Sequence;
use super::super::positions::Positions;
use super::super::writer::Writer;
use super::cases::{numbers, positions, sequence};
use super::fixture::{Fixture, each};
use crate::generator::{Finish, Sampling};
use crate::on_cores;

fn writer(fixture: &Fixture) -> Writer {
    let model = fixture.model();
    let head = Head::load(&model.config, &fixture.weights()).unwrap();
    Writer { head, model: Arc::new(model), tokenizer: fixture.tokenizer(), ends: [].into() }
}

fn greedy(max_tokens: usize) -> Sampling {
    Sampling { max_tokens, ..Sampling::default() }
}

/// The ids of the texts that follow `prompts`.
fn written(writer: &Writer, prompts: &[Sequence], sampling: Sampling) -> Vec<Vec<u32>> {
    let samplings = vec![sampling; prompts.len()];
    let texts = writer.write(prompts, &samplings, &mut |_, _| ControlFlow::Continue(())).unwrap();
    texts.into_iter().map(|text| text.ids).collect()
}

#[test]
fn greedy_texts_are_the_references() {
    each(|fixture| {
        let writer = writer(fixture);
        for (name, case) in fixture.cases() {
            let Some(expected) = case.get("greedy").map(numbers) else { continue };
            let prompt = sequence(fixture, case);
            let what = format!("{} {name}", fixture.name);
            let trained = case.get("as_trained").map_or(expected.clone(), |it| numbers(&it["greedy"]));
            assert_eq!(written(&writer, std::slice::from_ref(&prompt), greedy(20)), [trained], "{what}");
            let delta = case["rope_delta"].as_i64().unwrap();
            let next = (prompt.ids().len() as i64 + delta) as u32;
            let given = Positions { of_tokens: positions(&case["positions"]), next };
            assert_eq!(written(&writer, &[prompt.with_positions(given)], greedy(20)), [expected], "{what}");
        }
    });
}

#[test]
fn a_batch_writes_what_its_prompts_write_alone() {
    each(|fixture| {
        let (writer, batch) = (writer(fixture), &fixture.expected["batch"]);
        let cases: Vec<_> = batch["cases"].as_array().unwrap().iter().collect();
        let prompt = |name: &serde_json::Value| {
            let case = &fixture.expected["cases"][name.as_str().unwrap()];
            let next = case["ids"].as_array().unwrap().len() as i64 + case["rope_delta"].as_i64().unwrap();
            let given = Positions { of_tokens: positions(&case["positions"]), next: next as u32 };
            sequence(fixture, case).with_positions(given)
        };
        let prompts: Vec<_> = cases.iter().map(|name| prompt(name)).collect();
        let expected: Vec<_> = batch["greedy"].as_array().unwrap().iter().map(numbers).collect();
        assert_eq!(written(&writer, &prompts, greedy(20)), expected, "{}", fixture.name);
        let on_cores = on_cores("test", || written(&writer, &prompts, greedy(20)));
        assert_eq!(on_cores, expected, "{} in a pool of its own", fixture.name);
        // Texts of different lengths, one of which ends first.
        let samplings = [greedy(3), greedy(20), greedy(1)];
        let texts = writer.write(&prompts, &samplings, &mut |_, _| ControlFlow::Continue(())).unwrap();
        for (at, count) in [3, 20, 1].into_iter().enumerate() {
            assert_eq!(texts[at].ids, expected[at][..count]);
            assert_eq!(texts[at].finish, Finish::Length);
        }
    });
}

#[test]
fn texts_end_at_a_stop_token_or_when_cancelled() {
    each(|fixture| {
        let mut writer = writer(fixture);
        let (_, case) = fixture.cases().find(|(name, _)| *name == "text").unwrap();
        let (prompt, all) = (sequence(fixture, case), numbers(&case["greedy"]));
        let prompts = [prompt];
        let mut sent = String::new();
        let mut cancel = |_: usize, text: &str| {
            sent.push_str(text);
            ControlFlow::Break(())
        };
        let text = writer.write(&prompts, &[greedy(20)], &mut cancel).unwrap().remove(0);
        assert_eq!((text.ids, text.finish), (all[..1].to_vec(), Finish::Cancelled));
        let stop = all[4];
        let before = all.iter().position(|id| *id == stop).unwrap();
        writer.ends = [stop].into();
        let mut sent = String::new();
        let mut keep = |_: usize, text: &str| {
            sent.push_str(text);
            ControlFlow::Continue(())
        };
        let text = writer.write(&prompts, &[greedy(20)], &mut keep).unwrap().remove(0);
        assert_eq!((&text.ids[..], text.finish), (&all[..before], Finish::Stop));
        assert_eq!(sent, writer.generated(&prompts[0], text).unwrap().text);
    });
}

#[test]
fn a_seed_and_a_penalty_change_the_text() {
    each(|fixture| {
        let writer = writer(fixture);
        let (_, case) = fixture.cases().find(|(name, _)| *name == "text").unwrap();
        let prompts = [sequence(fixture, case)];
        let sampled = |seed| {
            let sampling = Sampling { temperature: 2.0, seed, ..greedy(20) };
            written(&writer, &prompts, sampling)
        };
        assert_eq!(sampled(1), sampled(1));
        assert_ne!(sampled(1), sampled(2));
        let penalised = written(&writer, &prompts, Sampling { repetition_penalty: 5.0, ..greedy(20) });
        assert_ne!(penalised[0], numbers(&case["greedy"]));
    });
}
