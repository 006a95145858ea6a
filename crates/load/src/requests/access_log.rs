//! Access logs of nginx and Apache, common or combined: `… [time] "METHOD PATH HTTP/x" status …`. Read line by line; requests
//! that are the same are kept once, so that a log of any length fits.
//!
//! Of a line the method, the path and the time are used. Its time has whole seconds: requests of one second are spread evenly
//! over it.

use std::collections::HashMap;
use std::io::BufRead;

use super::list::{ListError, ListedRequest, RequestList, wrong};

/// Longest line.
const LINE_BYTES_MAX: usize = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A request of a line.
#[derive(Clone, Debug, Eq, PartialEq)]
struct LogLine {
    method: String,
    path: String,
    /// Seconds since 1970.
    at_s: i64,
}

/// Whether this is a line of such a log.
pub fn is_line(line: &[u8]) -> bool {
    parse(line).is_some()
}

/// Reads all lines.
pub fn read(file: &mut dyn BufRead) -> Result<RequestList, ListError> {
    let mut list = RequestList::default();
    let mut places: HashMap<(String, String), u32> = HashMap::new();
    let mut seconds: Vec<i64> = Vec::new();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let mut limited = std::io::Read::take(&mut *file, LINE_BYTES_MAX as u64 + 1);
        if limited.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() > LINE_BYTES_MAX {
            return wrong(number, "this line has more than a MiB");
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(request) = parse(&line) else {
            let (count, _) = list.left_out.get_or_insert((0, number));
            *count += 1;
            continue;
        };
        list.without_body += u64::from(!matches!(request.method.as_str(), "GET" | "HEAD"));
        seconds.push(request.at_s);
        let next = u32::try_from(list.requests.len());
        let Ok(next) = next else {
            return wrong(number, "there are more different requests than fit");
        };
        let place = places.entry((request.method, request.path));
        let place = *place.or_insert_with_key(|(method, path)| {
            list.requests.push(ListedRequest {
                line: number,
                method: method.clone(),
                url: path.clone(),
                ..ListedRequest::default()
            });
            next
        });
        list.sequence.push(place);
    }
    list.times_ns = times(&seconds);
    Ok(list)
}

/// The times of requests that were made in these seconds, from the first on. A second that goes back counts as the one before.
fn times(seconds: &[i64]) -> Vec<u64> {
    let mut times = Vec::with_capacity(seconds.len());
    let first = seconds.first().copied().unwrap_or_default();
    let mut at = 0;
    let mut latest = first;
    while at < seconds.len() {
        latest = latest.max(seconds[at]);
        let same = seconds[at..].iter().take_while(|second| **second <= latest);
        let count = same.count();
        let begins = (latest.saturating_sub(first) as u64).saturating_mul(SECOND_NS);
        let spread = |place: usize| begins.saturating_add(SECOND_NS * place as u64 / count as u64);
        times.extend((0..count).map(spread));
        at += count;
    }
    times
}

fn parse(line: &[u8]) -> Option<LogLine> {
    let open = memchr::memchr(b'[', line)?;
    let close = open + memchr::memchr(b']', &line[open..])?;
    let at_s = time(std::str::from_utf8(&line[open + 1..close]).ok()?)?;
    let request = line[close + 1..].strip_prefix(b" \"")?;
    let request = quoted(request)?;
    let mut words = request.split(|&byte| byte == b' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let is_request = words.next().is_none() && version.starts_with(b"HTTP/");
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    if !is_request || !is_method || method == b"CONNECT" || !path.starts_with(b"/") {
        return None;
    }
    let path = path.split(|&byte| byte == b'#').next()?;
    Some(LogLine {
        method: String::from_utf8(method.to_vec()).ok()?,
        path: sendable(path),
        at_s,
    })
}

/// The text up to the closing quote, its escapes (`\"`, `\\`, `\x22`) undone.
fn quoted(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some(out),
            b'\\' => {
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                let digits = rest.get(..2).filter(|_| escaped == b'x');
                let digits = digits.and_then(|two| std::str::from_utf8(two).ok());
                match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
                    Some(byte) => {
                        out.push(byte);
                        rest = &rest[2..];
                    }
                    None => out.push(escaped),
                }
            }
            byte => out.push(byte),
        }
    }
}

/// A path as it can be sent: bytes that cannot stand in a request line as `%XX`.
fn sendable(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for &byte in path {
        match byte.is_ascii_graphic() {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// `10/Oct/2000:13:55:36 -0700` in seconds since 1970.
fn time(text: &str) -> Option<i64> {
    let (date, zone) = text.split_once(' ')?;
    let mut parts = date.splitn(4, ['/', ':']);
    let (day, month, year, clock) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let number = |text: &str, limit: i64| -> Option<i64> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_number)?;
        (number <= limit).then_some(number)
    };
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as i64;
    let days = days(number(year, 9_999)?, month, number(day, 31)?);
    let mut clock = clock.split(':');
    let (hours, minutes) = (number(clock.next()?, 23)?, number(clock.next()?, 59)?);
    let seconds = number(clock.next()?, 60)?;
    let (sign, zone) = match zone.strip_prefix('-') {
        Some(zone) => (-1, zone),
        None => (1, zone.strip_prefix('+')?),
    };
    let (zone_hours, zone_minutes) = zone.split_at_checked(2)?;
    let offset = number(zone_hours, 23)? * 3_600 + number(zone_minutes, 59)? * 60;
    Some(days * 86_400 + hours * 3_600 + minutes * 60 + seconds - sign * offset)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar: years that begin in March have their leap day last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time: &str, request: &str) -> String {
        format!("10.0.0.1 - frank [{time}] \"{request}\" 200 5 \"http://r/\" \"curl/8 (x)\"\n")
    }

    #[test]
    fn a_time_is_counted_from_1970_in_its_zone() {
        assert_eq!(time("01/Jan/1970:00:00:00 +0000"), Some(0));
        assert_eq!(time("10/Oct/2000:13:55:36 -0700"), Some(971_211_336));
        assert_eq!(time("29/Feb/2024:23:59:59 +0530"), Some(1_709_231_399));
        for wrong in [
            "",
            "10/Okt/2000:13:55:36 -0700",
            "10/Oct/2000:24:00:00 +0000",
            "10/Oct/2000:13:55:36",
            "10/Oct/2000:13:55 +0000",
            "-1/Oct/2000:13:55:36 +0000",
            "10/Oct/2000:13:55:36 +0é",
        ] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_log_is_requests_in_their_order_with_their_times() {
        let at = |second: u32| format!("10/Oct/2000:13:55:{second} -0700");
        let text = [
            line(&at(36), "GET /a HTTP/1.1"),
            line(&at(36), "POST /b?c=d HTTP/2.0"),
            line(&at(36), r"GET /\x22\xC3\xA9\\ HTTP/1.1"),
            line(&at(36), r"\x16\x03\x01"),
            line(&at(38), "GET /a HTTP/1.1"),
            // Workers write a line when they are done with it.
            line(&at(37), "GET /a HTTP/1.1"),
            line(&at(39), "-"),
        ]
        .concat();
        let list = read(&mut text.as_bytes()).unwrap();
        let requests: Vec<_> = list
            .requests
            .iter()
            .map(|one| (one.line, format!("{} {}", one.method, one.url)))
            .collect();
        let expected = [(1, "GET /a"), (2, "POST /b?c=d"), (3, r"GET /%22%C3%A9\")];
        let escaped = |path: &str| path.replace("%22", "\"");
        let expected = expected.map(|(line, text)| (line, escaped(text)));
        assert_eq!(requests, expected);
        assert_eq!(list.sequence, [0, 1, 2, 0, 0]);
        let ms: Vec<u64> = list.times_ns.iter().map(|at| at / 1_000_000).collect();
        assert_eq!(ms, [0, 333, 666, 2_000, 2_500]);
        assert_eq!((list.left_out, list.without_body), (Some((2, 4)), 1));
    }
}
