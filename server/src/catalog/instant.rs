//! Instants: Unix milliseconds, and the RFC 3339 texts that stand for them.

use std::time::{SystemTime, UNIX_EPOCH};

const MS_PER_DAY: i64 = 86_400_000;

/// Now, in Unix milliseconds, by this machine's clock.
pub fn now_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// The Unix milliseconds of an RFC 3339 instant (`2024-07-01T12:30:00.5+02:00`) or date (`2024-07-01`: its
/// first moment in UTC); `None` if `text` is neither. Parts of a millisecond are dropped; a leap second
/// counts as the second after it.
pub fn parse(text: &str) -> Option<i64> {
    let date = text.get(..10)?;
    let day = parse_date(date)?;
    let rest = &text[10..];
    if rest.is_empty() {
        return Some(day * MS_PER_DAY);
    }
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, offset_ms) = split_offset(time)?;
    Some(day * MS_PER_DAY + parse_clock(clock)? - offset_ms)
}

/// The instant as RFC 3339 in UTC with milliseconds, e.g. `2024-07-01T10:30:00.500Z`.
pub fn format(ms: i64) -> String {
    let (day, of_day) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
    let (year, month, date) = civil(day);
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

fn digits(text: &str) -> Option<i64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits { text.parse().ok() } else { None }
}

fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    let number = days(year, month, day);
    ((1..=12).contains(&month) && day >= 1 && civil(number) == (year, month, day)).then_some(number)
}

/// Splits `12:30:00+02:00` into the clock and the offset in milliseconds.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (hours, minutes) = time[at + 1..].split_once(':')?;
    if (hours.len(), minutes.len()) != (2, 2) {
        return None;
    }
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    let sign = if time.as_bytes()[at] == b'-' { -1 } else { 1 };
    (hours <= 23 && minutes <= 59).then_some((&time[..at], sign * (hours * 60 + minutes) * 60_000))
}

fn parse_clock(clock: &str) -> Option<i64> {
    let (whole, fraction) = clock.split_once('.').map_or((clock, None), |(whole, part)| (whole, Some(part)));
    let mut parts = whole.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || (hour.len(), minute.len(), second.len()) != (2, 2, 2) {
        return None;
    }
    let (hour, minute, second) = (digits(hour)?, digits(minute)?, digits(second)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let millis = match fraction {
        None => 0,
        Some(part) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits(&format!("{part:0<3}")[..3])?
        }
        Some(_) => return None,
    };
    Some((hour * 3600 + minute * 60 + second) * 1000 + millis)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counting years from March so that the leap day
/// is a year's last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`]: year, month, day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), day);
            let ms = day * MS_PER_DAY + 12_345_678;
            assert_eq!(parse(&format(ms)), Some(ms), "{}", format(ms));
        }
    }
}
