//! The dates of cookies, which servers write in many ways (RFC 6265, section 5.1.1).

/// Seconds since 1970, 0 for what was before; None where it is no date.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = time_of(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = number(token, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number(token, 2, 4)
        {
            year = Some(found);
        }
    }
    let (time, day, month) = (time?, day?, month?);
    let year = match year? {
        short @ 70..=99 => 1900 + short,
        short @ 0..=69 => 2000 + short,
        full => full,
    };
    let is_date = (1..=days_in(year, month)).contains(&day) && year >= 1601;
    let days = days_since_1970(i64::from(year), i64::from(month), i64::from(day));
    let seconds = days * 86_400 + i64::from(time);
    is_date.then(|| u64::try_from(seconds).unwrap_or(0))
}

fn is_delimiter(letter: char) -> bool {
    matches!(letter, '\t' | ' '..='/' | ';'..='@' | '['..='`' | '{'..='~')
}

/// The digits at the start of `token`, `least` to `most` of them.
fn number(token: &str, least: usize, most: usize) -> Option<u32> {
    let digits = token.bytes().take_while(u8::is_ascii_digit).count();
    match (least..=most).contains(&digits) {
        true => token[..digits].parse().ok(),
        false => None,
    }
}

/// Seconds of the day.
fn time_of(token: &str) -> Option<u32> {
    let mut parts = token.splitn(3, ':');
    let mut part = |is_last: bool| {
        let part = parts.next()?;
        let is_number = is_last || part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| number(part, 1, 2))?
    };
    let (hour, minute, second) = (part(false)?, part(false)?, part(true)?);
    (hour < 24 && minute < 60 && second < 60).then(|| hour * 3_600 + minute * 60 + second)
}

fn month_of(token: &str) -> Option<u32> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let start = token.get(..3)?;
    let place = NAMES
        .iter()
        .position(|name| start.eq_ignore_ascii_case(name))?;
    Some(place as u32 + 1)
}

fn days_in(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the proleptic Gregorian calendar, counted in years that begin in March
/// (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_read_as_they_are_found() {
        let cases = [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("1994 november 6, 8:49:37", Some(784_111_777)),
            ("06 Nov 2094 08:49:37", Some(3_939_871_777)),
            ("6-NOV-69 8:49:37x", Some(3_150_953_377)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Wed, 31 Dec 1969 23:59:59 GMT", Some(0)),
            ("29 Feb 2024 00:00:00", Some(1_709_164_800)),
            ("29 Feb 2023 00:00:00", None),
            ("31 Apr 2023 00:00:00", None),
            ("0 Apr 2023 00:00:00", None),
            ("06 Nov 1600 08:49:37", None),
            ("06 Nov 1994 24:00:00", None),
            ("06 Nov 1994 08:60:00", None),
            ("06 Nov 1994", None),
            ("tomorrow", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_date_of_http_is_read(seconds in 0_u64..4_102_444_800) {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
            prop_assert_eq!(parse(&date), Some(seconds));
        }

        #[test]
        fn any_text_is_a_date_or_none(text in "[0-9:a-zA-Z \u{e4}-]{0,40}") {
            parse(&text);
        }
    }
}
