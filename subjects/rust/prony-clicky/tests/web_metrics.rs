//! `/metrics` against the rules of OpenMetrics 1.0, by a parser that forgives nothing.

mod service;

use std::collections::{BTreeMap, BTreeSet};

use service::{Service, get, post, start};

/// A family of metrics.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    unit: Option<String>,
    help: Option<String>,
    samples: BTreeMap<String, f64>,
}

/// The families of a text, or the rule that it breaks.
fn parse(text: &str) -> Result<BTreeMap<String, Family>, String> {
    let body = text
        .strip_suffix("# EOF\n")
        .ok_or("it does not end with # EOF")?;
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in body.split_terminator('\n') {
        let wrong = |why: &str| format!("{why}: {line:?}");
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (Some(key), Some(name), Some(value)) = (words.next(), words.next(), words.next())
            else {
                return Err(wrong("a descriptor has three parts"));
            };
            if name != current {
                if families.contains_key(name) {
                    return Err(wrong("a family is in one piece"));
                }
                check_name(name).map_err(|why| wrong(&why))?;
                current = name.to_owned();
            }
            let family = families.entry(current.clone()).or_default();
            if !family.samples.is_empty() {
                return Err(wrong("descriptors come before samples"));
            }
            describe(family, name, key, value).map_err(|why| wrong(&why))?;
        } else {
            let family = families
                .get_mut(&current)
                .ok_or_else(|| wrong("no family"))?;
            take_sample(family, &current, line).map_err(|why| wrong(&why))?;
        }
    }
    Ok(families)
}

fn check_name(name: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    if name.is_empty() || !name.bytes().all(legal) || name.as_bytes()[0].is_ascii_digit() {
        return Err("a name has letters, digits, _ and :".to_owned());
    }
    let reserved = [
        "_total", "_created", "_count", "_sum", "_bucket", "_info", "_gsum",
    ];
    match reserved.iter().find(|suffix| name.ends_with(**suffix)) {
        Some(suffix) => Err(format!("a family's name does not end with {suffix}")),
        None => Ok(()),
    }
}

fn describe(family: &mut Family, name: &str, key: &str, value: &str) -> Result<(), String> {
    let twice = match key {
        "TYPE" => {
            if !["counter", "gauge"].contains(&value) {
                return Err("another type than this service has".to_owned());
            }
            !std::mem::replace(&mut family.kind, value.to_owned()).is_empty()
        }
        "UNIT" => {
            if !name.ends_with(&format!("_{value}")) {
                return Err("the unit ends the name".to_owned());
            }
            family.unit.replace(value.to_owned()).is_some()
        }
        "HELP" => family.help.replace(value.to_owned()).is_some(),
        _ => return Err("no such descriptor".to_owned()),
    };
    match twice {
        true => Err("it is said twice".to_owned()),
        false => Ok(()),
    }
}

fn take_sample(family: &mut Family, name: &str, line: &str) -> Result<(), String> {
    let (series, value) = line.rsplit_once(' ').ok_or("no value")?;
    let suffix = series.strip_prefix(name).ok_or("another family's sample")?;
    let labels = match family.kind.as_str() {
        "counter" => suffix
            .strip_prefix("_total")
            .ok_or("a counter's sample is a _total")?,
        "gauge" => suffix,
        _ => return Err("no type".to_owned()),
    };
    check_labels(labels)?;
    let number: f64 = value.parse().map_err(|_| "no number")?;
    if !number.is_finite() || number < 0.0 {
        return Err("no number that this service can have".to_owned());
    }
    match family.samples.insert(labels.to_owned(), number) {
        None => Ok(()),
        Some(_) => Err("a series twice".to_owned()),
    }
}

fn check_labels(labels: &str) -> Result<(), String> {
    if labels.is_empty() {
        return Ok(());
    }
    let inner = labels
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'));
    let (name, value) = inner
        .and_then(|inner| inner.split_once('='))
        .ok_or("labels")?;
    check_name(name)?;
    let value = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    let value = value.ok_or("a label's value is quoted")?;
    match value.contains(['"', '\\', '\n']) {
        true => Err("an escape is needed".to_owned()),
        false => Ok(()),
    }
}

fn families(service: &Service) -> BTreeMap<String, Family> {
    let answer = service.ask(&get("/metrics"));
    assert_eq!(
        answer.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    parse(&answer.body).unwrap_or_else(|why| panic!("{why}\n{}", answer.body))
}

#[test]
fn numbers_keep_the_rules_and_tell_what_happened() {
    let service = start(&[]);
    families(&service);
    service.ask(&post("/", "500"));
    service.ask(&post("/c/tea", "2"));
    service.ask(&post("/", "x"));
    let families = families(&service);
    let of = |name: &str, labels: &str| families[name].samples[labels];
    let near = |number: f64, expected: f64| (number - expected).abs() < f64::EPSILON;
    assert!(near(of("clicky_requests", "{status=\"200\"}"), 3.0));
    assert!(near(of("clicky_requests", "{status=\"400\"}"), 1.0));
    assert!(near(of("clicky_root_clicks", ""), 500.0));
    assert!(near(of("clicky_clicks", ""), 502.0));
    assert!(near(of("clicky_counters", ""), 2.0));
    assert!(of("process_cpu_seconds", "") > 0.0);
    assert!(of("process_resident_memory_bytes", "") > 1e5);
    let without_help = families.values().filter(|family| family.help.is_none());
    assert_eq!(without_help.count(), 0);
}

#[test]
fn a_counter_never_goes_down() {
    let service = start(&[]);
    let mut before = families(&service);
    let mut compared = 0;
    for round in 0..5 {
        service.ask(&post("/", "1"));
        let now = families(&service);
        let names: BTreeSet<_> = now.keys().collect();
        assert_eq!(names, before.keys().collect(), "round {round}");
        for (name, family) in now.iter().filter(|(_, family)| family.kind == "counter") {
            for (labels, value) in &family.samples {
                let earlier = before[name].samples.get(labels).unwrap_or(&0.0);
                assert!(value >= earlier, "{name}{labels}");
                compared += 1;
            }
        }
        before = now;
    }
    assert!(compared >= 5, "counters were found");
}

#[test]
fn the_parser_forgives_nothing() {
    for (text, rule) in [
        ("# TYPE a counter\na_total 1\n", "EOF"),
        ("# TYPE a counter\na 1\n# EOF\n", "_total"),
        (
            "# TYPE a_total counter\na_total_total 1\n# EOF\n",
            "does not end",
        ),
        ("# TYPE a gauge\na 1\na 2\n# EOF\n", "twice"),
        ("# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n", "unit"),
        ("# TYPE a gauge\na{b=\"c\"d\"} 1\n# EOF\n", "escape"),
        ("# TYPE a gauge\na one\n# EOF\n", "no number"),
        (
            "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\n# EOF\n",
            "one piece",
        ),
    ] {
        let refused = parse(text).expect_err(text);
        assert!(refused.contains(rule), "{refused} for {text:?}");
    }
    assert!(parse("# TYPE a gauge\na 1\n# EOF\n").is_ok());
}
