//! The tables of docs/coming-from.md.

use super::table::{Counterpart, Flag};

/// What a flag is here, in Markdown.
pub fn here(flag: &Flag) -> String {
    match &flag.means {
        Counterpart::As(ours, _) => format!("`{ours} {}`", value(flag)),
        Counterpart::Is(ours) => format!("`{ours}`"),
        Counterpart::By(words, _) => (*words).to_owned(),
        Counterpart::Nothing(why) => format!("nothing to do: {why}"),
        Counterpart::No(why) => format!("not wanted: {why}"),
    }
}

/// What a flag's value is called.
fn value(flag: &Flag) -> &'static str {
    match flag.means {
        Counterpart::As("-H", _) => "HEADER",
        Counterpart::As(
            "--cacert" | "--cert" | "--key" | "--body-file" | "--html" | "--json" | "--trace",
            _,
        ) => "FILE",
        Counterpart::As("--unix", _) => "PATH",
        Counterpart::As("--body", _) => "TEXT",
        Counterpart::As("--timeout" | "-d" | "--warmup", _) => "T",
        Counterpart::As("--source" | "--metrics" | "--connect-to" | "--resolve", _) => "ADDR",
        _ => "N",
    }
}

/// The whole page.
#[cfg(test)]
pub fn page() -> String {
    use std::fmt::Write as _;

    let mut text = HEAD.to_owned();
    // Writing to a string cannot fail.
    for tool in super::tools::TOOLS.iter().chain(super::scripted::SCRIPTED) {
        let _ = write!(text, "\n## {}\n\n{}.", tool.name, tool.of);
        if !tool.remark.is_empty() {
            let _ = write!(text, " {}.", tool.remark);
        }
        let _ = writeln!(text, "\n\n| {} | prony load |\n|---|---|", tool.name);
        for flag in tool.flags {
            let names: Vec<String> = flag.names.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(
                text,
                "| {} | {} |",
                names.join(", "),
                here(flag).replace('|', "\\|")
            );
        }
    }
    text
}

#[cfg(test)]
const HEAD: &str = "# Coming from another load generator

<!-- Generated from crates/cli/src/load/from/tools.rs: INSTA_UPDATE=always cargo test -p prony-cli --lib load::from -->

`prony load --from` takes a command of another tool, prints ours, and runs it:

```sh
prony load --from 'wrk -t4 -c100 -d30s http://127.0.0.1:8080/hello'
prony load --from 'hey -z 10s -c 50 -q 20 http://127.0.0.1:8080/hello' --json report.json
prony load --from \"echo 'GET http://127.0.0.1:8080/hello' | vegeta attack -rate=200 -duration=10s | vegeta report\"
```

Flags of ours may follow. A status other than 2xx and 3xx makes the exit code 1 here, but for `--expect-status`; most of the others end with 0 whatever came. A flag that has no counterpart is an error that names it. What a tool does where no flag says otherwise is translated, too: its number of connections and
requests, its time-out, whether it keeps connections, and the headers that it sends by itself (what stands in `-H` of the translation, and was in no flag). [coming-from-wrk.md](coming-from-wrk.md) says in which figures wrk, wrk2 and this generator differ, and why.

The same flag often means different things. `prony load` takes the spellings of others where they do not contradict its own; where one is not taken, the error says what it is here:

```text
$ prony load -m POST http://127.0.0.1:8080/hello
error: unexpected argument '-m' found
…
prony: `-m` of hey, ab, oha: --method M; of h2load: --streams N with HTTP/2, else --pipeline N
```

The tables have every flag of each tool's `--help`; of curl's, those that describe a request. Each was held against the version that it names: against its `--help`, and by what it sent to a
listener beside what the translation of the same command sent (method, path, headers, body, number of requests and connections, redirects, failures). A test does that again with ab, h2load,
curl and wrk, and keeps what hey, oha, vegeta, Fortio and wrk2 sent. Not sent are `X-Vegeta-Seq` of vegeta and the `Referer` of Go's redirects. k6 and Locust run scripts, which are not translated: their tables are for `--scenario`, and
[scenarios.md](scenarios.md#coming-from-k6) has the same users in all three.
";
