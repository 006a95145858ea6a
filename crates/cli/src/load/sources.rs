//! The requests of `prony load`: URLs that are typed, a file of requests, and a data file for their fields.

use std::env;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, bail};
use prony_base::counted;
use prony_lab::scenario::{ScenarioContext, ScenarioFile};
use prony_load::named_file::FileReach;
use prony_load::prepare::{LoadUrl, RequestParts, prepare};
use prony_load::requests::{
    ListError, ListedContext, ListedRequest, RequestFormat, RequestList, body_of, from_environment,
    read, usual_method,
};
use prony_load::{accepted_codings, escaped_text, has_fields};
use prony_record::{LoadData, Pace, PreparedRequest, RequestOrder, RowOrder, ScenarioSpec};

use super::source_words::{DataOrderWord, OrderWord};
use super::words::LoadWords;
use super::{expect, identity};

/// Bytes of a file of requests that its format is recognised by.
const START_BYTES: usize = 64 << 10;

/// The resolved requests.
#[derive(Debug)]
pub struct Requests {
    /// The server.
    pub url: LoadUrl,
    /// The requests.
    pub all: Vec<PreparedRequest>,
    /// Their order.
    pub order: RequestOrder,
    /// It by places, of a log.
    pub sequence: Vec<u32>,
    /// Whether they have fields.
    pub has_fields: bool,
    /// The data file.
    pub data: Option<LoadData>,
    /// The scenario whose steps they are.
    pub scenario: Option<ScenarioSpec>,
    /// When they start, where a log says it.
    pub replay: Option<Pace>,
    /// Notes for the user, a line each.
    pub notes: Vec<String>,
}

/// The requests of the words.
pub fn resolve(words: &LoadWords) -> anyhow::Result<Requests> {
    let mut requests = match (&words.source.requests_file, &words.source.scenario) {
        (None, None) => typed(words)?,
        (Some(file), _) => listed(words, file)?,
        (None, Some(file)) => steps(words, file)?,
    };
    requests.data = words.source.data.as_ref().map(|path| LoadData {
        path: path.clone(),
        order: match words.source.data_order {
            None | Some(DataOrderWord::InTurn) => RowOrder::InTurn,
            Some(DataOrderWord::Once) => RowOrder::Once,
            Some(DataOrderWord::Random) => RowOrder::Random,
        },
    });
    if words.pace.find_max.is_some() && words.source.data_order == Some(DataOrderWord::Once) {
        bail!(
            "--find-max runs many loads, each with the same rows: give --data-order in-turn or random"
        );
    }
    requests.has_fields |= requests.data.is_some();
    let is_weighted = requests.all.iter().any(|request| request.weight > 0);
    requests.order = match words.source.order {
        Some(OrderWord::Random) => RequestOrder::Random,
        Some(OrderWord::InTurn) if is_weighted => bail!(
            "--order in-turn sends each request as often as the others, but the file gives weights: leave one of them out"
        ),
        Some(OrderWord::InTurn) => RequestOrder::InTurn,
        None if requests.scenario.is_some() => RequestOrder::BySlot,
        None if is_weighted => RequestOrder::Random,
        None if requests.all.len() > 1 => RequestOrder::InTurn,
        None => RequestOrder::BySlot,
    };
    Ok(requests)
}

fn same_server(first: &LoadUrl, url: &LoadUrl) -> bool {
    (first.is_secure, &first.host, first.port) == (url.is_secure, &url.host, url.port)
}

/// The URLs that are typed, each with the same headers and body.
fn typed(words: &LoadWords) -> anyhow::Result<Requests> {
    let mut urls = Vec::new();
    for text in &words.urls {
        urls.push(LoadUrl::filled(&from_environment(text)?, text)?);
    }
    let first = urls.first().context("give a URL, or --requests-file")?;
    if let Some(other) = urls.iter().find(|url| !same_server(first, url)) {
        bail!(
            "`{}` and `{}` are different servers: a load drives one server; start one for each, or give the addresses of one \
             with --resolve",
            first.text,
            other.text
        );
    }
    let headers = headers(words)?;
    let (body, is_text) = body(words)?;
    let method = words.method.clone();
    let method = method.unwrap_or_else(|| usual_method(&body).to_owned());
    let mut requests = empty(first.clone());
    let is_field = |text: &str| has_fields(text.as_bytes(), &[]);
    requests.has_fields = urls.iter().any(|url| is_field(&url.path))
        || headers.iter().any(|(_, value)| is_field(value))
        || (is_text && has_fields(&body, &[]));
    // What a file holds is sent as it is.
    let is_filled = requests.has_fields || words.source.data.is_some();
    let body = match is_filled && !is_text {
        true => escaped_text(&body),
        false => body,
    };
    for url in &urls {
        let parts = RequestParts {
            method: &method,
            path: &url.path,
            authority: &url.authority,
            headers: &headers,
            body: &body,
        };
        let expected = words.expect.expect_body.as_deref();
        requests
            .all
            .push(prepare(&parts, expected.map(str::as_bytes))?);
    }
    Ok(requests)
}

/// The steps of a scenario.
fn steps(words: &LoadWords, file: &Path) -> anyhow::Result<Requests> {
    let variables = |name: &str| env::var(name).ok();
    let context = ScenarioContext {
        variables: &variables,
        has_data: words.source.data.is_some(),
    };
    let scenario = ScenarioFile::load(file, &context)?;
    let url = match (base(words, "--scenario")?, &scenario.url) {
        (Some(url), _) => url,
        (None, Some(url)) => url.clone(),
        (None, None) => bail!(
            "{}: it does not say where to: add `url = \"http://HOST:PORT\"`, or name it before --scenario",
            file.display()
        ),
    };
    let mut requests = empty(url);
    requests.all = scenario.requests(&requests.url.authority, &headers(words)?)?;
    let mut spec = scenario.spec();
    let kept_max = expect::kept_max(&words.expect)?;
    let steps = spec.flows.iter_mut().flat_map(|flow| &mut flow.steps);
    for step in steps.filter(|_| kept_max > 0) {
        step.checks.get_or_insert_default().keep_max = kept_max;
    }
    requests.scenario = Some(spec);
    Ok(requests)
}

fn empty(url: LoadUrl) -> Requests {
    Requests {
        url,
        all: Vec::new(),
        order: RequestOrder::BySlot,
        sequence: Vec::new(),
        has_fields: false,
        data: None,
        scenario: None,
        replay: None,
        notes: Vec::new(),
    }
}

/// The requests of a file.
fn listed(words: &LoadWords, file: &Path) -> anyhow::Result<Requests> {
    let cannot = || format!("cannot read the requests from {}", file.display());
    if file.is_dir() {
        bail!("{}: it is a directory", cannot());
    }
    let opened = File::open(file).with_context(cannot)?;
    let mut reader = BufReader::with_capacity(START_BYTES, opened);
    let (format, list) = read(&mut reader, words.source.format).map_err(|error| match error {
        ListError::Read(_) => anyhow::Error::new(error).context(cannot()),
        error => anyhow::anyhow!(
            "{}: {error}",
            place(file, words.source.format, error.line())
        ),
    })?;
    let base = base(words, "--requests-file")?;
    let typed = headers(words)?;
    let at = |one: &ListedRequest| place(file, Some(format), Some(one.line));
    let mut requests: Option<Requests> = None;
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut around = ListedContext {
        folder: folder.to_owned(),
        reach: match words.source.files_anywhere {
            true => FileReach::Anywhere,
            false => FileReach::Below(folder),
        },
        base: base.as_ref(),
        headers: &typed,
        keeps_cookies: words.identity.cookies,
        expected: words.expect.expect_body.as_deref().map(str::as_bytes),
        ..ListedContext::default()
    };
    for one in &list.requests {
        let (url, prepared) = around.prepared(one, format).with_context(|| at(one))?;
        let all = requests.get_or_insert_with(|| empty(url.clone()));
        if !same_server(&all.url, &url) {
            bail!(
                "{}: `{}` and `{}` are different servers: a load drives one server; to send all requests to one, name it \
                 before --requests-file",
                at(one),
                all.url.text,
                url.text
            );
        }
        all.has_fields |= has_fields(&prepared.bytes, &[]);
        all.all.push(prepared);
    }
    let mut requests = requests.context("there is no request")?;
    requests.notes = notes(&list, file);
    requests.replay = replay(words, &list, format, file)?;
    requests.sequence = list.sequence;
    Ok(requests)
}

/// Where something stands in a file of requests.
fn place(file: &Path, format: Option<RequestFormat>, line: Option<u64>) -> String {
    let file = file.display();
    match (format, line) {
        (_, None) => file.to_string(),
        (Some(RequestFormat::Har), Some(entry)) => format!("{file}, entry {entry}"),
        (_, Some(line)) => format!("{file}:{line}"),
    }
}

/// Where the requests of a file go, where it is typed.
fn base(words: &LoadWords, flag: &str) -> anyhow::Result<Option<LoadUrl>> {
    let [text] = &words.urls[..] else {
        if words.urls.is_empty() {
            return Ok(None);
        }
        bail!("with {flag} the URL says where to: give one, or none");
    };
    let url = LoadUrl::parse(text)?;
    if url.path != "/" {
        bail!(
            "with {flag} the URL says where to, and the file which paths: leave out `{}`",
            url.path
        );
    }
    Ok(Some(url))
}

/// Notes on entries of a log that were not taken as they are.
fn notes(list: &RequestList, file: &Path) -> Vec<String> {
    let mut notes = Vec::new();
    let file = file.display();
    if let Some((count, first)) = list.left_out {
        let lines = counted(count, "line");
        notes.push(format!(
            "{file}: {lines} without a request left out, the first is line {first}"
        ));
    }
    if list.without_body > 0 {
        let requests = counted(list.without_body, "request");
        notes.push(format!(
            "{file}: {requests} other than GET and HEAD, sent without a body: a log has none"
        ));
    }
    notes
}

/// When the requests of a log start.
fn replay(
    words: &LoadWords,
    list: &RequestList,
    format: RequestFormat,
    file: &Path,
) -> anyhow::Result<Option<Pace>> {
    let Some(speed) = words.source.replay else {
        return Ok(None);
    };
    if format != RequestFormat::AccessLog {
        bail!(
            "--replay needs the times of an access log, and {} is {}: give --rate",
            file.display(),
            format.name()
        );
    }
    let scaled = |at: &u64| (*at as f64 / speed) as u64;
    Ok(Some(Pace::Times {
        times_ns: list.times_ns.iter().map(scaled).collect(),
    }))
}

/// The headers that were typed, and what other words add to them.
fn headers(words: &LoadWords) -> anyhow::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    for text in &words.headers {
        let filled = from_environment(text)?;
        let Some((name, value)) = filled.split_once(':') else {
            bail!("`{text}` is not a header: write it as 'Name: value'");
        };
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let has = |headers: &[(String, String)], name: &str| {
        headers.iter().any(|(of, _)| of.eq_ignore_ascii_case(name))
    };
    if words.way.no_keepalive && !has(&headers, "connection") {
        headers.push(("Connection".to_owned(), "close".to_owned()));
    }
    if words.answers.compressed && !has(&headers, "accept-encoding") {
        headers.push(("Accept-Encoding".to_owned(), accepted_codings()));
    }
    for (name, value) in identity::headers(&words.identity)? {
        if has(&headers, &name) {
            bail!("{name} is given with -H and by another flag: leave one of them out");
        }
        headers.push((name, from_environment(&value)?));
    }
    Ok(headers)
}

/// The body that was typed, or that of a file; and whether it was typed.
fn body(words: &LoadWords) -> anyhow::Result<(Vec<u8>, bool)> {
    if let Some(file) = &words.body_file {
        return Ok((body_of(file)?, false));
    }
    let form = identity::form(&words.identity)?;
    let text = form.or_else(|| words.body.clone()).unwrap_or_default();
    Ok((from_environment(&text)?.into_bytes(), true))
}
