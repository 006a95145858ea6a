//! What a workload sends where that is not one request alone: `requests`, `requests_file`, `scenario`, `data`, credentials, cookies, and
//! fields in the one request. Pure.
//!
//! Not for: the files that it names, which are read once all else is right ([`super::files`]).

use prony_load::requests::RequestFormat;
use prony_load::{has_fields, with_environment};
use prony_record::{
    Arrival, PlannedRequest, PlannedScenario, PlannedSource, RequestOrder, RequestTemplate,
    RowOrder, SourceFile,
};
use toml::Spanned;

use super::fields::{Fields, Problems};
use super::keys::{check_path, name_of_path};
use super::spoken;
use super::types::{Experiment, Workload, WorkloadSource};
use super::words::short;
use crate::diagnosis::{Diagnosis, suggest};

/// Keys of a workload that are about what is sent, beside `request`.
pub const KEYS: [&str; 12] = [
    "scenario",
    "requests",
    "requests_file",
    "format",
    "order",
    "data",
    "data_order",
    "user",
    "bearer",
    "cookies",
    "follow",
    "compressed",
];
/// Keys that say what is sent otherwise than a scenario does, and what to do about each.
const NOT_BESIDE_SCENARIO: [(&str, &str); 5] = [
    (
        "request",
        "leave it out; headers of all steps stand in the scenario's file: headers = { Accept = \"…\" }",
    ),
    (
        "requests",
        "leave it out; each request is a step of the scenario's file",
    ),
    (
        "requests_file",
        "leave it out, or give it a workload of its own",
    ),
    (
        "order",
        "leave it out; steps follow each other as the file has them",
    ),
    ("cookies", "leave it out: each user has cookies of its own"),
];
/// How often a request is drawn beside the others.
const WEIGHT: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Redirects that are followed in a row.
const FOLLOW: std::ops::RangeInclusive<u64> = 1..=100;
/// Bytes of a credential.
const CREDENTIAL_BYTES_MAX: usize = 8_192;

/// What is sent.
#[derive(Debug)]
pub struct SentRequests {
    /// The only request, or the first.
    pub request: RequestTemplate,
    /// What is sent beside it.
    pub source: Option<WorkloadSource>,
    /// What a workload is called that has no name.
    pub name: String,
}

/// Reads `scenario`, or else `request`, `requests`, `requests_file`, and what goes with them.
pub fn read(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<SentRequests> {
    match table.text("scenario", p) {
        Some(file) => Some(read_scenario(&file, table, p)),
        None if table.has("scenario") => {
            // So that the keys beside it are known.
            let _ = planned(table, None, false, p);
            None
        }
        None => read_requests(table, p),
    }
}

/// Reads what goes with `scenario = "FILE"`; what the file says is known once it is read.
fn read_scenario(
    file: &Spanned<String>,
    table: &mut Fields<'_, '_>,
    p: &mut Problems,
) -> SentRequests {
    for (key, help) in NOT_BESIDE_SCENARIO {
        if let Some(value) = table.value(key) {
            let message = format!(
                "`{key}` cannot go with `scenario`: what users send are the steps of its file"
            );
            p.note(Diagnosis::new(value.span(), message).help(help));
        }
    }
    let named = SourceFile {
        path: file.get_ref().clone(),
        sha256: String::new(),
    };
    let planned = PlannedSource {
        scenario: Some(PlannedScenario {
            file: named,
            flows: Vec::new(),
        }),
        cookies: false,
        ..planned(table, None, false, p).source
    };
    let name = file.get_ref().rsplit('/').next().unwrap_or_default();
    SentRequests {
        request: RequestTemplate::default(),
        source: Some(WorkloadSource {
            file_at: file.span(),
            ..WorkloadSource::of(table, planned)
        }),
        name: name_of_path(name.strip_suffix(".toml").unwrap_or(name)),
    }
}

/// Reads what goes with requests that have nothing to do with each other.
fn read_requests(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<SentRequests> {
    let file = table.text("requests_file", p);
    let is_listed = table.has("requests");
    let several = table.tables("requests", "[[workload.requests]]", p);
    if is_listed && file.is_some() {
        let message = "either `requests` or `requests_file`: both say what is sent";
        p.note(Diagnosis::new(table.span_of("requests_file"), message));
    }
    let has_data = table.has("data");
    let is_one = !is_listed && file.is_none();
    let one = table.table("request", "request = {…}", p);
    let given = one.is_some();
    let common = one.and_then(|request| match is_one {
        true => read_request(request, true, has_data, p).map(|(one, _)| one),
        false => Some(RequestTemplate {
            headers: read_common(request, has_data, p),
            ..RequestTemplate::default()
        }),
    });
    let mut requests = Vec::new();
    for each in several {
        requests.extend(
            read_request(each, false, has_data, p)
                .map(|(request, weight)| PlannedRequest { request, weight }),
        );
    }
    if is_one && !given && !table.has("request") {
        table.missing("request", "request = { path = \"/\" }", p);
    }
    if is_listed && table.span_of("requests").len() == 2 {
        p.note(Diagnosis::new(
            table.span_of("requests"),
            "`requests` is empty: name at least one",
        ));
    }
    let planned = planned(table, file.as_ref(), is_one, p);
    let common = match is_one {
        true => common?,
        false => common.unwrap_or_default(),
    };
    let (requests, first) = listed(requests, common, is_one)?;
    let name = match &file {
        Some(file) => name_of_path(file.get_ref()),
        None => name_of_path(&first.path),
    };
    let is_needed = !is_one || planned.source != PlannedSource::default() || is_filled(&first);
    let path = |one: &PlannedRequest| one.request.path.clone();
    let source = is_needed.then(|| WorkloadSource {
        paths: requests.iter().map(path).collect(),
        is_order_said: planned.order.is_some(),
        ..WorkloadSource::of(
            table,
            PlannedSource {
                count: requests.len() as u64,
                headers: match file {
                    Some(_) => first.headers.clone(),
                    None => Vec::new(),
                },
                order: order(planned.order, &requests, table, p),
                requests,
                ..planned.source
            },
        )
    });
    Some(SentRequests {
        request: first,
        source,
        name,
    })
}

impl WorkloadSource {
    /// What is planned, with the places of what it is made of.
    fn of(table: &Fields<'_, '_>, planned: PlannedSource) -> WorkloadSource {
        WorkloadSource {
            place: table.span.clone(),
            file_at: table.span_of("requests_file"),
            data_at: table.span_of("data"),
            require_at: table.span_of("require"),
            planned,
            is_order_said: false,
            paths: Vec::new(),
        }
    }
}

/// The requests with what they have in common, and the first of them; that of a file is not known yet.
fn listed(
    mut requests: Vec<PlannedRequest>,
    common: RequestTemplate,
    is_one: bool,
) -> Option<(Vec<PlannedRequest>, RequestTemplate)> {
    if is_one {
        let request = common.clone();
        return Some((vec![PlannedRequest { request, weight: 0 }], common));
    }
    for one in &mut requests {
        let own = &mut one.request.headers;
        let is_own = |name: &str| own.iter().any(|(of, _)| of.eq_ignore_ascii_case(name));
        let added = common.headers.iter().filter(|(name, _)| !is_own(name));
        let added: Vec<_> = added.cloned().collect();
        own.extend(added);
    }
    let first = requests.first().map(|one| one.request.clone());
    Some((requests, first.unwrap_or(common)))
}

/// Keys that stand beside the requests.
struct SourceKeys {
    source: PlannedSource,
    order: Option<RequestOrder>,
}

fn planned(
    table: &mut Fields<'_, '_>,
    file: Option<&Spanned<String>>,
    is_one: bool,
    p: &mut Problems,
) -> SourceKeys {
    let format = table.text("format", p);
    if let Some(format) = &format {
        if let Err(why) = format.get_ref().parse::<RequestFormat>() {
            p.note(Diagnosis::new(format.span(), why));
        }
        if file.is_none() {
            let message = "`format` is that of `requests_file`";
            p.note(Diagnosis::new(format.span(), message));
        }
    }
    let orders = [
        ("in-turn", RequestOrder::InTurn),
        ("random", RequestOrder::Random),
    ];
    let order = word(table, "order", &orders, p);
    if order.is_some() && is_one {
        let message = "one request has no order";
        p.note(Diagnosis::new(table.span_of("order"), message));
    }
    let data = table.text("data", p);
    let rows = [("in-turn", RowOrder::InTurn), ("random", RowOrder::Random)];
    let data_order = match table.has("data_order") {
        true => word(table, "data_order", &rows, p),
        false => None,
    };
    if data.is_none() && table.has("data_order") {
        let message = "`data_order` is that of `data`";
        p.note(Diagnosis::new(table.span_of("data_order"), message));
    }
    let (user, bearer) = (credential(table, "user", p), credential(table, "bearer", p));
    if let (Some(_), Some(bearer)) = (&user, &bearer) {
        let message = "either `user` or `bearer`: a request has one `Authorization`";
        p.note(Diagnosis::new(bearer.span(), message));
    }
    if let Some(user) = user.as_ref().filter(|user| !user.get_ref().contains(':')) {
        let message = "`user` is NAME:PASSWORD, with a colon";
        p.note(Diagnosis::new(user.span(), message));
    }
    let text = |of: Option<Spanned<String>>| of.map_or_else(String::new, Spanned::into_inner);
    let named = |path: &Spanned<String>| SourceFile {
        path: path.get_ref().clone(),
        sha256: String::new(),
    };
    SourceKeys {
        source: PlannedSource {
            file: file.map(named),
            format: text(format),
            data: data.as_ref().map(named),
            data_order: data_order.unwrap_or_default(),
            user: text(user),
            bearer: text(bearer),
            cookies: table.truth("cookies", p).unwrap_or_default(),
            compressed: table.truth("compressed", p).unwrap_or_default(),
            follow: table.whole("follow", FOLLOW, p).unwrap_or_default() as u32,
            ..PlannedSource::default()
        },
        order,
    }
}

/// A key whose value is one of these words.
fn word<T: Copy>(
    table: &mut Fields<'_, '_>,
    key: &'static str,
    words: &[(&str, T)],
    p: &mut Problems,
) -> Option<T> {
    let text = table.text(key, p)?;
    let found = words.iter().find(|(word, _)| word == text.get_ref());
    if found.is_none() {
        let typed = text.get_ref();
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let diagnosis =
            Diagnosis::new(text.span(), format!("`{key}` cannot be `{}`", short(typed)));
        p.note(diagnosis.help(match typed.as_str() {
            "once" => {
                "a trial lasts as long as its window: the rows of a file cannot end it".to_owned()
            }
            _ => suggest(typed, "order", &names),
        }));
    }
    found.map(|(_, value)| *value)
}

/// The order that is said, or the one that follows from the weights.
fn order(
    said: Option<RequestOrder>,
    requests: &[PlannedRequest],
    table: &Fields<'_, '_>,
    p: &mut Problems,
) -> RequestOrder {
    let is_weighted = requests.iter().any(|one| one.weight > 0);
    if is_weighted && said == Some(RequestOrder::InTurn) {
        let message = "`order = \"in-turn\"` sends each request as often as the others, and `weight` does not";
        p.note(Diagnosis::new(table.span_of("order"), message).help("leave one of them out"));
    }
    usual_order(said, is_weighted, requests.len())
}

/// The order of so many requests, where `said` does not say it.
pub fn usual_order(said: Option<RequestOrder>, is_weighted: bool, count: usize) -> RequestOrder {
    said.unwrap_or(match (is_weighted, count) {
        (true, _) => RequestOrder::Random,
        (false, 0 | 1) => RequestOrder::BySlot,
        (false, _) => RequestOrder::InTurn,
    })
}

fn credential(
    table: &mut Fields<'_, '_>,
    key: &'static str,
    p: &mut Problems,
) -> Option<Spanned<String>> {
    let text = table.text(key, p)?;
    let is_wrong = text.get_ref().contains(char::is_control)
        || text.get_ref().is_empty()
        || text.get_ref().len() > CREDENTIAL_BYTES_MAX;
    if is_wrong {
        let message = format!("`{key}` is one line of 1 to {CREDENTIAL_BYTES_MAX} bytes");
        p.note(Diagnosis::new(text.span(), message));
    }
    if has_fields(plain(text.get_ref()).as_bytes(), &[]) {
        let message = format!("`{key}` has no fields but {{env:NAME}}");
        let help = "write them in a header: headers = { Authorization = \"…\" }";
        p.note(Diagnosis::new(text.span(), message).help(help));
    }
    Some(text)
}

/// `text` without what it takes from the environment.
fn plain(text: &str) -> String {
    with_environment(text, &|_| Some(String::new())).unwrap_or_default()
}

/// Whether the generator fills in more than the random number that 64 requests of a workload are made with.
fn is_filled(request: &RequestTemplate) -> bool {
    let is_field = |text: &str| {
        text.contains("{env:") || has_fields(text.replace("{random}", "").as_bytes(), &[])
    };
    let mut headers = request.headers.iter().map(|(_, value)| value);
    is_field(&request.path)
        || is_field(&request.body)
        || headers.any(|value| has_fields(value.as_bytes(), &[]))
}

/// What all requests of a list or a file have: headers.
fn read_common(
    mut table: Fields<'_, '_>,
    has_data: bool,
    p: &mut Problems,
) -> Vec<(String, String)> {
    let headers = read_headers(&mut table, has_data, p);
    let several = "it stands in each of `requests`, or in `requests_file`; what they have in common are `headers`";
    table.finish(
        &[("path", several), ("method", several), ("body", several)],
        p,
    );
    headers
}

fn read_headers(
    table: &mut Fields<'_, '_>,
    has_data: bool,
    p: &mut Problems,
) -> Vec<(String, String)> {
    let headers = table.pairs("headers", p).unwrap_or_default();
    for (name, value) in &headers {
        check_header(name, value, p);
        check_fields(value, has_data, p);
    }
    let plain =
        |(name, value): (Spanned<String>, Spanned<String>)| (name.into_inner(), value.into_inner());
    headers.into_iter().map(plain).collect()
}

/// One request, and its weight where it is one of several.
fn read_request(
    mut table: Fields<'_, '_>,
    is_one: bool,
    has_data: bool,
    p: &mut Problems,
) -> Option<(RequestTemplate, u32)> {
    let method = table.text("method", p);
    if let Some(method) = &method {
        check_method(method, p);
    }
    let path = table.text_needed("path", "path = \"/\"", p);
    let headers = read_headers(&mut table, has_data, p);
    let body = table.text("body", p);
    for text in path.iter().chain(&body) {
        check_fields(text, has_data, p);
    }
    let weight = match is_one {
        true => None,
        false => table.whole("weight", WEIGHT, p),
    };
    table.finish(&[], p);
    let path = path?;
    check_path(&path, p);
    let request = RequestTemplate {
        method: method.map_or_else(|| "GET".to_owned(), Spanned::into_inner),
        path: path.into_inner(),
        headers,
        body: body.map_or_else(String::new, Spanned::into_inner),
    };
    Some((request, weight.unwrap_or_default() as u32))
}

/// A name in braces is a field. Those of a CSV are known once it is read.
fn check_fields(text: &Spanned<String>, has_data: bool, p: &mut Problems) {
    if has_data {
        return;
    }
    // With the random number of old experiments, which knew no escape.
    let plain = plain(text.get_ref()).replace("{random}", "");
    if let Err(why) = prony_load::check_fields(&plain, &[]) {
        p.note(Diagnosis::new(text.span(), why.to_string()));
    }
}

/// What does not go with users, with cookies, or with redirects that are followed. All belong to the connection on which requests follow
/// each other: in a pipeline the next ones are sent before the answers came.
pub fn check_within(experiment: &Experiment, p: &mut Problems) {
    for workload in &experiment.workloads {
        let Some(source) = &workload.source else {
            continue;
        };
        check_follow(workload, source, p);
        let is_of_users = source.planned.scenario.is_some();
        if is_of_users {
            check_users(workload, source, p);
        }
        let why = match &source.planned {
            _ if is_of_users => "a user of a `scenario` has one request at a time, by HTTP/1.1",
            of if of.cookies => "`cookies` of an answer go with the next request",
            of if of.follow > 0 => "`follow` sends a request for an answer",
            of if of.compressed => "`compressed` answers are decoded one at a time",
            _ => continue,
        };
        let of_it = experiment.settings.iter().filter(|s| s.is_for(workload));
        for setting in of_it {
            let name = setting.name.get_ref().as_str();
            let is_other = |value: &String| match name {
                spoken::PIPELINE => value != "1",
                spoken::PROTOCOL => is_of_users && spoken::is_http2(value),
                _ => false,
            };
            if let Some(value) = setting.values.iter().find(|value| is_other(value)) {
                let message = format!("{why}, and `{name}` has `{value}`");
                let help = "name the setting's workloads: workloads = […]";
                p.note(Diagnosis::new(source.place.clone(), message).help(help));
            }
        }
    }
}

/// What a workload with users cannot have.
fn check_users(workload: &Workload, source: &WorkloadSource, p: &mut Problems) {
    let place = || source.place.clone();
    if matches!(workload.arrival, Arrival::Think { .. }) {
        let message = "`scenario` does not go with a think time of all connections";
        let help = "`think` stands in the steps of the scenario's file, or above them for all; leave `arrival` out";
        p.note(Diagnosis::new(place(), message).help(help));
    }
    if workload.counter.is_some() {
        let message = "`scenario` does not go with a `counter`: not each of its steps raises one";
        let help = "what a step's answer must have stands in the file: expect = { json = [\"$.count > 0\"] }";
        p.note(Diagnosis::new(place(), message).help(help));
    }
    if workload.find_max.is_some() {
        let message = "`scenario` does not go with `find_max`, whose rates are of requests";
        let help = "name rates of users: arrival = { rate = [10, 20, 50] }";
        p.note(Diagnosis::new(place(), message).help(help));
    }
}

/// Where redirects are followed, more answers come than were asked for.
fn check_follow(workload: &Workload, source: &WorkloadSource, p: &mut Problems) {
    // Of users each hop is a request of its step.
    if source.planned.follow == 0 || source.planned.scenario.is_some() {
        return;
    }
    let wrong = [
        (
            matches!(workload.arrival, Arrival::Think { .. }),
            "a think time",
        ),
        (workload.counter.is_some(), "a `counter`"),
        (workload.find_max.is_some(), "`find_max`"),
    ];
    for (_, what) in wrong.iter().filter(|(is_so, _)| *is_so) {
        let message = format!("`follow` does not go with {what}");
        p.note(Diagnosis::new(source.place.clone(), message));
    }
}

fn check_method(method: &Spanned<String>, p: &mut Problems) {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    let text = method.get_ref().as_str();
    if KNOWN.contains(&text) {
        return;
    }
    let message = format!("`{}` is no method that Prony sends", short(text));
    p.note(Diagnosis::new(method.span(), message).help(suggest(text, "method", &KNOWN)));
}

fn check_header(name: &Spanned<String>, value: &Spanned<String>, p: &mut Problems) {
    const OURS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let text = name.get_ref();
    if text.is_empty() || !text.chars().all(token) {
        let message = format!("`{}` is no name of a header", short(text));
        p.note(Diagnosis::new(name.span(), message));
    } else if OURS.contains(&text.to_ascii_lowercase().as_str()) {
        let message = format!("the header `{text}` is written by Prony itself");
        p.note(Diagnosis::new(name.span(), message));
    }
    if value
        .get_ref()
        .contains(|c: char| c.is_control() && c != '\t')
    {
        p.note(Diagnosis::new(
            value.span(),
            "a header's value is one line of text",
        ));
    }
}
