//! One step of a scenario's file.

use std::ops::RangeInclusive;

use prony_base::Nanos;
use prony_load::prepare::{RequestError, form_encoded};
use prony_load::scenario::take::CompiledTake;
use prony_load::{around_fields, with_environment};
use prony_record::{AnswerChecks, BodyForm, ScenarioStep, StepTake, TakeFrom, ThinkTime};
use toml::Spanned;
use toml::de::DeValue;

use super::file::{FileStep, Variables};
use crate::diagnosis::{Diagnosis, suggest};
use crate::experiment::expect;
use crate::experiment::fields::{Fields, Problems, Value, list, text, whole};
use crate::experiment::words::{duration, short};

/// How long a user may think.
const THINK: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos::from_secs(86_400);
/// Keys of a step that one might expect.
const UNSUPPORTED: [(&str, &str); 3] = [
    (
        "url",
        "a step has a `path`; where to, the file's `url` or the command line says",
    ),
    (
        "headers_from",
        "a value that a step takes stands in `headers` as {NAME}",
    ),
    (
        "extract",
        "it is called `take`: take.token = { json = \"$.token\" }",
    ),
];
/// Levels of `json` at the most.
const DEPTH_MAX: usize = 100;

/// What holds for all steps that do not say otherwise.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    think: Option<ThinkTime>,
    headers: Vec<(String, String)>,
    goes_on: Option<bool>,
}

impl Defaults {
    /// Reads them from the file, or from a scenario in it.
    pub fn read(
        table: &mut Fields<'_, '_>,
        variables: Variables<'_>,
        p: &mut Problems,
    ) -> Defaults {
        Defaults {
            think: think(table, p),
            headers: headers(table, variables, p),
            goes_on: goes_on(table, p),
        }
    }

    /// These, and what only the others say.
    #[must_use]
    pub fn or(self, others: &Defaults) -> Defaults {
        Defaults {
            think: self.think.or(others.think),
            headers: with_others(self.headers, &others.headers),
            goes_on: self.goes_on.or(others.goes_on),
        }
    }
}

/// `own`, and before them those of `others` whose names they have not.
fn with_others(own: Vec<(String, String)>, others: &[(String, String)]) -> Vec<(String, String)> {
    let is_own = |name: &str| own.iter().any(|(of, _)| of.eq_ignore_ascii_case(name));
    let mut all: Vec<_> = others
        .iter()
        .filter(|(name, _)| !is_own(name))
        .cloned()
        .collect();
    all.extend(own);
    all
}

impl FileStep {
    /// The texts that may have fields.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter().map(|(_, value)| value.as_str());
        [self.path.as_str(), self.body.as_str()]
            .into_iter()
            .chain(headers)
    }
}

/// Reads a step.
pub fn read_step(
    mut table: Fields<'_, '_>,
    defaults: &Defaults,
    variables: Variables<'_>,
    p: &mut Problems,
) -> Option<FileStep> {
    let span = table.span.clone();
    let name = table.text_needed("name", "name = \"login\"", p);
    if let Some(name) = name.as_ref().filter(|name| !is_name(name.get_ref())) {
        let message = "a step's name has 1 to 60 letters, digits, spaces, or any of -_./:";
        p.note(Diagnosis::new(name.span(), message));
    }
    let path = match table.has("url") && !table.has("path") {
        true => None,
        false => table.text_needed("path", "path = \"/login\"", p),
    };
    let written_path = path.as_ref().map(|path| path.get_ref().clone());
    let path = path.and_then(|path| environment(&path, variables, p));
    let method = table.text("method", p).map(Spanned::into_inner);
    let mut headers = headers(&mut table, variables, p);
    let (body, form) = body(&mut table, variables, p);
    let usual_type = match form {
        BodyForm::AsIs => None,
        BodyForm::Form => Some("application/x-www-form-urlencoded"),
        BodyForm::Json => Some("application/json"),
    };
    headers = with_others(headers, &defaults.headers);
    let has_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
    if let Some(usual) = usual_type.filter(|_| !headers.iter().any(has_type)) {
        headers.push(("Content-Type".to_owned(), usual.to_owned()));
    }
    let takes = takes(&mut table, p);
    let mut step = ScenarioStep {
        body: form,
        takes,
        think: think(&mut table, p).or(defaults.think).unwrap_or_default(),
        goes_on: goes_on(&mut table, p)
            .or(defaults.goes_on)
            .unwrap_or_default(),
        once: table.truth("once", p).unwrap_or_default(),
        ..ScenarioStep::default()
    };
    let expected_body = expected(&mut table, &mut step, p);
    table.finish(&UNSUPPORTED, p);
    step.name = name?.into_inner();
    let step = FileStep {
        method: method.unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned()),
        path: path?,
        written_path: written_path.unwrap_or_default(),
        headers,
        body,
        expected_body,
        step,
    };
    if let Err(error) = step.request("localhost", &[]) {
        let error = match error {
            RequestError::Path(_) => RequestError::Path(step.written_path.clone()),
            other => other,
        };
        p.note(Diagnosis::new(
            span,
            format!("step `{}`: {error}", short(&step.step.name)),
        ));
    }
    Some(step)
}

/// Reads `expect` into `step`; returns the body that is expected.
fn expected(
    table: &mut Fields<'_, '_>,
    step: &mut ScenarioStep,
    p: &mut Problems,
) -> Option<String> {
    let mut table = table.table("expect", "expect = {…}", p)?;
    step.expected_status = statuses(&mut table, p);
    let headers = table.texts("headers", p).unwrap_or_default();
    let body = table.text("body", p).map(Spanned::into_inner);
    let mut checks = expect::read_checks(&mut table, p);
    checks.headers = headers
        .iter()
        .map(|of| expected_header(of.get_ref()))
        .collect();
    table.finish(&[], p);
    step.checks = (checks != AnswerChecks::default()).then_some(checks);
    body
}

fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || " -_./:".contains(c);
    (1..=60).contains(&name.chars().count()) && name.chars().all(is_of_name)
}

/// A text with what it takes from the environment.
pub fn environment(
    text: &Spanned<String>,
    variables: Variables<'_>,
    p: &mut Problems,
) -> Option<String> {
    match with_environment(text.get_ref(), variables) {
        Ok(text) => Some(text),
        Err(error) => {
            p.note(Diagnosis::new(text.span(), error.to_string()));
            None
        }
    }
}

fn headers(
    table: &mut Fields<'_, '_>,
    variables: Variables<'_>,
    p: &mut Problems,
) -> Vec<(String, String)> {
    let pairs = table.pairs("headers", p).unwrap_or_default();
    let mut headers = Vec::new();
    for (name, value) in pairs {
        headers.extend(environment(&value, variables, p).map(|value| (name.into_inner(), value)));
    }
    headers
}

fn expected_header(text: &str) -> (String, Option<String>) {
    match text.split_once(':') {
        None => (text.trim().to_owned(), None),
        Some((name, value)) => (name.trim().to_owned(), Some(value.trim().to_owned())),
    }
}

/// The body, and how values are written into it.
fn body(
    table: &mut Fields<'_, '_>,
    variables: Variables<'_>,
    p: &mut Problems,
) -> (String, BodyForm) {
    let given: Vec<_> = ["body", "form", "json"]
        .into_iter()
        .filter(|key| table.has(key))
        .collect();
    if let [_, second, ..] = given[..] {
        let message = format!(
            "a step has one of `body`, `form` and `json`, and here stands `{}` too",
            given[0]
        );
        p.note(Diagnosis::new(table.span_of(second), message));
    }
    let plain = table.text("body", p);
    let form = table.pairs("form", p);
    let json = table.value("json");
    if let Some(pairs) = form {
        let mut fields = Vec::new();
        for (name, value) in &pairs {
            let value = environment(value, variables, p).unwrap_or_default();
            let value = around_fields(&value, &form_encoded);
            fields.push(format!("{}={value}", form_encoded(name.get_ref())));
        }
        return (fields.join("&"), BodyForm::Form);
    }
    if let Some(json) = json {
        let mut out = String::new();
        json_of(json, &mut out, (0, variables), p);
        return (out, BodyForm::Json);
    }
    let plain = plain.and_then(|plain| environment(&plain, variables, p));
    (plain.unwrap_or_default(), BodyForm::AsIs)
}

/// Writes a value of TOML, in so many others, as JSON.
fn json_of(
    value: &Value<'_>,
    out: &mut String,
    (depth, variables): (usize, Variables<'_>),
    p: &mut Problems,
) {
    let mut wrong = |why: &str| p.note(Diagnosis::new(value.span(), why));
    if depth > DEPTH_MAX {
        return wrong("this is nested too deeply");
    }
    match value.get_ref() {
        DeValue::String(text) => {
            let text = Spanned::new(value.span(), text.to_string());
            let text = environment(&text, variables, p).unwrap_or_default();
            out.push_str(&serde_json::Value::from(text).to_string());
        }
        DeValue::Boolean(truth) => out.push_str(&truth.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => out.push_str(&number.to_string()),
            Err(_) => wrong("this number is too large"),
        },
        DeValue::Float(number) => {
            let number = number.as_str().parse::<f64>().ok();
            match number.and_then(serde_json::Number::from_f64) {
                Some(number) => out.push_str(&number.to_string()),
                None => wrong("JSON has no such number"),
            }
        }
        DeValue::Datetime(date) => out.push_str(&format!("\"{date}\"")),
        DeValue::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                json_of(item, out, (depth + 1, variables), p);
            }
            out.push(']');
        }
        DeValue::Table(table) => {
            out.push('{');
            for (place, (key, item)) in table.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                out.push_str(&serde_json::Value::from(key.get_ref().as_ref()).to_string());
                out.push(':');
                json_of(item, out, (depth + 1, variables), p);
            }
            out.push('}');
        }
    }
}

/// `take`: values by name, each from one place.
fn takes(table: &mut Fields<'_, '_>, p: &mut Problems) -> Vec<StepTake> {
    let Some(all) = table.table("take", "take = {…}", p) else {
        return Vec::new();
    };
    let mut takes = Vec::new();
    for (name, value) in all.rest() {
        let DeValue::Table(from) = value.get_ref() else {
            let message = format!("`{}` is taken from somewhere", short(name.get_ref()));
            let help = "write { json = \"$.token\" }, { header = \"X-Token\" }, { regex = \"id=(\\\\d+)\" } or { cookie = \"session\" }";
            p.note(Diagnosis::new(value.span(), message).help(help));
            continue;
        };
        let mut from = Fields::new("take.NAME = {…}", value.span(), from);
        let found: Vec<TakeFrom> = [
            from.text("json", p)
                .map(|of| TakeFrom::Json(of.into_inner())),
            from.text("header", p)
                .map(|of| TakeFrom::Header(of.into_inner())),
            from.text("regex", p)
                .map(|of| TakeFrom::Regex(of.into_inner())),
            from.text("cookie", p)
                .map(|of| TakeFrom::Cookie(of.into_inner())),
        ]
        .into_iter()
        .flatten()
        .collect();
        from.finish(&[], p);
        let [from] = found.as_slice() else {
            let message = format!(
                "`{}` is taken from one of `json`, `header`, `regex` and `cookie`",
                short(name.get_ref())
            );
            p.note(Diagnosis::new(value.span(), message));
            continue;
        };
        let take = StepTake {
            name: (*name.get_ref()).to_owned(),
            from: from.clone(),
        };
        if let Err(why) = CompiledTake::new(&take, 0) {
            p.note(Diagnosis::new(value.span(), why));
        }
        takes.push(take);
    }
    takes
}

/// `think`: `"1s"`, or `"500ms..2s"`.
fn think(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<ThinkTime> {
    let typed = table.text("think", p)?;
    let of = |text: &str| {
        let length = duration(text.trim())?;
        match THINK.contains(&length) {
            true => Ok(length.0),
            false => Err(format!("it is at most {}", THINK.end())),
        }
    };
    let both = match typed.get_ref().split_once("..") {
        None => of(typed.get_ref()).map(|length| (length, length)),
        Some((least, most)) => of(least).and_then(|least| Ok((least, of(most)?))),
    };
    let why = match both {
        Ok((min_ns, max_ns)) if min_ns <= max_ns => return Some(ThinkTime { min_ns, max_ns }),
        Ok(_) => "the first is the smaller one".to_owned(),
        Err(why) => why,
    };
    let message = format!("`think` is not a time to wait, such as \"1s\" or \"500ms..2s\": {why}");
    p.note(Diagnosis::new(typed.span(), message));
    None
}

/// `on_failure`.
fn goes_on(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<bool> {
    let typed = table.text("on_failure", p)?;
    match typed.get_ref().as_str() {
        "end" => Some(false),
        "continue" => Some(true),
        other => {
            let message = format!(
                "`{}` is nothing that a user does when a step fails",
                short(other)
            );
            let help = suggest(other, "on_failure", &["end", "continue"]);
            p.note(Diagnosis::new(typed.span(), message).help(help));
            None
        }
    }
}

/// `status`: a code, a class such as `"2xx"`, or a list of these.
fn statuses(table: &mut Fields<'_, '_>, p: &mut Problems) -> Vec<u16> {
    let Some(value) = table.value("status") else {
        return Vec::new();
    };
    let items = match value.get_ref() {
        DeValue::Array(_) => list("status", value, "status codes", p).unwrap_or_default(),
        _ => std::slice::from_ref(value),
    };
    let mut all = Vec::new();
    for item in items {
        if !matches!(item.get_ref(), DeValue::String(_)) {
            all.extend(whole("status", item, 200..=599, p).map(|code| code as u16));
            continue;
        }
        let Some(class) = text("status", item, p) else {
            continue;
        };
        match class
            .get_ref()
            .strip_suffix("xx")
            .and_then(|class| class.parse::<u16>().ok())
        {
            Some(class @ 2..=5) => all.extend(class * 100..(class + 1) * 100),
            _ => {
                let message = format!(
                    "`{}` is no class of status codes such as \"2xx\"",
                    short(class.get_ref())
                );
                p.note(Diagnosis::new(item.span(), message));
            }
        }
    }
    all
}
