//! Several requests in an order, and requests whose fields are filled in: the [`RequestSource`] of a load that has more to send
//! than the same bytes again and again (which is [`Cycle`](crate::Cycle)'s).

use std::sync::Arc;

use prony_base::{Random, clock};
use prony_record::{HttpProtocol, LoadSpec, Pace, PreparedRequest, RequestOrder};

use crate::fields::{Field, has_fields};
use crate::filled::{FilledRequest, decimal, uuid};
use crate::rows::{DataFile, RowShare, ThreadRows, each_value};
use crate::source::{Cycle, EncodedRequest, Next, RequestSource, decode};

/// The largest random number: the largest that every language's JSON keeps exact, 2^53 - 1.
const RANDOM_BITS: u32 = 53;

/// What the sources of all threads share.
pub struct Mixed<'a> {
    spec: &'a LoadSpec,
    data: Option<Arc<DataFile>>,
    columns: Vec<String>,
}

impl<'a> Mixed<'a> {
    /// Whether a load needs it.
    pub fn is_needed(spec: &LoadSpec) -> bool {
        spec.order != RequestOrder::BySlot || spec.has_fields || spec.data.is_some()
    }

    /// Opens the data file and checks all fields.
    ///
    /// # Errors
    /// What is wrong with either, in words.
    pub fn new(spec: &'a LoadSpec) -> Result<Mixed<'a>, String> {
        let data = spec.data.as_ref();
        let data = data.map(|data| DataFile::open(&data.path, data.order, RowShare::of(spec)));
        let data = data.transpose().map_err(|error| error.to_string())?;
        let columns = data.as_ref().map(|data| data.columns().to_vec());
        let mixed = Mixed {
            spec,
            columns: columns.unwrap_or_default(),
            data,
        };
        let mut uses_rows = spec.data.is_none();
        for request in spec.requests.iter().filter(|_| spec.has_fields) {
            let compiled = FilledRequest::compile(&request.bytes, &mixed.columns);
            uses_rows |= compiled.map_err(|error| error.to_string())?.needs_row();
        }
        if let Some(data) = spec.data.as_ref().filter(|_| !uses_rows) {
            let path = data.path.display();
            let names = mixed.columns.join("}, {");
            return Err(format!("no request has a column of {path}: {{{names}}}"));
        }
        let requests = spec.requests.len();
        match spec
            .sequence
            .iter()
            .find(|place| **place as usize >= requests)
        {
            Some(place) => Err(format!("there is no request {place} among {requests}")),
            None => Ok(mixed),
        }
    }

    /// The source of one thread.
    pub fn source(&self, thread: u32) -> Box<dyn RequestSource> {
        let (spec, seed) = (self.spec, self.spec.seed);
        let encoded = spec.requests.iter().map(|prepared| {
            let mut request = decode(prepared);
            if spec.has_fields && has_fields(&prepared.bytes, &self.columns) {
                let compiled = FilledRequest::compile(&prepared.bytes, &self.columns);
                request.filled = compiled.ok().map(Box::new);
            } else if spec.protocol == HttpProtocol::Http1 {
                // Thousands of requests are kept: no more of them than is sent.
                request.http2 = None;
            }
            request
        });
        let order = match spec.order {
            RequestOrder::Random => Picking::Random {
                up_to: weights(spec),
                random: Random::of(seed, &format!("requests of thread {thread}")),
            },
            RequestOrder::InTurn | RequestOrder::BySlot => {
                let (next, step) = turns(spec, thread as usize);
                Picking::InTurn {
                    sequence: spec.sequence.clone(),
                    next,
                    step,
                }
            }
        };
        Box::new(MixedSource {
            requests: encoded.collect(),
            order,
            random: Random::of(seed, &format!("fields of thread {thread}")),
            counter: spec.counter_from + u64::from(thread) + 1,
            step: u64::from(spec.threads),
            rows: self
                .data
                .as_ref()
                .map(|data| ThreadRows::new(data, seed, thread)),
            values: vec![Vec::new(); self.columns.len()],
        })
    }
}

/// Checks that the requests of a load can be sent: its fields are known, and its data file can be read.
///
/// # Errors
/// What is wrong, in words.
pub fn check_requests(spec: &LoadSpec) -> Result<(), String> {
    match Mixed::is_needed(spec) {
        true => Mixed::new(spec).map(drop),
        false => Ok(()),
    }
}

/// The first `count` requests that the first thread of a load sends, each as the bytes of HTTP/1.1 with its fields filled in;
/// fewer where the rows of a data file end. For looking at them, and for sending them one by one.
///
/// # Errors
/// Those of [`check_requests`].
pub fn first_requests(spec: &LoadSpec, count: usize) -> Result<Vec<PreparedRequest>, String> {
    let mut source: Box<dyn RequestSource> = match Mixed::is_needed(spec) {
        true => Mixed::new(spec)?.source(0),
        false => Box::new(Cycle::new(&spec.requests, 1)),
    };
    let mut requests = Vec::with_capacity(count.min(spec.requests.len()));
    while requests.len() < count
        && let Next::Send(request) = source.next(0)
    {
        requests.push(request.prepared());
    }
    Ok(requests)
}

/// With which request a thread begins, and how many it goes on by. Each thread goes through all, from a place of its own:
/// with every nth for each, and as many requests as threads, a thread would send one alone, and how often would be the
/// connections' matter. Only where arrivals have times of their own is each of them its request.
fn turns(spec: &LoadSpec, thread: usize) -> (usize, usize) {
    let threads = spec.threads.max(1) as usize;
    if matches!(spec.pace, Pace::Times { .. }) {
        return (thread, threads);
    }
    let length = match spec.sequence.len() {
        0 => spec.requests.len(),
        length => length,
    };
    (thread * length / threads, 1)
}

/// The sums of the weights up to each request.
fn weights(spec: &LoadSpec) -> Vec<u64> {
    let mut sum = 0;
    let up_to = spec.requests.iter().map(|request| {
        sum += u64::from(request.weight.max(1));
        sum
    });
    up_to.collect()
}

/// Which request is next.
enum Picking {
    InTurn {
        /// Places of requests; empty: as they stand.
        sequence: Vec<u32>,
        next: usize,
        step: usize,
    },
    Random {
        up_to: Vec<u64>,
        random: Random,
    },
}

impl Picking {
    fn next(&mut self, requests: usize) -> usize {
        match self {
            Picking::InTurn {
                sequence,
                next,
                step,
            } => {
                let length = match sequence.len() {
                    0 => requests,
                    length => length,
                };
                let at = *next % length;
                *next = (at + *step) % length;
                sequence.get(at).map_or(at, |&place| place as usize)
            }
            Picking::Random { up_to, random } => {
                let drawn = random.below(up_to.last().copied().unwrap_or_default());
                up_to.partition_point(|&sum| sum <= drawn)
            }
        }
    }
}

/// The source of one thread.
struct MixedSource {
    requests: Vec<EncodedRequest>,
    order: Picking,
    random: Random,
    counter: u64,
    step: u64,
    rows: Option<ThreadRows>,
    /// The values of the row, by column.
    values: Vec<Vec<u8>>,
}

impl MixedSource {
    /// Takes the next row; false where there is none any more.
    fn take_row(&mut self) -> bool {
        let Some(row) = self.rows.as_mut().and_then(ThreadRows::next) else {
            return false;
        };
        self.values.iter_mut().for_each(Vec::clear);
        let values = &mut self.values;
        // The file was checked; one that was changed meanwhile leaves values empty.
        let _ = each_value(row, &mut |place, value| {
            if let Some(of) = values.get_mut(place) {
                of.extend_from_slice(value);
            }
        });
        true
    }
}

impl RequestSource for MixedSource {
    fn next(&mut self, _slot: usize) -> Next<'_> {
        let place = self.order.next(self.requests.len());
        let needs_row = |filled: &FilledRequest| filled.needs_row();
        if self.requests[place]
            .filled
            .as_deref()
            .is_some_and(needs_row)
            && !self.take_row()
        {
            return Next::Ended;
        }
        let request = &mut self.requests[place];
        if let Some(filled) = &mut request.filled {
            let number = self.random.next_u64() >> (64 - RANDOM_BITS);
            let (counter, random, values) = (self.counter, &mut self.random, &self.values);
            self.counter += self.step;
            let mut id = None;
            filled.fill(|field, out| match field {
                Field::Random => decimal(out, number),
                Field::Counter => decimal(out, counter),
                Field::Uuid => {
                    let mut draw = || [random.next_u64(), random.next_u64()];
                    uuid(out, *id.get_or_insert_with(&mut draw));
                }
                Field::Time => decimal(out, clock::unix_nanos() / 1_000_000),
                Field::Column(place) => out.extend_from_slice(&values[place]),
                // It is a user's.
                Field::Cookies => {}
            });
        }
        Next::Send(&mut self.requests[place])
    }
}

#[cfg(test)]
mod tests {
    use prony_record::PreparedRequest;

    use super::*;

    fn spec(paths: &[(&str, u32)], order: RequestOrder, threads: u32) -> LoadSpec {
        let request = |&(path, weight): &(&str, u32)| PreparedRequest {
            method: "GET".to_owned(),
            bytes: format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes(),
            expect: None,
            weight,
        };
        LoadSpec {
            requests: paths.iter().map(request).collect(),
            order,
            threads,
            seed: 5,
            has_fields: true,
            ..LoadSpec::default()
        }
    }

    /// The paths of the next requests of a thread.
    fn paths(source: &mut dyn RequestSource, count: usize) -> Vec<String> {
        let mut one = |_| {
            let bytes = match source.next(0) {
                Next::Send(request) => match &request.filled {
                    Some(filled) => {
                        let mut out = Vec::new();
                        filled.write_http1(&mut out);
                        out
                    }
                    None => request.bytes.to_vec(),
                },
                other => panic!("{other:?}"),
            };
            let text = String::from_utf8(bytes).unwrap();
            text.split(' ').nth(1).unwrap().to_owned()
        };
        (0..count).map(&mut one).collect()
    }

    #[test]
    fn threads_take_requests_in_turn() {
        let mut spec = spec(&[("/a", 1), ("/b", 1), ("/c", 1)], RequestOrder::InTurn, 2);
        let of = |spec: &LoadSpec, thread| {
            let mixed = Mixed::new(spec).unwrap();
            paths(&mut *mixed.source(thread), 4).concat()
        };
        assert_eq!(
            (of(&spec, 0), of(&spec, 1)),
            ("/a/b/c/a".into(), "/b/c/a/b".into())
        );
        spec.pace = Pace::Times {
            times_ns: vec![0; 4],
        };
        assert_eq!(
            (of(&spec, 0), of(&spec, 1)),
            ("/a/c/b/a".into(), "/b/a/c/b".into())
        );
        spec.sequence = vec![2, 2, 0, 1];
        assert_eq!(
            (of(&spec, 0), of(&spec, 1)),
            ("/c/a/c/a".into(), "/c/b/c/b".into())
        );
        spec.sequence = vec![3];
        assert!(Mixed::new(&spec).is_err());
    }

    #[test]
    fn random_requests_come_by_their_weight_and_a_seed_repeats_them() {
        let spec = spec(&[("/a", 9), ("/b", 0)], RequestOrder::Random, 1);
        let mixed = Mixed::new(&spec).unwrap();
        let first = paths(&mut *mixed.source(0), 10_000);
        assert_eq!(first, paths(&mut *mixed.source(0), 10_000));
        assert_ne!(first, paths(&mut *mixed.source(1), 10_000));
        let of_a = first.iter().filter(|path| *path == "/a").count();
        // 9,000 are expected, with a deviation of 30.
        assert!((8_800..9_200).contains(&of_a), "{of_a}");
    }

    #[test]
    fn a_request_has_its_own_values_and_no_two_the_same_counter() {
        let spec = spec(
            &[("/{counter}/{random}/{random}/{uuid}/{uuid}", 1)],
            RequestOrder::InTurn,
            3,
        );
        let mixed = Mixed::new(&spec).unwrap();
        let mut counters = Vec::new();
        for thread in 0..3 {
            for path in paths(&mut *mixed.source(thread), 5) {
                let parts: Vec<&str> = path.split('/').skip(1).collect();
                counters.push(parts[0].parse::<u64>().unwrap());
                assert_eq!((parts[1], parts[3]), (parts[2], parts[4]));
                assert!(parts[1].parse::<u64>().unwrap() < 1 << RANDOM_BITS);
            }
        }
        counters.sort_unstable();
        assert_eq!(counters, (1..=15).collect::<Vec<_>>());
    }

    #[test]
    fn an_escaped_name_is_sent_without_its_escape() {
        let spec = spec(&[("/{{random}}", 1)], RequestOrder::InTurn, 1);
        let mixed = Mixed::new(&spec).unwrap();
        assert_eq!(paths(&mut *mixed.source(0), 1), ["/{random}"]);
    }

    #[test]
    fn a_field_that_there_is_not_is_refused() {
        let spec = spec(&[("/{nobody}", 1)], RequestOrder::InTurn, 1);
        let error = Mixed::new(&spec).err().unwrap();
        assert!(error.starts_with("{nobody} is no field: "), "{error}");
    }
}
