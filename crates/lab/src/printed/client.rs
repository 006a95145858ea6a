//! The one line of a client: how much of its work it did, and whether its sums can be right.
//!
//! A client that tells a sum which cannot be has not been understood, by itself or by what
//! translates it: it is a failed trial. Whether its peer saw the same is another question
//! ([`prony_record::agreement`]), and no failure of the trial.

use prony_record::{ClientFigures, DOWNLOADS, LatencyNs, ProgramLine};

use super::{NO_MEASUREMENT, checked_lines, checked_shape, from_json};

/// What a client was asked to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientAssignment<'a> {
    /// `requests` or `downloads`.
    pub work: &'a str,
    /// Connections in all.
    pub connections: u32,
    /// Threads.
    pub threads: u32,
    /// Whether its command tells it how many; else its line says how many it has.
    pub told_threads: bool,
    /// Bytes of the body that it asks for; 0: not known.
    pub body_bytes: u64,
    /// How long the whole of it ran, as its parent saw it.
    pub wall_ns: u64,
}

/// How much longer than it ran a client may say that it worked: tools round to the
/// millisecond, or to the hundredth of a second.
const CLOCK_SLACK_NS: u64 = 10_000_000;

/// The line in what a client printed: just one. The error says what is wrong with it.
pub fn read_client(text: &str, assignment: &ClientAssignment<'_>) -> Result<ProgramLine, String> {
    let mut lines = checked_lines(text, from_json, |line| checked(line, assignment))?.into_iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => Ok(line),
        (Some(_), Some(_)) => Err("it printed two measurements, and a client has one".to_owned()),
        (None, _) => Err(NO_MEASUREMENT.to_owned()),
    }
}

fn checked(line: ProgramLine, assignment: &ClientAssignment<'_>) -> Result<ProgramLine, String> {
    let line = checked_shape(line)?;
    if line.measure != assignment.work {
        let (measure, work) = (&line.measure, assignment.work);
        return Err(format!("it measures {measure}, and was asked for {work}"));
    }
    if assignment.told_threads && line.threads != assignment.threads {
        let (printed, threads) = (line.threads, assignment.threads);
        return Err(format!(
            "it speaks of {printed} threads, and {threads} were asked for"
        ));
    }
    let figures = line.client.as_ref();
    let figures = figures.ok_or("it lacks `client`, what it counted on its connections")?;
    if figures.connections != assignment.connections {
        let (printed, wanted) = (figures.connections, assignment.connections);
        return Err(format!(
            "it speaks of {printed} connections in all, and {wanted} were asked for"
        ));
    }
    check_sums(&line, figures, assignment)?;
    Ok(line)
}

/// What no client can have seen.
fn check_sums(
    line: &ProgramLine,
    figures: &ClientFigures,
    assignment: &ClientAssignment<'_>,
) -> Result<(), String> {
    let (count, elapsed_ns) = (line.count, line.elapsed_ns);
    if elapsed_ns > assignment.wall_ns.saturating_add(CLOCK_SLACK_NS) {
        let ran = assignment.wall_ns;
        return Err(format!("it worked for {elapsed_ns} ns, and ran for {ran}"));
    }
    if count == 0 {
        let failed = figures.failed;
        return Err(format!(
            "not one answer was read to its end; {failed} failed"
        ));
    }
    let kinds = figures.failed_by_kind.values();
    let by_kind = kinds.fold(0_u64, |sum, &kind| sum.saturating_add(kind));
    if !figures.failed_by_kind.is_empty() && by_kind != figures.failed {
        let failed = figures.failed;
        return Err(format!("{failed} failed, and {by_kind} by kind"));
    }
    if figures
        .in_flight
        .is_some_and(|n| n > figures.connections.into())
    {
        let in_flight = figures.in_flight.unwrap_or(0);
        return Err(format!(
            "{in_flight} were in flight on {} connections at the end",
            figures.connections
        ));
    }
    if assignment.work == DOWNLOADS && figures.failed == 0 && assignment.body_bytes > 0 {
        let expected = count.saturating_mul(assignment.body_bytes);
        if line.bytes != expected {
            let bytes = line.bytes;
            return Err(format!(
                "it read {bytes} bytes, and {count} downloads have {expected}"
            ));
        }
    }
    if let Some(latency) = &figures.latency {
        check_latency(latency, count)?;
    }
    let histogram = figures
        .histogram
        .as_ref()
        .map(|histogram| histogram.total());
    if let Some(total) = histogram.filter(|&total| total > count) {
        return Err(format!("its histogram has {total} of {count} answers"));
    }
    Ok(())
}

/// Order and number; a percentile that is 0 was not given.
fn check_latency(latency: &LatencyNs, count: u64) -> Result<(), String> {
    if latency.count > count {
        let timed = latency.count;
        return Err(format!("it timed {timed} of {count} answers"));
    }
    let rising = [
        ("min", latency.min),
        ("p50", latency.p50),
        ("p75", latency.p75),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99_9", latency.p99_9),
        ("p99_99", latency.p99_99),
        ("max", latency.max),
    ];
    let given = || rising.iter().filter(|(_, ns)| *ns > 0);
    match given()
        .zip(given().skip(1))
        .find(|(low, high)| low.1 > high.1)
    {
        Some(((low, low_ns), (high, high_ns))) => Err(format!(
            "its latency has {low} {low_ns} ns above {high} {high_ns} ns"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use prony_record::REQUESTS;
    use proptest::prelude::*;

    use super::*;

    const ASKED: ClientAssignment<'_> = ClientAssignment {
        work: REQUESTS,
        connections: 10,
        threads: 2,
        told_threads: true,
        body_bytes: 7,
        wall_ns: 1_000_000_000,
    };

    fn line(more: &str, client: &str) -> String {
        format!(
            "{{\"measure\":\"requests\",\"threads\":2,\"elapsed_ns\":999000000,\"count\":100{more},\
             \"client\":{{\"connections\":10{client}}}}}"
        )
    }

    #[test]
    fn a_right_line_is_read_among_talk() {
        let latency = r#","failed":3,"failed_by_kind":{"connect":1,"read":2},"in_flight":10,
            "latency":{"count":90,"min":1,"mean":2.5,"stdev":1,"p50":2,"p75":0,"p90":3,"p99":3,"p99_9":0,"p99_99":0,"max":9}"#;
        let text = format!("hello\n{}\nbye {{}}", line("", &latency.replace('\n', "")));
        let read = read_client(&text, &ASKED).unwrap();
        let figures = read.client.unwrap();
        assert_eq!(
            (read.count, figures.failed, figures.in_flight),
            (100, 3, Some(10))
        );
        assert_eq!(figures.latency.unwrap().p90, 3);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let twice = format!("{}\n{}", line("", ""), line("", ""));
        let mut texts = vec!["nothing".to_owned(), twice];
        texts.push(line("", "").replace("requests", "downloads"));
        texts.push(line("", "").replace("\"threads\":2", "\"threads\":1"));
        texts.push(line("", "").replace("\"connections\":10", "\"connections\":12"));
        texts.push(line("", "").replace(",\"client\":{\"connections\":10}", ""));
        texts.push(line("", "").replace("999000000", "1999000000"));
        texts.push(line("", "").replace("\"count\":100", "\"count\":0"));
        texts.push(line("", r#","failed":3,"failed_by_kind":{"read":2}"#));
        texts.push(line("", r#","in_flight":11"#));
        let latency = r#"{"count":1,"min":1,"mean":2,"stdev":0,"p50":9,"p75":0,"p90":3,"p99":9,"p99_9":9,"p99_99":9,"max":9}"#;
        texts.push(line("", &format!(",\"latency\":{latency}")));
        let many = latency.replace("\"count\":1", "\"count\":101");
        texts.push(line("", &format!(",\"latency\":{many}")));
        texts.push(line(
            "",
            r#","histogram":{"schema":1,"unit":"ns","digits":3,"counts":[[5,101]]}"#,
        ));
        texts.push("{\"measure\":7".to_owned());
        let printed: Vec<String> = texts
            .iter()
            .map(|text| read_client(text, &ASKED).expect_err(text))
            .collect();
        insta::assert_snapshot!(printed.join("\n"), @r#"
        it printed no measurement: a line of JSON with `measure`
        it printed two measurements, and a client has one
        line 1 of its output, `{"measure":"downloads","threads":2,"elap…`: it measures downloads, and was asked for requests
        line 1 of its output, `{"measure":"requests","threads":1,"elaps…`: it speaks of 1 threads, and 2 were asked for
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: it speaks of 12 connections in all, and 10 were asked for
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: it lacks `client`, what it counted on its connections
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: it worked for 1999000000 ns, and ran for 1000000000
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: not one answer was read to its end; 0 failed
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: 3 failed, and 2 by kind
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: 11 were in flight on 10 connections at the end
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: its latency has p50 9 ns above p90 3 ns
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: it timed 101 of 100 answers
        line 1 of its output, `{"measure":"requests","threads":2,"elaps…`: its histogram has 101 of 100 answers
        line 1 of its output, `{"measure":7`: EOF while parsing an object, at column 12
        "#);
    }

    #[test]
    fn a_download_has_all_of_its_bytes() {
        let assignment = ClientAssignment {
            work: DOWNLOADS,
            ..ASKED
        };
        let of = |bytes: u64, client: &str| {
            let text =
                line(&format!(",\"bytes\":{bytes}"), client).replace("requests", "downloads");
            read_client(&text, &assignment)
        };
        assert!(of(700, "").is_ok());
        assert!(
            of(699, "")
                .unwrap_err()
                .contains("699 bytes, and 100 downloads have 700")
        );
        assert!(of(699, ",\"failed\":1").is_ok());
    }

    proptest! {
        #[test]
        fn no_output_makes_reading_panic(text in "(.|\n){0,200}", tail in ".{0,80}", number: u64) {
            let _ = read_client(&text, &ASKED);
            let _ = read_client(&format!("{{\"measure\":{tail}"), &ASKED);
            let _ = read_client(&line(&format!(",\"bytes\":{number}"), &format!(",\"failed\":{number}")), &ASKED);
        }
    }
}
