//! Instants: Unix milliseconds and their RFC 3339 form.

use std::time::{SystemTime, UNIX_EPOCH};

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime, UtcDateTime};

/// Milliseconds of a day.
pub const DAY_MS: i64 = 24 * 3600 * 1000;

/// Now, in Unix milliseconds, by this machine's clock.
pub fn now_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// Parses an RFC 3339 instant (`2024-07-01T12:30:00.5+02:00`) or date (`2024-07-01`: its first moment in UTC) to Unix
/// milliseconds; `None` for other texts. Fractions of a millisecond are dropped. A leap second counts as the second
/// after it.
pub fn parse(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked("2024-07-01".len())?;
    if time.is_empty() {
        return parse_instant(&format!("{date}T00:00:00Z"));
    }
    // The crate takes any separator, and second 60 only at the end of a month.
    if !time.starts_with(['T', 't', ' ']) {
        return None;
    }
    match text.get(SECOND..SECOND + 2) {
        Some("60") => {
            let before = format!("{}59{}", &text[..SECOND], &text[SECOND + 2..]);
            parse_instant(&before).map(|ms| ms + 1000)
        }
        _ => parse_instant(text),
    }
}

/// Position of the seconds in an instant.
const SECOND: usize = "2024-07-01T12:30:".len();

fn parse_instant(text: &str) -> Option<i64> {
    let nanoseconds = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp_nanos();
    i64::try_from(nanoseconds.div_euclid(1_000_000)).ok()
}

/// The instant as RFC 3339 in UTC with milliseconds, e.g. `2024-07-01T10:30:00.500Z`. Later instants than the year 9999
/// become its last one.
pub fn format(ms: i64) -> String {
    let at = UtcDateTime::UNIX_EPOCH.saturating_add(Duration::milliseconds(ms));
    let (hour, minute, second, milli) = at.as_hms_milli();
    format!("{}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z", at.date())
}

/// The instant as HTTP's headers have it, e.g. `Mon, 01 Jul 2024 10:30:00 GMT`. Bounded as [`format()`].
pub fn format_for_headers(ms: i64) -> String {
    let at = UtcDateTime::UNIX_EPOCH.saturating_add(Duration::milliseconds(ms));
    let (hour, minute, second) = at.as_hms();
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    format!("{weekday:.3}, {:02} {month:.3} {:04} {hour:02}:{minute:02}:{second:02} GMT", at.day(), at.year())
}

/// The instant's date in UTC, e.g. `2024-07-01`. Later instants than the year 9999 become its last one.
pub fn day(ms: i64) -> String {
    UtcDateTime::UNIX_EPOCH.saturating_add(Duration::milliseconds(ms)).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS_PER_DAY: i64 = 86_400_000;

    #[test]
    fn headers_have_their_own_form() {
        assert_eq!(format_for_headers(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format_for_headers(1_719_829_800_500), "Mon, 01 Jul 2024 10:30:00 GMT");
    }

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse(text), expected, "{text:?}");
    }

    #[test]
    fn dates_and_instants_become_unix_milliseconds() {
        check("1970-01-01", Some(0));
        check("1969-12-31", Some(-MS_PER_DAY));
        check("2000-02-29", Some(951_782_400_000));
        check("2024-07-01T00:00:00Z", Some(1_719_792_000_000));
        check("2024-07-01T02:00:00+02:00", Some(1_719_792_000_000));
        check("2024-06-30t23:59:59.9999z", Some(1_719_791_999_999));
        check("2024-06-30 18:30:00-05:30", Some(1_719_792_000_000));
        check("0000-01-01", Some(-62_167_219_200_000));
        check("9999-12-31T23:59:59.999Z", Some(253_402_300_799_999));
        check("2016-12-31T23:59:60Z", Some(1_483_228_800_000));
        check("2024-07-01T11:59:60.25+12:00", Some(1_719_792_000_250));
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        let texts = [
            "",
            "now",
            "2024",
            "2024-7-1",
            "2024-13-01",
            "2024-00-01",
            "2024-02-30",
            "2023-02-29",
            "2024-07-00",
            "2024-07-01T",
            "2024-07-01T12",
            "2024-07-01T12:00",
            "2024-07-01T12:00:00",
            "2024-07-01T24:00:00Z",
            "2024-07-01T12:60:00Z",
            "2024-07-01T12:00:61Z",
            "2024-07-01T12:00:00.Z",
            "2024-07-01T12:00:00.xZ",
            "2024-07-01T12:00:00+2:00",
            "2024-07-01T12:00:00+24:00",
            "+024-07-01",
            "2024-07-01Z",
            "二〇二四年",
            "2024-07-01T12:00:00é",
            "2024-07-0é",
        ];
        for text in texts {
            check(text, None);
        }
    }

    #[test]
    fn every_day_of_eight_centuries_is_written_and_read_back() {
        for day in -150_000..150_000 {
            let ms = day * MS_PER_DAY + 12_345_678;
            assert_eq!(parse(&format(ms)), Some(ms), "{}", format(ms));
        }
    }
}
