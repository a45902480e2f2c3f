//! Lines, progress bars and clock times on a terminal.

use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};

/// Writes one line to stdout.
///
/// # Errors
/// stdout is closed or full.
pub fn say(line: impl std::fmt::Display) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}

/// A progress bar with `length` items, called `what`; invisible if `hidden`.
///
/// # Errors
/// `what` contains a brace, which the bar's template does not allow.
pub fn bar(hidden: bool, length: usize, what: &str) -> anyhow::Result<ProgressBar> {
    if hidden {
        return Ok(ProgressBar::hidden());
    }
    let template = format!("encoding {{wide_bar}} {{pos}}/{{len}} {what}, {{eta}} left");
    Ok(ProgressBar::new(length as u64).with_style(ProgressStyle::with_template(&template)?))
}

/// Formats seconds as hours, minutes and seconds: `1:02:03.4`.
pub fn clock(seconds: f64) -> String {
    let tenths = (seconds * 10.0).round() as i64;
    let (hours, minutes, rest) = (tenths / 36000, tenths / 600 % 60, tenths % 600);
    match hours {
        0 => format!("{minutes}:{:02}.{}", rest / 10, rest % 10),
        _ => format!("{hours}:{minutes:02}:{:02}.{}", rest / 10, rest % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: f64, expected: &str) {
        assert_eq!(clock(seconds), expected);
    }

    #[test]
    fn seconds_are_formatted_as_a_clock() {
        check(0.0, "0:00.0");
        check(59.96, "1:00.0");
        check(3723.4, "1:02:03.4");
    }
}
