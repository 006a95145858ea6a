//! One step of a scenario's file.

use std::ops::{Range, RangeInclusive};

use prony_base::Nanos;
use prony_load::around_fields;
use prony_load::prepare::{RequestError, form_encoded};
use prony_load::scenario::take::CompiledTake;
use prony_record::{AnswerChecks, BodyForm, ScenarioStep, StepTake, TakeFrom, ThinkTime};
use serde_json::{Number, Value as Json};
use toml::Spanned;
use toml::de::DeValue;

use super::file::{FileStep, ScenarioContext};
use crate::experiment::expect;
use crate::experiment::fields::{Fields, FromValue, Pairs, Problems, Value, ValueRule};
use crate::experiment::words::{duration, short};

/// How long a user may think.
const THINK: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos::from_secs(86_400);
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
    pub fn read(table: &Fields<'_>, context: &ScenarioContext<'_>) -> Defaults {
        Defaults {
            think: think(table),
            headers: headers(table, context),
            goes_on: goes_on(table),
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
fn with_others(
    headers: Vec<(String, String)>,
    others: &[(String, String)],
) -> Vec<(String, String)> {
    let is_set = |name: &str| headers.iter().any(|(of, _)| of.eq_ignore_ascii_case(name));
    let mut all: Vec<_> = others
        .iter()
        .filter(|(name, _)| !is_set(name))
        .cloned()
        .collect();
    all.extend(headers);
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
    table: &Fields<'_>,
    defaults: &Defaults,
    context: &ScenarioContext<'_>,
) -> Option<FileStep> {
    let p = table.problems;
    let name: Option<String> = table.get("name");
    if name.as_ref().is_some_and(|name| !is_name(name)) {
        let message = "a step's name has 1 to 60 letters, digits, spaces, or any of -_./:";
        table.note("name", message, "");
    }
    let path: Option<Spanned<String>> = match table.has("url") && !table.has("path") {
        true => None,
        false => table.get("path"),
    };
    let written_path = path.as_ref().map(|path| path.get_ref().clone());
    let path = path.and_then(|path| context.filled(&path, p));
    let method: Option<String> = table.get("method");
    let mut headers = with_others(headers(table, context), &defaults.headers);
    let (body, form) = body(table, context);
    let usual_type = match form {
        BodyForm::AsIs => None,
        BodyForm::Form => Some("application/x-www-form-urlencoded"),
        BodyForm::Json => Some("application/json"),
    };
    let has_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
    if let Some(usual) = usual_type.filter(|_| !headers.iter().any(has_type)) {
        headers.push(("Content-Type".to_owned(), usual.to_owned()));
    }
    let goes_on = goes_on(table).or(defaults.goes_on);
    let mut step = ScenarioStep {
        body: form,
        takes: takes(table),
        think: think(table).or(defaults.think).unwrap_or_default(),
        goes_on: goes_on.unwrap_or_default(),
        once: table.value("once"),
        ..ScenarioStep::default()
    };
    let expected_body = expected(&table.table_or_empty("expect"), &mut step);
    step.name = name?;
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
        let message = format!("step `{}`: {error}", short(&step.step.name));
        p.note(table.span.clone(), message);
    }
    Some(step)
}

/// Reads `expect` into `step`; returns the body that is expected.
fn expected(table: &Fields<'_>, step: &mut ScenarioStep) -> Option<String> {
    let headers: Vec<String> = table.value("headers");
    step.expected_status = statuses(table);
    let checks = AnswerChecks {
        headers: headers.iter().map(|of| expected_header(of)).collect(),
        ..expect::read_checks(table)
    };
    step.checks = (checks != AnswerChecks::default()).then_some(checks);
    table.get("body")
}

fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || " -_./:".contains(c);
    (1..=60).contains(&name.chars().count()) && name.chars().all(is_of_name)
}

fn headers(table: &Fields<'_>, context: &ScenarioContext<'_>) -> Vec<(String, String)> {
    let pairs: Pairs = table.value("headers");
    let filled = |(name, value): (Spanned<String>, Spanned<String>)| {
        let value = context.filled(&value, table.problems)?;
        Some((name.into_inner(), value))
    };
    pairs.into_iter().filter_map(filled).collect()
}

fn expected_header(text: &str) -> (String, Option<String>) {
    match text.split_once(':') {
        None => (text.trim().to_owned(), None),
        Some((name, value)) => (name.trim().to_owned(), Some(value.trim().to_owned())),
    }
}

/// The body, and how values are written into it.
fn body(table: &Fields<'_>, context: &ScenarioContext<'_>) -> (String, BodyForm) {
    let p = table.problems;
    if let [first, second, ..] = table.given(&["body", "form", "json"])[..] {
        let message =
            format!("a step has one of `body`, `form` and `json`, and here stands `{first}` too");
        table.note(second, message, "");
    }
    let plain: Option<Spanned<String>> = table.get("body");
    if let Some(pairs) = table.get::<Pairs>("form") {
        let mut fields = Vec::new();
        for (name, value) in &pairs {
            let value = context.filled(value, p).unwrap_or_default();
            let value = around_fields(&value, &form_encoded);
            fields.push(format!("{}={value}", form_encoded(name.get_ref())));
        }
        return (fields.join("&"), BodyForm::Form);
    }
    if let Some(json) = table.raw("json") {
        let json = json_of(json, 0, context, p);
        return (json.to_string(), BodyForm::Json);
    }
    let plain = plain.and_then(|plain| context.filled(&plain, p));
    (plain.unwrap_or_default(), BodyForm::AsIs)
}

/// A value of TOML that lies in so many others, as JSON.
fn json_of(value: &Value<'_>, depth: usize, context: &ScenarioContext<'_>, p: &Problems) -> Json {
    let wrong = |why: &str| {
        p.note(value.span(), why);
        Json::Null
    };
    if depth > DEPTH_MAX {
        return wrong("this is nested too deeply");
    }
    let inner = |value| json_of(value, depth + 1, context, p);
    match value.get_ref() {
        DeValue::String(text) => {
            let text = Spanned::new(value.span(), text.to_string());
            context.filled(&text, p).unwrap_or_default().into()
        }
        DeValue::Boolean(truth) => (*truth).into(),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix());
            number.map_or_else(|_| wrong("this number is too large"), Json::from)
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok();
            let number = number.and_then(Number::from_f64);
            number.map_or_else(|| wrong("JSON has no such number"), Json::from)
        }
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(items) => items.iter().map(inner).collect(),
        DeValue::Table(table) => {
            let fields = table.iter();
            fields
                .map(|(key, item)| (key.get_ref().to_string(), inner(item)))
                .collect()
        }
    }
}

/// `take`: values by name, each from one place.
fn takes(table: &Fields<'_>) -> Vec<StepTake> {
    let p = table.problems;
    let mut takes = Vec::new();
    for (name, value) in table.entries("take") {
        let name = *name.get_ref();
        let Some(from) = table.inner("take.NAME", value) else {
            let message = format!("`{}` is taken from somewhere", short(name));
            let help = "write { json = \"$.token\" }, { header = \"X-Token\" }, { regex = \"id=(\\\\d+)\" } or { cookie = \"session\" }";
            p.advise(value.span(), message, help);
            continue;
        };
        let found = [
            from.get("json").map(TakeFrom::Json),
            from.get("header").map(TakeFrom::Header),
            from.get("regex").map(TakeFrom::Regex),
            from.get("cookie").map(TakeFrom::Cookie),
        ];
        let found: Vec<TakeFrom> = found.into_iter().flatten().collect();
        let [from] = found.as_slice() else {
            let message = format!(
                "`{}` is taken from one of `json`, `header`, `regex` and `cookie`",
                short(name)
            );
            p.note(value.span(), message);
            continue;
        };
        let take = StepTake {
            name: name.to_owned(),
            from: from.clone(),
        };
        if let Err(why) = CompiledTake::new(&take, 0) {
            p.note(value.span(), why);
        }
        takes.push(take);
    }
    takes
}

/// `think`: `"1s"`, or `"500ms..2s"`.
fn think(table: &Fields<'_>) -> Option<ThinkTime> {
    let of = |text: &str| {
        let length = duration(text.trim())?;
        match THINK.contains(&length) {
            true => Ok(length.0),
            false => Err(format!("it is at most {}", THINK.end())),
        }
    };
    table.parsed("think", |typed| {
        let both = match typed.split_once("..") {
            None => of(typed).map(|length| (length, length)),
            Some((least, most)) => of(least).and_then(|least| Ok((least, of(most)?))),
        };
        let why = match both {
            Ok((min_ns, max_ns)) if min_ns <= max_ns => return Ok(ThinkTime { min_ns, max_ns }),
            Ok(_) => "the first is the smaller one".to_owned(),
            Err(why) => why,
        };
        Err(format!(
            "`think` is not a time to wait, such as \"1s\" or \"500ms..2s\": {why}"
        ))
    })
}

/// `on_failure`.
fn goes_on(table: &Fields<'_>) -> Option<bool> {
    let typed: String = table.get("on_failure")?;
    Some(typed == "continue")
}

/// `status`: a code, a class such as `"2xx"`, or a list of these.
fn statuses(table: &Fields<'_>) -> Vec<u16> {
    let statuses: Vec<StatusCodes> = table.value("status");
    statuses.into_iter().flat_map(|of| of.0).collect()
}

/// Codes of status.
#[derive(PartialEq)]
struct StatusCodes(Range<u16>);

impl FromValue for StatusCodes {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<StatusCodes> {
        let DeValue::String(class) = value.get_ref() else {
            let code = u32::read(value, rule, p)? as u16;
            return Some(StatusCodes(code..code + 1));
        };
        let digit = class.strip_suffix("xx").map(str::parse);
        if let Some(Ok(class @ 2..=5)) = digit {
            return Some(StatusCodes(class * 100..(class + 1) * 100));
        }
        let message = format!(
            "`{}` is no class of status codes such as \"2xx\"",
            short(class)
        );
        p.note(value.span(), message);
        None
    }
}
