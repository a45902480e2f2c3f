//! Fuses visual and subtitle rankings by reciprocal rank. Overlapping moments are suppressed (NMS).

use std::collections::HashMap;

use uuid::Uuid;

use super::fold;
use super::types::{Evidence, Match, Source, Weights};
use crate::catalog::Span;
use crate::terms::{Level, SpanKey};

/// The constant of reciprocal rank fusion. A higher one lets scores fall more slowly with rank.
const RANK_OFFSET: f32 = 60.0;
/// Fusion depth: a source's deeper ranks add nothing to the other's hits. Fixed, so that all pages fuse alike.
pub(super) const FUSED_DEPTH: usize = 400;

/// Reciprocal rank score of the entry at `index`, counted from 0.
pub(super) fn reciprocal_rank(index: usize) -> f32 {
    1.0 / (RANK_OFFSET + (index + 1) as f32)
}

/// Adds visual evidence to each match, with its rank among these matches. Folded matches have the rank of their entry.
pub(super) fn add_visual_evidence(matches: &mut [Match]) {
    for (index, found) in matches.iter_mut().enumerate() {
        let evidence =
            |score| Evidence { source: Source::Visual, score, z: None, rank: index + 1, excerpt: None };
        found.evidence.insert(0, evidence(found.score));
        found.folded.iter_mut().for_each(|it| it.evidence.insert(0, evidence(it.score)));
    }
}

/// Factor on a quotation's score. At equal weights it then ranks above a span that both sources rank high.
const QUOTATION: f32 = 2.0;

/// Fuses rankings, best first; `spoken` has those of speech and of text on screen, each in order. The score is the sum over
/// sources of weight / (60 + rank). Evidence keeps the ranks.
///
/// A quotation counts twice. If a clip has spoken evidence, its best moment counts for the clip.
pub(super) fn fuse(mut visual: Vec<Match>, spoken: Vec<Match>, weights: Weights) -> Vec<Match> {
    visual.iter_mut().enumerate().for_each(|(index, it)| it.score = share(weights.visual, index));
    let spoken = one_a_span(spoken, weights);
    let places = SpokenPlaces::of(&spoken);
    let mut fused = spoken;
    for (index, found) in visual.into_iter().enumerate() {
        match places.of_span(&found.span.span) {
            Some(place) if is_visual(&fused[place]) => {
                // The best of the clip and its moments counted already. The clip must not appear twice.
                if fused[place].span.span.key != found.span.span.key {
                    fused.push(found);
                }
            }
            Some(place) if index < FUSED_DEPTH => {
                take_in(&mut fused[place], found);
            }
            Some(_) => {}
            None => fused.push(found),
        }
    }
    fused.retain(|found| found.score > 0.0);
    fused.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then(one.span.span.key.cmp(&other.span.span.key))
    });
    fused
}

fn share(weight: Option<f32>, index: usize) -> f32 {
    weight.unwrap_or(0.0) * reciprocal_rank(index)
}

/// Scores what is said and what is written. A span that has both is one match with the evidence of both.
fn one_a_span(spoken: Vec<Match>, weights: Weights) -> Vec<Match> {
    let (mut said, mut written) = (0, 0);
    let mut places: HashMap<SpanKey, usize> = HashMap::new();
    let mut joined: Vec<Match> = Vec::with_capacity(spoken.len());
    for mut found in spoken {
        let is_written = found.evidence.iter().any(|it| it.source == Source::Screen);
        let (weight, rank) =
            if is_written { (weights.screen, &mut written) } else { (weights.spoken, &mut said) };
        let times = if is_quoted(&found) { QUOTATION } else { 1.0 };
        found.score = times * share(weight, *rank);
        *rank += 1;
        match places.get(&found.span.span.key) {
            Some(place) => {
                joined[*place].score += found.score;
                joined[*place].evidence.append(&mut found.evidence);
            }
            None => {
                places.insert(found.span.span.key, joined.len());
                joined.push(found);
            }
        }
    }
    joined
}

/// Adds visual evidence to a clip that subtitles speak for: its own, or that of its best moment.
fn take_in(spoken: &mut Match, visual: Match) {
    spoken.score += visual.score;
    spoken.peak_ms = spoken.peak_ms.or(visual.peak_ms);
    spoken.evidence.splice(0..0, visual.evidence.clone());
    fold::take_inside(spoken, visual);
}

/// Index of spoken matches by span. A moment has no subtitles, so the clip around it is looked up.
struct SpokenPlaces {
    by_key: HashMap<SpanKey, usize>,
    of_video: HashMap<Uuid, Vec<(i64, i64, usize)>>,
}

impl SpokenPlaces {
    fn of(spoken: &[Match]) -> SpokenPlaces {
        let mut places = SpokenPlaces { by_key: HashMap::new(), of_video: HashMap::new() };
        for (place, found) in spoken.iter().enumerate() {
            let span = &found.span.span;
            places.by_key.insert(span.key, place);
            places.of_video.entry(span.video).or_default().push((span.start_ms, span.end_ms, place));
        }
        places
    }

    fn of_span(&self, span: &Span) -> Option<usize> {
        if span.level != Level::Moment {
            return self.by_key.get(&span.key).copied();
        }
        let inside = |it: &&(i64, i64, usize)| it.0 <= span.start_ms && span.end_ms <= it.1;
        self.of_video.get(&span.video)?.iter().find(inside).map(|it| it.2)
    }
}

fn is_visual(found: &Match) -> bool {
    found.evidence.iter().any(|it| it.source == Source::Visual)
}

pub(super) fn is_quoted(found: &Match) -> bool {
    found.evidence.iter().any(|it| it.excerpt.as_ref().is_some_and(|excerpt| excerpt.quoted))
}

/// Suppresses matches that overlap a better one of their video by more than half of their union (NMS).
///
/// One of the two must be a moment: moments overlap each other and their clip. Clips stay, because users give
/// overlapping clips on purpose.
pub(super) fn suppress(matches: &[Match]) -> Vec<Match> {
    let mut kept: Vec<Match> = Vec::with_capacity(matches.len());
    let mut of_video: HashMap<Uuid, Vec<usize>> = HashMap::new();
    for found in matches {
        let better = of_video.entry(found.span.span.video).or_default();
        if better.iter().any(|at| is_same_event(&kept[*at].span.span, &found.span.span)) {
            continue;
        }
        better.push(kept.len());
        kept.push(found.clone());
    }
    kept
}

fn is_same_event(one: &Span, other: &Span) -> bool {
    let shared = one.end_ms.min(other.end_ms) - one.start_ms.max(other.start_ms);
    let union = one.end_ms.max(other.end_ms) - one.start_ms.min(other.start_ms);
    (one.level == Level::Moment || other.level == Level::Moment) && union < 2 * shared
}

/// Sets each clip's peak to the middle of its best moment in `matches` (best first). A moment's peak is its own middle.
pub(super) fn point_at_moments(kept: &mut [Match], matches: &[Match]) {
    let mut moments: HashMap<Uuid, Vec<&Span>> = HashMap::new();
    for span in matches.iter().map(|it| &it.span.span).filter(|span| span.level == Level::Moment) {
        moments.entry(span.video).or_default().push(span);
    }
    for found in kept {
        let span = &found.span.span;
        let of_video = moments.get(&span.video).map_or(&[][..], |moments| &moments[..]);
        let inside = |it: &&&Span| span.start_ms <= middle(it) && middle(it) < span.end_ms;
        found.peak_ms = match span.level {
            Level::Moment => Some(middle(span)),
            _ => of_video.iter().find(inside).map(|it| middle(it)),
        };
    }
}

fn middle(span: &Span) -> i64 {
    span.start_ms.midpoint(span.end_ms)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::types::Excerpt;
    use super::*;
    use crate::subtitles::snippet::Snippet;

    pub(in crate::search) fn found(video: u128, start_ms: i64, end_ms: i64, score: f32) -> Match {
        let span = crate::catalog::Span {
            key: SpanKey::new(u64::try_from(start_ms).unwrap()),
            id: Uuid::from_u128(1),
            video: Uuid::from_u128(video),
            level: Level::Clip,
            given: false,
            start_ms,
            end_ms,
            metadata: json!({}),
        };
        let span = crate::catalog::SpanWithVideo {
            span,
            title: String::new(),
            video_metadata: json!({}),
            media_offset_ms: 0,
            duration_ms: 60_000,
            recorded_at_ms: None,
        };
        Match::new(score, span)
    }

    /// `hits` of one video as (level, start, end), best first. `expected`: the kept ones as (start, end).
    #[track_caller]
    fn check_suppressed(hits: &[(Level, i64, i64)], expected: &[(i64, i64)]) {
        let of_level = |(level, start_ms, end_ms): &(Level, i64, i64)| {
            let mut found = found(1, *start_ms, *end_ms, 0.5);
            found.span.span.level = *level;
            found
        };
        let left = suppress(&hits.iter().map(of_level).collect::<Vec<_>>());
        let left: Vec<(i64, i64)> =
            left.iter().map(|it| (it.span.span.start_ms, it.span.span.end_ms)).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn of_windows_that_overlap_by_more_than_half_of_their_union_the_best_is_left() {
        use Level::{Clip, Moment};
        check_suppressed(
            &[(Moment, 0, 2000), (Moment, 500, 2400), (Moment, 1000, 3000)],
            &[(0, 2000), (1000, 3000)],
        );
        check_suppressed(&[(Clip, 0, 3000), (Moment, 0, 2000), (Moment, 0, 1000)], &[(0, 3000), (0, 1000)]);
        check_suppressed(&[(Moment, 0, 2000), (Clip, 0, 3000)], &[(0, 2000)]);
        check_suppressed(&[(Clip, 0, 3000), (Clip, 0, 2900)], &[(0, 3000), (0, 2900)]);
    }

    #[test]
    fn windows_of_two_videos_do_not_suppress_each_other() {
        let mut other = found(2, 0, 2000, 0.4);
        other.span.span.level = Level::Moment;
        assert_eq!(suppress(&[found(1, 0, 2000, 0.5), other]).len(), 2);
    }

    /// `visual` and `spoken`: spans by start, best first. `expected`: the fused ranking as (start, sources).
    #[track_caller]
    fn check_fused(visual: &[i64], spoken: &[i64], weights: [f32; 2], expected: &[(i64, &[Source])]) {
        let at = |starts: &[i64]| -> Vec<Match> {
            let scored =
                |(index, start): (usize, &i64)| found(1, *start, start + 1000, 0.9 - index as f32 * 0.01);
            starts.iter().enumerate().map(scored).collect()
        };
        let (mut matches, mut cues) = (at(visual), at(spoken));
        add_visual_evidence(&mut matches);
        for (index, cue) in cues.iter_mut().enumerate() {
            // A start of 100 or more marks a quotation.
            let quoted = cue.span.span.start_ms >= 100;
            let excerpt =
                Some(Excerpt { snippet: Snippet::default(), start_ms: 0, end_ms: 1, quoted, region: None });
            cue.evidence.push(Evidence {
                source: Source::Spoken,
                score: 7.0,
                z: None,
                rank: index + 1,
                excerpt,
            });
        }
        let weights = Weights { visual: Some(weights[0]), spoken: Some(weights[1]), screen: None };
        let fused = fuse(matches, cues, weights);
        let got: Vec<(i64, Vec<Source>)> = fused
            .iter()
            .map(|it| (it.span.span.start_ms, it.evidence.iter().map(|it| it.source).collect()))
            .collect();
        assert_eq!(got, expected.iter().map(|it| (it.0, it.1.to_vec())).collect::<Vec<_>>());
    }

    #[test]
    fn what_two_sources_find_comes_first_and_shows_both() {
        use Source::{Spoken, Visual};
        check_fused(
            &[0, 1, 2],
            &[2, 3],
            [1.0, 1.0],
            &[(2, &[Visual, Spoken]), (0, &[Visual]), (1, &[Visual]), (3, &[Spoken])],
        );
        check_fused(&[0, 1], &[3], [1.0, 2.0], &[(3, &[Spoken]), (0, &[Visual]), (1, &[Visual])]);
        check_fused(&[0, 1], &[3], [0.0, 1.0], &[(3, &[Spoken])]);
        check_fused(&[], &[3, 1], [1.0, 1.0], &[(3, &[Spoken]), (1, &[Spoken])]);
    }

    #[test]
    fn a_quotation_leads_over_what_both_sources_like() {
        use Source::{Spoken, Visual};
        check_fused(
            &[0, 1],
            &[100, 0],
            [1.0, 1.0],
            &[(100, &[Spoken]), (0, &[Visual, Spoken]), (1, &[Visual])],
        );
        check_fused(
            &[0, 1],
            &[100, 0],
            [4.0, 1.0],
            &[(0, &[Visual, Spoken]), (1, &[Visual]), (100, &[Spoken])],
        );
    }

    #[test]
    fn what_is_said_and_written_counts_twice() {
        let of = |source: Source, start_ms: i64| {
            let evidence = Evidence { source, score: 1.0, z: None, rank: 1, excerpt: None };
            Match { evidence: vec![evidence], ..found(1, start_ms, start_ms + 1000, 0.5) }
        };
        let spoken =
            [of(Source::Spoken, 0), of(Source::Spoken, 1), of(Source::Screen, 1), of(Source::Screen, 2)];
        let weights = Weights { visual: None, spoken: Some(1.0), screen: Some(0.5) };
        let fused = fuse(Vec::new(), spoken.to_vec(), weights);
        let starts: Vec<(i64, usize)> =
            fused.iter().map(|it| (it.span.span.start_ms, it.evidence.len())).collect();
        assert_eq!(starts, [(1, 2), (0, 1), (2, 1)]);
        assert_eq!(fused[2].score, 0.5 * reciprocal_rank(1));
    }

    #[test]
    fn a_moment_counts_for_the_clip_with_spoken_evidence() {
        let moment = |start_ms: i64, end_ms: i64, score: f32| {
            let mut found = found(1, start_ms, end_ms, score);
            (found.span.span.level, found.peak_ms) = (Level::Moment, Some(start_ms.midpoint(end_ms)));
            found
        };
        let clip = found(1, 10_000, 16_000, 0.7);
        let mut visual = vec![moment(11_000, 13_000, 0.9), moment(13_500, 15_500, 0.8), clip.clone()];
        visual.push(moment(15_000, 17_000, 0.6));
        add_visual_evidence(&mut visual);
        let evidence = vec![Evidence { source: Source::Spoken, score: 7.0, z: None, rank: 1, excerpt: None }];
        let spoken = vec![Match { evidence, ..clip }];
        let fused = fuse(visual, spoken, Weights { visual: Some(1.0), spoken: Some(1.0), screen: None });
        let got: Vec<(i64, usize, Option<i64>)> =
            fused.iter().map(|it| (it.span.span.start_ms, it.evidence.len(), it.peak_ms)).collect();
        assert_eq!(got, [(10_000, 2, Some(12_000)), (13_500, 1, Some(14_500)), (15_000, 1, Some(16_000))]);
        assert_eq!(fused[0].evidence[0].rank, 1);
    }

    #[test]
    fn a_clips_peak_is_its_best_moment() {
        let mut moments = [found(1, 4000, 6000, 0.9), found(1, 0, 2000, 0.8), found(2, 0, 2000, 0.95)];
        moments.iter_mut().for_each(|it| it.span.span.level = Level::Moment);
        let mut kept = vec![found(1, 0, 10_000, 0.7), found(1, 10_000, 12_000, 0.6), moments[0].clone()];
        point_at_moments(&mut kept, &moments);
        assert_eq!(kept.iter().map(|it| it.peak_ms).collect::<Vec<_>>(), [Some(5000), None, Some(5000)]);
    }
}
