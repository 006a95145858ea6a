//! When the requests of a workload start: `arrival`, and the rates among which `--quick` and `exclude` choose. Pure.

use prony_base::Nanos;
use prony_base::typed::rate::{self, RATE_MAX};
use prony_record::{Arrival, StagePoint};
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{self, Fields, Problems, Value};
use super::types::{Experiment, Workload};
use super::words::short;
use crate::diagnosis::{Diagnosis, suggest};

/// Think times that an experiment may ask for.
const THINK: std::ops::RangeInclusive<Nanos> = Nanos(1)..=Nanos::from_secs(600);
/// What an arrival may be, for messages.
const FORMS: &str = "\"closed\", { think = \"10ms\" }, { rate = [1000, 2000] }, \
                     { rate = 1000, process = \"poisson\" } or { stages = \"0:100,30s:1000\" }";
/// How the arrivals of a rate are spaced.
const PROCESSES: [&str; 2] = ["constant", "poisson"];

/// `arrival` of a workload; closed where it is not said, or wrong.
pub fn read(table: &mut Fields<'_, '_>, p: &mut Problems) -> Arrival {
    let Some(value) = table.value("arrival") else {
        return Arrival::Closed;
    };
    match value.get_ref() {
        DeValue::String(text) if text == "closed" => Arrival::Closed,
        DeValue::Table(inner) => {
            let inner = Fields::new("arrival = {…}", value.span(), inner);
            read_table(inner, p).unwrap_or_default()
        }
        other => {
            let message = match other {
                DeValue::String(text) => format!("there is no arrival `{}`", short(text)),
                _ => "`arrival` is a string or a table".to_owned(),
            };
            p.note(Diagnosis::new(value.span(), message).help(format!("it is {FORMS}")));
            Arrival::Closed
        }
    }
}

fn read_table(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Arrival> {
    let think = table.duration("think", THINK, p);
    let rates = table.value("rate").and_then(|value| rates(value, p));
    let stages = table.text("stages", p).and_then(|text| stages(&text, p));
    let process = table.text("process", p);
    let said: Vec<&str> = ["think", "rate", "stages"]
        .into_iter()
        .filter(|key| table.has(key))
        .collect();
    if said.len() != 1 {
        let message = match said.as_slice() {
            [] => "this arrival says neither `think` nor `rate` nor `stages`".to_owned(),
            several => format!(
                "an arrival has one of {}",
                crate::diagnosis::quoted(several)
            ),
        };
        p.note(Diagnosis::new(table.span.clone(), message).help(format!("arrival is {FORMS}")));
    }
    let poisson = process.as_ref().map(|process| is_poisson(process, p));
    if let (Some(process), true) = (&process, table.has("think")) {
        let message = "`process` is how the arrivals of a rate are spaced; a closed loop has none";
        p.note(Diagnosis::new(process.span(), message).help("leave it out"));
    }
    table.finish(&[], p);
    if said.len() != 1 {
        return None;
    }
    let poisson = poisson.unwrap_or(false);
    let of_think = think.map(|length| Arrival::Think { think_ns: length.0 });
    let of_rates = rates.map(|rates_per_s| match poisson {
        true => Arrival::Poisson { rates_per_s },
        false => Arrival::Constant { rates_per_s },
    });
    let of_stages = stages.map(|points| Arrival::Stages { points, poisson });
    of_think.or(of_rates).or(of_stages)
}

fn is_poisson(process: &Spanned<String>, p: &mut Problems) -> bool {
    let text = process.get_ref().as_str();
    if !PROCESSES.contains(&text) {
        let message = format!("there is no process `{}`", short(text));
        let help = suggest(text, "process", &PROCESSES);
        p.note(Diagnosis::new(process.span(), message).help(help));
    }
    text == "poisson"
}

fn stages(text: &Spanned<String>, p: &mut Problems) -> Option<Vec<StagePoint>> {
    let point = |(at, rate_per_s): (Nanos, f64)| StagePoint {
        at_ns: at.0,
        rate_per_s,
    };
    match rate::stages(text.get_ref()) {
        Ok(points) => Some(points.into_iter().map(point).collect()),
        Err(reason) => {
            let message = format!("`stages` cannot be used: {reason}");
            let help = "points of time and rate, from the start of the warm-up: \"0:100,30s:1000\"";
            p.note(Diagnosis::new(text.span(), message).help(help));
            None
        }
    }
}

/// `[1000, 2.5]`, or one of them alone; each once.
pub fn rates(value: &Value<'_>, p: &mut Problems) -> Option<Vec<f64>> {
    let items = match value.get_ref() {
        DeValue::Array(_) => fields::list("rate", value, "a list such as [1000, 2000]", p)?,
        _ => std::slice::from_ref(value),
    };
    if items.is_empty() {
        p.note(Diagnosis::new(
            value.span(),
            "`rate` is empty: it is a list such as [1000, 2000]",
        ));
        return None;
    }
    let mut read: Vec<f64> = Vec::with_capacity(items.len());
    for item in items {
        let rate = rate(item, p)?;
        if read.contains(&rate) {
            p.note(Diagnosis::new(item.span(), "this rate stands here twice"));
        }
        read.push(rate);
    }
    Some(read)
}

/// One rate: a number more than 0, or `"2.5k"`.
pub fn rate(value: &Value<'_>, p: &mut Problems) -> Option<f64> {
    let read = match value.get_ref() {
        DeValue::Integer(number) => plain(number.as_str()),
        DeValue::Float(number) => plain(number.as_str()),
        DeValue::String(text) => rate::parse(text),
        _ => Err("it is a number".to_owned()),
    };
    match read {
        Ok(rate) => Some(rate),
        Err(reason) => {
            let message = format!("`rate` cannot be used: {reason}");
            let help = "requests a second, more than 0: 1000, 0.5 or \"2.5k\"";
            p.note(Diagnosis::new(value.span(), message).help(help));
            None
        }
    }
}

/// A number as TOML writes it, which has exponents and no units.
fn plain(text: &str) -> Result<f64, String> {
    let rate: f64 = text
        .replace('_', "")
        .parse()
        .map_err(|_| format!("{} is no number", short(text)))?;
    match rate > 0.0 && rate <= RATE_MAX {
        true => Ok(rate),
        false => Err(format!("it must be more than 0 and at most {RATE_MAX}")),
    }
}

/// The rates that a workload's cells may have; none where it has no rate.
fn rates_of(workload: &Workload) -> &[f64] {
    match &workload.arrival {
        Arrival::Constant { rates_per_s } | Arrival::Poisson { rates_per_s } => rates_per_s,
        _ => &[],
    }
}

/// What can be checked once the whole file is read.
pub fn check_within(experiment: &Experiment, p: &mut Problems) {
    let has = |rate: &f64| {
        let mut workloads = experiment.workloads.iter();
        workloads.any(|workload| rates_of(workload).contains(rate))
    };
    if experiment.workloads.is_empty() {
        return;
    }
    if let Some(kept) = &experiment.quick.rates
        && let Some(rate) = kept.get_ref().iter().find(|rate| !has(rate))
    {
        let message = format!("[run.quick] has the rate {rate}, and no workload does");
        let help = "a quick run does fewer of the same cells, never others";
        p.note(Diagnosis::new(kept.span(), message).help(help));
    }
    for workload in &experiment.workloads {
        if !workload.rows.is_empty() && rates_of(workload).len() > 1 {
            let message = "a workload with `rows` has one rate: its rows are compared at that";
            let help = "write one workload for each rate";
            p.note(Diagnosis::new(workload.name.span(), message).help(help));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::Origin;
    use super::*;

    fn parse(arrival: &str, more: &str) -> Result<Experiment, String> {
        let text = format!(
            "{more}\n[[subject]]\ncmd = \"./server {{port}}\"\n[[workload]]\nrequest = {{ path = \"/\" }}\narrival = {arrival}\n"
        );
        let parsed = Experiment::parse(&text, &Origin::new("a.toml", "/"));
        parsed.map_err(|wrong| wrong.render(false))
    }

    fn arrival(text: &str) -> Arrival {
        parse(text, "").expect("an experiment").workloads[0]
            .arrival
            .clone()
    }

    #[test]
    fn arrivals_are_closed_or_open() {
        assert_eq!(arrival("\"closed\""), Arrival::Closed);
        let think_ns = 10_000_000;
        assert_eq!(arrival("{ think = \"10ms\" }"), Arrival::Think { think_ns });
        let constant = |rates: &[f64]| Arrival::Constant {
            rates_per_s: rates.to_vec(),
        };
        assert_eq!(arrival("{ rate = 1000 }"), constant(&[1e3]));
        assert_eq!(
            arrival("{ rate = [0.5, 1_000, \"2.5k\"] }"),
            constant(&[0.5, 1e3, 2.5e3])
        );
        assert_eq!(
            arrival("{ rate = 1000, process = \"constant\" }"),
            constant(&[1e3])
        );
        let poisson = Arrival::Poisson {
            rates_per_s: vec![1e3],
        };
        assert_eq!(arrival("{ rate = 1000, process = \"poisson\" }"), poisson);
        let point = |at_s: u64, rate_per_s| StagePoint {
            at_ns: at_s * 1_000_000_000,
            rate_per_s,
        };
        let stages = Arrival::Stages {
            points: vec![point(0, 100.0), point(30, 1e3)],
            poisson: false,
        };
        assert_eq!(arrival("{ stages = \"0:100,30s:1000\" }"), stages);
    }

    #[test]
    fn what_is_no_arrival_is_answered_with_its_place() {
        for (wrong, why) in [
            ("\"open\"", "there is no arrival `open`"),
            ("7", "`arrival` is a string or a table"),
            ("{}", "neither `think` nor `rate` nor `stages`"),
            ("{ rate = 1, think = \"1s\" }", "one of `think`, `rate`"),
            ("{ rate = 0 }", "more than 0"),
            ("{ rate = -5 }", "more than 0"),
            ("{ rate = nan }", "more than 0"),
            ("{ rate = [] }", "`rate` is empty"),
            ("{ rate = [5, 5.0] }", "stands here twice"),
            ("{ rate = \"x\" }", "is not a rate"),
            ("{ rate = true }", "it is a number"),
            (
                "{ rate = 5, process = \"poison\" }",
                "did you mean `poisson`",
            ),
            (
                "{ think = \"1s\", process = \"poisson\" }",
                "a closed loop has none",
            ),
            ("{ stages = \"5:1,5:2\" }", "the times must grow"),
            ("{ rat = 5 }", "did you mean `rate`"),
        ] {
            let said = parse(wrong, "").unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
            assert!(said.contains("a.toml:6"), "{wrong}: {said}");
        }
    }

    #[test]
    fn a_quick_rate_is_one_of_the_rates() {
        let two = "{ rate = [1000, 2000] }";
        let quick = parse(two, "[run.quick]\nrate = 2000")
            .expect("an experiment")
            .quick;
        assert_eq!(quick.rates.expect("rates").into_inner(), [2e3]);
        let said = parse(two, "[run.quick]\nrate = [3000]").unwrap_err();
        assert!(
            said.contains("[run.quick] has the rate 3000, and no workload does"),
            "{said}"
        );
    }
}
