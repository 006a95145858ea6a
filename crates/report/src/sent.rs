//! What a workload of a server sends, in words.

use prony_record::{
    PlannedFlow, PlannedScenario, PlannedSource, PlannedWorkload, RequestOrder, RequestTemplate,
    RowOrder,
};

use crate::numbers;
use crate::words::digits;

/// Requests of a list that are named one by one.
const NAMED_MAX: usize = 8;

/// `GET /hello`; `3 requests at random by weight (2 × GET /a, 1 × GET /b)`; `120 requests of log.txt (access-log, SHA-256
/// 0123456789ab…), in turn`; what users do. With the body where there is one request alone and `with_body`.
pub fn sent(workload: &PlannedWorkload, with_body: bool) -> String {
    let what = what(workload, with_body);
    match workload.requests_max {
        None => what,
        Some(count) => format!(
            "{what}, {} in all and without a warm-up",
            numbers::counted(count, "time")
        ),
    }
}

fn what(workload: &PlannedWorkload, with_body: bool) -> String {
    let Some(source) = &workload.source else {
        return one(&workload.request, with_body);
    };
    let mut text = match (&source.scenario, &source.file, source.requests.as_slice()) {
        (Some(scenario), ..) => users(scenario),
        (None, None, [only]) => one(&only.request, with_body),
        (None, None, _) => listed(source),
        (None, Some(file), _) => format!(
            "{} of {} ({}, SHA-256 {}…), {}",
            numbers::counted(source.count, "request"),
            file.path,
            source.format,
            digits(&file.sha256),
            order(source.order)
        ),
    };
    if let Some(data) = &source.data {
        let rows = match source.data_order {
            RowOrder::Random => "at random",
            RowOrder::InTurn | RowOrder::Once => "in turn",
        };
        text.push_str(&format!(
            ", with the rows of {} (SHA-256 {}…) {rows}",
            data.path,
            digits(&data.sha256)
        ));
    }
    let further = [
        (
            !source.user.is_empty() || !source.bearer.is_empty(),
            ", with credentials",
        ),
        (source.cookies, ", with the cookies of each connection"),
        (source.compressed, ", compressed"),
        (source.follow > 0, ", with redirects followed"),
    ];
    text.extend(further.into_iter().filter(|of| of.0).map(|of| of.1));
    text
}

/// `users that do the 2 steps of shop.toml (SHA-256 0123456789ab…): login POST /login, list GET /list`.
fn users(scenario: &PlannedScenario) -> String {
    let file = format!(
        "{} (SHA-256 {}…)",
        scenario.file.path,
        digits(&scenario.file.sha256)
    );
    if let [flow] = scenario.flows.as_slice() {
        let steps = numbers::counted(flow.steps.len() as u64, "step");
        return format!("users that do the {steps} of {file}: {}", named(flow));
    }
    let flow = |of: &PlannedFlow| format!("{} × {} ({})", of.weight, of.name, named(of));
    let flows = numbers::counted(scenario.flows.len() as u64, "scenario");
    let names = up_to(&scenario.flows, flow);
    format!("users that do one of the {flows} of {file}: {names}")
}

/// `login POST /login, list GET /list`.
fn named(flow: &PlannedFlow) -> String {
    up_to(&flow.steps, |step| {
        format!("{} {} {}", step.name, step.method, step.path)
    })
}

/// The first of them, and how many more there are.
fn up_to<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    let mut names: Vec<String> = all.iter().take(NAMED_MAX).map(name).collect();
    if all.len() > NAMED_MAX {
        names.push(format!("and {} more", all.len() - NAMED_MAX));
    }
    names.join(", ")
}

fn one(request: &RequestTemplate, with_body: bool) -> String {
    let line = format!("{} {}", request.method, request.path);
    match request.body.as_str() {
        "" => line,
        body if with_body => format!("{line} {body}"),
        _ => line,
    }
}

fn listed(source: &PlannedSource) -> String {
    let is_weighted = source.requests.iter().any(|one| one.weight > 0);
    let name = |one: &prony_record::PlannedRequest| {
        let line = format!("{} {}", one.request.method, one.request.path);
        match is_weighted {
            true => format!("{} × {line}", one.weight.max(1)),
            false => line,
        }
    };
    let order = order(source.order);
    let names = up_to(&source.requests, name);
    let count = numbers::counted(source.requests.len() as u64, "request");
    format!("{count} {order} ({names})")
}

fn order(order: RequestOrder) -> &'static str {
    match order {
        RequestOrder::Random => "at random",
        RequestOrder::InTurn | RequestOrder::BySlot => "in turn",
    }
}

#[cfg(test)]
mod tests {
    use prony_record::{PlannedRequest, PlannedStep, SourceFile};

    use super::*;

    fn request(path: &str, weight: u32) -> PlannedRequest {
        PlannedRequest {
            request: RequestTemplate {
                method: "GET".to_owned(),
                path: path.to_owned(),
                ..RequestTemplate::default()
            },
            weight,
        }
    }

    fn of(source: PlannedSource) -> String {
        let workload = PlannedWorkload {
            source: Some(source),
            ..PlannedWorkload::default()
        };
        sent(&workload, true)
    }

    #[test]
    fn several_requests_are_named_with_their_order_and_where_they_are_from() {
        let listed = PlannedSource {
            requests: vec![request("/a", 2), request("/b", 0)],
            count: 2,
            order: RequestOrder::Random,
            bearer: "x".to_owned(),
            ..PlannedSource::default()
        };
        assert_eq!(
            of(listed),
            "2 requests at random (2 × GET /a, 1 × GET /b), with credentials"
        );
        let file = |path: &str| {
            Some(SourceFile {
                path: path.to_owned(),
                sha256: "0123456789abcdef".to_owned(),
            })
        };
        let of_file = PlannedSource {
            file: file("log"),
            format: "access-log".to_owned(),
            count: 1200,
            order: RequestOrder::InTurn,
            data: file("users.csv"),
            cookies: true,
            follow: 5,
            ..PlannedSource::default()
        };
        let text = of(of_file);
        assert!(
            text.ends_with(
                "requests of log (access-log, SHA-256 0123456789ab…), in turn, with the rows of users.csv (SHA-256 \
                 0123456789ab…) in turn, with the cookies of each connection, with redirects followed"
            ),
            "{text}"
        );
    }

    #[test]
    fn users_are_named_with_their_steps_and_their_file() {
        let step = |name: &str, path: &str| PlannedStep {
            name: name.to_owned(),
            method: "GET".to_owned(),
            path: path.to_owned(),
        };
        let flow = |name: &str, weight, steps: Vec<PlannedStep>| PlannedFlow {
            name: name.to_owned(),
            weight,
            steps,
        };
        let with = |flows: Vec<PlannedFlow>| {
            of(PlannedSource {
                scenario: Some(PlannedScenario {
                    file: SourceFile {
                        path: "shop.toml".to_owned(),
                        sha256: "0123456789abcdef".to_owned(),
                    },
                    flows,
                }),
                compressed: true,
                ..PlannedSource::default()
            })
        };
        let both = vec![step("login", "/a"), step("list", "/b?t={t}")];
        assert_eq!(
            with(vec![flow("scenario", 1, both.clone())]),
            "users that do the 2 steps of shop.toml (SHA-256 0123456789ab…): login GET /a, list GET /b?t={t}, compressed"
        );
        let text = with(vec![
            flow("reader", 9, both),
            flow("buyer", 1, vec![step("buy", "/c"); 10]),
        ]);
        assert!(
            text.starts_with(
                "users that do one of the 2 scenarios of shop.toml (SHA-256 0123456789ab…): 9 × reader (login GET /a, "
            ),
            "{text}"
        );
        assert!(text.contains("buy GET /c, and 2 more)"), "{text}");
    }

    #[test]
    fn one_request_is_its_line_and_its_body() {
        let mut only = request("/a?n={counter}", 0);
        only.request.body = "x".to_owned();
        let source = PlannedSource {
            requests: vec![only],
            count: 1,
            ..PlannedSource::default()
        };
        assert_eq!(of(source), "GET /a?n={counter} x");
    }
}
