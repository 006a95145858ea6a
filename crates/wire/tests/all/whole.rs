//! Requests taken whole are those that the events tell, wherever bytes are cut.

use prony_wire::{Error, Limits, OwnedHeaders, RequestEvent, RequestHead, RequestReader};
use proptest::prelude::*;

/// Requests, good and bad, to be sent one after another.
const PARTS: [&str; 12] = [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /b HTTP/1.1\r\nhost: a\r\nx: 1\r\nX: 2\r\n\r\n",
    "GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "POST /d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "\r\n",
    "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "GET /bare HTTP/1.1\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "POST /big HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n",
    "GET /long HTTP/1.1\r\nHost: a\r\nx: 0123456789012345678901234567890123456789\r\n\r\n",
];

const LIMITS: Limits = Limits {
    head_bytes_max: 72,
    body_bytes_max: 64,
    ..Limits::for_requests()
};

/// What a server saw.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    requests: Vec<(String, OwnedHeaders, Vec<u8>, bool)>,
    error: Option<Error>,
}

impl Seen {
    fn head(&mut self, head: &RequestHead<'_>) {
        let mut headers = OwnedHeaders::default();
        headers.copy_from(&head.headers);
        let line = format!("{} {} {}", head.method, head.target, head.version);
        self.requests
            .push((line, headers, Vec::new(), head.keep_alive));
    }

    fn body(&mut self, data: &[u8]) {
        if let Some((_, _, body, _)) = self.requests.last_mut() {
            body.extend_from_slice(data);
        }
    }
}

/// Reads `chunks`, taking requests whole where that goes and `whole` says so.
fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>, whole: bool) -> Seen {
    let mut reader = RequestReader::new(LIMITS);
    let mut seen = Seen::default();
    for chunk in chunks {
        let mut rest = chunk;
        loop {
            if whole && let Some(request) = reader.next_whole(rest) {
                seen.head(&request.head);
                seen.body(request.body);
                rest = &rest[request.used..];
                continue;
            }
            match reader.next(rest) {
                Err(error) => {
                    seen.error = Some(error);
                    return seen;
                }
                Ok((_, None)) => break,
                Ok((used, Some(event))) => {
                    rest = &rest[used..];
                    match event {
                        RequestEvent::Head(head) => seen.head(&head),
                        RequestEvent::Data(data) => seen.body(data),
                        RequestEvent::End(_) => {}
                    }
                }
            }
        }
    }
    seen.error = reader.end_of_input().err();
    seen
}

proptest! {
    #[test]
    fn whole_requests_are_those_of_the_events(
        parts in proptest::collection::vec(0..PARTS.len(), 1..6),
        places in proptest::collection::vec(any::<usize>(), 0..4),
    ) {
        let bytes: String = parts.iter().map(|&part| PARTS[part]).collect();
        let bytes = bytes.as_bytes();
        let mut cuts: Vec<usize> = places.iter().map(|place| place % (bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([bytes.len()]);
        let chunks: Vec<&[u8]> = starts.zip(ends).map(|(start, end)| &bytes[start..end]).collect();
        let by_events = read(chunks.iter().copied(), false);
        prop_assert_eq!(read(chunks.iter().copied(), true), by_events);
    }
}

#[test]
fn a_request_in_one_chunk_is_taken_whole() {
    let mut reader = RequestReader::new(LIMITS);
    let two = [PARTS[3], PARTS[0]].concat();
    let first = reader.next_whole(two.as_bytes()).expect("it is whole");
    assert_eq!(
        (first.head.target, first.body, first.used),
        ("/c", &b"hello"[..], PARTS[3].len())
    );
    assert_eq!(
        reader.next_whole(&two.as_bytes()[..PARTS[3].len() - 1]),
        None
    );
}
