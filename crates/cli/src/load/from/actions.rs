//! The actions of the flags of other tools on a translation, by their names in tools.toml.

use prony_base::Nanos;
use prony_base::typed::{duration, rate};
use prony_wire::encode::basic;

use super::translation::{Translation, as_it_is, with_scheme};

/// Takes what stands behind the action's name, and the value of the flag.
type FlagAction = fn(&mut Translation, &str, &str) -> Result<(), String>;

/// Reads the value of a flag into a field of the translation.
macro_rules! field {
    ($read:ident, $field:ident) => {
        |to, _, value| $read(&mut to.$field, value)
    };
}

const ACTIONS: &[(&str, FlagAction)] = &[
    ("address", field!(text, address)),
    ("basic", |to, _, value| {
        to.header(&format!("Authorization: {}", basic(value)))
    }),
    ("body", |to, flag, value| to.body(flag, value)),
    ("compression", field!(turn, asks_for_compressed)),
    ("connections", field!(count, connections)),
    ("connections-max", connections_max),
    ("content-type", field!(text, content_type)),
    ("content-type-first", |to, _, value| {
        let given = Some(value.to_owned()).filter(|value| !value.is_empty());
        set(&mut to.content_type_first, Ok(given))
    }),
    ("cookie", |to, _, value| match value.contains('=') {
        true => to.header(&format!("Cookie: {value}")),
        false => Err("a file of cookies is not read".to_owned()),
    }),
    ("credentials", |to, wrong, value| {
        match value.contains(':') {
            true => act(to, ("basic", ""), value),
            false => Err(wrong.to_owned()),
        }
    }),
    ("depth", field!(count, depth)),
    ("duration", field!(length, duration)),
    ("duration-of-ab", |to, _, value| {
        to.requests = Some(50_000);
        set(&mut to.duration, duration::parse_positive(value).map(Some))
    }),
    ("each", |to, flag, value| {
        let mut values = value.split(',');
        values.try_for_each(|value| to.add(flag, value))
    }),
    ("flag", |to, flag, value| to.add(flag, value)),
    ("form", form),
    ("form-json", |to, _, value| {
        to.content_type = Some("application/json".to_owned());
        to.header("Accept: application/json")?;
        form(to, "", value)
    }),
    ("form-text", |to, _, value| {
        to.content_type.get_or_insert(FORM.to_owned());
        to.body("--body", value)
    }),
    ("follow", |to, _, value| follow(to, value)),
    ("go-client", |to, _, value| go_client(to, value)),
    ("go-follow", |to, _, value| {
        go_client(to, value)?;
        set(&mut to.follow, Ok(is_set(value).then_some(10)))
    }),
    ("go-http2", |to, _, value| {
        go_client(to, value)?;
        turn(&mut to.http2, value)
    }),
    ("header", |to, name, value| match name {
        "" => to.header(value),
        name => to.header(&format!("{name}: {value}")),
    }),
    ("header-of-fortio", header_of_fortio),
    ("header-of-h2load", header_of_h2load),
    ("http-version", http_version),
    ("http1", field!(turn, http1)),
    ("http1.0", field!(turn, http1_0)),
    ("http2", field!(turn, http2)),
    ("insecure", field!(turn, insecure)),
    ("keep-alive", |to, _, value| {
        set(&mut to.keep_alive, Ok(Some(is_set(value))))
    }),
    ("length", |to, flag, value| {
        to.add(flag, &duration::parse(value).map(duration::typed)?)
    }),
    ("location", |to, _, _| set(&mut to.follow, Ok(Some(50)))),
    ("method", |to, method, value| {
        text(
            &mut to.method,
            if method.is_empty() { value } else { method },
        )
    }),
    ("no-compression", field!(turn, no_compression)),
    ("no-follow", |to, _, value| {
        set(&mut to.follow, Ok(is_set(value).then_some(0)))
    }),
    ("no-keep-alive", |to, _, value| {
        set(&mut to.keep_alive, Ok(is_set(value).then_some(false)))
    }),
    ("not-http1", |to, _, value| {
        set(&mut to.http1, Ok(!is_set(value)))
    }),
    ("nothing", |_, _, _| Ok(())),
    ("only-header", |to, name, value| {
        to.only_header(name, as_it_is(value));
        Ok(())
    }),
    ("output-format", |to, _, value| match value {
        "json" => to.add("--json", "-"),
        "text" => Ok(()),
        "quiet" => Err("`2>/dev/null >/dev/null` of a shell does that".to_owned()),
        _ => Err("`--json FILE`, `--trace FILE` (CSV), `--html FILE` write such".to_owned()),
    }),
    ("protocol", |to, _, value| {
        let first = value.split(',').next();
        set(&mut to.http1, Ok(first == Some("http/1.1")))
    }),
    ("proxy", |to, _, value| {
        to.add("--proxy", &with_scheme(value))
    }),
    ("put-file", |to, _, value| {
        to.method = Some("PUT".to_owned());
        to.body("--body-file", value)
    }),
    ("rate", field!(per_second, rate)),
    ("rate-each", field!(per_second, rate_each)),
    ("rate-of-all", field!(turn, rate_is_of_all)),
    ("rate-of-fortio", |to, _, value| {
        let has_none = value == "0" || value.starts_with('-');
        let rate = if has_none {
            Ok(0.0)
        } else {
            rate::parse(value)
        };
        set(&mut to.rate, rate.map(Some))
    }),
    ("rate-of-vegeta", rate_of_vegeta),
    ("redirects-max", field!(text, redirects_max)),
    ("redirects-of-vegeta", |to, _, value| match value {
        "-1" => follow(to, "0"),
        "0" => Err("a redirect is an error there: `--expect-status 2xx` says so".to_owned()),
        _ => follow(to, value),
    }),
    ("requests", field!(count, requests)),
    ("requests-any-case", |to, _, value| {
        let count = rate::count(&value.to_uppercase());
        set(&mut to.requests, count.map(Some))
    }),
    ("requests-file", field!(text, requests_file)),
    ("requests-or-none", |to, _, value| {
        let requests = rate::count(value)?;
        set(&mut to.requests, Ok((requests > 0).then_some(requests)))
    }),
    ("requests-per-connection", requests_per_connection),
    ("script", field!(text, script)),
    ("session-tickets", field!(turn, session_tickets)),
    ("shows", field!(turn, only_shows)),
    ("switch", |to, words, value| {
        if is_set(value) {
            to.words.extend(words.split(' ').map(str::to_owned));
        }
        Ok(())
    }),
    ("target-format", |_, _, value| match value {
        "http" => Ok(()),
        _ => Err("one target, `GET URL`, can be translated".to_owned()),
    }),
    ("threads", field!(count, threads)),
    ("timeout", field!(length, timeout)),
    ("tls-of-ab", |to, _, value| match value {
        "TLS1.2" | "TLS1.3" => to.add("--tls-version", value.trim_start_matches("TLS")),
        "ALL" => Ok(()),
        _ => Err("TLS 1.2 and 1.3 are spoken here".to_owned()),
    }),
    ("url", |to, _, value| {
        to.urls.push(value.to_owned());
        Ok(())
    }),
    ("urls-file", |to, _, _| set(&mut to.is_file, Ok(true))),
];

/// The type of a body that is a form.
const FORM: &str = "application/x-www-form-urlencoded";
/// Redirects that ours follows at most.
const FOLLOWED_MAX: u64 = 100;

/// Does what a flag says: an action and what it is given, and the value of the flag.
///
/// # Errors
/// The value is not one, or the table names an action that there is not.
pub fn act(to: &mut Translation, (name, given): (&str, &str), value: &str) -> Result<(), String> {
    let mut actions = ACTIONS.iter();
    let (_, action) = actions
        .find(|(known, _)| *known == name)
        .ok_or_else(|| format!("there is no action `{name}`"))?;
    action(to, given, value)
}

/// Whether a flag is set: Go's programs take `-flag=false`.
pub fn is_set(value: &str) -> bool {
    !matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE")
}

fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

/// A number of things.
fn count(field: &mut Option<u64>, value: &str) -> Result<(), String> {
    set(field, rate::count(value).map(Some))
}

/// A switch.
fn turn(field: &mut bool, value: &str) -> Result<(), String> {
    set(field, Ok(is_set(value)))
}

fn text(field: &mut Option<String>, value: &str) -> Result<(), String> {
    set(field, Ok(Some(value.to_owned())))
}

fn length(field: &mut Option<Nanos>, value: &str) -> Result<(), String> {
    set(field, duration::parse(value).map(Some))
}

fn per_second(field: &mut Option<f64>, value: &str) -> Result<(), String> {
    set(field, rate::parse(value).map(Some))
}

/// Redirects that are followed; 0: none.
pub fn follow(to: &mut Translation, value: &str) -> Result<(), String> {
    let count = rate::count(value)?;
    set(&mut to.follow, Ok(Some(count.min(FOLLOWED_MAX))))
}

/// Go's client is used in place of the tool's own.
fn go_client(to: &mut Translation, value: &str) -> Result<(), String> {
    let is_used = to.is_go_client || is_set(value);
    set(&mut to.is_go_client, Ok(is_used))
}

/// The least of several limits of how many connections there are; 0 is none.
fn connections_max(to: &mut Translation, _: &str, value: &str) -> Result<(), String> {
    let most = Some(rate::count(value)?).filter(|most| *most > 0);
    let least = to.connections.into_iter().chain(most).min();
    set(&mut to.connections, Ok(least))
}

/// A body of curl: a form unless its type is given.
fn form(to: &mut Translation, _: &str, value: &str) -> Result<(), String> {
    to.content_type.get_or_insert(FORM.to_owned());
    match value.strip_prefix('@') {
        Some("-") => Err("a body from standard input is not read".to_owned()),
        Some(file) => to.body("--body-file", file),
        None => to.body("--body", value),
    }
}

/// One header: several of a name are all sent, but of those which Fortio itself sends.
fn header_of_fortio(to: &mut Translation, _: &str, value: &str) -> Result<(), String> {
    match value.split_once(':') {
        Some((name, content))
            if ["user-agent", "host"].contains(&&*name.trim().to_ascii_lowercase()) =>
        {
            to.only_header(name.trim(), content.trim().to_owned());
            Ok(())
        }
        _ => to.header(value),
    }
}

/// A header of h2load: what HTTP/2 has in place of a request line is given as one, too.
fn header_of_h2load(to: &mut Translation, _: &str, value: &str) -> Result<(), String> {
    let pseudo = value.strip_prefix(':').and_then(|of| of.split_once(':'));
    match pseudo.map(|(name, content)| (name, content.trim())) {
        None => to.header(value),
        Some(("method", method)) => text(&mut to.method, method),
        Some(("authority", host)) => to.header(&format!("Host: {host}")),
        Some(_) => Err("path and scheme are those of the URL".to_owned()),
    }
}

fn http_version(to: &mut Translation, _: &str, value: &str) -> Result<(), String> {
    match value {
        "2" | "2.0" => set(&mut to.http2, Ok(true)),
        "1.1" => Ok(()),
        "1.0" => {
            to.keep_alive = Some(false);
            set(&mut to.http1_0, Ok(true))
        }
        _ => Err("HTTP/1.0, 1.1 and 2 are spoken here".to_owned()),
    }
}

fn requests_per_connection(to: &mut Translation, _: &str, value: &str) -> Result<(), String> {
    let (least, most) = value.split_once(':').unwrap_or((value, value));
    if least != most {
        return Err("here it is one number for all connections".to_owned());
    }
    match rate::count(least)? {
        0 => Ok(()),
        each => to.add("--requests-per-connection", &each.to_string()),
    }
}

/// `50`, `50/1s`, `3000/1m`, `0`.
fn rate_of_vegeta(to: &mut Translation, _: &str, value: &str) -> Result<(), String> {
    let (number, time) = value.split_once('/').unwrap_or((value, "1s"));
    if number == "infinity" {
        return Err(
            "vegeta takes it and sends 50 a second: `-rate 0` is without a limit".to_owned(),
        );
    }
    // A unit alone is one of it: 50/s.
    let time = match time.starts_with(|c: char| c.is_ascii_digit()) {
        true => time.to_owned(),
        false => format!("1{time}"),
    };
    let time: Nanos = duration::parse_positive(&time)?;
    let count = rate::count(number)? as f64;
    set(&mut to.rate, Ok(Some(count / time.as_secs_f64())))
}
