//! The small languages inside an experiment's strings: lengths of time, names,
//! command lines and placeholders. Pure functions from text to value.

use prony_base::Nanos;

/// Placeholders that the start command of a server and its environment may use.
/// `{payload_bytes}` is for peers, and 0 otherwise.
/// `{instance}` is the number of the process among those of its subject, from 0.
pub const START_PLACEHOLDERS: [&str; 10] = [
    "host",
    "port",
    "threads",
    "dir",
    "build",
    "work",
    "prony",
    "systems",
    "payload_bytes",
    "instance",
];
/// Placeholders that a server may use beside them for a protocol: files with the certificate that it shows and its key.
pub const OF_TLS: [&str; 2] = ["certificate", "key"];
/// Placeholders that the start command of a backing service and its environment may use.
pub const BACKING_PLACEHOLDERS: [&str; 8] = [
    "host", "port", "threads", "dir", "build", "work", "prony", "systems",
];
/// The placeholders of a proxy in front; `{upstreams}` are the addresses of the subject's processes.
pub const FRONT_PLACEHOLDERS: [&str; 9] = [
    "host",
    "port",
    "threads",
    "dir",
    "build",
    "work",
    "prony",
    "systems",
    "upstreams",
];
/// Placeholders that the command and the environment of a program may use. `{work}` is the
/// name of the work there.
pub const PROGRAM_PLACEHOLDERS: [&str; 7] = [
    "work", "count", "threads", "dir", "build", "prony", "systems",
];
/// Placeholders that the command and the environment of a client may use, and what
/// translates its output. `{work}` is the name of the work there, too.
pub const CLIENT_PLACEHOLDERS: [&str; 14] = [
    "url",
    "host",
    "port",
    "path",
    "threads",
    "connections",
    "connections_per_thread",
    "seconds",
    "payload_bytes",
    "work",
    "dir",
    "build",
    "prony",
    "systems",
];
/// Placeholders of the command that builds a subject.
pub const BUILD_PLACEHOLDERS: [&str; 3] = ["dir", "build", "prony"];
/// The placeholders of the command that prints its version.
pub const VERSION_PLACEHOLDERS: [&str; 5] = ["dir", "build", "prony", "systems", ORIGINALS];
/// The placeholder of the program `prony-systems`, which lies beside `prony`.
pub const SYSTEMS: &str = "{systems}";
/// The placeholder, in `subject.toml` alone, of the folder of what its user has built.
pub const ORIGINALS: &str = "originals";
/// Items of one list or table at the most.
pub const ITEMS_MAX: usize = 1_000;
/// Bytes of a name at the most.
pub const NAME_BYTES_MAX: usize = 80;
/// Bytes of a text of one line at the most.
pub const LINE_BYTES_MAX: usize = 400;

/// Reads a length of time: `300ms`, `5s`, `1.5s`, `2m`, `1h`.
pub fn duration(text: &str) -> Result<Nanos, String> {
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3_600e9),
    ];
    let (number, unit) = number_and_unit(text);
    if unit.is_empty() {
        let text = short(text);
        return Err(format!("`{text}` lacks its unit: ns, us, ms, s, m or h"));
    }
    let amount = amount(number, unit, &units);
    let wrong = || format!("`{}` is not written like 300ms, 5s, 2m or 1h", short(text));
    amount.map(Nanos).ok_or_else(wrong)
}

/// `right` and the placeholders of clients, each once.
pub fn with_clients(right: &[&'static str]) -> Vec<&'static str> {
    let mut all = right.to_vec();
    let more = CLIENT_PLACEHOLDERS
        .iter()
        .filter(|name| !right.contains(name));
    all.extend(more);
    all
}

/// `right` and the names of backing services.
pub fn with_names<'a>(right: &[&'a str], names: &'a [String]) -> Vec<&'a str> {
    let mut all = right.to_vec();
    all.extend(names.iter().map(String::as_str));
    all
}

/// Splits `1.5gbit` into its number and what follows.
fn number_and_unit(text: &str) -> (&str, &str) {
    let is_unit = |c: char| c != '.' && !c.is_ascii_digit();
    text.split_at(text.find(is_unit).unwrap_or(text.len()))
}

/// So many of a unit: `None` where the number is none or the unit is not among `units`.
fn amount(number: &str, unit: &str, units: &[(&str, f64)]) -> Option<u64> {
    let number: f64 = number.parse().ok()?;
    let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
    // A cast from floating point saturates, so that what is too long stays too long.
    Some((number * size).round() as u64)
}

/// Reads a number of bytes: `200MiB`, `1.5GB`, `64KiB`, `17B`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ];
    let (number, unit) = number_and_unit(text);
    let (unit, text) = (unit.trim_start(), short(text));
    if number.parse::<f64>().is_ok() && unit.is_empty() {
        return Err(format!("`{text}` lacks its unit: B, KiB, MiB or GiB"));
    }
    amount(number, unit, &units)
        .ok_or_else(|| format!("`{text}` is not written like 200MiB, 64KiB or 1GB"))
}

/// Reads a rate of a network, as `tc` writes it: `1gbit`, `100mbit`, `500kbit`. Bits a second.
pub fn rate(text: &str) -> Result<u64, String> {
    let units = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
    let (number, unit) = number_and_unit(text);
    let wrong = || {
        format!(
            "`{}` is not written like 1gbit, 100mbit or 500kbit",
            short(text)
        )
    };
    amount(number, unit.trim_start(), &units).ok_or_else(wrong)
}

/// Why `text` cannot be a name, if it cannot. Names become parts of cell ids and
/// of file names, so that a space or a control character in one would mislead.
pub fn name_problem(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("a name cannot be empty".to_owned());
    }
    if text.len() > NAME_BYTES_MAX {
        return Some(format!("a name has at most {NAME_BYTES_MAX} bytes"));
    }
    let allowed = |c: char| c.is_alphanumeric() || "._-/:+@".contains(c);
    let odd = text.chars().find(|&c| !allowed(c))?;
    let shown = odd.escape_debug();
    Some(format!(
        "a name is made of letters, digits and . _ - / : + @, and this one holds `{shown}`"
    ))
}

/// Whether tables can show `text`.
pub fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= LINE_BYTES_MAX && !text.contains(char::is_control)
}

/// Why `text` cannot be the path of a request, if it cannot.
pub fn path_problem(text: &str) -> Option<&'static str> {
    if !text.starts_with('/') {
        Some("a path begins with `/`")
    } else if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Some("a path has no space and no control character; write %20 for a space")
    } else if text.contains('#') {
        Some("`#` and what follows it is never sent to a server")
    } else if !text.is_ascii() {
        Some("a path is ASCII; write other characters as %XX")
    } else {
        None
    }
}

/// Splits a command line into its words as a shell would, with quotes and
/// backslashes; what only a shell can do is an error that says how to have one.
pub fn split_command(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => quoted_part(c, &mut chars, word.get_or_insert_default())?,
            '\\' => match chars.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("it ends in a backslash".to_owned()),
            },
            '|' | '&' | ';' | '<' | '>' | '$' | '`' => return Err(needs_shell(c)),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.first().is_none_or(String::is_empty) {
        return Err("it names no program".to_owned());
    }
    Ok(words)
}

fn quoted_part(
    quote: char,
    chars: &mut std::str::Chars<'_>,
    word: &mut String,
) -> Result<(), String> {
    while let Some(c) = chars.next() {
        match c {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => word.extend(chars.next()),
            '$' | '`' if quote == '"' => return Err(needs_shell(c)),
            c => word.push(c),
        }
    }
    Err(format!("its {quote} is never closed"))
}

fn needs_shell(c: char) -> String {
    format!("`{c}` is for a shell, and none is used; with one it is cmd = [\"sh\", \"-c\", \"…\"]")
}

/// The names in `{name}` in `text`: lower-case letters and underscores only, so
/// that JSON and code may have braces of their own.
pub fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        (plain && !name.is_empty()).then_some(name)
    })
}

/// The names in `{name}` in `text` that can be those of services: what [`name_problem`]
/// allows.
pub fn services(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        name_problem(name).is_none().then_some(name)
    })
}

/// The first 40 characters of `text`, for a message.
pub fn short(text: &str) -> String {
    if text.chars().count() <= 40 {
        return text.to_owned();
    }
    text.chars().take(40).chain(['…']).collect()
}

/// Puts values in for placeholders, in one pass: a value that looks like a
/// placeholder stays as it is.
pub fn fill<N: AsRef<str>>(text: &str, values: &[(N, String)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        match values
            .iter()
            .find(|(name, _)| rest.starts_with(name.as_ref()))
        {
            Some((name, value)) => {
                filled.push_str(value);
                rest = &rest[name.as_ref().len()..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_of_time_have_a_unit() {
        assert_eq!(duration("300ms"), Ok(Nanos::from_millis(300)));
        assert_eq!(duration("1.5s"), Ok(Nanos::from_millis(1_500)));
        assert_eq!(duration("2m"), Ok(Nanos::from_secs(120)));
        assert!(duration("5").unwrap_err().contains("lacks its unit"));
        for wrong in [
            "", "s", "5 s", "-5s", "1.2.3s", "5days", "NaNs", "infs", "1e3s",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_and_rates_have_a_unit() {
        assert_eq!(bytes("200MiB"), Ok(200 << 20));
        assert_eq!(bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(bytes("17B"), Ok(17));
        assert!(bytes("17").unwrap_err().contains("lacks its unit"));
        assert_eq!(rate("1gbit"), Ok(1_000_000_000));
        assert_eq!(rate("2.5mbit"), Ok(2_500_000));
        for wrong in ["", "MiB", "-1MiB", "1mib", "1.2.3MiB", "1 Gbit/s"] {
            assert!(bytes(wrong).is_err() && rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_splits_it() {
        let split = |text: &str| split_command(text);
        assert_eq!(
            split(r#"./server --port {port}  "a b" 'c "d"' e\ f '' "#).unwrap(),
            ["./server", "--port", "{port}", "a b", "c \"d\"", "e f", ""]
        );
        for (wrong, reason) in [
            ("", "no program"),
            ("  ", "no program"),
            ("''", "no program"),
            ("a | b", "sh"),
            ("a \"$HOME\"", "sh"),
            ("a 'b", "never closed"),
            ("a \\", "backslash"),
        ] {
            let error = split(wrong).unwrap_err();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
    }

    #[test]
    fn json_holds_no_placeholders() {
        let found: Vec<&str> = placeholders(r#"{"a":{random},"b":{}} {port} {Not}"#).collect();
        assert_eq!(found, ["random", "port"]);
        let found: Vec<&str> =
            services(r#"{"a":{random}} redis://{backing/redis-7} {a b}"#).collect();
        assert_eq!(found, ["random", "backing/redis-7"]);
    }

    proptest! {
        #[test]
        fn what_is_quoted_comes_back(words in proptest::collection::vec("[^'\0]{1,12}", 1..6)) {
            let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(split_command(&line.join(" ")), Ok(words));
        }

        #[test]
        fn no_text_makes_these_panic(text in ".{0,60}") {
            let _ = (duration(&text), name_problem(&text), split_command(&text));
            let _ = (placeholders(&text).count(), short(&text), bytes(&text), rate(&text));
        }
    }
}
