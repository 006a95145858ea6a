//! The flags of other load generators, and what each is here.

use prony_base::Nanos;
use prony_base::typed::{duration, rate};

use super::common::*;
use super::curl::CURL;
use super::fortio::FORTIO;
use super::go::{HEY, VEGETA};
use super::table::Counterpart::{As, By, Is, No, Nothing};
use super::table::Tool;
use super::translation::as_it_is;

/// All tools, in the order of the documentation.
pub const TOOLS: &[Tool] = &[WRK, WRK2, HEY, AB, OHA, H2LOAD, VEGETA, FORTIO, CURL];

/// Threads of wrk and wrk2, if no others are given.
const THREADS_OF_WRK: u64 = 2;

const WRK: Tool = Tool {
    name: "wrk",
    of: "wrk 4.1.0",
    subcommand: None,
    is_go: false,
    flags: &[
        flag(&["-c", "--connections"], "1k", CONNECTIONS),
        flag(&["-d", "--duration"], "2m", DURATION),
        flag(&["-t", "--threads"], "4", THREADS),
        flag(&["-s", "--script"], "x.lua", SCRIPT),
        flag(&["-H", "--header"], "X-One: 1", HEADER),
        flag(&["-L", "--latency"], "", Is("--latency")),
        flag(&["-T", "--timeout"], "2s", TIMEOUT),
        flag(&["-v", "--version"], "", No(VERSION)),
        flag(&["-h", "--help"], "", No(HELP)),
    ],
    finish: |to| {
        defaults(to, 10, None, Some(10));
        to.timeout.get_or_insert(Nanos::from_secs(2));
        to.insecure = true;
        // It opens as many on each thread, and leaves the rest out.
        let threads = to.threads.unwrap_or(THREADS_OF_WRK).max(1);
        to.connections = to.connections.map(|all| match all % threads {
            rest if rest < all => all - rest,
            _ => all,
        });
        if to.script.is_some() {
            to.script_args = to.urls.split_off(to.urls.len().min(1));
        }
        Ok(())
    },
    remark: "wrk accepts any certificate, and so does its translation (`--insecure`). Each thread has as many connections: of `-t 3 -c 10` it opens 9, and so does the translation. A script \
             of theirs runs unchanged ([Scripts](scripts.md))",
};

const WRK2: Tool = Tool {
    name: "wrk2",
    of: "wrk2 at 44a94c1",
    flags: &[
        flag(&["-c", "--connections"], "1k", CONNECTIONS),
        flag(&["-d", "--duration"], "2m", DURATION),
        flag(&["-t", "--threads"], "4", THREADS),
        flag(&["-s", "--script"], "x.lua", SCRIPT),
        flag(&["-H", "--header"], "X-One: 1", HEADER),
        flag(&["-L", "--latency"], "", Is("--latency")),
        flag(
            &["-U", "--u_latency"],
            "",
            No(
                "a run has one of both distributions; run it again with `--latency-from submitted` and the same `--seed`",
            ),
        ),
        flag(&["-T", "--timeout"], "2s", TIMEOUT),
        flag(
            &["-B", "--batch_latency"],
            "",
            No("of pipelined requests each has its own latency"),
        ),
        flag(&["-v", "--version"], "", No(VERSION)),
        flag(
            &["-R", "--rate"],
            "2k",
            By("`-R N`", |to, value| set(&mut to.rate, rate::parse(value))),
        ),
        flag(&["-h", "--help"], "", No(HELP)),
    ],
    finish: |to| {
        if to.rate.is_none() {
            return Err("wrk2 needs -R".to_owned());
        }
        (WRK.finish)(to)
    },
    remark: "Its binary may be called wrk: then write `wrk2` in its place. It leaves the first ten seconds out; add `--warmup 10s` for that",
    ..WRK
};

const AB: Tool = Tool {
    name: "ab",
    of: "ab 2.3 of Apache 2.4.71",
    subcommand: None,
    is_go: false,
    flags: &[
        flag(&["-n"], "1000", REQUESTS),
        flag(&["-c"], "10", CONNECTIONS),
        flag(
            &["-t"],
            "5",
            By("`-d T`, with `-n 50000`", |to, value| {
                set(&mut to.duration, duration::parse_positive(value))?;
                to.requests = Some(50_000);
                Ok(())
            }),
        ),
        flag(&["-s"], "30", TIMEOUT),
        flag(&["-b"], "4096", No("the system sizes the buffers")),
        flag(&["-B"], "127.0.0.1", As("--source", same)),
        flag(&["-p"], "post.txt", BODY_FILE),
        flag(
            &["-u"],
            "put.txt",
            By("`--method PUT --body-file FILE`", |to, value| {
                to.method = Some("PUT".to_owned());
                to.body("--body-file", value)
            }),
        ),
        flag(&["-T"], "application/json", CONTENT_TYPE),
        flag(&["-v"], "2", No(DEBUG)),
        flag(&["-w"], "", No("`--html FILE` is a page")),
        flag(
            &["-i"],
            "",
            By("`--method HEAD`", |to, _| {
                to.method = Some("HEAD".to_owned());
                Ok(())
            }),
        ),
        flag(
            &["-x"],
            "border=1",
            Nothing("there is no table of HTML to give attributes to"),
        ),
        flag(&["-y"], "border=1", Nothing("likewise")),
        flag(&["-z"], "border=1", Nothing("likewise")),
        flag(
            &["-C"],
            "name=value",
            By("`-H 'Cookie: …'`, the last one", |to, value| {
                to.only_header("Cookie", as_it_is(value));
                Ok(())
            }),
        ),
        flag(&["-H"], "X-One: 1", HEADER),
        flag(&["-A"], "user:password", By(BASIC_WORDS, basic)),
        flag(&["-P"], "user:password", No(TO_PROXY)),
        flag(&["-X"], "proxy:3128", PROXY),
        flag(&["-V"], "", No(VERSION)),
        flag(
            &["-k"],
            "",
            By("the default; without it `--no-keepalive`", |to, _| {
                to.keep_alive = Some(true);
                Ok(())
            }),
        ),
        flag(&["-d"], "", Nothing("percentiles are always printed")),
        flag(&["-S"], "", Nothing("there are no such estimators")),
        flag(&["-q"], "", Nothing("progress is shown on a terminal only")),
        flag(&["-l"], "", Nothing("answers may differ in length")),
        flag(
            &["-g"],
            "x.tsv",
            No("`--trace FILE` has the times of each request as CSV"),
        ),
        flag(
            &["-e"],
            "x.csv",
            By("`--hgrm FILE`, in another format", |to, value| {
                to.add("--hgrm", Some(value.to_owned()));
                Ok(())
            }),
        ),
        flag(&["-r"], "", Nothing("a failed request never ends the run")),
        flag(&["-m"], "PUT", METHOD),
        flag(&["-h"], "", No(HELP)),
        flag(
            &["-I"],
            "",
            No("the name is always sent (SNI), as browsers do"),
        ),
        flag(&["-Z"], "ECDHE-RSA-AES128-GCM-SHA256", No(CIPHERS)),
        flag(
            &["-f"],
            "TLS1.2",
            By("`--tls-version 1.2` or `1.3`", |to, value| {
                match value {
                    "TLS1.2" | "TLS1.3" => to.add(
                        "--tls-version",
                        Some(value.trim_start_matches("TLS").to_owned()),
                    ),
                    "ALL" => {}
                    _ => return Err("TLS 1.2 and 1.3 are spoken here".to_owned()),
                }
                Ok(())
            }),
        ),
        flag(&["-E"], "client.pem", As("--cert", same)),
    ],
    finish: |to| {
        defaults(to, 1, Some(1), None);
        to.timeout.get_or_insert(Nanos::from_secs(30));
        to.keep_alive.get_or_insert(false);
        to.insecure = true;
        to.http1_0 = true;
        if to.has_body {
            to.content_type.get_or_insert("text/plain".to_owned());
        }
        to.sends(&[("User-Agent", "ApacheBench/2.3"), ("Accept", "*/*")]);
        Ok(())
    },
    remark: "ab opens a connection for each request unless `-k` is given, accepts any certificate and speaks HTTP/1.0: all are translated. Of `-n` and `-t` the last one says how many \
             requests there are. Without `-l` it counts answers that differ in length from the first one as failed, and without `-r` it ends with the first error of a connection: neither is so here",
};

const OHA: Tool = Tool {
    name: "oha",
    of: "oha 1.16.0",
    subcommand: None,
    is_go: false,
    flags: &[
        flag(
            &["-n"],
            "200",
            By("`-n N`", |to, value| {
                let value = value.to_uppercase();
                set(&mut to.requests, rate::count(&value))
            }),
        ),
        flag(&["-c"], "50", CONNECTIONS),
        flag(
            &["-p"],
            "4",
            By("`--streams N` with HTTP/2", |to, value| {
                set(&mut to.depth, rate::count(value))
            }),
        ),
        flag(&["-z"], "1m30s", DURATION),
        flag(
            &["-w", "--wait-ongoing-requests-after-deadline"],
            "",
            Nothing(
                "requests that are outstanding at the end are counted by themselves, and in no figure",
            ),
        ),
        flag(
            &["-q"],
            "100",
            By("`-R N`", |to, value| set(&mut to.rate, rate::parse(value))),
        ),
        flag(&["--burst-delay"], "2s", No(BURSTS)),
        flag(&["--burst-rate"], "10", No(BURSTS)),
        flag(&["--rand-regex-url"], "", No(GENERATED)),
        flag(
            &["--urls-from-file"],
            "",
            By(
                "`--requests-file FILE`, in turn; oha draws at random",
                |to, _| {
                    to.is_file = true;
                    Ok(())
                },
            ),
        ),
        flag(&["--max-repeat"], "4", No(GENERATED)),
        flag(&["--dump-urls"], "4", No(GENERATED)),
        flag(
            &["--latency-correction"],
            "",
            Nothing("at a rate, latency always counts from the intended start"),
        ),
        flag(&["--no-tui"], "", Nothing(TUI)),
        flag(&["--fps"], "16", Nothing(TUI)),
        flag(&["-m", "--method"], "PUT", METHOD),
        flag(&["-H"], "X-One: 1", HEADER),
        flag(&["--proxy-header"], "X-One: 1", No(TO_PROXY)),
        flag(&["-t"], "5s", TIMEOUT),
        flag(
            &["--connect-timeout"],
            "5s",
            Nothing("`--timeout` bounds connecting, too"),
        ),
        flag(&["-A"], "text/html", ACCEPT),
        flag(&["-d"], "text", BODY),
        flag(&["-D"], "body.json", BODY_FILE),
        flag(&["-Z"], "lines.txt", No("a run has one body")),
        flag(
            &["-F", "--form"],
            "a=b",
            No("a form of several parts is not made here; `--body-file` sends one that was"),
        ),
        flag(&["-T"], "text/plain", CONTENT_TYPE),
        flag(&["-a"], "user:password", BASIC),
        flag(&["--aws-session"], "x", No(AWS)),
        flag(&["--aws-sigv4"], "x", No(AWS)),
        flag(&["-x"], "http://proxy:3128", PROXY),
        flag(&["--proxy-http-version"], "1.1", No(TO_PROXY)),
        flag(&["--proxy-http2"], "", No(TO_PROXY)),
        flag(
            &["--http-version"],
            "2",
            By(
                "`--http2` for 2, `--http1.0 --no-keepalive` for 1.0, nothing for 1.1",
                |to, value| {
                    match value {
                        "2" | "2.0" => to.http2 = true,
                        "1.1" => {}
                        "1.0" => {
                            to.http1_0 = true;
                            to.keep_alive = Some(false);
                        }
                        _ => return Err("HTTP/1.0, 1.1 and 2 are spoken here".to_owned()),
                    }
                    Ok(())
                },
            ),
        ),
        flag(&["--http2"], "", HTTP2),
        flag(&["--host"], "example.org", HOST),
        flag(&["--disable-compression"], "", NO_COMPRESSION),
        flag(
            &["-r", "--redirect"],
            "0",
            By("`--follow=N`; nothing for 0", follow),
        ),
        flag(&["--disable-keepalive"], "", NO_KEEP_ALIVE),
        flag(
            &["--no-pre-lookup"],
            "",
            No("names are looked up once, before the run"),
        ),
        flag(&["--ipv6"], "", No(FAMILY)),
        flag(&["--ipv4"], "", No(FAMILY)),
        flag(&["--cacert"], "ca.pem", As("--cacert", same)),
        flag(&["--cert"], "client.pem", As("--cert", same)),
        flag(&["--key"], "key.pem", As("--key", same)),
        flag(&["--insecure"], "", INSECURE),
        flag(
            &["--connect-to"],
            "example.org:80:127.0.0.1:8080",
            As("--connect-to", same),
        ),
        flag(
            &["--no-color", "--disable-color"],
            "",
            Nothing("the summary has no colours"),
        ),
        flag(&["--unix-socket"], "/x", As("--unix", same)),
        flag(&["--vsock-addr"], "3:80", No("no such socket is spoken to")),
        flag(
            &["--stats-success-breakdown"],
            "",
            Nothing("`--json` has the statuses, and failures by kind"),
        ),
        flag(
            &["--db-url"],
            "x.db",
            No("`--trace FILE` has the times of each request as CSV"),
        ),
        flag(
            &["--debug"],
            "",
            By("`--debug 1`", |to, _| {
                to.only_shows = true;
                Ok(())
            }),
        ),
        flag(
            &["-o", "--output"],
            "x",
            No("`--json`, `--html` and others each take a file"),
        ),
        flag(
            &["--output-format"],
            "json",
            By("`--json -` for json", |to, value| match value {
                "json" => {
                    to.add("--json", Some("-".to_owned()));
                    Ok(())
                }
                "text" => Ok(()),
                "quiet" => Err("`2>/dev/null >/dev/null` of a shell does that".to_owned()),
                _ => {
                    Err("`--json FILE`, `--trace FILE` (CSV), `--html FILE` write such".to_owned())
                }
            }),
        ),
        flag(
            &["-u", "--time-unit"],
            "ms",
            Nothing("each figure has the unit that fits it"),
        ),
        flag(&["--worker-threads"], "2", THREADS),
        flag(&["-h", "--help"], "", No(HELP)),
        flag(&["-V", "--version"], "", No(VERSION)),
    ],
    finish: |to| {
        defaults(to, 50, Some(200), None);
        to.timeout.get_or_insert(Nanos::ZERO);
        if !to.http2 {
            // oha takes it, and does nothing with it.
            to.depth = None;
        }
        to.method.get_or_insert_with(get);
        to.sends(&[("Accept", "*/*"), ("User-Agent", "oha/1.16.0")]);
        if !to.no_compression {
            to.sends(&[("Accept-Encoding", "gzip, compress, deflate, br")]);
        }
        Ok(())
    },
    remark: "oha waits for an answer for ever unless told otherwise; the translation, an hour (`--timeout 1h`). It sends GET with a body, too, unless told otherwise. A redirect that it follows is a request of its own here; without -r it follows \
             none, which was otherwise in old versions",
};

const H2LOAD: Tool = Tool {
    name: "h2load",
    of: "h2load of nghttp2 1.52.0, with the flags that later versions have",
    subcommand: None,
    is_go: false,
    flags: &[
        flag(&["-n", "--requests"], "100", REQUESTS),
        flag(&["-c", "--clients"], "10", CONNECTIONS),
        flag(&["-t", "--threads"], "1", THREADS),
        flag(&["-i", "--input-file"], "uris.txt", REQUESTS_FILE),
        flag(
            &["-m", "--max-concurrent-streams"],
            "10",
            By(
                "`--streams N` with HTTP/2, else `--pipeline N`",
                |to, value| set(&mut to.depth, rate::count(value)),
            ),
        ),
        flag(&["-f", "--max-frame-size"], "16K", No(FRAMES)),
        flag(&["-w", "--window-bits"], "30", No(FRAMES)),
        flag(&["-W", "--connection-window-bits"], "30", No(FRAMES)),
        flag(
            &["-H", "--header"],
            "X-One: 1",
            By(
                "`-H HEADER`; `--method M` for `:method: M`",
                header_of_h2load,
            ),
        ),
        flag(&["--ciphers"], "x", No(CIPHERS)),
        flag(&["--tls13-ciphers"], "x", No(CIPHERS)),
        flag(
            &["-p", "--no-tls-proto"],
            "http/1.1",
            By("nothing for http/1.1, `--http2` for h2c", |to, value| {
                to.http1 = value == "http/1.1";
                Ok(())
            }),
        ),
        flag(&["-d", "--data"], "body.json", BODY_FILE),
        flag(
            &["-r", "--rate"],
            "10",
            No(
                "connections are opened at once, and again where they end; `-R` is a rate of requests",
            ),
        ),
        flag(&["--rate-period"], "1s", No("likewise")),
        flag(&["-D", "--duration"], "10s", DURATION),
        flag(&["--warm-up-time"], "2s", As("--warmup", length)),
        flag(
            &["-T", "--connection-active-timeout"],
            "10s",
            No(CONNECTION_TIME),
        ),
        flag(&["-N", "--connection-inactivity-timeout"], "10s", TIMEOUT),
        flag(
            &["--timing-script-file"],
            "x",
            No("`--requests-file` with `--replay` sends an access log at its times"),
        ),
        flag(
            &["-B", "--base-uri"],
            "http://127.0.0.1/",
            No("it is for a file of URIs"),
        ),
        flag(
            &["--npn-list"],
            "h2",
            By("`--http2` for h2, nothing for http/1.1", |to, value| {
                to.http1 = value.split(',').next() == Some("http/1.1");
                Ok(())
            }),
        ),
        flag(
            &["--h1"],
            "",
            By("nothing; without it `--http2`", |to, _| {
                to.http1 = true;
                Ok(())
            }),
        ),
        flag(&["--header-table-size"], "4K", No(FRAMES)),
        flag(&["--encoder-header-table-size"], "4K", No(FRAMES)),
        flag(&["--log-file"], "x.csv", As("--trace", same)),
        flag(&["--qlog-file-base"], "x", No(QUIC)),
        flag(
            &["--connect-to"],
            "127.0.0.1:8080",
            No("ours names both: `--connect-to HOST:PORT:HOST:PORT`"),
        ),
        flag(
            &["--rps"],
            "5",
            By(
                "`-R N`, over all connections: --rps times -c",
                |to, value| set(&mut to.rate_each, rate::parse(value)),
            ),
        ),
        flag(&["--groups"], "P-256", No(CIPHERS)),
        flag(&["--no-udp-gso"], "", No(QUIC)),
        flag(&["--max-udp-payload-size"], "1200", No(QUIC)),
        flag(&["--ktls"], "", No("TLS is spoken in the program")),
        flag(&["-v", "--verbose"], "", No(DEBUG)),
        flag(&["--version"], "", No(VERSION)),
        flag(&["-h", "--help"], "", No(HELP)),
    ],
    finish: |to| {
        defaults(to, 1, Some(1), None);
        to.threads.get_or_insert(1);
        to.timeout.get_or_insert(Nanos::ZERO);
        to.http2 = !to.http1;
        to.insecure = true;
        to.sends(&[("User-Agent", "h2load nghttp2/1.52.0")]);
        Ok(())
    },
    remark: "h2load speaks HTTP/2 unless told otherwise, accepts any certificate, and waits for ever; the translation, an hour. Over https it takes HTTP/1.1 where the server offers no \
             HTTP/2; the translation fails there, and needs `--h1`. A connection that ends without an answer it does not open again: the requests that it had left are failures",
};
