//! When the requests of a workload start: `arrival`, and the rates among which `--quick` and `exclude` choose. Pure.

use prony_base::Nanos;
use prony_base::typed::rate::{self, RATE_MAX};
use prony_record::{Arrival, StagePoint};
use toml::de::DeValue;

use super::fields::{Fields, FromValue, Problems, Value, ValueRule};
use super::types::{Experiment, Workload};
use super::words::short;
use crate::reference::ValueForm;

/// What an arrival may be, for messages.
const FORMS: &str = "\"closed\", { think = \"10ms\" }, { rate = [1000, 2000] }, \
                     { rate = 1000, process = \"poisson\" } or { stages = \"0:100,30s:1000\" }";
/// `arrival` of a workload; closed where it is not said, or wrong.
pub fn read(table: &Fields<'_>) -> Arrival {
    let Some(value) = table.raw("arrival") else {
        return Arrival::Closed;
    };
    if let Some(inner) = table.inner("arrival", value) {
        return read_table(&inner).unwrap_or_default();
    }
    let message = match value.get_ref() {
        DeValue::String(text) if text == "closed" => return Arrival::Closed,
        DeValue::String(text) => format!("there is no arrival `{}`", short(text)),
        _ => "`arrival` is a string or a table".to_owned(),
    };
    table.note("arrival", message, format!("it is {FORMS}"));
    Arrival::Closed
}

fn read_table(table: &Fields<'_>) -> Option<Arrival> {
    let think = table.get("think").map(|length: Nanos| length.0);
    let (rates, stages) = (table.get("rate"), read_stages(table));
    let poisson = table.value::<String>("process") == "poisson";
    let message = table.given(&["think", "rate", "stages"]);
    if message.len() != 1 {
        let message = match message.as_slice() {
            [] => "this arrival says neither `think` nor `rate` nor `stages`".to_owned(),
            several => format!(
                "an arrival has one of {}",
                crate::diagnosis::quoted(several)
            ),
        };
        let help = format!("arrival is {FORMS}");
        table.problems.advise(table.span.clone(), message, help);
        return None;
    }
    if table.has("think") {
        let message = "`process` is how the arrivals of a rate are spaced; a closed loop has none";
        table.refuse(&["process"], message, "leave it out");
    }
    let of_think = think.map(|think_ns| Arrival::Think { think_ns });
    let of_rates = rates.map(|rates_per_s| match poisson {
        true => Arrival::Poisson { rates_per_s },
        false => Arrival::Constant { rates_per_s },
    });
    let of_stages = stages.map(|points| Arrival::Stages { points, poisson });
    of_think.or(of_rates).or(of_stages)
}

fn read_stages(table: &Fields<'_>) -> Option<Vec<StagePoint>> {
    let text: String = table.get("stages")?;
    let point = |(at, rate_per_s): (Nanos, f64)| StagePoint {
        at_ns: at.0,
        rate_per_s,
    };
    let points = rate::stages(&text).map_err(|reason| {
        let message = format!("`stages` cannot be used: {reason}");
        let help = "points of time and rate, from the start of the warm-up: \"0:100,30s:1000\"";
        table.note("stages", message, help);
    });
    Some(points.ok()?.into_iter().map(point).collect())
}

impl FromValue for f64 {
    /// A rate is more than 0, or a text such as `"2.5k"`; another number is not negative.
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => Some(number.as_str()),
            DeValue::Float(number) => Some(number.as_str()),
            _ => None,
        };
        if rule.form != &ValueForm::Rate {
            let read = number.and_then(|text| text.replace('_', "").parse::<f64>().ok());
            let read = read.filter(|number| number.is_finite() && *number >= 0.0);
            let message = || format!("`{}` must be a number that is not negative", rule.name);
            return read.or_else(|| {
                p.note(value.span(), message());
                None
            });
        }
        let read = match (number, value.get_ref()) {
            (Some(number), _) => plain(number),
            (None, DeValue::String(text)) => rate::parse(text),
            (None, _) => Err("it is a number".to_owned()),
        };
        let cannot = |reason| {
            let message = format!("`{}` cannot be used: {reason}", rule.name);
            let help = "requests a second, more than 0: 1000, 0.5 or \"2.5k\"";
            p.advise(value.span(), message, help);
        };
        read.map_err(cannot).ok()
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
pub fn rates_of(workload: &Workload) -> &[f64] {
    match &workload.arrival {
        Arrival::Constant { rates_per_s } | Arrival::Poisson { rates_per_s } => rates_per_s,
        _ => &[],
    }
}

/// What can be checked once the whole file is read.
pub fn check_within(experiment: &Experiment, p: &Problems) {
    for workload in &experiment.workloads {
        if !workload.rows.is_empty() && rates_of(workload).len() > 1 {
            let message = "a workload with `rows` has one rate: its rows are compared at that";
            let help = "write one workload for each rate";
            p.advise(workload.name.span(), message, help);
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
            let message = parse(wrong, "").unwrap_err();
            assert!(message.contains(why), "{wrong}: {message}");
            assert!(message.contains("a.toml:6"), "{wrong}: {message}");
        }
    }

    #[test]
    fn a_quick_rate_is_one_of_the_rates() {
        let two = "{ rate = [1000, 2000] }";
        let quick = parse(two, "[run.quick]\nrate = 2000")
            .expect("an experiment")
            .quick;
        assert_eq!(quick.rates.expect("rates").into_inner(), [2e3]);
        let message = parse(two, "[run.quick]\nrate = [3000]").unwrap_err();
        assert!(
            message.contains("[run.quick] has the rate 3000, and no workload does"),
            "{message}"
        );
    }
}
