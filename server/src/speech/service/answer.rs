//! The answer of a service, in the form `verbose_json`: read without trust.

use reprise_encoders::transcriber::{SpokenSegment, SpokenWord};
use serde::Deserialize;

use super::languages;

/// Most segments of one answer: ten in a second of its piece, and some for a short piece.
const SEGMENTS_A_SECOND: i64 = 10;
const MORE_SEGMENTS: i64 = 20;
/// Most words of one answer.
const MOST_WORDS: usize = 12_000;
/// Most characters of a segment.
const MOST_CHARACTERS: usize = 4_000;
/// A segment is dropped if both hold: Whisper makes up text where nobody speaks.
const NO_SPEECH: f32 = 0.6;
const UNSURE: f32 = -1.0;

/// What a service heard in a piece of sound.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    /// In order of time, in milliseconds from the piece's start.
    pub(super) segments: Vec<SpokenSegment>,
    /// Tag of the language that it detected, or was told.
    pub(super) language: Option<String>,
}

#[derive(Deserialize)]
struct Verbose {
    language: Option<String>,
    text: Option<String>,
    segments: Option<Vec<Segment>>,
    words: Option<Vec<Word>>,
}

#[derive(Deserialize)]
struct Segment {
    start: f64,
    end: f64,
    text: String,
    avg_logprob: Option<f32>,
    no_speech_prob: Option<f32>,
    compression_ratio: Option<f32>,
    temperature: Option<f32>,
    words: Option<Vec<Word>>,
}

#[derive(Deserialize)]
struct Word {
    #[serde(alias = "text")]
    word: String,
    start: f64,
    end: f64,
    #[serde(alias = "p")]
    probability: Option<f32>,
}

/// Reads the answer for a piece of `length_ms`. Times outside of the piece are moved into it. An answer without segments is
/// one segment.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(bytes: &[u8], length_ms: i64) -> Result<Answer, String> {
    let verbose: Verbose =
        serde_json::from_slice(bytes).map_err(|error| format!("its answer is no verbose_json: {error}"))?;
    let language = verbose.language.as_deref().and_then(languages::tag);
    let segments = match verbose.segments {
        Some(segments) => segments,
        None => vec![whole(verbose.text.ok_or("its answer has neither segments nor text")?, length_ms)],
    };
    if segments.len() as i64 > length_ms / 1000 * SEGMENTS_A_SECOND + MORE_SEGMENTS {
        return Err(format!("its answer has {} segments for {} s", segments.len(), length_ms / 1000));
    }
    let clock = Clock { length_ms };
    let mut words = clock.words(verbose.words.unwrap_or_default());
    let mut read: Vec<SpokenSegment> = Vec::with_capacity(segments.len());
    for segment in segments {
        let Some(mut spoken) = clock.segment(segment, language.clone()) else { continue };
        if spoken.words.is_empty() {
            let count = words.iter().take_while(|word| word.start_ms < spoken.end_ms).count();
            spoken.words = words.drain(..count).filter(|word| word.end_ms > spoken.start_ms).collect();
            spoken.words = spaced(std::mem::take(&mut spoken.words), &spoken.text);
        }
        read.push(spoken);
    }
    read.sort_by_key(|segment| segment.start_ms);
    Ok(Answer { segments: read, language })
}

/// A text without times as a segment.
fn whole(text: String, length_ms: i64) -> Segment {
    Segment {
        start: 0.0,
        end: length_ms as f64 / 1000.0,
        text,
        avg_logprob: None,
        no_speech_prob: None,
        compression_ratio: None,
        temperature: None,
        words: None,
    }
}

/// The clock of a piece.
struct Clock {
    length_ms: i64,
}

impl Clock {
    /// `None` for a time that is no number.
    fn ms(&self, seconds: f64) -> Option<i64> {
        seconds.is_finite().then(|| ((seconds * 1000.0).round() as i64).clamp(0, self.length_ms))
    }

    /// `None` for a segment without text or times, and for one that is made up.
    fn segment(&self, segment: Segment, language: Option<String>) -> Option<SpokenSegment> {
        let no_speech = finite(segment.no_speech_prob, 0.0);
        let avg_logprob = finite(segment.avg_logprob, 0.0);
        let text: String = segment.text.trim().chars().take(MOST_CHARACTERS).collect();
        if text.is_empty() || (no_speech > NO_SPEECH && avg_logprob < UNSURE) {
            return None;
        }
        let (start_ms, end_ms) = (self.ms(segment.start)?, self.ms(segment.end)?);
        let words = spaced(self.words(segment.words.unwrap_or_default()), &text);
        Some(SpokenSegment {
            start_ms,
            end_ms: end_ms.max(start_ms),
            text,
            words,
            language,
            avg_logprob,
            no_speech,
            compression_ratio: finite(segment.compression_ratio, 1.0),
            temperature: finite(segment.temperature, 0.0),
        })
    }

    /// Words in order of time, without those that have none.
    fn words(&self, words: Vec<Word>) -> Vec<SpokenWord> {
        let word = |word: Word| {
            let (start_ms, end_ms) = (self.ms(word.start)?, self.ms(word.end)?);
            let text: String = word.word.chars().take(MOST_CHARACTERS).collect();
            let probability = finite(word.probability, 1.0).clamp(0.0, 1.0);
            Some(SpokenWord { start_ms, end_ms: end_ms.max(start_ms), text, probability })
        };
        let mut read: Vec<SpokenWord> = words.into_iter().take(MOST_WORDS).filter_map(word).collect();
        read.sort_by_key(|word| word.start_ms);
        read
    }
}

fn finite(value: Option<f32>, otherwise: f32) -> f32 {
    value.filter(|value| value.is_finite()).unwrap_or(otherwise)
}

/// Words with the punctuation and the space before them as `text` has them: some services leave both out. None if they are
/// not the words of the text; then the text counts.
fn spaced(words: Vec<SpokenWord>, text: &str) -> Vec<SpokenWord> {
    let (mut rest, mut read) = (text, Vec::with_capacity(words.len()));
    for word in words {
        let bare = word.text.trim();
        let Some(at) = rest.find(bare).filter(|_| !bare.is_empty()) else { return Vec::new() };
        let (before, from) = rest.split_at(at);
        // Punctuation behind a word belongs to it.
        let skipped = before.trim_end();
        if let Some(last) = read.last_mut().filter(|_| !skipped.is_empty()) {
            let last: &mut SpokenWord = last;
            last.text.push_str(skipped);
        }
        let space = if before.len() > skipped.len() { " " } else { "" };
        read.push(SpokenWord { text: format!("{space}{bare}"), ..word });
        rest = &from[bare.len()..];
    }
    if let Some(last) = read.last_mut() {
        last.text.push_str(rest.trim_end());
    }
    read
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A segment: start, end, text, words.
    type Shown<'a> = (i64, i64, &'a str, &'a [&'a str]);

    #[track_caller]
    fn check(answer: &serde_json::Value, expected: Result<&[Shown<'_>], &str>) {
        let got = read(answer.to_string().as_bytes(), 10_000);
        match (got, expected) {
            (Ok(got), Ok(expected)) => {
                let words =
                    |it: &SpokenSegment| it.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>();
                let got: Vec<_> = got
                    .segments
                    .iter()
                    .map(|it| (it.start_ms, it.end_ms, it.text.clone(), words(it)))
                    .collect();
                let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
                let expected: Vec<_> =
                    expected.iter().map(|it| (it.0, it.1, it.2.to_owned(), owned(it.3))).collect();
                assert_eq!(got, expected, "{answer}");
            }
            (Err(got), Err(expected)) => assert!(got.contains(expected), "{got}"),
            (got, _) => panic!("{answer}: {got:?}"),
        }
    }

    #[test]
    fn segments_and_their_words_are_read() {
        let words = json!([{"word": "Hello", "start": 0.5, "end": 0.9}, {"word": "there", "start": 0.9, "end": 1.4},
            {"word": "Bye", "start": 2.0, "end": 2.5}]);
        let segments = json!([{"start": 0.5, "end": 1.5, "text": " Hello, there."}, {"start": 2, "end": 3, "text": "Bye!"}]);
        check(
            &json!({"language": "english", "segments": segments, "words": words}),
            Ok(&[(500, 1500, "Hello, there.", &["Hello,", " there."]), (2000, 3000, "Bye!", &["Bye!"])]),
        );
        let inside = json!([{"word": " Hi", "start": 0, "end": 1, "probability": 0.5}]);
        check(
            &json!({"segments": [{"start": 0, "end": 1, "text": " Hi", "words": inside}]}),
            Ok(&[(0, 1000, "Hi", &["Hi"])]),
        );
        check(&json!({"text": "all of it"}), Ok(&[(0, 10_000, "all of it", &[])]));
        check(&json!({"segments": [], "text": ""}), Ok(&[]));
    }

    #[test]
    fn what_can_not_be_is_mended_or_left_out() {
        let segments = json!([{"start": -1, "end": 99, "text": "x"}, {"start": 3, "end": 2, "text": "y"},
            {"start": 4, "end": 5, "text": " "}, {"start": 6, "end": 7, "text": "made up", "no_speech_prob": 0.9, "avg_logprob": -1.5}]);
        check(&json!({"segments": segments}), Ok(&[(0, 10_000, "x", &[]), (3000, 3000, "y", &[])]));
        let foreign = json!([{"word": "else", "start": 0, "end": 1}]);
        check(
            &json!({"segments": [{"start": 0, "end": 1, "text": "this"}], "words": foreign}),
            Ok(&[(0, 1000, "this", &[])]),
        );
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        check(&json!({"error": "busy"}), Err("neither segments nor text"));
        check(&json!([1]), Err("no verbose_json"));
        check(&json!({"segments": [{"start": "x", "end": 1, "text": ""}]}), Err("no verbose_json"));
        let many = vec![json!({"start": 0, "end": 1, "text": "x"}); 121];
        check(&json!({"segments": many}), Err("121 segments for 10 s"));
    }
}
