//! Times in subtitle files.

/// Times from this many hours on are invalid.
const MAX_HOURS: i64 = 10_000;

/// Reads the two times of a line like `00:01:02,500 --> 00:01:04,000 align:start`, in milliseconds.
///
/// Hours may be missing, and the fraction may follow a comma or a point. Text after the second time is ignored.
pub(super) fn range(text: &str) -> Option<(i64, i64)> {
    let (start, rest) = text.split_once("-->")?;
    let end = rest.split_whitespace().next()?;
    Some((instant(start.trim())?, instant(end)?))
}

/// Reads a time like `01:02:03,4`, in milliseconds.
fn instant(text: &str) -> Option<i64> {
    let (whole, fraction) = match text.split_once([',', '.']) {
        Some((whole, fraction)) => (whole, milliseconds(fraction)?),
        None => (text, 0),
    };
    let parts: Vec<i64> = whole.split(':').map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, seconds] => (0, *minutes, *seconds),
        [hours, minutes, seconds] if *minutes < 60 => (*hours, *minutes, *seconds),
        _ => return None,
    };
    let fits = hours < MAX_HOURS && minutes < 60 * MAX_HOURS && seconds < 60;
    fits.then(|| ((hours * 60 + minutes) * 60 + seconds) * 1000 + fraction)
}

fn number(text: &str) -> Option<i64> {
    let is_short = (1..=6).contains(&text.len());
    (is_short && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Reads a fraction in milliseconds. Digits beyond the third are cut.
fn milliseconds(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.bytes().chain(*b"00").take(3).try_fold(0, |sum, digit| Some(sum * 10 + i64::from(digit - b'0')))
}

/// Writes a time like `01:02:03.400`.
pub(super) fn written(ms: i64) -> String {
    let (seconds, ms) = (ms.div_euclid(1000), ms.rem_euclid(1000));
    format!("{:02}:{:02}:{:02}.{ms:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(i64, i64)>) {
        assert_eq!(range(text), expected, "{text:?}");
    }

    #[test]
    fn times_are_read_in_all_their_spellings() {
        check("00:00:05,850 --> 00:00:07,713", Some((5_850, 7_713)));
        check("00:05.850-->00:07.713", Some((5_850, 7_713)));
        check("1:00:00.5 --> 100:00:00.25 position:10%,line-left", Some((3_600_500, 360_000_250)));
        check("00:00:01 --> 00:00:02  X1:40 X2:600 Y1:20 Y2:50", Some((1_000, 2_000)));
        check("75:10.000 --> 75:11.123456", Some((4_510_000, 4_511_123)));
        check("9999:59:59 --> 599999:59.999", Some((35_999_999_000, 35_999_999_999)));
    }

    #[test]
    fn what_is_no_time_is_told_apart() {
        for text in [
            "-->",
            "a --> b",
            "00:00:01,000 -->",
            "00:00:01,000 -> 00:00:02,000",
            "00:00:61,000 --> 00:00:62,000",
            "00:60:00,000 --> 00:61:00,000",
            "00:00:01,abc --> 00:00:02,000",
            "00:00:-1,000 --> 00:00:02,000",
            "99999999999999999999:00:00,000 --> 00:00:02,000",
            "00:00:01, --> 00:00:02,",
            "::, --> ::,",
            "00:00:01 --> 10000:00:00",
            "00:00:01 --> 600000:00",
            "00:01 --> 0000001:00",
            "00:00:01 --> 00:60:00",
            "00:01 --> 00:60",
        ] {
            check(text, None);
        }
    }
}
