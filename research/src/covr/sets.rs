//! Tests that walk all pairs of three published label sets: FineGym's 288 labels with their 99, FineDiving's 52 dives and
//! Diving48's 48 classes. The head of each file in `sets/` names its source.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{fault, is_negation, torn, words};
use super::grammar::{Grammar, built_in};
use super::label::Label;
use super::modification::Difference;
use super::pairs::{Change, PairLimits, Similarity, label_pairs};
use super::triplets::ordered;
use super::with_sentences;

const GYM: &str = include_str!("sets/gym288.txt");
const FINEDIVING: &str = include_str!("sets/finediving.txt");
const DIVING48: &str = include_str!("sets/diving48.txt");

/// The labels of a file of `sets/`.
fn labels(file: &str) -> Vec<Label> {
    labels_of(file.lines().map(|it| it.trim_start_matches("* ")))
}

/// FineGym's 99 labels, of which one occurs twice.
fn gym99() -> Vec<Label> {
    labels_of(GYM.lines().filter_map(|it| it.strip_prefix("* ")))
}

fn labels_of<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Label> {
    let grammars = built_in().unwrap();
    let texts: BTreeSet<&str> = lines.filter(|it| !it.starts_with('#')).collect();
    texts.into_iter().map(|it| Label::new(it, &grammars)).collect()
}

/// Words that grammars add to the words of labels: events, armstands, and wordings of removed parts.
const ADDED: &str = "after air armstand balance bar beam both dive first flight floor foot held high landing least one \
position salto single somersault step-out straight taking touch twist uneven up usual vault";

/// The words of a label in all forms that a text may contain. Words are also split at signs and numbers, and numbers
/// become words.
fn label_words(text: &str) -> BTreeSet<String> {
    let mut found = words(text);
    let apart = text.replace(['+', '.', ',', '/', '-'], " ");
    found.extend(words(&apart));
    // Diving48 writes 1.5 somersaults as 15som.
    let tenths = apart.split(' ').filter_map(|it| it.strip_suffix("som").or_else(|| it.strip_suffix("Twis")));
    let tenths =
        tenths.map(|it| if it.len() == 2 { format!("{}.{}", &it[..1], &it[1..]) } else { it.to_owned() });
    found.extend(tenths.flat_map(|it| words(&it)));
    if apart.contains("Dive ") {
        found.insert("half".to_owned());
    }
    found
}

/// Walks all ordered pairs of labels that differ.
#[track_caller]
fn check(labels: &[Label], grammar: &Grammar) {
    let unknown: Vec<_> = labels.iter().map(|it| &it.text).filter(|it| grammar.parts(it).is_none()).collect();
    assert!(unknown.is_empty(), "the grammar does not know {unknown:#?}");
    let added = words(ADDED);
    for query in labels {
        let mut target_of: BTreeMap<String, &Label> = BTreeMap::new();
        for target in labels.iter().filter(|it| it.parts != query.parts) {
            let text = Difference::between(query, target).sentence();
            let pair = format!("{text:?} from {:?} to {:?}", query.text, target.text);
            assert_eq!(torn(&text), None, "{pair}");
            assert_eq!(fault(&text, query, target), None, "{pair}");
            let known = label_words(&format!("{} {}", query.text, target.text));
            let strange: Vec<_> = words(&text)
                .into_iter()
                .filter(|it| !known.contains(it) && !added.contains(it) && !is_negation(it))
                .collect();
            assert!(strange.is_empty(), "{pair}: {strange:?}");
            let other = target_of.insert(text, target);
            assert!(other.is_none_or(|it| it.parts == target.parts), "{pair} leads to {other:?} too");
        }
    }
}

#[test]
fn no_text_of_any_pair_is_torn_or_leads_elsewhere() {
    let [gym, finediving, diving48] = <[Grammar; 3]>::try_from(built_in().unwrap()).unwrap();
    check(&labels(GYM), &gym);
    check(&labels(FINEDIVING), &finediving);
    check(&labels(DIVING48), &diving48);
}

/// Labels, temporal pairs, event pairs and ordered pairs without limits.
#[derive(Debug, PartialEq)]
struct Counts {
    labels: usize,
    temporal: usize,
    event: usize,
    asked: usize,
}

fn counts(labels: &[Label]) -> Counts {
    let pairs = label_pairs(labels, &Similarity::Words, PairLimits::default());
    let temporal = pairs.iter().filter(|it| it.change == Change::Temporal).count();
    let asked = ordered(labels, &pairs).len();
    Counts { labels: labels.len(), temporal, event: pairs.len() - temporal, asked }
}

#[test]
fn the_counts_of_the_decision_page_are_these() {
    let both = [labels(GYM), labels(FINEDIVING)].concat();
    let cases = [
        (gym99(), Counts { labels: 98, temporal: 1406, event: 12, asked: 2836 }),
        (labels(GYM), Counts { labels: 285, temporal: 11168, event: 47, asked: 22430 }),
        (labels(FINEDIVING), Counts { labels: 52, temporal: 1326, event: 0, asked: 2652 }),
        (labels(DIVING48), Counts { labels: 48, temporal: 1128, event: 0, asked: 2256 }),
        (both, Counts { labels: 337, temporal: 12494, event: 47, asked: 25082 }),
    ];
    for (labels, expected) in cases {
        assert_eq!(counts(&labels), expected);
    }
}

#[test]
fn drawn_sentences_are_whole_and_their_targets_complete() {
    for set in [gym99(), labels(FINEDIVING), labels(DIVING48)] {
        let pairs = label_pairs(&set, &Similarity::Words, PairLimits::default());
        for asked in with_sentences(&set, &pairs, 3) {
            assert!(asked.texts.iter().all(|it| torn(it).is_none()), "{:?}", asked.texts);
            let same = |at: &usize| set[*at].parts == set[asked.targets[0]].parts;
            assert_eq!(asked.targets, (0..set.len()).filter(same).collect::<Vec<_>>());
        }
    }
}

#[test]
fn of_equal_elements_every_apparatus_is_found() {
    let pairs = label_pairs(&gym99(), &Similarity::Words, PairLimits::default());
    let labels = gym99();
    let event = pairs.iter().filter(|it| it.change == Change::Event);
    let event: BTreeSet<&str> = event.map(|it| labels[it.one].parts.element.as_str()).collect();
    assert!(event.contains("switch leap") && event.contains("turn on one leg"), "{event:?}");
    assert!(event.contains("salto") && event.contains("aerial walkover forward"), "{event:?}");
}
