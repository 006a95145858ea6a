//! The flags of curl that describe a request.

use prony_base::Nanos;

use super::common::*;
use super::table::Counterpart::{As, By, No, Nothing};
use super::table::Tool;

pub const CURL: Tool = Tool {
    name: "curl",
    of: "curl 7.88.1, and what browsers copy as such",
    subcommand: None,
    is_go: false,
    flags: &[
        flag(&["-X", "--request"], "PUT", METHOD),
        flag(&["-H", "--header"], "X-One: 1", HEADER),
        flag(
            &["-d", "--data", "--data-ascii"],
            "a=b",
            By("`--body TEXT`, or `--body-file FILE` for `@FILE`", form),
        ),
        flag(
            &["--data-raw"],
            "a=b",
            By("`--body TEXT`", |to, value| {
                to.content_type.get_or_insert(FORM.to_owned());
                to.body("--body", value)
            }),
        ),
        flag(
            &["--data-binary"],
            "@file",
            By("`--body TEXT`, or `--body-file FILE` for `@FILE`", form),
        ),
        flag(
            &["--json"],
            "{\"a\":1}",
            By("`--body TEXT` with its type", |to, value| {
                to.content_type = Some("application/json".to_owned());
                to.header("Accept: application/json")?;
                form(to, value)
            }),
        ),
        flag(&["-A", "--user-agent"], "me/1.0", USER_AGENT),
        flag(
            &["-e", "--referer"],
            "http://x/",
            By("`-H 'Referer: …'`", |to, value| {
                to.header(&format!("Referer: {value}"))
            }),
        ),
        flag(
            &["-b", "--cookie"],
            "a=b",
            By("`-H 'Cookie: …'`", |to, value| {
                match value.contains('=') {
                    true => to.header(&format!("Cookie: {value}")),
                    false => Err("a file of cookies is not read".to_owned()),
                }
            }),
        ),
        flag(&["-u", "--user"], "user:password", BASIC),
        flag(
            &["-I", "--head"],
            "",
            By("`--method HEAD`", |to, _| {
                to.method = Some("HEAD".to_owned());
                Ok(())
            }),
        ),
        flag(&["-k", "--insecure"], "", INSECURE),
        flag(&["--cacert"], "ca.pem", As("--cacert", same)),
        flag(&["-E", "--cert"], "client.pem", As("--cert", same)),
        flag(&["--key"], "key.pem", As("--key", same)),
        flag(
            &["--tlsv1.2"],
            "",
            Nothing("1.2 is the oldest that is spoken here"),
        ),
        flag(
            &["--tlsv1.3"],
            "",
            By("`--tls-version 1.3`", |to, _| {
                to.add("--tls-version", Some("1.3".to_owned()));
                Ok(())
            }),
        ),
        flag(&["--http1.1"], "", Nothing("HTTP/1.1 is the default")),
        flag(&["--http2", "--http2-prior-knowledge"], "", HTTP2),
        flag(
            &["--resolve"],
            "example.org:80:127.0.0.1",
            As("--resolve", same),
        ),
        flag(
            &["--connect-to"],
            "example.org:80:127.0.0.1:8080",
            As("--connect-to", same),
        ),
        flag(&["--interface"], "127.0.0.1", As("--source", same)),
        flag(&["-m", "--max-time"], "5", TIMEOUT),
        flag(
            &["--connect-timeout"],
            "5",
            Nothing("`--timeout` bounds connecting, too"),
        ),
        flag(
            &["--compressed"],
            "",
            By("`--compressed`", |to, _| {
                to.add("--compressed", None);
                Ok(())
            }),
        ),
        flag(
            &["--url"],
            "http://127.0.0.1:8080/",
            By("the URL", |to, value| {
                to.urls.push(value.to_owned());
                Ok(())
            }),
        ),
        flag(
            &["-L", "--location"],
            "",
            By("`--follow=50`, curl's limit", |to, _| {
                to.follow.get_or_insert(50);
                Ok(())
            }),
        ),
        flag(
            &["--max-redirs"],
            "5",
            By("the number of `--follow`", |to, value| {
                to.redirects_max = Some(value.to_owned());
                Ok(())
            }),
        ),
        flag(
            &["-F", "--form"],
            "a=b",
            No("a form of several parts is not made here; `--body-file` sends one that was"),
        ),
        flag(
            &["-T", "--upload-file"],
            "x",
            By("`--method PUT --body-file FILE`", |to, value| {
                to.method = Some("PUT".to_owned());
                to.body("--body-file", value)
            }),
        ),
        flag(&["-x", "--proxy"], "proxy:3128", PROXY),
        flag(&["--unix-socket"], "/x", As("--unix", same)),
        flag(&["-G", "--get"], "", No("write the query into the URL")),
        flag(&["-o", "--output"], "x", Nothing("bodies are not kept")),
        flag(&["-O", "--remote-name"], "", Nothing("likewise")),
        flag(
            &["-s", "--silent"],
            "",
            Nothing("progress is shown on a terminal only"),
        ),
        flag(
            &["-S", "--show-error"],
            "",
            Nothing("errors are always printed"),
        ),
        flag(
            &["-f", "--fail"],
            "",
            Nothing("an unexpected status always is a failure"),
        ),
        flag(&["-i", "--include"], "", Nothing("answers are not printed")),
        flag(&["-v", "--verbose"], "", No(DEBUG)),
        flag(&["-V", "--version"], "", No(VERSION)),
        flag(&["-h", "--help"], "", No(HELP)),
    ],
    finish: |to| {
        if let Some(max) = to.redirects_max.take().filter(|_| to.follow.is_some()) {
            match max.as_str() {
                "-1" => follow(to, "100")?,
                "0" => {
                    return Err(
                        "with --max-redirs 0 a redirect is an error: `--expect-status 2xx` says so"
                            .to_owned(),
                    );
                }
                max => follow(to, max)?,
            }
        }
        to.sends(&[("User-Agent", "curl/7.88.1"), ("Accept", "*/*")]);
        to.drop_empty_headers();
        to.connections.get_or_insert(10);
        to.timeout.get_or_insert(Nanos::from_secs(10));
        Ok(())
    },
    remark: "One request becomes the load of it, with 10 connections for 10 s; flags of ours that follow say otherwise. The table has what describes a request; other flags of curl are \
             errors that name them",
};
