//! Setting for the waits between attempts of a failed job.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest wait allowed.
const MOST: Duration = Duration::from_secs(7 * 24 * 3600);

/// The waits before the second attempt, the third, and so on. The last wait repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryWaits(Vec<Duration>);

impl RetryWaits {
    /// The wait after a failed `attempt`, counted from 1.
    pub fn after(&self, attempt: i64) -> Duration {
        let index = usize::try_from(attempt - 1).unwrap_or_default();
        self.0.get(index).or(self.0.last()).copied().unwrap_or_default()
    }
}

impl Default for RetryWaits {
    /// 5 s, 30 s, 3 min, 15 min.
    fn default() -> Self {
        RetryWaits([5, 30, 180, 900].map(Duration::from_secs).to_vec())
    }
}

impl FromStr for RetryWaits {
    type Err = String;

    /// Reads `5s,30s,3m,15m`: numbers with the units `ms`, `s`, `m` or `h`.
    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(|wait| parse(wait.trim())).collect::<Result<_, _>>().map(RetryWaits)
    }
}

impl fmt::Display for RetryWaits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, wait) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let ms = wait.as_millis();
            match ms {
                _ if ms % 1000 != 0 => write!(formatter, "{comma}{ms}ms")?,
                _ if ms % 60_000 != 0 || ms == 0 => write!(formatter, "{comma}{}s", ms / 1000)?,
                _ if ms % 3_600_000 != 0 => write!(formatter, "{comma}{}m", ms / 60_000)?,
                _ => write!(formatter, "{comma}{}h", ms / 3_600_000)?,
            }
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let ms_per_unit = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("`{text}` is no wait; use a number with ms, s, m or h, e.g. `30s`")),
    };
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(ms_per_unit));
    match ms.map(Duration::from_millis) {
        Some(wait) if wait <= MOST => Ok(wait),
        _ => Err(format!("`{text}` must be a number of at most {} hours", MOST.as_secs() / 3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&[u64]>) {
        let expected =
            expected.map(|ms| RetryWaits(ms.iter().map(|ms| Duration::from_millis(*ms)).collect()));
        let parsed = text.parse::<RetryWaits>().ok();
        assert_eq!(parsed, expected, "{text}");
        if let Some(parsed) = parsed {
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{text} is not written as it was read");
        }
    }

    #[test]
    fn waits_are_numbers_with_units() {
        check("5s,30s,3m,15m", Some(&[5000, 30_000, 180_000, 900_000]));
        check("0s", Some(&[0]));
        check("250ms, 2h", Some(&[250, 7_200_000]));
        check("168h", Some(&[604_800_000]));
        check("169h", None);
        check("5", None);
        check("s", None);
        check("-5s", None);
        check("5s,,5s", None);
        check("99999999999999999999s", None);
        check("", None);
    }

    #[test]
    fn each_attempt_has_its_wait_and_the_last_one_holds() {
        let waits = RetryWaits::default();
        let seconds = [1, 2, 3, 4, 5, 100].map(|attempt| waits.after(attempt).as_secs());
        assert_eq!(seconds, [5, 30, 180, 900, 900, 900]);
    }
}
