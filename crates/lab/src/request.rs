//! The requests of a workload as bytes: `{random}` filled in, `Host` and
//! `Content-Length` added, and the answer that each must get.
//!
//! Not for: sending them ([`crate::verify`] and the load generator do).

use prony_base::Random;
use prony_load::prepare::{RequestParts, write};
use prony_record::{ExpectedAnswer, PlannedWorkload, PreparedRequest};

/// What stands for a random number in a path, a body or an expected body.
pub const PLACEHOLDER: &str = "{random}";
/// The largest number that every language's JSON keeps exact: 2^53 - 1.
pub const RANDOM_MAX: u64 = (1 << 53) - 1;
/// Different requests that a workload with random numbers is given.
const VARIANTS: usize = 64;

/// Whether the requests of `workload` differ from each other.
pub fn varies(workload: &PlannedWorkload) -> bool {
    workload.request.path.contains(PLACEHOLDER) || workload.request.body.contains(PLACEHOLDER)
}

/// The requests that the generator sends in turn: 64 with random numbers of
/// `seed`, or a single one where nothing is random.
pub fn variants(workload: &PlannedWorkload, host: &str, seed: u64) -> Vec<PreparedRequest> {
    if !varies(workload) {
        return vec![prepare(workload, host, 0, &workload.request.method)];
    }
    let mut random = Random::of(seed, "requests");
    let mut one = || {
        prepare(
            workload,
            host,
            random.below(RANDOM_MAX + 1),
            &workload.request.method,
        )
    };
    (0..VARIANTS).map(|_| one()).collect()
}

/// One request with `number` filled in, by `method` (for a HEAD in place of a GET).
pub fn prepare(
    workload: &PlannedWorkload,
    host: &str,
    number: u64,
    method: &str,
) -> PreparedRequest {
    let fill = |text: &str| text.replace(PLACEHOLDER, &number.to_string());
    let request = &workload.request;
    let body = fill(&request.body);
    let parts = RequestParts {
        method,
        path: &fill(&request.path),
        authority: host,
        headers: &request.headers,
        body: body.as_bytes(),
    };
    let bytes = write(&parts);
    let expected = workload.expect_body.as_deref().filter(|_| method != "HEAD");
    PreparedRequest {
        method: method.to_owned(),
        bytes,
        expect: expected.map(|text| ExpectedAnswer {
            body: Some(fill(text).into_bytes()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_record::RequestTemplate;

    fn ping() -> PlannedWorkload {
        PlannedWorkload {
            request: RequestTemplate {
                method: "POST".into(),
                path: "/ping".into(),
                headers: vec![("Content-Type".into(), "application/json".into())],
                body: r#"{"sequence":{random}}"#.into(),
            },
            expect_body: Some(r#"{"sequence":{random}}"#.into()),
            ..PlannedWorkload::default()
        }
    }

    #[test]
    fn a_request_is_whole_and_expects_its_own_number() {
        let request = prepare(&ping(), "127.0.0.1:8080", 7, "POST");
        assert_eq!(
            String::from_utf8_lossy(&request.bytes),
            "POST /ping HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n\
             Content-Length: 14\r\n\r\n{\"sequence\":7}"
        );
        let body = request.expect.and_then(|expect| expect.body);
        assert_eq!(body.as_deref(), Some(&b"{\"sequence\":7}"[..]));
    }

    #[test]
    fn variants_differ_and_a_seed_repeats_them() {
        let first = variants(&ping(), "h", 1);
        assert_eq!(first.len(), VARIANTS);
        assert_ne!(first[0], first[1]);
        assert_eq!(first, variants(&ping(), "h", 1));
        assert_ne!(first, variants(&ping(), "h", 2));
    }

    #[test]
    fn a_request_without_random_numbers_has_no_variants() {
        let mut hello = ping();
        hello.request = RequestTemplate {
            method: "GET".into(),
            path: "/hello".into(),
            ..RequestTemplate::default()
        };
        let only = variants(&hello, "h", 1);
        assert_eq!(only.len(), 1);
        assert_eq!(only[0].bytes, b"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
    }
}
