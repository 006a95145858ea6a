use super::*;
use serde_json::json;

fn summary() -> Value {
    let rate = |median: f64| json!({"median": median, "low": median * 0.9, "high": median * 1.1, "spread": "interval", "blocks": 6});
    let cell = |subject: &str, connections: u32, verdict: &str, conclusion: &str| {
        json!({
            "cell": format!("{subject} ping c={connections}"), "subject": subject, "workload": "ping",
            "connections": connections, "settings": {"services": "off"}, "verdict": verdict, "invalid_by": ["P006"],
            "rate_per_s": rate(31_623.3), "latency_ns": {"p99": rate(112_831.0)}, "latency_max_ns": 4_130_815,
            "ratio": {"ratio": 1.9, "low": 1.7, "high": 2.1, "blocks": 6, "conclusion": conclusion},
            "ratios": {"cpu_subject": {"ratio": 3.1, "low": 2.92, "high": 3.29, "blocks": 6, "conclusion": "higher"}},
            "cpu_subject_ns": rate(16_287.2), "memory_peak_bytes": rate(10_493_952.0), "client": {"busy_client": rate(0.976)},
            "completed": 263_855, "errors_by_kind": {"timeout": 68},
        })
    };
    json!({
        "blocks": 6, "title": "A *ping*", "answer": ["first", "19.6 % of *it*"],
        "resolutions": [{"workload": "ping", "detectable": 0.196}, {"workload": "hello", "detectable": null}],
        "cells": [
            cell("rust/prony", 2, "valid", "higher"), cell("rust/prony", 100, "bound", "no-difference-shown"),
            cell("rust/axum", 100, "invalid", "lower"),
        ],
    })
}

fn said(words: &str) -> String {
    match figure(&summary(), words) {
        Ok(text) => text,
        Err(wrong) => format!("{wrong:?}"),
    }
}

#[test]
fn figures_are_written_as_documents_write_them() {
    for (words, right) in [
        ("rate \"ping\" subject=rust/prony connections=2", "31.6 k"),
        (
            "rate cell=\"rust/prony ping c=2\" as=whole",
            "31.6 k (28.5–34.8 k)",
        ),
        ("p99 \"rust/prony ping c=2\"", "113 µs"),
        ("latency_ns.p99.high \"rust/prony ping c=2\"", "124 µs"),
        ("max \"rust/prony ping c=2\"", "4.13 ms"),
        ("cpu \"rust/prony ping c=2\" as=interval", "14.7–17.9 µs"),
        ("memory \"rust/prony ping c=2\"", "10.0 MiB"),
        ("client.busy_client \"rust/prony ping c=2\"", "97.6 %"),
        ("completed \"rust/prony ping c=2\"", "263,855"),
        ("blocks \"rust/prony ping c=2\"", "6"),
        ("ratio \"rust/prony ping c=2\"", "1.90"),
        ("ratio \"rust/prony ping c=2\" as=times", "1.90 ×"),
        ("ratio \"rust/prony ping c=2\" as=change", "+90 %"),
        ("ratio \"rust/prony ping c=2\" as=whole", "1.90 (1.70–2.10)"),
        (
            "ratio.cpu \"rust/prony ping c=2\" as=claim",
            "3.10 × (2.92–3.29)",
        ),
        (
            "client.busy_client.median \"rust/prony ping c=2\" unit=ratio",
            "0.98",
        ),
        (
            "rate_per_s.median \"rust/prony ping c=2\" unit=count",
            "31,623",
        ),
        ("resolution ping", "19.6 %"),
        ("resolution", "19.6 %"),
        ("blocks", "6"),
        ("title", "A \\*ping\\*"),
        ("answer.1", "19.6 % of \\*it\\*"),
    ] {
        assert_eq!(said(words), right, "{words}");
    }
}

#[test]
fn what_is_no_claim_a_bound_or_invalid_is_not_quoted_as_a_figure() {
    assert_eq!(said("rate \"rust/prony ping c=100\""), "at least 31.6 k");
    assert_eq!(said("p99 \"rust/prony ping c=100\""), "at most 113 µs");
    assert_eq!(said("blocks \"rust/prony ping c=100\""), "6");
    let times = said("ratio \"rust/prony ping c=100\" as=times");
    assert_eq!(times, "1.90 ×, no difference shown");
    let invalid = said("rate subject=rust/axum");
    assert!(invalid.contains("the cell is invalid (P006)"), "{invalid}");
    // What went wrong can be told of it.
    assert_eq!(said("errors_by_kind.timeout subject=rust/axum"), "68");
}

#[test]
fn a_word_that_is_none_is_told_with_those_that_are() {
    for (words, typed, kind, right) in [
        ("rat \"ping\" connections=2", "rat", "figure", "rate"),
        ("rate \"pong\"", "pong", "workload", "ping"),
        (
            "rate subject=rust/proni",
            "rust/proni",
            "subject",
            "rust/prony",
        ),
        ("rate connection=2", "connection", "key", "connections"),
        ("rate service=off", "service", "key", "services"),
        ("rate services=of", "of", "services", "off"),
        ("rate connections=2 as=hole", "hole", "form", "whole"),
        ("rate connections=2 unit=byte", "byte", "unit", "bytes"),
        ("resolution pong", "pong", "workload", "ping"),
        ("resolutio", "resolutio", "figure", "resolution"),
        ("client connections=2", "", "figure", "client.busy_client"),
    ] {
        let Err(Wrong::Unknown {
            typed: t,
            kind: k,
            words: all,
        }) = figure(&summary(), words)
        else {
            panic!("{words}: {}", said(words));
        };
        assert_eq!((t.as_str(), k.as_str()), (typed, kind), "{words}");
        assert!(all.iter().any(|word| word == right), "{words}: {all:?}");
    }
}

#[test]
fn what_names_no_cell_or_several_is_told() {
    for (words, told) in [
        ("rate \"ping\"", "3 cells are meant"),
        (
            "rate subject=rust/axum connections=2",
            "no cell has all of this",
        ),
        ("", "the name of a figure comes first"),
        ("rate \"ping", "no second quote"),
        ("rate a b", "named already"),
        ("ra\"te", "a quote stands in a word"),
        ("answer.7", "a list of 2"),
        ("answer", "a list of 2"),
        ("completed connections=2 as=whole", "a single number"),
        ("rate connections=2 as=times", "one of ratios"),
        ("program.count connections=2", "program"),
    ] {
        assert!(said(words).contains(told), "{words}: {}", said(words));
    }
}
