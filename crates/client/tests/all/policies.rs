//! What surrounds a request, all the way: redirects and what goes along, loops, codings,
//! cookies, forms, retries. Each in simulated worlds and on both real drivers.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use prony_base::Nanos;
use prony_client::cookies::CookieJar;
use prony_client::decode::DecodeSettings;
use prony_client::multipart::Form;
use prony_client::redirect::RedirectPolicy;
use prony_client::retry::RetryPolicy;
use prony_client::{Client, Error, RequestPhase, Settings};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, ListenOptions, Stream};
use prony_http::Method;

use crate::policy::{UNIX_SECONDS, everywhere, get, long_text};

fn adds_up(client: &Client) {
    let counts = client.counts();
    let ended = counts.answered + counts.failed + counts.cancelled;
    assert_eq!(counts.started, ended + counts.in_flight, "{counts:?}");
    assert_eq!(counts.in_flight, 0, "{counts:?}");
}

/// Phase, kind and what is said of a failure.
fn told(error: &Error) -> (RequestPhase, &'static str, String) {
    (error.phase(), error.kind().name(), error.to_string())
}

#[test]
fn a_chain_is_followed_over_one_connection() {
    everywhere(
        |_| {},
        async |place, client| {
            let answer = client
                .get(&place.url("a.test", "/hops/10#part"))
                .send()
                .await;
            let answer = answer.expect("ten are allowed");
            assert_eq!(answer.url(), place.url("a.test", "/hops/0#part"));
            assert_eq!(answer.text().await.expect("a body"), "there");
            assert_eq!(place.seen().len(), 11);
            let counts = client.counts();
            assert_eq!(
                (counts.started, counts.answered, counts.redirected),
                (1, 1, 10)
            );
            assert_eq!((counts.exchanges, counts.connected), (11, 1));
            adds_up(&client);
        },
    );
}

#[test]
fn too_many_loops_and_locations_that_are_none_are_errors_by_name() {
    everywhere(
        |_| {},
        async |place, client| {
            let error = async |path: &str| {
                let error = get(&client, &place.url("a.test", path)).await.unwrap_err();
                assert_eq!(error.phase(), RequestPhase::Redirect, "{error}");
                assert!(error.remote_addr().is_some());
                (error.kind().name(), error.to_string())
            };
            let (name, said) = error("/hops/11").await;
            assert_eq!(name, "too_many_redirects");
            assert!(said.contains("more than 10 redirects in a row: "), "{said}");
            assert_eq!(said.matches(" -> ").count(), 11, "{said}");
            let (name, said) = error("/loop/aaaa").await;
            assert_eq!(name, "redirect_loop");
            assert!(said.contains("redirects in a loop: "), "{said}");
            for (path, part) in [
                ("/to?302,", "redirects without a Location"),
                ("/to?302,http://[::1", "is no URL"),
                ("/to?307,ftp://a/", "of the scheme ftp"),
            ] {
                let (name, said) = error(path).await;
                assert_eq!(name, "bad_location");
                assert!(said.contains(part), "{said}");
            }
            // The policy of one request.
            let request = client.get(&place.url("a.test", "/hops/2"));
            let answer = request.redirects(RedirectPolicy::None).send().await;
            assert_eq!(answer.expect("it is the answer").status(), 302);
            let away = place.url("a.test", &format!("/to?302,{}", place.url("b.test", "/")));
            let stay = RedirectPolicy::SameHost { hops_max: 10 };
            let answer = client.get(&away).redirects(stay).send().await;
            let (_, name, said) = told(&answer.unwrap_err());
            assert_eq!(name, "redirect_to_other_host", "{said}");
            adds_up(&client);
        },
    );
}

#[test]
fn credentials_and_cookies_stay_with_their_host() {
    everywhere(
        |settings| settings.cookies = Some(CookieJar::default()),
        async |place, client| {
            let away = |host: &str| format!("/to?302,{}", place.url(host, "/end"));
            let ask = async |path: &str| {
                let request = client.get(&place.url("a.test", path));
                let request = request.header("cookie", "own=1").bearer_auth("secret");
                request.send().await.expect("an answer");
                place.seen()
            };
            let line = |host: &str, path: &str, auth: &str, cookie: &str| {
                format!("GET {host} {path} auth={auth} cookie={cookie} type=- body=0")
            };
            let first = line("a.test", &away("a.test"), "Bearer secret", "own=1");
            let kept = line("a.test", "/end", "Bearer secret", "own=1");
            assert_eq!(ask(&away("a.test")).await, [first, kept]);
            let gone = line("b.test", "/end", "-", "-");
            assert_eq!(ask(&away("b.test")).await[1], gone);

            // Those of a URL, too.
            let of_url = async |host: &str| {
                let url = place
                    .url("a.test", &away(host))
                    .replacen("//", "//me:pw@", 1);
                get(&client, &url).await.expect("an answer");
                place.seen()
            };
            let seen = of_url("a.test").await;
            assert!(
                seen.iter().all(|line| line.contains("auth=Basic bWU6cHc=")),
                "{seen:?}"
            );
            let seen = of_url("b.test").await;
            assert!(
                seen[0].contains("auth=Basic ") && seen[1].contains("auth=- "),
                "{seen:?}"
            );
        },
    );
}

#[test]
fn methods_and_bodies_follow_the_rules() {
    everywhere(
        |_| {},
        async |place, client| {
            let ask = async |status: u16| {
                let request = client.post(&place.url("a.test", &format!("/to?{status},/end")));
                let request = request.header("content-type", "text/plain").body("four");
                request.send().await.expect("an answer");
                place.seen().pop().expect("it was asked")
            };
            for status in [301, 302, 303] {
                let end = "GET a.test /end auth=- cookie=- type=- body=0";
                assert_eq!(ask(status).await, end, "{status}");
            }
            for status in [307, 308] {
                let end = "POST a.test /end auth=- cookie=- type=text/plain body=4";
                assert_eq!(ask(status).await, end, "{status}");
            }
            // A form is read anew; pieces of an iterator are gone.
            let url = place.url("a.test", "/to?307,/end");
            let form = || Form::new().text("a", "b".repeat(100_000));
            client
                .post(&url)
                .multipart(form())
                .send()
                .await
                .expect("an answer");
            let seen = place.seen();
            let body = |line: &str| line.rsplit('=').next().map(str::to_owned);
            assert_eq!(body(&seen[0]), body(&seen[1]));
            assert!(seen[1].contains("type=multipart/form-data "), "{seen:?}");
            let once = || [Ok(b"once".to_vec())].into_iter();
            let error = client.post(&url).body_stream(once(), None).send().await;
            let (phase, name, said) = told(&error.unwrap_err());
            assert_eq!(
                (phase, name),
                (RequestPhase::Redirect, "body_spent"),
                "{said}"
            );
            let see_other = place.url("a.test", "/to?303,/end");
            let answer = client
                .post(&see_other)
                .body_stream(once(), None)
                .send()
                .await;
            assert_eq!(answer.expect("no body is needed").status(), 200);
        },
    );
}

#[test]
fn codings_are_asked_for_and_taken_off() {
    everywhere(
        |settings| settings.decode = DecodeSettings::all(),
        async |place, client| {
            let text = long_text();
            for codings in [
                "gzip",
                "deflate",
                "br",
                "zstd",
                "gzip,br",
                "zstd,deflate,gzip",
            ] {
                let url = place.url("a.test", &format!("/coded/{codings}"));
                let (status, body) = get(&client, &url).await.expect(codings);
                assert!(status == 200 && body == text, "{codings}");
            }
            assert_eq!(client.counts().connected, 1);
            let (_, empty) = get(&client, &place.url("a.test", "/spoilt/empty"))
                .await
                .unwrap();
            assert_eq!(empty, b"");
            // Whoever asks by himself gets what was sent.
            let url = place.url("a.test", "/coded/gzip");
            let own = client.get(&url).header("Accept-Encoding", "gzip");
            let raw = own
                .send()
                .await
                .expect("an answer")
                .bytes()
                .await
                .expect("a body");
            assert_eq!(raw[..2], [0x1f, 0x8b]);
            adds_up(&client);
        },
    );
}

#[test]
fn bodies_that_are_not_in_their_coding_are_errors_by_name() {
    everywhere(
        |settings| {
            settings.decode = DecodeSettings {
                ratio_max: 200,
                ratio_free_bytes: 1 << 20,
                ..DecodeSettings::all()
            };
        },
        async |place, client| {
            for (path, name, part) in [
                (
                    "cut",
                    "coding_cut_off",
                    "ended in the middle of its gzip coding",
                ),
                (
                    "garbage",
                    "bad_coding",
                    "the body is not in gzip as its header says",
                ),
                (
                    "trailing",
                    "coding_overrun",
                    "bytes that are no gzip follow",
                ),
                (
                    "bomb",
                    "decoded_too_long",
                    "more than ratio_max = 200 times",
                ),
                (
                    "unknown",
                    "unknown_coding",
                    "unknown content coding `compress`",
                ),
            ] {
                let url = place.url("a.test", &format!("/spoilt/{path}"));
                let error = get(&client, &url).await.unwrap_err();
                let (phase, kind, said) = told(&error);
                assert_eq!((phase, kind), (RequestPhase::Decode, name), "{said}");
                assert!(said.contains(part) && said.contains(&url), "{said}");
            }
            let counts = client.counts();
            assert_eq!((counts.started, counts.failed), (5, 5));
            adds_up(&client);
        },
    );
}

#[test]
fn cookies_come_and_go_back() {
    everywhere(
        |settings| settings.cookies = Some(CookieJar::default()),
        async |place, client| {
            let sent = async |host: &str, path: &str| {
                let (_, body) = get(&client, &place.url(host, path))
                    .await
                    .expect("an answer");
                String::from_utf8(body).expect("text")
            };
            let set = "/set?a=1;+Path=/&b=2;+Path=/;+Domain=test.example&c=3;+Path=/x;+Max-Age=9";
            assert_eq!(sent("www.test.example", set).await, "set");
            assert_eq!(sent("www.test.example", "/").await, "a=1; b=2");
            assert_eq!(sent("www.test.example", "/x/y").await, "c=3; a=1; b=2");
            assert_eq!(sent("other.test.example", "/").await, "b=2");
            assert_eq!(sent("else.example", "/").await, "-");
            assert_eq!(
                sent("www.test.example", "/set?a=;+Path=/;+Max-Age=0").await,
                "set"
            );
            assert_eq!(sent("www.test.example", "/").await, "b=2");
            let jar = client.cookies().expect("they are on");
            assert_eq!(jar.len(), 2);
            assert!(
                jar.to_text(UNIX_SECONDS)
                    .contains(".test.example\tTRUE\t/\tFALSE\t0\tb\t2\n")
            );
        },
    );
}

#[test]
fn a_page_that_sets_a_cookie_and_comes_back_is_no_loop() {
    everywhere(
        |settings| settings.cookies = Some(CookieJar::default()),
        async |place, client| {
            let url = place.url("a.test", "/login");
            let (status, body) = get(&client, &url).await.expect("the second time");
            assert_eq!((status, &body[..]), (200, &b"session=1"[..]));
            assert_eq!(client.counts().redirected, 1);
        },
    );
    everywhere(
        |_| {},
        async |place, client| {
            let error = get(&client, &place.url("a.test", "/login"))
                .await
                .unwrap_err();
            assert_eq!(error.kind().name(), "redirect_loop", "{error}");
        },
    );
}

#[test]
fn retries_are_counted_and_end() {
    let policy = RetryPolicy {
        retries_max: 3,
        ..RetryPolicy::default()
    };
    everywhere(
        move |settings| settings.retries = policy,
        async |place, client| {
            let ask = async |path: &str| {
                let before = client.counts().retried;
                let (status, _) = get(&client, &place.url("a.test", path)).await.expect("one");
                (status, client.counts().retried - before)
            };
            assert_eq!(ask("/busy/503/2/0").await, (200, 2));
            assert_eq!(ask("/busy/429/3/").await, (200, 3));
            assert_eq!(ask("/busy/502/9/0").await, (502, 3));
            // A wait beyond the limit, and a status that is none of these: no retry.
            assert_eq!(ask("/busy/504/9/61").await, (504, 0));
            assert_eq!(ask("/busy/500/9/0").await, (500, 0));
            let post = client.post(&place.url("a.test", "/busy/503/1/7")).body("x");
            assert_eq!(post.send().await.expect("an answer").status(), 503);
            let counts = client.counts();
            assert_eq!(place.seen().len() as u64, counts.exchanges);
            assert_eq!(counts.exchanges, counts.started + counts.retried);
            adds_up(&client);
        },
    );
}

#[test]
fn a_retry_that_would_come_too_late_is_not_waited_for() {
    everywhere(
        |settings| {
            settings.retries.retries_max = 3;
            settings.timeout = Nanos::from_secs(5);
        },
        async |place, client| {
            let answer = get(&client, &place.url("a.test", "/busy/503/9/30")).await;
            assert_eq!(answer.expect("the first answer").0, 503);
            assert_eq!(client.counts().retried, 0);
        },
    );
}

/// Reads a form and tells of each part: name, file name, type, length and sum.
const PARSER: &str = r#"
import sys, email.parser, email.policy
data = sys.stdin.buffer.read()
message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(data)
for part in message.iter_parts():
    body = part.get_payload(decode=True)
    name = part.get_param("name", header="content-disposition")
    print(name, part.get_filename(), part.get_content_type(), len(body), sum(body))
"#;

#[test]
fn a_form_is_read_by_python() {
    let Some(python) = prony_testkit::need("python3") else {
        return;
    };
    everywhere(
        |_| {},
        move |place, client| {
            let python = python.clone();
            async move {
                let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 256) as u8).collect();
                let form = Form::new()
                    .text("title", "A walk")
                    .bytes("photo", "walk \"1\".jpg", bytes)
                    .content_type("image/jpeg");
                let request = client.post(&place.url("a.test", "/parts")).multipart(form);
                let answer = request.send().await.expect("an answer");
                let kind = answer.header("x-type").expect("it had one").to_vec();
                let body = answer.bytes().await.expect("a body");
                let mut parser = Command::new(python)
                    .args(["-c", PARSER])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("it starts");
                let mut input = parser.stdin.take().expect("it is piped");
                let head = [b"Content-Type: ", &kind[..], b"\r\n\r\n"].concat();
                input.write_all(&head).expect("it reads");
                input.write_all(&body).expect("it reads");
                drop(input);
                let output = parser.wait_with_output().expect("it ends");
                let said = String::from_utf8(output.stdout).expect("text");
                // 781 times all bytes, and the first 64 of the next.
                let sum = 781 * (255 * 128) + (63 * 32);
                let expected = format!(
                    "title None text/plain 6 {}\nphoto walk %221%22.jpg image/jpeg 200000 {sum}\n",
                    b"A walk".iter().map(|&byte| u32::from(byte)).sum::<u32>()
                );
                assert_eq!(said, expected);
            }
        },
    );
}

/// Reads the head of a request and as much of its body as its length says, or `at_most`.
async fn read_request(stream: &Stream, at_most: usize) -> Option<Vec<u8>> {
    let (mut received, mut wanted) = (Vec::new(), usize::MAX);
    while received.len() < wanted.min(at_most) {
        let bytes = stream.recv().await.ok()?;
        if bytes.is_empty() {
            return None;
        }
        received.extend_from_slice(&bytes);
        let end = received.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
            wanted = end + 4 + length.unwrap_or(0);
        }
    }
    Some(received)
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A connection that has served once is reset in the middle of the next request's body:
/// where its pieces had got to, they were once forgotten, and nothing was sent instead.
#[test]
fn a_form_on_a_stale_connection_is_sent_whole_again() {
    for seed in 0..40 {
        let mut world = World::new(seed, SimOptions::default());
        let address = SocketAddr::from(([10, 0, 0, 1], 80));
        let server = world.spawn_loop(&Config::default(), move |handle| async move {
            let listener = handle.listen(address, &ListenOptions::default());
            let listener = listener.expect("a free port");
            let (first, _) = listener.accept().await.expect("a client");
            read_request(&first, usize::MAX).await.expect("a GET");
            first.post(OK).expect("it is open");
            read_request(&first, 1_000 + seed as usize * 5_000).await;
            first.reset();
            let (second, _) = listener.accept().await.expect("the client again");
            let received = read_request(&second, usize::MAX).await;
            second.post(OK).expect("it is open");
            let _ = second.flush().await;
            received.expect("the whole request").len()
        });
        let client = world.spawn_loop(&Config::default(), move |handle| async move {
            handle.sleep(Nanos::from_millis(1)).await;
            let client = Client::new(&handle, Settings::default());
            get(&client, "http://10.0.0.1/").await.expect("an answer");
            let form = Form::new().bytes("f", "f", vec![7; 900_000]);
            let put = client
                .request(Method::Put, "http://10.0.0.1/")
                .multipart(form);
            let answer = put.send().await.expect("the second time");
            assert_eq!(answer.bytes().await.expect("a body"), b"ok");
            assert_eq!(client.counts().resent, 1);
            adds_up(&client);
        });
        world.run(Nanos::from_secs(3_600)).expect("nothing hangs");
        client.take().expect("it is done");
        let length = server.take().expect("it is done");
        assert!(length > 900_000, "seed {seed}: {length} bytes");
    }
}
