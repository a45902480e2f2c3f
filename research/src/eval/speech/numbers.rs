//! Numbers of an English text in digits, as Whisper's normaliser writes them. Numbers beyond 10^38 stay in words.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::rule::{Rule, rules};

const UNITS: [&str; 19] = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const THOUSANDS: [&str; 11] = [
    "thousand",
    "million",
    "billion",
    "trillion",
    "quadrillion",
    "quintillion",
    "sextillion",
    "septillion",
    "octillion",
    "nonillion",
    "decillion",
];
const OTHERS: [(&str, Word); 27] = [
    ("o", Word::Zero),
    ("oh", Word::Zero),
    ("zero", Word::Zero),
    ("zeroth", Word::UnitWith(0, "th")),
    ("first", Word::UnitWith(1, "st")),
    ("second", Word::UnitWith(2, "nd")),
    ("third", Word::UnitWith(3, "rd")),
    ("fifth", Word::UnitWith(5, "th")),
    ("twelfth", Word::UnitWith(12, "th")),
    ("minus", Word::Sign('-')),
    ("negative", Word::Sign('-')),
    ("plus", Word::Sign('+')),
    ("positive", Word::Sign('+')),
    ("pound", Word::Currency('£')),
    ("pounds", Word::Currency('£')),
    ("euro", Word::Currency('€')),
    ("euros", Word::Currency('€')),
    ("dollar", Word::Currency('$')),
    ("dollars", Word::Currency('$')),
    ("cent", Word::Currency('¢')),
    ("cents", Word::Currency('¢')),
    ("percent", Word::Percent),
    ("per", Word::Per),
    ("and", Word::And),
    ("double", Word::Repeat(2)),
    ("triple", Word::Repeat(3)),
    ("point", Word::Point),
];

/// A word that a number may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Zero,
    /// 1 to 19.
    Unit(u128),
    /// With an ending: of an ordinal, or of a plural.
    UnitWith(u128, &'static str),
    Ten(u128),
    TenWith(u128, &'static str),
    Multiplier(u128),
    MultiplierWith(u128, &'static str),
    /// Before a number.
    Sign(char),
    /// After a number.
    Currency(char),
    Percent,
    Per,
    And,
    Repeat(usize),
    Point,
}

impl Word {
    fn of(text: &str) -> Option<Word> {
        static WORDS: LazyLock<HashMap<String, Word>> = LazyLock::new(words);
        WORDS.get(text).copied()
    }

    fn is_digit_or_ten(self) -> bool {
        matches!(self, Word::Zero | Word::Unit(_) | Word::Ten(_))
    }
}

fn words() -> HashMap<String, Word> {
    let mut words: HashMap<String, Word> =
        OTHERS.iter().map(|(text, word)| ((*text).to_owned(), *word)).collect();
    for (name, value) in UNITS.iter().zip(1..) {
        words.insert((*name).to_owned(), Word::Unit(value));
        let plural = if *name == "six" { "sixes".to_owned() } else { format!("{name}s") };
        words.insert(plural, Word::UnitWith(value, "s"));
        // The reference writes "nineth".
        if value > 3 && value != 5 && value != 12 {
            let ending = if name.ends_with('t') { "h" } else { "th" };
            words.insert(format!("{name}{ending}"), Word::UnitWith(value, "th"));
        }
    }
    for (name, value) in TENS.iter().zip((20..).step_by(10)) {
        words.insert((*name).to_owned(), Word::Ten(value));
        words.insert(name.replace('y', "ies"), Word::TenWith(value, "s"));
        words.insert(name.replace('y', "ieth"), Word::TenWith(value, "th"));
    }
    let thousands = THOUSANDS.iter().zip(1..).map(|(name, power)| (*name, 1000_u128.pow(power)));
    for (name, value) in thousands.chain([("hundred", 100)]) {
        words.insert(name.to_owned(), Word::Multiplier(value));
        words.insert(format!("{name}s"), Word::MultiplierWith(value, "s"));
        words.insert(format!("{name}th"), Word::MultiplierWith(value, "th"));
    }
    words
}

/// The number so far. Text keeps zeros before it, and digits that were said one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Whole(u128),
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Whole(value) => value.fmt(to),
            Value::Text(text) => text.fmt(to),
        }
    }
}

impl Value {
    /// `self` times `by`; `None` if that is no whole number.
    fn times(&self, by: u128) -> Option<u128> {
        match self {
            Value::Whole(value) => (value / 1000 * 1000).checked_add((value % 1000).checked_mul(by)?),
            Value::Text(text) => times(text, by),
        }
    }
}

/// A decimal number times `by`; `None` if that is no whole number.
fn times(text: &str, by: u128) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part}");
    if !is_digits(&digits) {
        return None;
    }
    let scale = 10_u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let product = digits.parse::<u128>().ok()?.checked_mul(by)?;
    (product % scale == 0).then_some(product / scale)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is a number in digits, such as 12 or 1.5.
fn is_number(text: &str) -> bool {
    text.split_once('.').map_or(is_digits(text), |(whole, part)| is_digits(whole) && is_digits(part))
}

/// A word with its neighbours.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    text: &'a str,
    before: Option<Word>,
    after: Option<Word>,
    /// Whether a number in digits follows.
    is_before_number: bool,
    /// Whether "cent" follows.
    is_before_cent: bool,
}

impl<'a> Place<'a> {
    fn of(words: &[&'a str], at: usize) -> Place<'a> {
        let (before, after) = (at.checked_sub(1).map(|it| words[it]), words.get(at + 1).copied());
        Place {
            text: words[at],
            before: before.and_then(Word::of),
            after: after.and_then(Word::of),
            is_before_number: after.is_some_and(is_number),
            is_before_cent: after == Some("cent"),
        }
    }
}

/// Writes numbers word by word.
#[derive(Debug, Default)]
struct Writer {
    written: Vec<String>,
    prefix: Option<char>,
    value: Option<Value>,
    /// Whether the next word belongs to what is written.
    skips: bool,
}

impl Writer {
    fn put(&mut self, text: &str) {
        let prefix = self.prefix.take().map(String::from).unwrap_or_default();
        self.written.push(prefix + text);
        self.value = None;
    }

    /// Ends the number.
    fn end(&mut self) {
        if let Some(value) = self.value.take() {
            self.put(&value.to_string());
        }
    }

    /// The number so far as text; nothing for 0.
    fn so_far(&self) -> String {
        self.value.as_ref().filter(|it| **it != Value::Whole(0)).map(Value::to_string).unwrap_or_default()
    }

    fn word(&mut self, place: Place<'_>) {
        if std::mem::take(&mut self.skips) {
            return;
        }
        let unsigned = place.text.strip_prefix(['-', '+', '£', '€', '$', '¢']);
        let number = unsigned.unwrap_or(place.text);
        if is_number(number) {
            return self.digits(place.text, number, unsigned.is_some());
        }
        let Some(word) = Word::of(place.text) else {
            self.end();
            return self.put(place.text);
        };
        match word {
            Word::Zero => self.value = Some(Value::Text(self.so_far() + "0")),
            Word::Unit(value) | Word::Ten(value) => self.value = Some(self.joined(value, place.before)),
            Word::UnitWith(value, ending) | Word::TenWith(value, ending) => {
                let joined = self.joined(value, place.before);
                self.put(&format!("{joined}{ending}"));
            }
            Word::Multiplier(by) => self.value = Some(Value::Whole(self.times(by))),
            Word::MultiplierWith(by, ending) => {
                let product = self.times(by);
                self.put(&format!("{product}{ending}"));
            }
            Word::Sign(sign) => {
                self.end();
                match place.after.is_some() || place.is_before_number {
                    true => self.prefix = Some(sign),
                    false => self.put(place.text),
                }
            }
            Word::Currency(sign) => match self.value.is_some() {
                true => {
                    self.prefix = Some(sign);
                    self.end();
                }
                false => self.put(place.text),
            },
            Word::Percent | Word::Per => self.share(word, place),
            Word::And | Word::Repeat(_) | Word::Point => self.special(word, place),
        }
    }

    /// A number in digits, without its sign.
    fn digits(&mut self, text: &str, number: &str, has_prefix: bool) {
        if let Some(Value::Text(value)) = &mut self.value
            && value.ends_with('.')
        {
            value.push_str(text);
            return;
        }
        self.end();
        if has_prefix {
            self.prefix = text.chars().next();
        }
        self.value = Some(times(number, 1).map_or_else(|| Value::Text(number.to_owned()), Value::Whole));
    }

    /// The number so far and one more below a hundred: added where zeros stand, else written behind it.
    fn joined(&self, number: u128, before: Option<Word>) -> Value {
        let is_unit = number < 20;
        match &self.value {
            None => Value::Whole(number),
            // "one twenty five": the last zero becomes the digit.
            Some(Value::Text(text)) if number < 10 && matches!(before, Some(Word::Ten(_))) => {
                let kept = text.strip_suffix('0').unwrap_or(text);
                Value::Text(format!("{kept}{number}"))
            }
            Some(Value::Whole(value))
                if !(is_unit && matches!(before, Some(Word::Unit(_))))
                    && value % (if number < 10 { 10 } else { 100 }) == 0 =>
            {
                value
                    .checked_add(number)
                    .map_or_else(|| Value::Text(format!("{value}{number}")), Value::Whole)
            }
            Some(value) => Value::Text(format!("{value}{number}")),
        }
    }

    /// The number so far times `by`; where that is no whole number, it ends and `by` begins the next.
    fn times(&mut self, by: u128) -> u128 {
        let product = self.value.as_ref().map_or(Some(by), |value| value.times(by));
        product.unwrap_or_else(|| {
            self.end();
            by
        })
    }

    fn share(&mut self, word: Word, place: Place<'_>) {
        let is_share = word == Word::Percent || place.is_before_cent;
        match (self.value.take(), is_share) {
            (Some(value), true) => {
                self.skips = word == Word::Per;
                self.put(&format!("{value}%"));
            }
            (value, _) => {
                self.value = value;
                self.end();
                self.put(place.text);
            }
        }
    }

    fn special(&mut self, word: Word, place: Place<'_>) {
        let is_inside = place.after.is_some() || place.is_before_number;
        match (word, place.after) {
            // "two hundred and five".
            (Word::And, _) if is_inside && matches!(place.before, Some(Word::Multiplier(_))) => {}
            (Word::Repeat(count), Some(next @ (Word::Zero | Word::Unit(_)))) => {
                let digit = if let Word::Unit(value) = next { value } else { 0 };
                self.value = Some(Value::Text(self.so_far() + &digit.to_string().repeat(count)));
                self.skips = true;
            }
            (Word::Point, after) if is_inside => {
                if place.is_before_number || after.is_some_and(Word::is_digit_or_ten) {
                    self.value = Some(Value::Text(self.so_far() + "."));
                }
            }
            _ => {
                self.end();
                self.put(place.text);
            }
        }
    }
}

/// A text in lower case with its numbers in digits.
pub(super) fn in_digits(text: &str) -> String {
    static BEFORE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        rules(&[
            // A space between letters and digits, but not before an ending.
            (r"([a-z])([0-9])", "${1} ${2}"),
            (r"([0-9])([a-z])", "${1} ${2}"),
            (r"([0-9])\s+(st|nd|rd|th|s)\b", "${1}${2}"),
        ])
    });
    static ONE: LazyLock<Vec<Rule>> = LazyLock::new(|| rules(&[(r"\b1(s?)\b", "one${1}")]));
    let text = BEFORE.iter().fold(halves(text), |text, rule| rule.apply(&text));
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut writer = Writer::default();
    for at in 0..words.len() {
        writer.word(Place::of(&words, at));
    }
    writer.end();
    let text = cents(&writer.written.join(" "));
    ONE.iter().fold(text, |text, rule| rule.apply(&text))
}

/// "two and a half" as "two point five".
fn halves(text: &str) -> String {
    static HALF: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\band\s+a\s+half\b").ok());
    let Some(half) = &*HALF else { return text.to_owned() };
    let parts: Vec<&str> = half.split(text).collect();
    let (mut joined, last) = (Vec::new(), parts.len() - 1);
    for (at, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.trim().is_empty()) {
        joined.push(part);
        if at < last {
            let word = part.split_whitespace().next_back().and_then(Word::of);
            let is_number = word.is_some_and(|it| it.is_digit_or_ten() || matches!(it, Word::Multiplier(_)));
            joined.push(if is_number { "point five" } else { "and a half" });
        }
    }
    joined.join(" ")
}

/// "$2 and ¢7" as "$2.07", "$0.07" as "¢7".
fn cents(text: &str) -> String {
    static BOTH: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"([€£$])([0-9]+) (?:and )?¢([0-9]{1,2})\b").ok());
    static ALONE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[€£$]0.([0-9]{1,2})\b").ok());
    let both = |it: &Captures<'_>| format!("{}{}.{:0>2}", &it[1], &it[2], &it[3]);
    let alone = |it: &Captures<'_>| {
        let digits = it[1].trim_start_matches('0');
        format!("¢{}", if digits.is_empty() { "0" } else { digits })
    };
    let text = BOTH.as_ref().map_or(text.into(), |pattern| pattern.replace_all(text, both));
    ALONE.as_ref().map_or(text.clone(), |pattern| pattern.replace_all(&text, alone)).into_owned()
}
