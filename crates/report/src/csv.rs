//! The figures as comma-separated values, a row a cell, units in the names of the columns.
//!
//! A run that has only servers alone has only their columns; what programs, clients and services have
//! besides is to the right of them, and empty for the others.
//! Not for: findings and comparisons of several cells, which `summary.json` has.

use prony_record::NEVER;

use crate::clients::figures::SpreadFigure;
use crate::escape;
use crate::figures::{CellFigures, Figure};
use crate::open::figures::OpenFigures;
use crate::programs::figures::DurationFigures;
use crate::rows::figures::{CounterFigures, ProcessFigures};

const CSV_HEAD: &str = "cell,subject,workload,connections,settings,verdict,blocks_measured,trials_failed,\
rate_per_s,rate_low_per_s,rate_high_per_s,rate_spread,ratio,ratio_low,ratio_high,conclusion,\
p50_ns,p90_ns,p99_ns,p99_9_ns,max_ns,cpu_subject_ns_per_request,cpu_generator_ns_per_request,\
memory_peak_bytes,completed,errors,findings";

/// Columns that a run with programs has besides.
const CSV_HEAD_PROGRAMS: &str = ",count,threads,measure,elapsed_ns,elapsed_low_ns,elapsed_high_ns,elapsed_spread,bytes_per_s,wall_ns,\
cpu_user_ns,cpu_system_ns,checksum,runs,run_min_ns,run_mean_ns,run_p99_ns,run_p99_9_ns,run_max_ns,deadline_ns,missed";

/// Columns that a run with clients has besides.
const CSV_HEAD_CLIENTS: &str = ",work,peer,network,client_threads,peer_threads,client_elapsed_ns,client_wall_ns,\
cpu_user_ns_per_request,cpu_system_ns_per_request,cpu_peer_ns_per_request,cpu_ratio,client_bytes_per_s,\
in_flight,busy_client,busy_peer,limit,in_flight_said,requests_by_peer,blocks_compared,blocks_agreed,discards,\
socket_ns,setup_ns,connect_ns,first_byte_ns,download_ns,download_min_ns,download_max_ns,download_stdev_ns,\
rate_bytes_per_s,run_ns,pss_bytes,stall_max_ns";

/// Columns that a run with tables with rows, or with anything around a server, has besides.
const CSV_HEAD_SERVICES: &str = ",row,baseline,front,backings,instances,generators,output,\
deviation_over_seconds_per_s,seconds,cpu_front_ns_per_request,cpu_backing_ns_per_request,cpu_by_process_ns_per_request,\
memory_peak_front_bytes,memory_peak_backing_bytes,busy_subject,busy_generator,limit,\
acknowledged,unanswered,counted,uncounted,kept,lost,blocks_asked,blocks_lost,invented";

/// Columns that a run with searches for a highest rate has besides; the rate is theirs.
const CSV_HEAD_SEARCHES: &str = ",objective,objective_below_ns,step_ns,steps,closed_loop_per_s,p50_at_highest_ns,\
blocks_at_least,blocks_nowhere";

/// A latency that never ended, as programs read it.
const INFINITE: &str = "inf";

/// Columns that a run with open loops has besides.
const CSV_HEAD_OPEN: &str = ",rate_asked_per_s,rate_drawn_per_s,waiting_max,never_sent,blocks_overloaded,blocks_generator_short";

/// All cells.
pub fn csv(cells: &[CellFigures]) -> String {
    let programs = cells.iter().any(|cell| cell.program.is_some());
    let mut head = String::from(CSV_HEAD);
    let clients = cells.iter().any(|cell| cell.client.is_some());
    if programs {
        head.push_str(CSV_HEAD_PROGRAMS);
    }
    if clients {
        head.push_str(CSV_HEAD_CLIENTS);
    }
    let services = cells.iter().any(|cell| cell.service.is_some());
    if services {
        head.push_str(CSV_HEAD_SERVICES);
    }
    let open = cells.iter().any(|cell| cell.open.is_some());
    if open {
        head.push_str(CSV_HEAD_OPEN);
    }
    let searches = cells.iter().any(|cell| cell.search.is_some());
    if searches {
        head.push_str(CSV_HEAD_SEARCHES);
    }
    let columns = Columns::of(&head);
    let mut text = columns.names.join(",");
    text.push('\n');
    for cell in cells {
        let mut fields = csv_fields(cell);
        if programs {
            fields.extend(csv_program_fields(cell));
        }
        if clients {
            fields.extend(csv_client_fields(cell));
        }
        if services {
            fields.extend(csv_service_fields(cell));
        }
        if open {
            fields.extend(csv_open_fields(cell));
        }
        if searches {
            fields.extend(csv_search_fields(cell));
        }
        let fields = columns.merged(fields);
        let fields: Vec<String> = fields.iter().map(|field| csv_field(field)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

/// The columns of a file: one that two kinds of cells have is there once, with what the cell's own kind says.
struct Columns<'a> {
    names: Vec<&'a str>,
    /// Of each field of a cell, the column that it belongs to.
    places: Vec<usize>,
}

impl<'a> Columns<'a> {
    fn of(head: &'a str) -> Columns<'a> {
        let mut columns = Columns {
            names: Vec::new(),
            places: Vec::new(),
        };
        for name in head.split(',') {
            let known = columns.names.iter().position(|known| *known == name);
            columns.places.push(known.unwrap_or(columns.names.len()));
            if known.is_none() {
                columns.names.push(name);
            }
        }
        columns
    }

    /// A cell is of one kind, so that at most one of the fields of a column says something.
    fn merged(&self, fields: Vec<String>) -> Vec<String> {
        let mut merged = vec![String::new(); self.names.len()];
        for (field, &place) in fields.into_iter().zip(&self.places) {
            if merged[place].is_empty() {
                merged[place] = field;
            }
        }
        merged
    }
}

fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value == NEVER as f64 => INFINITE.to_owned(),
        Some(value) if value.is_finite() => value.to_string(),
        _ => String::new(),
    }
}

/// The columns of [`CSV_HEAD_OPEN`]; empty for a closed loop.
fn csv_open_fields(cell: &CellFigures) -> [String; 6] {
    let of = |of: fn(&OpenFigures) -> u64| {
        let open = cell.open.as_ref();
        open.map(|open| of(open).to_string()).unwrap_or_default()
    };
    let drawn = cell.open.as_ref().and_then(|open| open.drawn_per_s);
    [
        number(cell.asked_per_s),
        number(drawn.map(|figure| figure.median)),
        of(|open| open.waiting_max),
        of(|open| open.never_sent),
        of(|open| open.blocks_overloaded as u64),
        of(|open| open.blocks_generator_short as u64),
    ]
}

/// The columns of [`CSV_HEAD_SEARCHES`]; empty for others.
fn csv_search_fields(cell: &CellFigures) -> [String; 8] {
    let Some(search) = &cell.search else {
        return [const { String::new() }; 8];
    };
    let median = |figure: Option<Figure>| number(figure.map(|f| f.median));
    [
        search.objective.clone(),
        search.below_ns.to_string(),
        search.step_ns.to_string(),
        search.steps.to_string(),
        median(search.closed_loop_per_s),
        median(search.p50_ns),
        search.blocks_at_least.to_string(),
        search.blocks_nowhere.to_string(),
    ]
}

/// The columns of [`CSV_HEAD_PROGRAMS`]; empty for a server.
fn csv_program_fields(cell: &CellFigures) -> Vec<String> {
    let Some(program) = &cell.program else {
        return vec![String::new(); CSV_HEAD_PROGRAMS.matches(',').count()];
    };
    let elapsed = program.elapsed_ns;
    let median = |figure: Option<Figure>| number(figure.map(|f| f.median));
    let durations = program.durations.as_ref();
    let of = |of: fn(&DurationFigures) -> Option<u64>| {
        let value = durations.and_then(of);
        value.map_or_else(String::new, |value| value.to_string())
    };
    vec![
        program.count.to_string(),
        program.threads.to_string(),
        program.measure.clone(),
        median(elapsed),
        number(elapsed.map(|e| e.low)),
        number(elapsed.map(|e| e.high)),
        elapsed.map_or("", |e| e.spread).to_owned(),
        median(program.bytes_per_s),
        median(program.wall_ns),
        median(program.cpu_user_ns),
        median(program.cpu_system_ns),
        program.checksum.clone(),
        of(|d| Some(d.runs)),
        of(|d| Some(d.min_ns)),
        median(durations.and_then(|d| d.mean_ns)),
        of(|d| d.p99_ns),
        of(|d| d.p99_9_ns),
        of(|d| Some(d.max_ns)),
        of(|d| Some(d.deadline_ns)),
        of(|d| Some(d.missed_count)),
    ]
}

/// The columns of [`CSV_HEAD_CLIENTS`]; empty for others.
fn csv_client_fields(cell: &CellFigures) -> Vec<String> {
    let Some(client) = &cell.client else {
        return vec![String::new(); CSV_HEAD_CLIENTS.matches(',').count()];
    };
    let median = |figure: Option<Figure>| number(figure.map(|f| f.median));
    let known = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
    let spread =
        |name: &str, of: fn(&SpreadFigure) -> f64| number(client.figures.get(name).map(of));
    let mean = |name: &str| spread(name, |s| s.mean.median);
    vec![
        client.work.clone(),
        client.peer.clone(),
        client.network.clone(),
        client.threads.clone(),
        client.peer_threads.to_string(),
        median(client.elapsed_ns),
        median(client.wall_ns),
        median(client.cpu_user_ns),
        median(client.cpu_system_ns),
        median(client.cpu_peer_ns),
        number(client.cpu_ratio.as_ref().map(|r| r.ratio)),
        median(client.bytes_per_s),
        median(client.in_flight),
        median(client.busy_client),
        median(client.busy_peer),
        client.limit.to_owned(),
        known(client.counts.in_flight),
        known(client.counts.by_peer),
        client.counts.compared.to_string(),
        client.counts.agree.to_string(),
        client.discards.to_string(),
        mean("socket_ns"),
        mean("setup_ns"),
        mean("connect_ns"),
        mean("first_byte_ns"),
        mean("download_ns"),
        spread("download_ns", |s| s.min),
        spread("download_ns", |s| s.max),
        spread("download_ns", |s| s.stdev.median),
        median(client.download_bytes_per_s),
        mean("run_ns"),
        mean("pss_bytes"),
        spread("stall_ns", |s| s.max),
    ]
}

/// The columns of [`CSV_HEAD_SERVICES`]; empty for others.
fn csv_service_fields(cell: &CellFigures) -> Vec<String> {
    let Some(service) = &cell.service else {
        return vec![String::new(); CSV_HEAD_SERVICES.matches(',').count()];
    };
    let median = |figure: Option<&Figure>| number(figure.map(|f| f.median));
    let row = service.row.as_ref();
    let process = |process: &ProcessFigures| {
        let ns = median(process.cpu_ns.as_ref());
        format!("{}/{}:{ns}", process.role, process.name)
    };
    let processes: Vec<String> = service.processes.iter().map(process).collect();
    let mut fields = vec![
        row.map_or_else(String::new, |row| row.title.clone()),
        row.and_then(|row| row.baseline.clone()).unwrap_or_default(),
        service.front.clone().unwrap_or_default(),
        service.backings.join(" "),
        service.instances.to_string(),
        service.generators.to_string(),
        format!("{:?}", service.output).to_lowercase(),
        number(service.seconds.map(|s| s.deviation_per_s)),
        service
            .seconds
            .map_or_else(String::new, |s| s.count.to_string()),
        median(service.cpu_ns.get("front")),
        median(service.cpu_ns.get("backing")),
        processes.join(" "),
        median(service.memory_peak_bytes.get("front")),
        median(service.memory_peak_bytes.get("backing")),
        median(service.busy_subject.as_ref()),
        median(service.busy_generator.as_ref()),
        service.limit.to_owned(),
    ];
    fields.extend(csv_counter_fields(service.counter.as_ref()));
    fields
}

/// What became of the number; what was not asked is empty.
fn csv_counter_fields(counter: Option<&CounterFigures>) -> [String; 9] {
    let of = |of: fn(&CounterFigures) -> Option<u64>| {
        counter
            .and_then(of)
            .map_or_else(String::new, |count| count.to_string())
    };
    [
        of(|t| Some(t.acknowledged)),
        of(|t| Some(t.unanswered)),
        of(|t| (t.read > 0).then_some(t.counted)),
        of(|t| (t.read > 0).then_some(t.uncounted)),
        of(|t| (t.asked > 0).then_some(t.kept)),
        of(|t| (t.asked > 0).then_some(t.lost)),
        of(|t| Some(t.asked.into())),
        of(|t| (t.asked > 0).then_some(t.blocks_lost.into())),
        of(|t| Some(t.invented)),
    ]
}

fn csv_fields(cell: &CellFigures) -> Vec<String> {
    let rate = cell.rate_per_s;
    let ratio = cell.ratio.as_ref();
    let latency = |name: &str| number(cell.latency_ns.get(name).map(|f| f.median));
    let settings: Vec<String> = cell
        .settings
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let findings: Vec<&str> = cell.findings.iter().map(|code| code.as_str()).collect();
    let verdict = cell
        .verdict
        .map(|verdict| format!("{verdict:?}").to_lowercase());
    vec![
        cell.cell.clone(),
        cell.subject.clone(),
        cell.workload.clone(),
        cell.connections.to_string(),
        settings.join(" "),
        verdict.unwrap_or_default(),
        cell.trials.measured.len().to_string(),
        cell.trials.failed.len().to_string(),
        number(rate.map(|r| r.median)),
        number(rate.map(|r| r.low)),
        number(rate.map(|r| r.high)),
        rate.map_or("", |r| r.spread).to_owned(),
        number(ratio.map(|r| r.ratio)),
        number(ratio.map(|r| r.low)),
        number(ratio.map(|r| r.high)),
        ratio.map_or("", |r| r.conclusion).to_owned(),
        latency("p50"),
        latency("p90"),
        latency("p99"),
        latency("p99_9"),
        match cell.latency_max_ns {
            Some(NEVER) => INFINITE.to_owned(),
            ns => ns.map(|ns| ns.to_string()).unwrap_or_default(),
        },
        number(cell.cpu_subject_ns.map(|f| f.median)),
        number(cell.cpu_generator_ns.map(|f| f.median)),
        number(cell.memory_peak_bytes.map(|f| f.median)),
        cell.completed.to_string(),
        cell.errors.to_string(),
        findings.join(" "),
    ]
}

/// A field by RFC 4180. One that a spreadsheet would take for a formula is kept from that.
fn csv_field(text: &str) -> String {
    let text = escape::clean(text);
    let formula =
        text.starts_with(['=', '+', '@']) || text.starts_with('-') && text.parse::<f64>().is_err();
    let text = if formula { format!("'{text}") } else { text };
    if text.contains([',', '"']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}
