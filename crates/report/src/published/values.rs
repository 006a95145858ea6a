//! The values that a metric has in the trials of a cell.

use prony_base::Nanos;
use prony_findings::{Case, client, measure};
use prony_record::{CellMetric, Durations, ProgramReport, Trial};
use prony_stats::{Rate, Time, in_flight, seconds, whole_seconds};

use crate::Run;
use crate::clients::figures::download_bytes_per_s;
use crate::figure::{Figure, by_block};
use crate::metrics::Metric;

/// The values of metrics that have one in each trial ([`CellMetric::is_of_blocks`]).
pub fn values(run: &Run, case: &Case<'_>, metric: CellMetric) -> Vec<(u32, f64)> {
    let is_server = !case.is_client() && !case.is_program();
    let [_, first, after_rest] = Metric::OF_START;
    let of_servers = match metric {
        CellMetric::Rate => Some(Metric::RATE),
        CellMetric::P50 if !case.is_client() => Some(Metric::P50),
        CellMetric::P99 if !case.is_client() => Some(Metric::P99),
        CellMetric::MeanLatency if is_server => Some(Metric::MEAN),
        CellMetric::Cpu if is_server => Some(Metric::CPU),
        CellMetric::Memory if is_server => Some(Metric::MEMORY),
        CellMetric::VirtualMemory => Some(Metric::VIRTUAL_MEMORY),
        CellMetric::First => Some(first),
        CellMetric::AfterRest => Some(after_rest),
        _ => None,
    };
    if let Some(metric) = of_servers {
        return metric.by_block(run, case);
    }
    by_block(case.complete(), |trial| {
        let value = match &trial.program {
            Some(run) => of_program(case, trial, run, metric),
            None => of_server(trial, metric),
        };
        value.filter(|value| value.is_finite())
    })
}

fn of_server(trial: &Trial, metric: CellMetric) -> Option<f64> {
    let load = trial.load.as_ref()?;
    match metric {
        CellMetric::Throughput => {
            let seconds = Nanos(load.window_ns).as_secs_f64();
            (load.window_ns > 0).then(|| load.received_bytes as f64 / seconds)
        }
        CellMetric::InFlight => {
            let of = &load.latency_ns;
            let is_whole = of.count > 0 && of.infinite == 0;
            is_whole.then_some(in_flight(measure::rate(load)?, Time(of.mean)).0)
        }
        CellMetric::Deviation => {
            let slices = &load.slices;
            let seen = seconds(&whole_seconds(&slices.completed, slices.slice_ns))?;
            (seen.mean.0 > 0.0).then_some(seen.deviation?.0 / seen.mean.0)
        }
        _ => None,
    }
}

fn of_program(
    case: &Case<'_>,
    trial: &Trial,
    run: &ProgramReport,
    metric: CellMetric,
) -> Option<f64> {
    let positive = |ns: u64| (ns > 0).then_some(ns as f64);
    let latency = || client::latency(trial);
    let own = |name: &str| Some(measure::line(run)?.figures.get(name)?.mean);
    match metric {
        CellMetric::P50 => positive(latency()?.p50),
        CellMetric::P99 => positive(latency()?.p99),
        CellMetric::MeanLatency => Some(latency()?.mean),
        CellMetric::Cpu if case.is_client() => {
            let (user, system) = client::cpu_per_request(run)?;
            Some(user.0 + system.0)
        }
        CellMetric::Cpu => Some(run.user_ns.saturating_add(run.system_ns) as f64),
        CellMetric::Elapsed => Some(measure::elapsed(run)?.0),
        CellMetric::Wall => positive(run.wall_ns),
        CellMetric::Memory => positive(run.peak_bytes),
        CellMetric::Throughput => client::bytes_per_s(run).map(|Rate(rate)| rate),
        CellMetric::InFlight => client::little(trial),
        CellMetric::MeanRun => Some(durations(run)?.mean_ns),
        CellMetric::Socket => own("socket_ns"),
        CellMetric::Setup => own("setup_ns"),
        CellMetric::Download => own("download_ns"),
        CellMetric::DownloadRate => download_bytes_per_s(trial, run),
        CellMetric::Pss => own("pss_bytes"),
        _ => None,
    }
}

fn durations(run: &ProgramReport) -> Option<&Durations> {
    measure::line(run)?.durations.as_ref()
}

/// The value of all trials together, of metrics that count or that look for an extreme.
pub fn of_all(case: &Case<'_>, metric: CellMetric) -> Option<Figure> {
    let runs = || case.runs().filter_map(|(_, run)| durations(run));
    let values: Vec<u64> = match metric {
        CellMetric::Errors => {
            let loads = case.measured().filter_map(|trial| trial.load.as_ref());
            let of_clients = case
                .runs()
                .filter_map(|(trial, _)| Some(client::figures(trial)?.failed));
            loads.map(measure::errors).chain(of_clients).collect()
        }
        CellMetric::Missed => runs().map(|of| of.missed_count).collect(),
        CellMetric::Longest => runs().map(|of| of.max_ns).collect(),
        CellMetric::Shortest => runs().map(|of| of.min_ns).collect(),
        _ => Vec::new(),
    };
    let count = values.len();
    let value = match metric {
        CellMetric::Longest => values.into_iter().max(),
        CellMetric::Shortest => values.into_iter().min(),
        _ => values.into_iter().reduce(u64::saturating_add),
    };
    Figure::total(value? as f64, count)
}

#[cfg(test)]
mod tests {
    use prony_record::LoadReport;

    use super::*;

    #[test]
    fn a_metric_of_a_server_has_a_value_where_there_is_something_to_divide_by() {
        let mut load = LoadReport {
            window_ns: 2_000_000_000,
            received_bytes: 500,
            ..LoadReport::default()
        };
        load.slices.slice_ns = 1_000_000_000;
        load.slices.completed = vec![100, 300];
        load.latency_ns.count = 4;
        load.latency_ns.mean = 7.0;
        let of = |load: &LoadReport, metric| {
            let load = Some(load.clone());
            let trial = Trial {
                load,
                ..Trial::default()
            };
            of_server(&trial, metric)
        };
        // Of 100 and 300 the mean is 200, and the deviation the root of 20,000.
        let swing = of(&load, CellMetric::Deviation).expect("two seconds");
        assert!((swing - 0.5_f64.sqrt()).abs() < 1e-12, "{swing}");
        assert_eq!(of(&load, CellMetric::Throughput), Some(250.0));
        assert!(of(&load, CellMetric::InFlight).is_some());
        load.slices.completed = vec![0, 0];
        load.window_ns = 0;
        load.latency_ns.infinite = 1;
        for metric in [
            CellMetric::Deviation,
            CellMetric::Throughput,
            CellMetric::InFlight,
        ] {
            assert_eq!(of(&load, metric), None, "{metric:?}");
        }
    }
}
