//! What an application is given, against a model, and with a validator between it and the
//! host (`apps/validator.lua`).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::common::{body, root, serve, talk};
use prony_base::Random;

const REQUESTS: usize = 400;

/// The module `site`, which is a file of `tests/apps`.
fn site() -> String {
    let apps = root().join("crates/host/tests/apps/?.lua;");
    format!("package.path = {apps:?} .. package.path\nreturn require('validated')\n")
}

/// A request, and what the environ is to hold of it beside what all have.
struct Case {
    bytes: Vec<u8>,
    environ: BTreeMap<String, Vec<u8>>,
    body: Vec<u8>,
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len() as u64) as usize]
}

/// A path or query, and a path's value without percent-encoding.
fn target(random: &mut Random, pieces: usize) -> (String, Vec<u8>) {
    let (mut text, mut value) = (String::new(), Vec::new());
    for _ in 0..random.below(pieces as u64) {
        if random.chance(1, 3) {
            let byte = random.below(256) as u8;
            text.push_str(&match random.chance(1, 2) {
                true => format!("%{byte:02x}"),
                false => format!("%{byte:02X}"),
            });
            value.push(byte);
        } else {
            // Percent signs that begin no escape stay: what follows never completes one.
            let piece = pick(
                random,
                &["a", "/", "..", "+", "&=", "%zz", "%%g", ";", "~", "//"],
            );
            text.push_str(piece);
            value.extend_from_slice(piece.as_bytes());
        }
    }
    (text, value)
}

fn add_headers(random: &mut Random, case: &mut Case) {
    for _ in 0..random.below(12) {
        let name = pick(
            random,
            &[
                "Cookie",
                "cOOKIE",
                "X-A",
                "x-a",
                "X-a-B",
                "Accept",
                "X_Under",
                "N!#$",
                "Content_Type",
            ],
        );
        let value = pick(
            random,
            &["", "a", "b=1; c", "\u{e4}\u{20ac}", "x\ty", "1, 2"],
        );
        let space = pick(random, &["", " ", " \t"]);
        case.bytes
            .extend_from_slice(format!("{name}:{space}{value}{space}\r\n").as_bytes());
        if name.contains('_') {
            continue;
        }
        let key = format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_"));
        let joint = if key == "HTTP_COOKIE" { "; " } else { ", " };
        case.environ
            .entry(key)
            .and_modify(|before| before.extend_from_slice(format!("{joint}{value}").as_bytes()))
            .or_insert_with(|| value.into());
    }
}

fn add_body(random: &mut Random, case: &mut Case) {
    let length = random.below(200) as usize;
    case.body = (0..length).map(|_| random.below(256) as u8).collect();
    let set = |case: &mut Case, key: &str, value: &str| {
        case.environ.insert(key.to_owned(), value.into());
    };
    if random.chance(1, 2) {
        case.bytes.extend_from_slice(b"Content-type: x/y\r\n");
        set(case, "CONTENT_TYPE", "x/y");
    }
    match random.below(3) {
        0 => {
            case.body.clear();
            case.bytes.extend_from_slice(b"\r\n");
        }
        1 => {
            let head = format!("CONTENT-Length: {length}\r\n\r\n");
            case.bytes.extend_from_slice(head.as_bytes());
            case.bytes.extend_from_slice(&case.body);
            set(case, "CONTENT_LENGTH", &length.to_string());
        }
        _ => {
            case.bytes
                .extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for piece in case.body.chunks(7) {
                let head = format!("{:x}\r\n", piece.len());
                case.bytes.extend_from_slice(head.as_bytes());
                case.bytes.extend_from_slice(piece);
                case.bytes.extend_from_slice(b"\r\n");
            }
            case.bytes.extend_from_slice(b"0\r\nX-A: trailer\r\n\r\n");
            set(case, "CONTENT_LENGTH", &length.to_string());
        }
    }
}

fn case(random: &mut Random) -> Case {
    let method = pick(
        random,
        &["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"],
    );
    let (path, value) = target(random, 8);
    let (query, _) = target(random, 8);
    let has_query = random.chance(1, 2);
    let uri = format!(
        "/{path}{}",
        if has_query {
            format!("?{query}")
        } else {
            String::new()
        }
    );
    let mut environ = BTreeMap::new();
    for (key, value) in [
        ("REQUEST_METHOD", method.as_bytes()),
        ("REQUEST_URI", uri.as_bytes()),
        (
            "QUERY_STRING",
            if has_query { query.as_bytes() } else { b"" },
        ),
        ("PATH_INFO", &[b"/", value.as_slice()].concat()),
        ("HTTP_HOST", b"h"),
        ("HTTP_X_PAGE", b"hex"),
        ("HTTP_CONNECTION", b"close"),
        ("SCRIPT_NAME", b""),
        ("SERVER_PROTOCOL", b"HTTP/1.1"),
        ("wsgi.url_scheme", b"http"),
    ] {
        environ.insert(key.to_owned(), value.to_vec());
    }
    let start =
        format!("{method} {uri} HTTP/1.1\r\nHost: h\r\nX-Page: hex\r\nConnection: close\r\n");
    let mut case = Case {
        bytes: start.into_bytes(),
        environ,
        body: Vec::new(),
    };
    add_headers(random, &mut case);
    add_body(random, &mut case);
    case
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("digits");
            u8::from_str_radix(pair, 16).expect("digits")
        })
        .collect()
}

/// What the application was given: its environ without the addresses, and its body.
fn told(answer: &str) -> (BTreeMap<String, Vec<u8>>, Vec<u8>) {
    let mut environ = BTreeMap::new();
    let mut given = Vec::new();
    for line in body(answer).lines() {
        let (key, value) = line.split_once('=').expect("a line of the page");
        let key = String::from_utf8(unhex(key)).expect("a key of text");
        match &*key {
            "" => given = unhex(value),
            "SERVER_NAME" | "SERVER_PORT" | "REMOTE_ADDR" | "REMOTE_PORT" => {}
            _ => _ = environ.insert(key, unhex(value)),
        }
    }
    (environ, given)
}

fn page(address: SocketAddr, name: &str, method: &str) -> Option<String> {
    let request =
        format!("{method} / HTTP/1.1\r\nHost: h\r\nX-Page: {name}\r\nConnection: close\r\n\r\n");
    talk(address, request.as_bytes(), usize::MAX)
}

fn finds_nothing(address: SocketAddr) {
    let found = page(address, "found", "GET").expect("an answer");
    assert_eq!(body(&found), "0");
}

#[test]
fn any_valid_request_gives_the_environ_of_the_model_however_it_is_split() {
    serve("model", &site(), |address| {
        let mut random = Random::new(6);
        for number in 0..REQUESTS {
            let case = case(&mut random);
            let write = 1 + random.below(case.bytes.len() as u64) as usize;
            let answer = talk(address, &case.bytes, write);
            let answer = answer.unwrap_or_else(|| panic!("{number}: reset"));
            let shown = String::from_utf8_lossy(&case.bytes);
            assert!(
                answer.starts_with("HTTP/1.1 200 "),
                "{number}: {shown}: {answer}"
            );
            let (environ, given) = told(&answer);
            assert_eq!(environ, case.environ, "{number}: {shown}");
            assert_eq!(given, case.body, "{number}: {shown}");
        }
        finds_nothing(address);
    });
}

#[test]
fn a_request_is_the_same_split_at_every_byte() {
    serve("split", &site(), |address| {
        let mut random = Random::new(7);
        for _ in 0..3 {
            let case = case(&mut random);
            for at in 1..case.bytes.len() {
                let (first, second) = case.bytes.split_at(at);
                let answer = super::common::talk_in(address, &[first, second]).expect("an answer");
                let (environ, given) = told(&answer);
                assert_eq!(
                    (environ, given),
                    (case.environ.clone(), case.body.clone()),
                    "{at}"
                );
            }
        }
        finds_nothing(address);
    });
}

#[test]
fn the_validator_finds_nothing_around_any_kind_of_body() {
    serve("validator", &site(), |address| {
        for name in ["list", "text", "pairs", "wrap"] {
            let answer = page(address, name, "GET").expect("an answer");
            let sent: String = body(&answer)
                .chars()
                .filter(char::is_ascii_alphabetic)
                .collect();
            assert_eq!(sent, "ab", "{name}");
            let answer = page(address, name, "HEAD").expect("an answer");
            assert_eq!(body(&answer), "", "{name}");
        }
        let broken = page(address, "broken", "GET").expect("an answer");
        assert!(
            broken.starts_with("HTTP/1.1 500 ") && broken.contains("no piece"),
            "{broken}"
        );
        assert!(
            broken.contains("validated.lua:") && broken.contains("stack traceback"),
            "{broken}"
        );
        finds_nothing(address);
    });
}

const METHODS: &str = r##"
local function app(environ, start_response)
  start_response(200)
  local input, out = environ["wsgi.input"], {}
  local function note(...)
    for place = 1, select("#", ...) do out[#out + 1] = tostring((select(place, ...))) .. "|" end
  end
  note(input:read(0), input:read(2), input:read("*l"))
  note(input:read("*L"))
  note(input:read("*n"), input:read("*n"))
  note(input:read(1), input:readline(2), input:readline())
  note(input:seek(), input:seek("set", 1), input:read(1), input:seek("cur", -2), input:read(1))
  note(input:seek("end", -4), input:read(), input:read(), input:read(1), input:read("*l"), input:readline())
  note(input:seek("set", -1))
  input:seek("set")
  note(#input:readlines())
  input:seek("set")
  local count = 0
  for line in input:lines() do
    assert(not line:find("\n"))
    count = count + 1
  end
  note(count, pcall(input.read, input, "x"))
  input:close()
  note(input:read("*a"))
  local errors = environ["wsgi.errors"]
  note(errors:write("a", 1, "\n") == errors, errors:writelines({"b", "\nc"}), errors:flush())
  return out
end
return {app = app}
"##;

#[test]
fn input_and_errors_have_the_methods_of_the_interface() {
    let sent = "abcd\nline\n 12 0x10\nlong line\nend!";
    let answer = serve("methods", METHODS, move |address| {
        let length = sent.len();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{sent}"
        );
        talk(address, request.as_bytes(), usize::MAX).expect("an answer")
    });
    let said = body(&answer);
    let (start, rest) = said.split_once("false|").expect("a refused format");
    assert_eq!(
        start,
        "|ab|cd|line\n|12|16|\n|lo|ng line\n|29|1|b|0|a|29|end!||nil|nil|nil|nil|before the start|5|5|"
    );
    assert!(
        rest.contains("wsgi.input: read takes a number of bytes"),
        "{rest}"
    );
    assert!(rest.ends_with("||true|nil|"), "{rest}");
}
