//! What the tables of several tools share: flags that mean the same in all, and why others are not wanted.

use prony_base::Nanos;
use prony_base::typed::{duration, rate};

use super::table::Counterpart::By;
use super::table::{Counterpart, Flag};
use super::translation::{Translation, with_scheme};

/// A row of a table.
pub const fn flag(
    names: &'static [&'static str],
    example: &'static str,
    means: Counterpart,
) -> Flag {
    Flag {
        names,
        example,
        means,
    }
}

pub const VERSION: &str = "it runs nothing; ours is `prony --version`";
pub const HELP: &str = "it runs nothing; ours is `prony load --help`";
pub const TO_PROXY: &str = "a proxy gets no headers and no credentials of its own";
pub const GENERATED: &str = "URLs are not made up from a pattern: `{counter}`, `{random}` and columns of `--data` fill them in";
pub const BURSTS: &str = "`--stages` changes the rate over time";
pub const TUI: &str = "the summary is printed either way";
pub const AWS: &str = "requests are not signed";
pub const FAMILY: &str = "`--resolve HOST:PORT:ADDR` gives the address";
pub const DEBUG: &str = "`--debug N` shows N exchanges whole, in place of a load";
pub const CIPHERS: &str = "client and server agree on the safest that both have";
pub const FRAMES: &str = "the sizes are fixed, and large enough not to be the limit";
pub const CONNECTION_TIME: &str = "`--requests-per-connection` ends connections";
pub const QUIC: &str = "HTTP/3 is not spoken";
pub const FORM: &str = "application/x-www-form-urlencoded";

pub const CONNECTIONS: Counterpart = By("`-c N`", |to, value| {
    set(&mut to.connections, rate::count(value))
});
pub const THREADS: Counterpart = By("`-t N`", |to, value| {
    set(&mut to.threads, rate::count(value))
});
pub const REQUESTS: Counterpart = By("`-n N`", |to, value| {
    set(&mut to.requests, rate::count(value))
});
pub const DURATION: Counterpart = By("`-d T`", |to, value| {
    set(&mut to.duration, duration::parse(value))
});
pub const TIMEOUT: Counterpart = By("`--timeout T`", |to, value| {
    set(&mut to.timeout, duration::parse(value))
});
pub const REQUESTS_FILE: Counterpart = By("`--requests-file FILE`", |to, value| {
    to.requests_file = Some(value.to_owned());
    Ok(())
});
pub const SCRIPT: Counterpart = By("`-s FILE`, `--script FILE`", |to, value| {
    to.script = Some(value.to_owned());
    Ok(())
});
pub const PROXY: Counterpart = By("`--proxy http://HOST:PORT`", |to, value| {
    to.add("--proxy", Some(with_scheme(value)));
    Ok(())
});
pub const HEADER: Counterpart = By("`-H HEADER`", |to, value| to.header(value));
pub const METHOD: Counterpart = By("`--method M`", |to, value| {
    to.method = Some(value.to_owned());
    Ok(())
});
pub const BODY: Counterpart = By("`--body TEXT`", |to, value| to.body("--body", value));
pub const BODY_FILE: Counterpart = By("`--body-file FILE`", |to, value| {
    to.body("--body-file", value)
});
pub const CONTENT_TYPE: Counterpart = By("`-H 'Content-Type: …'`", |to, value| {
    to.content_type = Some(value.to_owned());
    Ok(())
});
pub const ACCEPT: Counterpart = By("`-H 'Accept: …'`", |to, value| {
    to.header(&format!("Accept: {value}"))
});
pub const USER_AGENT: Counterpart = By("`-H 'User-Agent: …'`", |to, value| {
    to.header(&format!("User-Agent: {value}"))
});
pub const HOST: Counterpart = By("`-H 'Host: …'`", |to, value| {
    to.header(&format!("Host: {value}"))
});
pub const BASIC_WORDS: &str = "`-H 'Authorization: Basic …'`";
pub const BASIC: Counterpart = By(BASIC_WORDS, |to, value| match value.contains(':') {
    true => basic(to, value),
    false => Err("it is user:password".to_owned()),
});

/// Credentials of basic authentication.
pub fn basic(to: &mut Translation, value: &str) -> Result<(), String> {
    to.header(&format!(
        "Authorization: Basic {}",
        base64(value.as_bytes())
    ))
}

pub const KEEP_ALIVE: Counterpart = By(
    "the default; `-keepalive=false` is `--no-keepalive`",
    |to, value| {
        to.keep_alive = Some(is_set(value));
        Ok(())
    },
);
pub const NO_KEEP_ALIVE: Counterpart = By("`--no-keepalive`", |to, value| {
    to.keep_alive = is_set(value).then_some(false);
    Ok(())
});
pub const NO_COMPRESSION: Counterpart = By(
    "no `-H 'Accept-Encoding: …'`, which is there without it",
    |to, value| {
        to.no_compression = is_set(value);
        Ok(())
    },
);
/// The least of several limits of how many connections there are; 0 is none.
pub const CONNECTIONS_MAX: Counterpart = By("`-c N`, the least of both", |to, value| {
    let most = rate::count(value)?;
    if most > 0 {
        to.connections = Some(to.connections.map_or(most, |other| other.min(most)));
    }
    Ok(())
});

/// The method of tools that send GET with a body, too.
pub fn get() -> String {
    "GET".to_owned()
}

/// Whether a flag is set: Go's programs take `-flag=false`.
pub fn is_set(value: &str) -> bool {
    !matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE")
}

/// Redirects that are followed; 0: none.
pub fn follow(to: &mut Translation, value: &str) -> Result<(), String> {
    let count = rate::count(value)?;
    to.follow = Some(count.min(FOLLOWED_MAX));
    Ok(())
}

/// Ours follows so many at most.
const FOLLOWED_MAX: u64 = 100;

pub const HTTP2: Counterpart = By("`--http2`", |to, value| {
    to.http2 = is_set(value);
    Ok(())
});
pub const INSECURE: Counterpart = By("`--insecure`", |to, value| {
    to.insecure = is_set(value);
    Ok(())
});

/// What Go's client asks for unless the request says otherwise.
pub fn compressed_of_go(to: &mut Translation) {
    let is_own = to.given("Range").is_some() || to.method.as_deref() == Some("HEAD");
    if !to.no_compression && !is_own {
        to.sends(&[("Accept-Encoding", "gzip")]);
    }
}

/// What a tool does where nothing else is said: connections, and requests or else seconds.
pub fn defaults(
    to: &mut Translation,
    connections: u64,
    requests: Option<u64>,
    seconds: Option<u64>,
) {
    to.connections.get_or_insert(connections);
    if to.duration.is_none() {
        to.requests = to.requests.or(requests);
        to.duration = seconds.map(Nanos::from_secs);
    } else if matches!(to.tool(), "hey" | "oha" | "h2load") {
        // A length stands above a number there.
        to.requests = None;
    }
}

pub fn set<T>(field: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *field = Some(value?);
    Ok(())
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands where conversions that fail do"
)]
pub fn same(value: &str) -> Result<String, String> {
    Ok(value.to_owned())
}

pub fn length(value: &str) -> Result<String, String> {
    duration::parse(value).map(duration::typed)
}

/// A header of h2load: what HTTP/2 has in place of a request line is given as one, too.
pub fn header_of_h2load(to: &mut Translation, value: &str) -> Result<(), String> {
    let Some((name, content)) = value
        .strip_prefix(':')
        .and_then(|rest| rest.split_once(':'))
    else {
        return to.header(value);
    };
    let content = content.trim();
    match name {
        "method" => {
            to.method = Some(content.to_owned());
            Ok(())
        }
        "authority" => to.header(&format!("Host: {content}")),
        _ => Err("path and scheme are those of the URL".to_owned()),
    }
}

/// A body of curl: a form unless its type is given.
pub fn form(to: &mut Translation, value: &str) -> Result<(), String> {
    to.content_type.get_or_insert(FORM.to_owned());
    match value.strip_prefix('@') {
        Some("-") => Err("a body from standard input is not read".to_owned()),
        Some(file) => to.body("--body-file", file),
        None => to.body("--body", value),
    }
}

/// RFC 4648, section 4.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let at = |index: usize| u32::from(part.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= part.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("user:password", "dXNlcjpwYXNzd29yZA=="),
        ] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
