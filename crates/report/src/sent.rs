//! What a workload of a server sends, in words.

use prony_record::{PlannedSource, PlannedWorkload, RequestOrder, RequestTemplate, RowOrder};

use crate::numbers;

/// Requests of a list that are named one by one.
const NAMED_MAX: usize = 8;
/// Digits of a file's digest.
const DIGITS: usize = 12;

/// `GET /hello`; `3 requests at random by weight (2 × GET /a, 1 × GET /b)`; `120 requests of log.txt (access-log, SHA-256
/// 0123456789ab…), in turn`. With the body where there is one request alone and `with_body`.
pub fn sent(workload: &PlannedWorkload, with_body: bool) -> String {
    let Some(source) = &workload.source else {
        return one(&workload.request, with_body);
    };
    let mut text = match (&source.file, source.requests.as_slice()) {
        (None, [only]) => one(&only.request, with_body),
        (None, several) => listed(source, several.len()),
        (Some(file), _) => format!(
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
    let is_known = !source.user.is_empty() || !source.bearer.is_empty();
    text.push_str(if is_known { ", with credentials" } else { "" });
    text.push_str(if source.cookies {
        ", with the cookies of each connection"
    } else {
        ""
    });
    text
}

fn one(request: &RequestTemplate, with_body: bool) -> String {
    let line = format!("{} {}", request.method, request.path);
    match request.body.as_str() {
        "" => line,
        body if with_body => format!("{line} {body}"),
        _ => line,
    }
}

fn listed(source: &PlannedSource, count: usize) -> String {
    let is_weighted = source.requests.iter().any(|one| one.weight > 0);
    let name = |one: &prony_record::PlannedRequest| {
        let line = format!("{} {}", one.request.method, one.request.path);
        match is_weighted {
            true => format!("{} × {line}", one.weight.max(1)),
            false => line,
        }
    };
    let mut names: Vec<String> = source.requests.iter().take(NAMED_MAX).map(name).collect();
    if count > NAMED_MAX {
        names.push(format!("and {} more", count - NAMED_MAX));
    }
    let order = order(source.order);
    format!(
        "{} {order} ({})",
        numbers::counted(count as u64, "request"),
        names.join(", ")
    )
}

fn order(order: RequestOrder) -> &'static str {
    match order {
        RequestOrder::Random => "at random",
        RequestOrder::InTurn | RequestOrder::BySlot => "in turn",
    }
}

fn digits(sha256: &str) -> &str {
    sha256.get(..DIGITS).unwrap_or(sha256)
}

#[cfg(test)]
mod tests {
    use prony_record::{PlannedRequest, SourceFile};

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
            ..PlannedSource::default()
        };
        let text = of(of_file);
        assert!(
            text.ends_with(
                "requests of log (access-log, SHA-256 0123456789ab…), in turn, with the rows of users.csv (SHA-256 \
                 0123456789ab…) in turn, with the cookies of each connection"
            ),
            "{text}"
        );
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
