//! Counts in words: "half a turn", "one and a half turns".

const WORDS: [&str; 11] =
    ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// A count of `noun`. Numbers up to ten and a half become words; other numbers stay digits.
pub(super) fn counted(number: &str, noun: &str) -> String {
    let Ok(value) = number.parse::<f64>() else { return format!("{number} {noun}") };
    let word = |whole: f64| WORDS.get(whole as usize).copied().filter(|_| whole >= 0.0);
    match (value.floor(), value.fract()) {
        (0.0, 0.25) => format!("a quarter of a {noun}"),
        (0.0, 0.5) => format!("half a {noun}"),
        (0.0, 0.75) => format!("three quarters of a {noun}"),
        (1.0, 0.0) => format!("one {noun}"),
        (whole, 0.0) => word(whole).map_or_else(|| format!("{number} {noun}s"), |it| format!("{it} {noun}s")),
        (whole, 0.5) => {
            word(whole).map_or_else(|| format!("{number} {noun}s"), |it| format!("{it} and a half {noun}s"))
        }
        _ => format!("{number} {noun}s"),
    }
}

/// A number in words: "2.5" becomes "two and a half".
pub(super) fn in_words(number: &str) -> String {
    counted(number, "").split_whitespace().filter(|it| *it != "s").collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: &str, expected: &str) {
        assert_eq!(counted(number, "turn"), expected);
    }

    #[test]
    fn counts_are_words_a_coach_says() {
        check("0.5", "half a turn");
        check("0.75", "three quarters of a turn");
        check("1", "one turn");
        check("1.5", "one and a half turns");
        check("2", "two turns");
        check("0", "no turns");
        check("10.5", "ten and a half turns");
        check("11", "11 turns");
        check("2.3", "2.3 turns");
        check("-1", "-1 turns");
        check("NaN", "NaN turns");
    }

    #[test]
    fn digits_become_the_same_words() {
        assert_eq!(["2.5", "1", "0.5", "12"].map(in_words), ["two and a half", "one", "half a", "12"]);
    }
}
