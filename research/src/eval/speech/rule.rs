//! Patterns with what takes their places.

use regex::Regex;

/// A pattern and what takes its place.
#[derive(Debug)]
pub(super) struct Rule {
    pattern: Regex,
    by: &'static str,
}

impl Rule {
    pub(super) fn apply(&self, text: &str) -> String {
        self.pattern.replace_all(text, self.by).into_owned()
    }
}

/// Rules in order. A pattern that can't be read is left out; a test reads all.
pub(super) fn rules(given: &[(&str, &'static str)]) -> Vec<Rule> {
    let rule = |(pattern, by): &(&str, &'static str)| Some(Rule { pattern: Regex::new(pattern).ok()?, by });
    given.iter().filter_map(rule).collect()
}
