//! Tools whose users are described in a script: k6 and Locust. Their commands cannot be translated without the script, and their flags have
//! counterparts beside `--scenario`.

use super::common::*;
use super::table::Counterpart::{By, Is, No, Nothing};
use super::table::{Counterpart, Tool};
use super::translation::Translation;

/// These tools, in the order of the documentation.
pub const SCRIPTED: &[Tool] = &[K6, LOCUST];

/// Why no command of theirs is translated.
pub const IN_A_SCRIPT: &str = "what its users do is in a script, which is not translated: `prony docs scenarios` has the same users as a script of it and as \
     a file for --scenario";

/// Words of ours that stand for a flag; no command is translated by them.
const fn ours(words: &'static str) -> Counterpart {
    By(words, |_: &mut Translation, _| Err(IN_A_SCRIPT.to_owned()))
}

const LOCAL: &str = "a run is one process, with as many threads as `-t` says";
const WEB: &str = "there is no page in a browser while it runs; `--live` follows it in the terminal, and `--html FILE` writes a page";
const SELECT: &str = "a file has the steps that are done: write another one";
const LABELS: &str = "figures have no labels but the steps' names";

const K6: Tool = Tool {
    name: "k6",
    of: "k6 1.8.1, the flags of `k6 run` that are about load",
    subcommand: Some("run"),
    is_go: false,
    flags: &[
        flag(&["-u", "--vus"], "10", ours("`-c N`")),
        flag(&["-d", "--duration"], "30s", ours("`-d T`")),
        flag(
            &["-i", "--iterations"],
            "100",
            ours(
                "`-n N` with `--scenario`, where it counts iterations; one of `-n` and `-d` is enough",
            ),
        ),
        flag(
            &["-s", "--stage"],
            "10s:100",
            ours("`--stages TIME:RATE,…`, of users that arrive, not of users that are there"),
        ),
        flag(
            &["--rps"],
            "100",
            No(
                "it would slow users down, whose latencies then hide it: `-R N` lets users arrive at a rate, with latency from then on",
            ),
        ),
        flag(
            &["--max-redirects"],
            "5",
            ours("`--follow=N`; k6 follows 10 unless told otherwise, ours none"),
        ),
        flag(
            &["--batch", "--batch-per-host"],
            "5",
            No("a user has one request outstanding"),
        ),
        flag(
            &["--user-agent"],
            "me/1.0",
            ours("`-H 'User-Agent: …'`, or `headers` in the file"),
        ),
        flag(&["--insecure-skip-tls-verify"], "", Is("--insecure")),
        flag(&["--no-connection-reuse"], "", Is("--no-keepalive")),
        flag(&["--no-vu-connection-reuse"], "", No(CONNECTION_TIME)),
        flag(
            &["--min-iteration-duration"],
            "1s",
            ours("`think` in a step"),
        ),
        flag(
            &["-e", "--env"],
            "A=b",
            ours("`{env:NAME}` in the file, and the environment"),
        ),
        flag(&["--summary-export"], "FILE", ours("`--json FILE`")),
        flag(
            &[
                "--summary-trend-stats",
                "--summary-time-unit",
                "--summary-mode",
            ],
            "x",
            No("`--json FILE` has them all"),
        ),
        flag(
            &["-o", "--out"],
            "json=x",
            ours("`--json-lines FILE`, `--metrics ADDR`, `--hdr-log FILE`, `--html FILE`"),
        ),
        flag(
            &["--no-thresholds"],
            "",
            Nothing("only what `--require` says is required"),
        ),
        flag(&["--tag", "--system-tags"], "a=b", No(LABELS)),
        flag(&["--local-ips"], "10.0.0.1", ours("`--source ADDR`")),
        flag(&["--dns"], "ttl=1m", No(FAMILY)),
        flag(
            &["--discard-response-bodies"],
            "",
            Nothing("a body is held only for a check or a value that needs it"),
        ),
        flag(
            &["--http-debug"],
            "full",
            ours(
                "`--debug N` shows exchanges whole, without a scenario; `--keep-failed DIR` keeps answers that failed",
            ),
        ),
        flag(
            &["--no-setup", "--no-teardown"],
            "",
            Nothing(
                "there is neither; a step with `once = true` is done in a user's first iteration only",
            ),
        ),
        flag(
            &["--execution-segment", "--execution-segment-sequence"],
            "1/2",
            No(LOCAL),
        ),
        flag(
            &["-q", "--quiet"],
            "",
            Nothing("nothing is printed while it runs where standard error is no terminal"),
        ),
    ],
    finish: |_| Err(IN_A_SCRIPT.to_owned()),
    remark: "k6 begins each iteration with no cookies, as a scenario here does; its durations of iterations have the last sleep in them, ours end with the last answer",
};

const LOCUST: Tool = Tool {
    name: "locust",
    of: "Locust 2.47.0, the flags that are about load",
    subcommand: None,
    is_go: false,
    flags: &[
        flag(&["-f", "--locustfile"], "FILE", ours("`--scenario FILE`")),
        flag(
            &["-H", "--host"],
            "http://a",
            ours("the URL, or `url` in the file"),
        ),
        flag(&["-u", "--users"], "10", ours("`-c N`")),
        flag(
            &["-r", "--spawn-rate"],
            "2",
            Nothing(
                "users are there from the start; `-R N` lets users arrive at a rate instead, and `--stages` at one that changes",
            ),
        ),
        flag(&["-t", "--run-time"], "30s", ours("`-d T`")),
        flag(
            &["-s", "--stop-timeout"],
            "5",
            Nothing(
                "requests that are outstanding are waited for, up to `--timeout`; then no step is sent any more",
            ),
        ),
        flag(
            &["--headless", "--autostart", "--only-summary"],
            "",
            Nothing("it is always so"),
        ),
        flag(&["--autoquit"], "5", Nothing("it ends with the run")),
        flag(
            &[
                "--web-host",
                "--web-port",
                "--web-login",
                "--web-base-path",
                "-P",
            ],
            "x",
            No(WEB),
        ),
        flag(
            &["--csv", "--csv-full-history"],
            "x",
            ours("`--json-lines FILE`: a line a second; `--trace FILE` has each request as CSV"),
        ),
        flag(&["--html"], "FILE", ours("`--html FILE`")),
        flag(
            &["--json", "--json-file"],
            "",
            ours("`--json FILE`, or `--json -`"),
        ),
        flag(&["--print-stats"], "", ours("`--live`")),
        flag(
            &["--reset-stats"],
            "",
            ours("`--warmup T`: a part of the run that is in no figure"),
        ),
        flag(
            &[
                "--processes",
                "--master",
                "--worker",
                "--master-host",
                "--expect-workers",
            ],
            "2",
            No(LOCAL),
        ),
        flag(
            &[
                "-T",
                "--tags",
                "-E",
                "--exclude-tags",
                "--class-picker",
                "-l",
                "--list",
            ],
            "a",
            No(SELECT),
        ),
        flag(&["--equal-weights"], "", No("`weight` in the file says it")),
        flag(
            &["--exit-code-on-error"],
            "1",
            ours("`--allow-failures` for 0; otherwise a failed request makes it 1"),
        ),
        flag(
            &["-L", "--loglevel", "--logfile", "--skip-log-setup"],
            "x",
            Nothing("there is no log"),
        ),
    ],
    finish: |_| Err(IN_A_SCRIPT.to_owned()),
    remark: "Locust's users keep their cookies for as long as they live: a step with `once = true` (its `on_start`) has that effect here. It follows redirects, and shows percentiles \
             rounded to two digits",
};
