//! `find_max` of a workload: the highest rate that keeps an objective is looked for, by the words of
//! `prony load --find-max`. Pure.

use prony_base::Nanos;
use prony_load::Objective;

use super::fields::Fields;
use super::types::Search;

/// Length of a step where none is given, as of `prony load --find-max`.
const STEP: Nanos = Nanos::from_secs(2);
/// Keys that a workload with a search cannot have: the search decides these itself, or cannot keep to them; each with the reason.
const REFUSED: [(&str, &str); 3] = [
    (
        "arrival",
        "a search tries rates of its own, at even distances; leave `arrival` out",
    ),
    (
        "rows",
        "compare the rows in a workload without `find_max`, or give this one subjects and settings",
    ),
    (
        "counter",
        "what a search sends is not held against the number; ask for it in a workload without `find_max`",
    ),
];

/// `find_max`, and `duration`, which is the length of its steps.
pub fn read(table: &Fields<'_>) -> Option<Search> {
    let step = table.get("duration").unwrap_or(STEP);
    if !table.has("find_max") {
        let message = "`{key}` of a workload is the length of the steps of its `find_max`";
        let help = "the length of the window of all workloads stands in [run]";
        table.refuse(&["duration"], message, help);
        return None;
    }
    for (key, help) in REFUSED {
        table.refuse(&[key], "`{key}` cannot go with `find_max`", help);
    }
    let objective = table.parsed("find_max", |text| {
        let objective: Result<Objective, String> = text.parse();
        objective.map_err(|reason| format!("`find_max` cannot be used: {reason}"))
    })?;
    Some(Search { objective, step })
}

/// `find_max` in a workload of programs or clients, downloads among them.
pub fn refuse(table: &Fields<'_>) {
    let message = "`find_max` is for a workload with a `request`, which Prony's own generator sends to a server";
    let help = "a program or a client (wrk, a download) takes no rate from Prony";
    table.refuse(&["find_max"], message, help);
    let message = "`duration` in a workload is the length of a step of its `find_max`";
    let help = "how long is measured stands in [run]";
    table.refuse(&["duration"], message, help);
}

#[cfg(test)]
mod tests {
    use super::super::fields::Origin;
    use super::super::types::Experiment;
    use super::*;

    fn parse(workload: &str) -> Result<Experiment, String> {
        let text = format!(
            "[[subject]]\ncmd = \"./server {{port}}\"\n[[workload]]\n{workload}\nfind_max = \"p99<10ms\"\n"
        );
        let parsed = Experiment::parse(&text, &Origin::new("a.toml", "/"));
        parsed.map_err(|wrong| wrong.render(false))
    }

    #[test]
    fn an_objective_is_read_with_the_length_of_its_steps() {
        let search = |workload: &str| {
            let experiment = parse(workload).expect("an experiment");
            let search = experiment.workloads[0].find_max.expect("a search");
            (search.objective.to_string(), search.step)
        };
        let request = "request = { path = \"/\" }";
        assert_eq!(search(request), ("p99 < 10ms".to_owned(), STEP));
        let with_step = format!("{request}\nduration = \"500ms\"\ntimeout = \"1s\"");
        assert_eq!(search(&with_step).1, Nanos::from_millis(500));
    }

    #[test]
    fn what_cannot_go_with_a_search_is_refused_where_it_stands() {
        for (line, why) in [
            ("arrival = { rate = 1000 }", "`arrival` cannot go with"),
            (
                "arrival = { think = \"1ms\" }",
                "a search tries rates of its own",
            ),
            ("rows = []", "`rows` cannot go with"),
            (
                "counter = { path = \"/n\", adds = 1 }",
                "`counter` cannot go with",
            ),
            // By its older name, too.
            (
                "tally = { path = \"/n\", adds = 1 }",
                "`counter` cannot go with",
            ),
            ("duration = \"1us\"", "it must be from"),
            ("stages = \"0:1\"", "it stands in `arrival`"),
        ] {
            let message = parse(&format!("request = {{ path = \"/\" }}\n{line}")).unwrap_err();
            assert!(message.contains(why), "{line}: {message}");
            assert!(message.contains("a.toml:5"), "{line}: {message}");
        }
        for of_others in [
            "client = \"requests\"\npath = \"/\"",
            "client = \"downloads\"\npayload = \"1MiB\"",
            "work = \"start\"\ncount = 10",
        ] {
            let message = parse(of_others).unwrap_err();
            assert!(message.contains("takes no rate from Prony"), "{message}");
            assert!(message.contains("a.toml:6"), "{message}");
        }
    }

    #[test]
    fn what_is_no_objective_is_refused_where_it_stands() {
        let text = |more: &str| {
            let text = format!(
                "[[subject]]\ncmd = \"./server {{port}}\"\n[[workload]]\nrequest = {{ path = \"/\" }}\n{more}\n"
            );
            let parsed = Experiment::parse(&text, &Origin::new("a.toml", "/"));
            parsed.unwrap_err().render(false)
        };
        for (line, why) in [
            ("find_max = \"p99>10ms\"", "write it as p99<10ms"),
            ("find_max = \"p100<10ms\"", "the largest is `max`"),
            ("find_max = 7", "`find_max` must be a string"),
            ("duration = \"1s\"", "is the length of the steps of its"),
        ] {
            let message = text(line);
            assert!(message.contains(why), "{line}: {message}");
            assert!(message.contains("a.toml:5"), "{line}: {message}");
        }
    }
}
