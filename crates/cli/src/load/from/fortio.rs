//! Fortio: a load at a rate unless told otherwise, by a client of its own, or by Go's with a few of the flags.

use prony_base::Nanos;
use prony_base::typed::rate;

use super::common::*;
use super::table::Counterpart::{As, By, No, Nothing};
use super::table::{Counterpart, Tool};
use super::translation::Translation;

const GRPC: Counterpart = No("gRPC is not spoken");
const OF_ITS_SERVER: Counterpart = No("it is of Fortio's servers; ours is `prony serve`");
const OF_ITS_LOG: Counterpart = Nothing("nothing is logged: failures are counted by kind");
const OF_ITS_HISTOGRAM: Counterpart = Nothing("percentiles are of a finer histogram, from 0");
const OF_ITS_RESULTS: Counterpart = Nothing("`--json FILE` writes what was measured");
const EVENLY: Counterpart =
    Nothing("`-R` spaces the requests of all connections evenly; see `--arrival poisson`");
const OF_ITS_CURL: Counterpart = No("it is of `fortio curl`");

/// Go's client is used in place of Fortio's own.
fn with_go(to: &mut Translation, value: &str) {
    to.is_go_client |= is_set(value);
}

pub const FORTIO: Tool = Tool {
    name: "fortio",
    of: "`fortio load` of Fortio 1.75.3",
    subcommand: Some("load"),
    is_go: true,
    flags: &[
        flag(&["-c"], "4", CONNECTIONS),
        flag(
            &["-qps"],
            "8",
            By("`-R N`; 0 and less are a closed loop", |to, value| {
                let no_limit = value == "0" || value.starts_with('-');
                set(
                    &mut to.rate,
                    if no_limit {
                        Ok(0.0)
                    } else {
                        rate::parse(value)
                    },
                )
            }),
        ),
        flag(&["-t"], "5s", DURATION),
        flag(
            &["-n"],
            "200",
            By("`-n N`, in place of `-d`; 0 is none", |to, value| {
                let requests = rate::count(value)?;
                to.requests = (requests > 0).then_some(requests);
                Ok(())
            }),
        ),
        flag(
            &["-calc-qps"],
            "",
            By("`-R N`: -n over -t", |to, value| {
                to.rate_is_of_all = is_set(value);
                Ok(())
            }),
        ),
        flag(&["-uniform", "-jitter"], "", EVENLY),
        flag(
            &["-nocatchup"],
            "",
            No(
                "a request that is late is sent, and its latency counts from when it was due; `--queue N` drops what waits beyond N",
            ),
        ),
        flag(
            &["-sequential-warmup"],
            "",
            Nothing("there are no requests before the first"),
        ),
        flag(
            &["-allow-initial-errors"],
            "",
            Nothing("a failed request never ends the run"),
        ),
        flag(
            &["-abort-on"],
            "503",
            No("`--stop-on 'errors > 1%'` ends the run early"),
        ),
        flag(
            &["-H"],
            "X-One: 1",
            By("`-H HEADER`; nothing for an empty `User-Agent:`", header),
        ),
        flag(&["-X"], "PUT", METHOD),
        flag(&["-content-type"], "text/plain", CONTENT_TYPE_FIRST),
        flag(&["-payload"], "text", BODY),
        flag(&["-payload-file"], "body.json", BODY_FILE),
        flag(
            &["-payload-size"],
            "1000",
            No("`head -c N /dev/urandom >FILE` of a shell, and `--body-file FILE`"),
        ),
        flag(&["-stream"], "", OF_ITS_CURL),
        flag(
            &["-user"],
            "user:password",
            By(BASIC_WORDS, |to, value| match value.contains(':') {
                true => basic(to, value),
                false => Err("it is user:password, and not sent otherwise".to_owned()),
            }),
        ),
        flag(&["-timeout"], "3s", TIMEOUT),
        flag(&["-keepalive"], "", KEEP_ALIVE),
        flag(
            &["-halfclose"],
            "",
            Nothing("a connection is ended once its answer has come"),
        ),
        flag(
            &["-connection-reuse"],
            "20",
            By("`--requests-per-connection N`", |to, value| {
                let (least, most) = value.split_once(':').unwrap_or((value, value));
                if least != most {
                    return Err("here it is one number for all connections".to_owned());
                }
                let each = rate::count(least)?;
                if each > 0 {
                    to.add("--requests-per-connection", Some(each.to_string()));
                }
                Ok(())
            }),
        ),
        flag(
            &["-http1.0"],
            "",
            By("`--http1.0 --no-keepalive`", |to, value| {
                to.http1_0 = is_set(value);
                Ok(())
            }),
        ),
        flag(
            &["-h2"],
            "",
            By("`--http2`", |to, value| {
                with_go(to, value);
                to.http2 = is_set(value);
                Ok(())
            }),
        ),
        flag(
            &["-stdclient"],
            "",
            By("nothing: there is one client", |to, value| {
                with_go(to, value);
                Ok(())
            }),
        ),
        flag(
            &["-L"],
            "",
            By("`--follow=10`", |to, value| {
                with_go(to, value);
                to.follow = is_set(value).then_some(10);
                Ok(())
            }),
        ),
        flag(
            &["-compression"],
            "",
            By(
                "`-H 'Accept-Encoding: gzip'`, which `-stdclient`, `-h2` and `-L` send",
                |to, value| {
                    to.asks_for_compressed = is_set(value);
                    Ok(())
                },
            ),
        ),
        flag(
            &["-httpbufferkb"],
            "128",
            Nothing("an answer may have any size"),
        ),
        flag(
            &["-httpccch"],
            "",
            Nothing("what an answer says of its connection is always heeded"),
        ),
        flag(
            &["-resolve"],
            "127.0.0.1",
            By("`--resolve HOST:PORT:ADDR`", |to, value| {
                to.address = Some(value.to_owned());
                Ok(())
            }),
        ),
        flag(&["-resolve-ip-type"], "ip4", No(FAMILY)),
        flag(
            &["-dns-method"],
            "rr",
            Nothing("names are looked up once, before the run"),
        ),
        flag(&["-no-reresolve"], "", Nothing("likewise")),
        flag(&["-unix-socket"], "/x", As("--unix", same)),
        flag(&["-k", "-https-insecure"], "", INSECURE),
        flag(&["-cacert"], "ca.pem", As("--cacert", same)),
        flag(&["-cert"], "client.pem", As("--cert", same)),
        flag(&["-key"], "key.pem", As("--key", same)),
        flag(&["-gomaxprocs"], "2", THREADS),
        flag(&["-json"], "x.json", As("--json", same)),
        flag(
            &["-p"],
            "50,99",
            Nothing("the usual ones are printed; `--hgrm FILE` has all"),
        ),
        flag(&["-r", "-offset"], "0.001", OF_ITS_HISTOGRAM),
        flag(&["-data-dir", "-labels", "-runid"], ".", OF_ITS_RESULTS),
        flag(&["-a"], "", OF_ITS_RESULTS),
        flag(
            &["-access-log-file"],
            "x.log",
            No("`--trace FILE` has the times of each request as CSV"),
        ),
        flag(&["-access-log-format"], "json", No("likewise")),
        flag(
            &["-curl"],
            "",
            By("`--debug 1`", |to, value| {
                to.only_shows = is_set(value);
                Ok(())
            }),
        ),
        flag(&["-curl-stdout-headers"], "", OF_ITS_CURL),
        flag(&["-loglevel"], "Info", OF_ITS_LOG),
        flag(
            &[
                "-log-errors",
                "-quiet",
                "-logger-file-line",
                "-logger-force-color",
                "-logger-goroutine",
                "-logger-json",
                "-logger-no-color",
                "-logger-timestamp",
            ],
            "",
            OF_ITS_LOG,
        ),
        flag(
            &[
                "-grpc-max-streams",
                "-grpc-method",
                "-grpc-ping-delay",
                "-grpc-port",
                "-healthservice",
                "-s",
            ],
            "1",
            GRPC,
        ),
        flag(
            &["-grpc", "-grpc-compression", "-health", "-ping"],
            "",
            GRPC,
        ),
        flag(
            &[
                "-maxpayloadsizekb",
                "-M",
                "-P",
                "-base-url",
                "-config-dir",
                "-config-port",
                "-echo-debug-path",
                "-echo-server-default-params",
                "-http-port",
                "-max-echo-delay",
                "-redirect-port",
                "-server-idle-timeout",
                "-static-dir",
                "-sync",
                "-sync-interval",
                "-tcp-port",
                "-ui-path",
                "-udp-port",
            ],
            "256",
            OF_ITS_SERVER,
        ),
        flag(
            &[
                "-mtls",
                "-multi-mirror-origin",
                "-multi-serial-mode",
                "-proxy-all-headers",
                "-udp-async",
            ],
            "",
            OF_ITS_SERVER,
        ),
        flag(&["-udp-timeout"], "750ms", No("HTTP is what is sent")),
        flag(&["-nc-dont-stop-on-eof"], "", No("it is of `fortio nc`")),
        flag(&["-init"], "x", No("it is of `fortio script`")),
        flag(&["-pprof"], "", No("it is for who works on Fortio")),
        flag(&["-profile"], "x", No("it is for who works on Fortio")),
        flag(&["-h", "-help"], "", No(HELP)),
    ],
    finish,
    remark: "Fortio sends 8 requests a second on four connections for 5 s unless told otherwise, and lowers the connections to half the requests: all is translated. Its latency counts from when \
             a request was sent, ours at a rate from when it was due: `--latency-from submitted` is as there. Before a run of a length it sends one request on each connection, which stands in none of its figures and is not sent here; it ends \
             where that fails. Its last request is due at the end, ours one gap before it. Its own client opens a connection again after an answer other than 200, and sends no `Host` with `-http1.0`: here it is the same connection, and there is one. \
             `{uuid}` in URL and payload is a new UUID in each request, as it is here; a file is sent as it is. `fortio curl` is `--debug 1`",
};

/// The type of `-content-type` stands above that of `-H`.
const CONTENT_TYPE_FIRST: Counterpart = By("`-H 'Content-Type: …'`", |to, value| {
    to.content_type_first = (!value.is_empty()).then(|| value.to_owned());
    Ok(())
});

/// One header: several of a name are all sent, but of those which Fortio itself sends.
fn header(to: &mut Translation, value: &str) -> Result<(), String> {
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

fn finish(to: &mut Translation) -> Result<(), String> {
    if let Some(url) = to.urls.first().filter(|url| url.contains("://"))
        && !url.starts_with("http://")
        && !url.starts_with("https://")
    {
        return Err(format!("HTTP is what is sent, and not `{url}`"));
    }
    count(to)?;
    to.timeout = to.timeout.filter(|timeout| *timeout > Nanos::ZERO);
    to.timeout.get_or_insert(Nanos::from_secs(3));
    if to.is_go_client {
        to.http1_0 = false;
    } else if to.http1_0 {
        to.keep_alive = Some(false);
    }
    to.content_type = to.content_type_first.take().or(to.content_type.take());
    if to.has_body {
        to.content_type
            .get_or_insert("application/octet-stream".to_owned());
    }
    if to.content_type.is_some() {
        to.method.get_or_insert("POST".to_owned());
    }
    to.sends(&[("User-Agent", "fortio.org/fortio-1.75.3")]);
    to.drop_empty("User-Agent");
    if to.asks_for_compressed && to.is_go_client {
        compressed_of_go(to);
    }
    to.resolve_to_address();
    Ok(())
}

/// How many, over how many connections, how long and how often.
fn count(to: &mut Translation) -> Result<(), String> {
    let length = to.duration.unwrap_or(Nanos::from_secs(5));
    if to.rate_is_of_all {
        match to.requests {
            Some(requests) if length > Nanos::ZERO => {
                to.rate = Some(requests as f64 / length.as_secs_f64());
            }
            _ => return Err("it wants -n and -t with -calc-qps".to_owned()),
        }
    }
    to.rate = match to.rate {
        None => Some(8.0),
        Some(0.0) => None,
        given => given,
    };
    to.duration = match to.requests {
        Some(_) => None,
        None if length == Nanos::ZERO => {
            return Err("with -t 0 Fortio never ends: give a length".to_owned());
        }
        None => Some(length),
    };
    let mut connections = to.connections.filter(|&count| count > 0).unwrap_or(4);
    if let Some(rate) = to.rate {
        let all = to.requests.unwrap_or((rate * length.as_secs_f64()) as u64);
        connections = connections.min((all / 2).max(1));
    }
    to.connections = Some(connections);
    Ok(())
}
