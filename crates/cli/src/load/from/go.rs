//! hey and vegeta, which send by Go's client: what it does by itself is the same in both.

use prony_base::Nanos;
use prony_base::typed::{duration, rate};

use super::common::*;
use super::table::Counterpart::{As, By, Is, No, Nothing};
use super::table::Tool;
use super::translation::{Translation, as_it_is};

const AGENT_OF_HEY: &str = "hey/0.0.1";

pub const HEY: Tool = Tool {
    name: "hey",
    of: "hey 0.1.5",
    subcommand: None,
    is_go: true,
    flags: &[
        flag(&["-n"], "200", REQUESTS),
        flag(&["-c"], "50", CONNECTIONS),
        flag(
            &["-q"],
            "20",
            By("`-R N`, over all connections: -q times -c", |to, value| {
                set(&mut to.rate_each, rate::parse(value))
            }),
        ),
        flag(&["-z"], "1m30s", DURATION),
        flag(
            &["-o"],
            "csv",
            No("`--trace FILE` has the times of each request as CSV"),
        ),
        flag(&["-m"], "PUT", METHOD),
        flag(&["-H"], "X-One: 1", HEADER),
        flag(&["-t"], "20", TIMEOUT),
        flag(&["-A"], "text/html", ACCEPT),
        flag(&["-d"], "text", BODY),
        flag(&["-D"], "body.json", BODY_FILE),
        flag(&["-T"], "text/plain", CONTENT_TYPE),
        flag(&["-U"], "me/1.0", USER_AGENT),
        flag(
            &["-a"],
            "user:password",
            By(
                "`-H 'Authorization: Basic …'`, which hey 0.1.5 forgets to send",
                |to, value| match value.contains(':') {
                    true => basic(to, value),
                    false => Err("it is user:password".to_owned()),
                },
            ),
        ),
        flag(&["-x"], "proxy:3128", PROXY),
        flag(&["-h2"], "", HTTP2),
        flag(&["-host"], "example.org", HOST),
        flag(&["-disable-compression"], "", NO_COMPRESSION),
        flag(&["-disable-keepalive"], "", NO_KEEP_ALIVE),
        flag(
            &["-disable-redirects"],
            "",
            By("no `--follow`, which is there without it", |to, value| {
                to.follow = is_set(value).then_some(0);
                Ok(())
            }),
        ),
        flag(&["-cpus"], "2", THREADS),
        flag(&["-h"], "X-One: 1", No("hey has given it up for `-H`")),
    ],
    finish: |to| {
        defaults(to, 50, Some(200), None);
        to.timeout.get_or_insert(Nanos::from_secs(20));
        to.follow.get_or_insert(9);
        to.insecure = true;
        // Each connection sends as many, and the rest is left out.
        let connections = to.connections.unwrap_or(1).max(1);
        if let Some(requests) = &mut to.requests {
            if *requests < connections {
                return Err("hey wants -n to be no less than -c".to_owned());
            }
            *requests -= *requests % connections;
        }
        to.method = Some(to.method.take().map_or_else(get, |of| of.to_uppercase()));
        to.content_type.get_or_insert("text/html".to_owned());
        let agent = match to.given("User-Agent") {
            Some(given) => format!("{given} {AGENT_OF_HEY}"),
            None => AGENT_OF_HEY.to_owned(),
        };
        to.only_header("User-Agent", agent);
        compressed_of_go(to);
        to.http2 &= to.is_secure();
        to.on_one_connection();
        Ok(())
    },
    remark: "hey accepts any certificate, sends GET with a body, too, unless told otherwise, and leaves out the requests that -c does not divide: all are translated. `-h2` is for https, where \
             all requests are streams of one connection. It follows nine redirects in a row; each is a request of its own here, and part of the first one there, with a `Referer`",
};

pub const VEGETA: Tool = Tool {
    name: "vegeta",
    of: "`vegeta attack` of vegeta 12.13.0",
    subcommand: Some("attack"),
    is_go: true,
    flags: &[
        flag(&["-body"], "body.json", BODY_FILE),
        flag(&["-cert"], "client.pem", As("--cert", same)),
        flag(&["-chunked"], "", Is("--chunked")),
        flag(
            &["-connect-to"],
            "example.org:80:127.0.0.1:8080",
            As("--connect-to", same),
        ),
        flag(&["-connections"], "10000", Nothing("connections stay open")),
        flag(
            &["-dns-ttl"],
            "0s",
            Nothing("names are looked up once, before the run"),
        ),
        flag(&["-duration"], "10s", DURATION),
        flag(
            &["-format"],
            "http",
            By("one target, `GET URL`", |_, value| match value {
                "http" => Ok(()),
                _ => Err("one target, `GET URL`, can be translated".to_owned()),
            }),
        ),
        flag(&["-h2c"], "", HTTP2),
        flag(&["-header"], "X-One: 1", HEADER),
        flag(
            &["-http2"],
            "",
            By("`--http2` over https", |to, value| {
                to.http1 = !is_set(value);
                Ok(())
            }),
        ),
        flag(&["-insecure"], "", INSECURE),
        flag(&["-keepalive"], "", KEEP_ALIVE),
        flag(&["-key"], "key.pem", As("--key", same)),
        flag(&["-laddr"], "127.0.0.1", As("--source", same)),
        flag(&["-lazy"], "", Nothing("there is one target")),
        flag(&["-max-body"], "-1", Nothing("bodies are not kept")),
        flag(&["-max-connections"], "50", CONNECTIONS_MAX),
        flag(&["-max-workers"], "50", CONNECTIONS_MAX),
        flag(
            &["-name"],
            "x",
            By(
                "`-H 'X-Vegeta-Attack: NAME'`, which it sends",
                |to, value| {
                    to.only_header("X-Vegeta-Attack", as_it_is(value));
                    Ok(())
                },
            ),
        ),
        flag(
            &["-output"],
            "x.bin",
            Nothing("`--json FILE` and others write what was measured"),
        ),
        flag(
            &["-prometheus-addr"],
            "127.0.0.1:8880",
            As("--metrics", same),
        ),
        flag(&["-proxy-header"], "X-One: 1", No(TO_PROXY)),
        flag(
            &["-rate"],
            "100/1s",
            By("`-R N`; 0 is a closed loop", rate_of_vegeta),
        ),
        flag(
            &["-redirects"],
            "-1",
            By("`--follow=N`; nothing for -1", |to, value| match value {
                "-1" => follow(to, "0"),
                "0" => {
                    Err("a redirect is an error there: `--expect-status 2xx` says so".to_owned())
                }
                _ => follow(to, value),
            }),
        ),
        flag(
            &["-resolvers"],
            "127.0.0.1",
            No("the system looks names up; `--resolve` gives addresses"),
        ),
        flag(
            &["-root-certs"],
            "ca.pem,other.pem",
            By("`--cacert FILE` for each", |to, value| {
                for file in value.split(',') {
                    to.add("--cacert", Some(file.to_owned()));
                }
                Ok(())
            }),
        ),
        flag(
            &["-session-tickets"],
            "",
            By(
                "the default; without it `--no-resumption` over https",
                |to, value| {
                    to.session_tickets = is_set(value);
                    Ok(())
                },
            ),
        ),
        flag(&["-targets"], "targets.txt", REQUESTS_FILE),
        flag(&["-timeout"], "30s", TIMEOUT),
        flag(&["-unix-socket"], "/x", As("--unix", same)),
        flag(
            &["-workers"],
            "10",
            Nothing("connections are as many as `-c` says"),
        ),
        flag(&["-cpus"], "2", THREADS),
        flag(&["-profile"], "cpu", No("it is for who works on vegeta")),
        flag(&["-version"], "", No(VERSION)),
        flag(&["-h", "-help"], "", No(HELP)),
    ],
    finish: |to| {
        let has_limit = to.connections.is_some();
        to.connections.get_or_insert(100);
        to.timeout.get_or_insert(Nanos::from_secs(30));
        to.follow.get_or_insert(10);
        to.no_resumption = !to.session_tickets;
        to.http2 |= to.is_secure() && !to.http1;
        // A file of targets has headers of its own, which ours would replace.
        if to.requests_file.is_none() {
            let agent = match to.http2 {
                true => "Go-http-client/2.0",
                false => "Go-http-client/1.1",
            };
            to.sends(&[("User-Agent", agent)]);
            compressed_of_go(to);
        }
        to.on_one_connection();
        match to.rate {
            Some(0.0) if !has_limit => {
                return Err("vegeta wants -max-workers with -rate 0".to_owned());
            }
            Some(0.0) => to.rate = None,
            None => to.rate = Some(50.0),
            Some(_) => {}
        }
        match to.duration {
            None | Some(Nanos::ZERO) => {
                Err("without -duration vegeta never ends: give one".to_owned())
            }
            Some(_) => Ok(()),
        }
    },
    remark: "Its target comes by `echo 'GET URL' |`. vegeta opens as many connections as it needs; the translation has `-max-connections`, or 100, and more requests than \
             that wait, which their latency says. Over https, and with `-h2c`, all requests are streams of one connection; where a server of https speaks no HTTP/2, `-http2=false` says so here. A \
             file of targets is sent with its own headers only",
};

/// `50`, `50/1s`, `3000/1m`, `0`.
fn rate_of_vegeta(to: &mut Translation, value: &str) -> Result<(), String> {
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
    let time = duration::parse_positive(&time)?;
    to.rate = Some(rate::count(number)? as f64 / time.as_secs_f64());
    Ok(())
}
