//! What the generator of a trial sends: the requests of a workload as bytes, from its one request or from its source (several requests,
//! files of them, the steps of users), whose files must be those that were planned.
//!
//! Not for: answers ([`crate::verify`]), or reading an experiment.

use std::io::{self, BufReader};
use std::path::Path;

use prony_load::named_file::{self, FileReach};
use prony_load::prepare::{LoadUrl, RequestError, RequestParts, prepare};
use prony_load::requests::{
    ListError, ListedContext, ListedRequest, RequestFormat, RequestList, from_environment, read,
};
use prony_load::{accepted_codings, first_requests, has_fields};
use prony_record::{
    LoadData, LoadSpec, PlannedScenario, PlannedSource, PlannedWorkload, PreparedRequest,
    RequestOrder, ScenarioSpec, SourceFile,
};
use prony_wire::encode::basic;
use sha2::{Digest, Sha256};

use crate::exchange;
use crate::scenario::{ScenarioContext, ScenarioFile};
use crate::sums::{self, hex};

/// Bytes that all requests of a workload may have together: the generator of each trial is sent them.
const BYTES_MAX: u64 = 128 << 20;
/// Bytes of a file that are hashed, or that its format is recognised by, at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// Users that do steps before a server is measured, each a scenario of the file: of `entries` servers that the load goes to.
pub fn users_to_verify(sent: &SentSource, entries: usize) -> u64 {
    let scenarios = sent.scenario.as_ref().map_or(0, |of| of.flows.len());
    scenarios as u64 * entries as u64
}

/// Requests that a server is asked before it is measured, at most.
pub const VERIFIED_MAX: usize = 256;
/// And at least, where they differ each time.
const VERIFIED_MIN: usize = 5;

/// What is sent, resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentSource {
    /// The requests, each once.
    pub requests: Vec<PreparedRequest>,
    /// Method and path of each as they are written, for records: what `{env:NAME}` stands for is in none.
    pub lines: Vec<(String, String)>,
    /// Their order.
    pub order: RequestOrder,
    /// The sequence of a log, by places.
    pub sequence: Vec<u32>,
    /// Whether they have fields.
    pub has_fields: bool,
    /// What users do, whose steps they are; `None`: they have nothing to do with each other.
    pub scenario: Option<ScenarioSpec>,
    /// The data file.
    pub data: Option<LoadData>,
    /// Whether connections keep cookies.
    pub cookies: bool,
    /// Redirects that are followed in a row; `None`: none are.
    pub follow_max: Option<u32>,
    /// Whether bodies of answers are decoded.
    pub decodes: bool,
    /// Format of the file, where they are from one.
    pub format: String,
    /// Files that are bodies of requests.
    pub bodies: Vec<SourceFile>,
    /// The lines of a log that are no requests, and the first of them.
    pub left_out: Option<(u64, u64)>,
    /// The requests of a log whose bodies it does not have.
    pub without_body: u64,
}

impl SentSource {
    /// The same, where each request is the only one of its connection and says so, if it says nothing else of it. The server
    /// may then close first. A client that does has the port in TIME_WAIT, and over loopback some 14,000 for each second.
    #[must_use]
    pub fn closing(mut self) -> SentSource {
        for PreparedRequest { bytes, .. } in &mut self.requests {
            let Some(end) = bytes.windows(4).position(|of| of == b"\r\n\r\n") else {
                continue;
            };
            let says = |line: &[u8]| line.to_ascii_lowercase().starts_with(b"connection:");
            if !bytes[..end].split(|byte| *byte == b'\n').any(says) {
                let after = end + 2;
                bytes.splice(after..after, *b"Connection: close\r\n");
            }
        }
        self
    }

    /// Puts it into the load of a trial.
    pub fn into_spec(self, spec: LoadSpec) -> LoadSpec {
        // What is expected of an answer, each step says.
        let expected_status = match self.scenario {
            Some(_) => Vec::new(),
            None => spec.expected_status,
        };
        LoadSpec {
            expected_status,
            scenario: self.scenario,
            requests: self.requests,
            order: self.order,
            sequence: self.sequence,
            has_fields: self.has_fields,
            data: self.data,
            cookies: self.cookies,
            follow_max: self.follow_max,
            decodes: self.decodes,
            ..spec
        }
    }
}

/// What `workload` sends to the server that is called `authority`.
///
/// # Errors
/// A file cannot be read, or is not the one that was planned.
pub fn from_workload(
    workload: &PlannedWorkload,
    authority: &str,
    seed: u64,
) -> Result<SentSource, String> {
    match &workload.source {
        None => Ok(SentSource {
            requests: exchange::variants(workload, authority, seed),
            ..SentSource::default()
        }),
        Some(source) => {
            let scenario = source.scenario.as_ref().map(|of| &of.file);
            for file in source.data.iter().chain(&source.file).chain(scenario) {
                unchanged(source, file)?;
            }
            let sent = from_source(source, workload.expect_body.as_deref(), authority)?;
            if sent.bodies != source.bodies {
                return Err("a file with the body of a request is not the one that was planned: it was changed".to_owned());
            }
            Ok(sent)
        }
    }
}

/// The requests that a server is asked one by one before it is measured: each once where they are not too many, in the order of
/// their list whatever their weights, with their fields filled in. Values that are drawn are others than those of the load.
///
/// # Errors
/// Those of [`of`].
pub fn to_verify(sent: &SentSource, seed: u64) -> Result<Vec<PreparedRequest>, String> {
    let spec = SentSource {
        order: RequestOrder::InTurn,
        sequence: Vec::new(),
        ..sent.clone()
    }
    .into_spec(LoadSpec {
        seed: !seed,
        threads: 1,
        ..LoadSpec::default()
    });
    let count = spec.requests.len();
    let least = if sent.has_fields { VERIFIED_MIN } else { 1 };
    first_requests(&spec, count.clamp(least, VERIFIED_MAX.max(least)))
}

/// What a source sends, with the files as they are.
///
/// # Errors
/// A file cannot be read, or a request cannot be sent as it is written.
pub fn from_source(
    source: &PlannedSource,
    expected: Option<&str>,
    authority: &str,
) -> Result<SentSource, String> {
    let mut sent = match (&source.scenario, &source.file) {
        (Some(scenario), _) => from_scenario(source, scenario, authority)?,
        (None, None) => from_list(source, expected, authority)?,
        (None, Some(file)) => from_file(source, file, expected, authority)?,
    };
    let bytes: u64 = sent.requests.iter().map(|one| one.bytes.len() as u64).sum();
    if bytes > BYTES_MAX {
        return Err(format!(
            "its requests have {bytes} bytes together; the generator of a trial takes {BYTES_MAX} (prony load takes more)"
        ));
    }
    sent.has_fields |= source.data.is_some();
    sent.order = source.order;
    sent.cookies = source.cookies;
    sent.decodes = source.compressed;
    sent.follow_max = Some(source.follow).filter(|count| *count > 0);
    sent.data = source.data.as_ref().map(|file| LoadData {
        path: Path::new(&source.dir).join(&file.path),
        order: source.data_order,
    });
    Ok(sent)
}

/// `Accept-Encoding`, where codings are asked for and the headers do not say which.
fn accepted(source: &PlannedSource, headers: &[(String, String)]) -> Option<(String, String)> {
    let name = "Accept-Encoding";
    let mut names = headers.iter().map(|(name, _)| name);
    let is_given = names.any(|of| of.eq_ignore_ascii_case(name));
    (source.compressed && !is_given).then(|| (name.to_owned(), accepted_codings()))
}

/// `Authorization`, where there is any.
fn authorization(source: &PlannedSource) -> Result<Option<(String, String)>, String> {
    let filled = |text: &str| from_environment(text).map_err(|error| error.to_string());
    let value = match (source.user.as_str(), source.bearer.as_str()) {
        ("", "") => return Ok(None),
        ("", token) => format!("Bearer {}", filled(token)?),
        (user, _) => basic(&filled(user)?),
    };
    Ok(Some(("Authorization".to_owned(), value)))
}

/// The steps of users. Where requests go, the subject says, and not the file.
fn from_scenario(
    source: &PlannedSource,
    scenario: &PlannedScenario,
    authority: &str,
) -> Result<SentSource, String> {
    let path = Path::new(&source.dir).join(&scenario.file.path);
    let variables = |name: &str| std::env::var(name).ok();
    let context = ScenarioContext {
        variables: &variables,
        has_data: source.data.is_some(),
    };
    let file = ScenarioFile::load(&path, &context).map_err(|wrong| wrong.to_string())?;
    let mut typed: Vec<_> = authorization(source)?.into_iter().collect();
    if typed.iter().any(|(name, _)| file.has_header(name)) {
        return Err(
            "Authorization is given twice: as a header of a step, and by `user` or `bearer`"
                .to_owned(),
        );
    }
    typed.extend(accepted(source, &[]));
    let requests = file.requests(authority, &typed);
    let steps = scenario.flows.iter().flat_map(|flow| &flow.steps);
    Ok(SentSource {
        requests: requests.map_err(|error| error.to_string())?,
        lines: steps
            .map(|step| (step.method.clone(), step.path.clone()))
            .collect(),
        scenario: Some(file.spec()),
        ..SentSource::default()
    })
}

fn from_list(
    source: &PlannedSource,
    expected: Option<&str>,
    authority: &str,
) -> Result<SentSource, String> {
    let mut sent = SentSource::default();
    let authorization = authorization(source)?;
    let filled = |text: &str| from_environment(text).map_err(|error| error.to_string());
    for one in &source.requests {
        let mut headers = Vec::new();
        for (name, value) in &one.request.headers {
            headers.push((name.clone(), filled(value)?));
        }
        let is_given = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if is_given && authorization.is_some() {
            return Err(
                "Authorization is given twice: as a header, and by `user` or `bearer`".to_owned(),
            );
        }
        headers.extend(authorization.clone());
        headers.extend(accepted(source, &headers));
        let body = filled(&one.request.body)?;
        let parts = RequestParts {
            method: &one.request.method,
            path: &filled(&one.request.path)?,
            authority,
            headers: &headers,
            body: body.as_bytes(),
        };
        let prepared = prepare(&parts, expected.map(str::as_bytes));
        let as_written = |error| match error {
            RequestError::Path(_) => RequestError::Path(one.request.path.clone()),
            other => other,
        };
        let mut prepared = prepared.map_err(|error| as_written(error).to_string())?;
        prepared.weight = one.weight;
        sent.has_fields |= has_fields(&prepared.bytes, &[]);
        let path = one.request.path.clone();
        sent.lines.push((prepared.method.clone(), path));
        sent.requests.push(prepared);
    }
    Ok(sent)
}

fn from_file(
    source: &PlannedSource,
    file: &SourceFile,
    expected: Option<&str>,
    authority: &str,
) -> Result<SentSource, String> {
    let path = Path::new(&source.dir).join(&file.path);
    let (format, list) = listed(source, file)?;
    let base =
        LoadUrl::parse(&format!("http://{authority}/")).map_err(|error| error.to_string())?;
    let mut headers = Vec::new();
    for (name, value) in &source.headers {
        let value = from_environment(value).map_err(|error| error.to_string())?;
        headers.push((name.clone(), value));
    }
    headers.extend(authorization(source)?);
    headers.extend(accepted(source, &headers));
    let mut context = ListedContext {
        folder: path.parent().unwrap_or(Path::new("")).to_owned(),
        reach: reach(source),
        base: Some(&base),
        headers: &headers,
        keeps_cookies: source.cookies,
        expected: expected.map(str::as_bytes),
        ..ListedContext::default()
    };
    let at = |one: &ListedRequest| match format {
        RequestFormat::Har => format!("{}, entry {}", file.path, one.line),
        _ => format!("{}:{}", file.path, one.line),
    };
    let mut sent = SentSource {
        sequence: list.sequence,
        left_out: list.left_out,
        without_body: list.without_body,
        format: format.name().to_owned(),
        ..SentSource::default()
    };
    for one in &list.requests {
        let prepared = context.prepared(one, format);
        let (url, prepared) = prepared.map_err(|error| format!("{}: {error}", at(one)))?;
        sent.has_fields |= has_fields(&prepared.bytes, &[]);
        sent.lines.push((prepared.method.clone(), url.path));
        sent.requests.push(prepared);
    }
    let bodies = context.bodies.iter();
    sent.bodies = bodies
        .map(|(name, bytes)| SourceFile {
            path: name.clone(),
            sha256: hex(&Sha256::digest(bytes)),
        })
        .collect();
    Ok(sent)
}

/// The requests of a file, in the format that is named or else recognised.
fn listed(
    source: &PlannedSource,
    file: &SourceFile,
) -> Result<(RequestFormat, RequestList), String> {
    let path = Path::new(&source.dir).join(&file.path);
    let cannot =
        |error: io::Error| format!("cannot read the requests from {}: {error}", path.display());
    let format = match source.format.as_str() {
        "" => None,
        format => Some(format.parse::<RequestFormat>()?),
    };
    let mut reader = BufReader::with_capacity(
        BUFFER_BYTES,
        named_file::open(&path, reach(source)).map_err(cannot)?,
    );
    read(&mut reader, format).map_err(|error| match (error.line(), error) {
        (_, ListError::Read(error)) => cannot(error),
        (Some(line), error) => format!("{}:{line}: {error}", path.display()),
        (None, error) => format!("{}: {error}", path.display()),
    })
}

/// The texts of a source in which `{env:NAME}` may stand.
pub fn texts(source: &PlannedSource) -> Vec<String> {
    let mut texts = vec![source.user.clone(), source.bearer.clone()];
    texts.extend(source.headers.iter().map(|(_, value)| value.clone()));
    for one in &source.requests {
        let request = &one.request;
        texts.extend([request.path.clone(), request.body.clone()]);
        texts.extend(request.headers.iter().map(|(_, value)| value.clone()));
    }
    let Some(file) = &source.file else {
        return texts;
    };
    // What cannot be read is reported by whoever needs the requests.
    if let Ok((format, list)) = listed(source, file)
        && format.has_fields()
    {
        for one in list.requests {
            texts.push(one.url);
            texts.extend(one.headers.into_iter().map(|(_, value)| value));
        }
    }
    texts
}

/// Where the files of a source may lie.
fn reach(source: &PlannedSource) -> FileReach<'_> {
    match source.files_anywhere {
        true => FileReach::Anywhere,
        false => FileReach::Below(Path::new(&source.dir)),
    }
}

/// SHA-256 of a file that `source` names, in hexadecimal.
///
/// # Errors
/// It cannot be read, or may not be named.
pub fn sha256_of(source: &PlannedSource, name: &str) -> Result<String, String> {
    let path = Path::new(&source.dir).join(name);
    let digest = named_file::open(&path, reach(source)).and_then(sums::digest_of);
    digest.map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Checks that a file is the one that was planned.
fn unchanged(source: &PlannedSource, file: &SourceFile) -> Result<(), String> {
    let now = sha256_of(source, &file.path)?;
    if now == file.sha256 {
        return Ok(());
    }
    Err(format!(
        "{} is not the file that was planned: it was changed since the run began",
        file.path
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_alone_on_its_connection_says_so_before_its_body() {
        let closing = |bytes: &str| {
            let request = PreparedRequest {
                bytes: bytes.into(),
                ..PreparedRequest::default()
            };
            let sent = SentSource {
                requests: vec![request],
                ..SentSource::default()
            };
            String::from_utf8(sent.closing().requests.remove(0).bytes).expect("text")
        };
        assert_eq!(
            closing("POST /ping HTTP/1.1\r\nHost: a\r\n\r\na\r\n\r\nb"),
            "POST /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\na\r\n\r\nb"
        );
        let says = "GET / HTTP/1.1\r\nHost: a\r\nconnection: upgrade\r\n\r\n";
        assert_eq!(closing(says), says);
    }
}
