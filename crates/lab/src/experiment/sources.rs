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

use super::fields::{Fields, Pairs, Problems, plain_pairs};
use super::keys::name_of_path;
use super::spoken;
use super::types::{Experiment, Workload, WorkloadSource};
use super::words::short;

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
/// Keys that a workload with a scenario cannot have, because both say what is sent, each with its remedy.
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
pub fn read(table: &Fields<'_>) -> Option<SentRequests> {
    match table.has("scenario") {
        true => read_scenario(table),
        false => read_requests(table),
    }
}

/// Reads what goes with `scenario = "FILE"`; what the file says is known once it is read.
fn read_scenario(table: &Fields<'_>) -> Option<SentRequests> {
    for (key, help) in NOT_BESIDE_SCENARIO {
        let message =
            "`{key}` cannot go with `scenario`: what users send are the steps of its file";
        table.refuse(&[key], message, help);
    }
    let (beside, _) = planned(table, false);
    let file: Spanned<String> = table.get("scenario")?;
    let path = file.get_ref().clone();
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = name_of_path(name.strip_suffix(".toml").unwrap_or(name));
    let planned = PlannedSource {
        scenario: Some(PlannedScenario {
            file: named(path),
            flows: Vec::new(),
        }),
        cookies: false,
        ..beside
    };
    Some(SentRequests {
        request: RequestTemplate::default(),
        source: Some(WorkloadSource {
            file_at: file.span(),
            ..WorkloadSource::new(table, planned)
        }),
        name,
    })
}

/// Reads what goes with requests that have nothing to do with each other.
fn read_requests(table: &Fields<'_>) -> Option<SentRequests> {
    let file: Option<String> = table.get("requests_file");
    let is_listed = table.has("requests");
    if is_listed && file.is_some() {
        let message = "either `requests` or `requests_file`: both say what is sent";
        table.note("requests_file", message, "");
    }
    let has_data = table.has("data");
    let is_one = !is_listed && file.is_none();
    let one = table.table("request");
    if is_one && !table.has("request") {
        table.missing("request", "request = { path = \"/\" }");
    }
    let common = one.and_then(|request| match is_one {
        true => read_request(&request, has_data),
        false => Some(RequestTemplate {
            headers: read_common(&request, has_data),
            ..RequestTemplate::default()
        }),
    });
    let weighted = |each: &Fields<'_>| {
        let weight = each.value("weight");
        Some(PlannedRequest {
            request: read_request(each, has_data)?,
            weight,
        })
    };
    let requests = table.tables("requests");
    let requests: Vec<PlannedRequest> = requests.iter().filter_map(weighted).collect();
    if table.is_empty_list("requests") {
        table.note("requests", "`requests` is empty: name at least one", "");
    }
    let (planned, order_said) = planned(table, is_one);
    let common = match is_one {
        true => common?,
        false => common.unwrap_or_default(),
    };
    let (requests, first) = listed(requests, common, is_one)?;
    let name = name_of_path(file.as_ref().unwrap_or(&first.path));
    let is_needed = !is_one || planned != PlannedSource::default() || is_filled(&first);
    let path = |one: &PlannedRequest| one.request.path.clone();
    let source = is_needed.then(|| WorkloadSource {
        paths: requests.iter().map(path).collect(),
        is_order_said: order_said.is_some(),
        ..WorkloadSource::new(
            table,
            PlannedSource {
                count: requests.len() as u64,
                headers: match file {
                    Some(_) => first.headers.clone(),
                    None => Vec::new(),
                },
                order: order(order_said, &requests, table),
                requests,
                ..planned
            },
        )
    });
    Some(SentRequests {
        request: first,
        source,
        name,
    })
}

/// A file, whose digest is known once it is read.
fn named(path: String) -> SourceFile {
    SourceFile {
        path,
        sha256: String::new(),
    }
}

impl WorkloadSource {
    /// What is planned, with the places of what it is made of.
    fn new(table: &Fields<'_>, planned: PlannedSource) -> WorkloadSource {
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
        let headers = &mut one.request.headers;
        let is_set = |name: &str| headers.iter().any(|(of, _)| of.eq_ignore_ascii_case(name));
        let added = common.headers.iter().filter(|(name, _)| !is_set(name));
        let added: Vec<_> = added.cloned().collect();
        headers.extend(added);
    }
    let first = requests.first().map(|one| one.request.clone());
    Some((requests, first.unwrap_or(common)))
}

/// What stands beside the requests, and the order that is said.
fn planned(table: &Fields<'_>, is_one: bool) -> (PlannedSource, Option<RequestOrder>) {
    let file: Option<String> = table.get("requests_file");
    let format = table.parsed("format", |format| {
        format.parse::<RequestFormat>().map(|_| format.to_owned())
    });
    if file.is_none() {
        let message = "`format` is that of `requests_file`";
        table.refuse(&["format"], message, "");
    }
    let order = order_said(table, "order").map(|is_random| match is_random {
        true => RequestOrder::Random,
        false => RequestOrder::InTurn,
    });
    if order.is_some() && is_one {
        table.note("order", "one request has no order", "");
    }
    let data: Option<String> = table.get("data");
    let is_data_random = order_said(table, "data_order").unwrap_or_default();
    if data.is_none() {
        table.refuse(&["data_order"], "`data_order` is that of `data`", "");
    }
    let (user, bearer) = (credential(table, "user"), credential(table, "bearer"));
    if !user.is_empty() && !bearer.is_empty() {
        let message = "either `user` or `bearer`: a request has one `Authorization`";
        table.note("bearer", message, "");
    }
    if table.has("user") && !user.contains(':') {
        table.note("user", "`user` is NAME:PASSWORD, with a colon", "");
    }
    let source = PlannedSource {
        file: file.map(named),
        format: format.unwrap_or_default(),
        data: data.map(named),
        data_order: match is_data_random {
            true => RowOrder::Random,
            false => RowOrder::InTurn,
        },
        user,
        bearer,
        cookies: table.value("cookies"),
        compressed: table.value("compressed"),
        follow: table.value("follow"),
        ..PlannedSource::default()
    };
    (source, order)
}

/// Whether the order is random, where `key` says it.
fn order_said(table: &Fields<'_>, key: &'static str) -> Option<bool> {
    let value = table.raw(key)?;
    if value.get_ref().as_str() == Some("once") {
        let message = format!("`{key}` cannot be `once`");
        let help = "a trial lasts as long as its window: the rows of a file cannot end it";
        table.note(key, message, help);
        return None;
    }
    let order: String = table.get(key)?;
    Some(order == "random")
}

/// The order that is said, or the one that follows from the weights.
fn order(
    given: Option<RequestOrder>,
    requests: &[PlannedRequest],
    table: &Fields<'_>,
) -> RequestOrder {
    let is_weighted = requests.iter().any(|one| one.weight > 0);
    if is_weighted && given == Some(RequestOrder::InTurn) {
        let message = "`order = \"in-turn\"` sends each request as often as the others, and `weight` does not";
        table.note("order", message, "leave one of them out");
    }
    usual_order(given, is_weighted, requests.len())
}

/// The order of so many requests, where `said` does not say it.
pub fn usual_order(given: Option<RequestOrder>, is_weighted: bool, count: usize) -> RequestOrder {
    given.unwrap_or(match (is_weighted, count) {
        (true, _) => RequestOrder::Random,
        (false, 0 | 1) => RequestOrder::BySlot,
        (false, _) => RequestOrder::InTurn,
    })
}

fn credential(table: &Fields<'_>, key: &'static str) -> String {
    let Some(text) = table.get::<String>(key) else {
        return String::new();
    };
    if text.contains(char::is_control) || text.is_empty() || text.len() > CREDENTIAL_BYTES_MAX {
        let message = format!("`{key}` is one line of 1 to {CREDENTIAL_BYTES_MAX} bytes");
        table.note(key, message, "");
    }
    if has_fields(plain(&text).as_bytes(), &[]) {
        let message = format!("`{key}` has no fields but {{env:NAME}}");
        let help = "write them in a header: headers = { Authorization = \"…\" }";
        table.note(key, message, help);
    }
    text
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
fn read_common(table: &Fields<'_>, has_data: bool) -> Vec<(String, String)> {
    let message = "`{key}` is not supported";
    let several = "it stands in each of `requests`, or in `requests_file`; what they have in common are `headers`";
    table.refuse(&["path", "method", "body"], message, several);
    read_headers(table, has_data)
}

fn read_headers(table: &Fields<'_>, has_data: bool) -> Vec<(String, String)> {
    let headers: Pairs = table.value("headers");
    for (name, value) in &headers {
        check_header(name, value, table.problems);
        check_fields(value, has_data, table.problems);
    }
    plain_pairs(headers)
}

/// One request.
fn read_request(table: &Fields<'_>, has_data: bool) -> Option<RequestTemplate> {
    let (path, body) = (table.get("path"), table.get("body"));
    for text in path.iter().chain(&body) {
        check_fields(text, has_data, table.problems);
    }
    let headers = read_headers(table, has_data);
    let method = table.value("method");
    Some(RequestTemplate {
        method,
        path: path?.into_inner(),
        headers,
        body: body.map(Spanned::into_inner).unwrap_or_default(),
    })
}

/// A name in braces is a field. Those of a CSV are known once it is read.
fn check_fields(text: &Spanned<String>, has_data: bool, p: &Problems) {
    if has_data {
        return;
    }
    // With the random number of old experiments, which knew no escape.
    let plain = plain(text.get_ref()).replace("{random}", "");
    if let Err(why) = prony_load::check_fields(&plain, &[]) {
        p.note(text.span(), why.to_string());
    }
}

/// What does not go with users, with cookies, or with redirects that are followed. All belong to the connection on which requests follow
/// each other: in a pipeline the next ones are sent before the answers came.
pub fn check_within(experiment: &Experiment, p: &Problems) {
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
                p.advise(source.place.clone(), message, help);
            }
        }
    }
}

/// What a workload with users cannot have.
fn check_users(workload: &Workload, source: &WorkloadSource, p: &Problems) {
    let place = || source.place.clone();
    if matches!(workload.arrival, Arrival::Think { .. }) {
        let message = "`scenario` does not go with a think time of all connections";
        let help = "`think` stands in the steps of the scenario's file, or above them for all; leave `arrival` out";
        p.advise(place(), message, help);
    }
    if workload.counter.is_some() {
        let message = "`scenario` does not go with a `counter`: not each of its steps raises one";
        let help = "what a step's answer must have stands in the file: expect = { json = [\"$.count > 0\"] }";
        p.advise(place(), message, help);
    }
    if workload.find_max.is_some() {
        let message = "`scenario` does not go with `find_max`, whose rates are of requests";
        let help = "name rates of users: arrival = { rate = [10, 20, 50] }";
        p.advise(place(), message, help);
    }
}

/// Where redirects are followed, more answers come than were asked for.
fn check_follow(workload: &Workload, source: &WorkloadSource, p: &Problems) {
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
        p.note(source.place.clone(), message);
    }
}

fn check_header(name: &Spanned<String>, value: &Spanned<String>, p: &Problems) {
    const OURS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let text = name.get_ref();
    if text.is_empty() || !text.chars().all(token) {
        let message = format!("`{}` is no name of a header", short(text));
        p.note(name.span(), message);
    } else if OURS.contains(&text.to_ascii_lowercase().as_str()) {
        let message = format!("the header `{text}` is written by Prony itself");
        p.note(name.span(), message);
    }
    if value
        .get_ref()
        .contains(|c: char| c.is_control() && c != '\t')
    {
        p.note(value.span(), "a header's value is one line of text");
    }
}
