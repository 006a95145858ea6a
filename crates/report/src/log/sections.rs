//! What a log asks the records of a workload for, beside the figures of a document.

use prony_findings::{Case, client};
use prony_record::{Plan, PlannedWorkload};

use crate::figures::CellFigures;
use crate::lists::push_under;
use crate::numbers;
use crate::sent::sent;

/// Subjects of a workload that are named before it is said how many more there are.
const LABELS_MAX: usize = 6;

/// Cells in words, one text a workload: its title, and in it each subject with its connections.
pub fn places(plan: &Plan, cells: &[&CellFigures]) -> Vec<String> {
    let mut workloads: Vec<&str> = cells.iter().map(|cell| cell.workload.as_str()).collect();
    workloads.sort_unstable();
    workloads.dedup();
    let place = |name: &&str| {
        let own: Vec<&&CellFigures> = cells.iter().filter(|cell| cell.workload == *name).collect();
        let mut labels: Vec<(&str, Vec<u32>)> = Vec::new();
        for cell in own {
            push_under(&mut labels, &*cell.label, cell.connections);
        }
        let more = labels.len().saturating_sub(LABELS_MAX);
        let mut words: Vec<String> = labels
            .into_iter()
            .take(LABELS_MAX)
            .map(with_sizes)
            .collect();
        words.extend((more > 0).then(|| format!("and {more} more")));
        let planned = plan.workloads.iter().find(|w| w.name == *name);
        let title = planned.map_or(*name, |workload| workload.heading());
        format!("{title} ({})", words.join("; "))
    };
    workloads.iter().map(place).collect()
}

/// `granian 1, 5`
fn with_sizes((label, mut sizes): (&str, Vec<u32>)) -> String {
    sizes.sort_unstable();
    sizes.retain(|size| *size > 0);
    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
    format!("{label} {}", sizes.join(", "))
        .trim_end()
        .to_owned()
}

/// What was asked, as a line.
pub fn request(workload: &PlannedWorkload) -> String {
    let template = &workload.request;
    if let Some(program) = &workload.program {
        return format!("work {}", program.work);
    }
    if let Some(client) = &workload.client {
        return format!("clients ask for {}", client.path);
    }
    let mut line = sent(workload, false);
    for (name, value) in &template.headers {
        line.push_str(&format!(", {name}: {value}"));
    }
    if !template.body.is_empty() && workload.source.as_ref().is_none_or(|of| of.count == 1) {
        line.push_str(&format!(", body {}", template.body));
    }
    if let Some(body) = &workload.expect_body {
        let bytes = numbers::count(body.len() as u64);
        line.push_str(&format!(
            "; the answer must have the {bytes} bytes of its body"
        ));
    }
    line
}

/// The mean latency that a client gave, over all blocks; `None` where it gave none.
pub fn mean_of_client(case: &Case<'_>) -> Option<f64> {
    let told = case.runs().filter_map(|(trial, _)| client::latency(trial));
    let (count, sum) = told.fold((0_u64, 0.0), |(count, sum), latency| {
        (count + 1, sum + latency.mean)
    });
    (count > 0 && sum > 0.0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::with_sizes;

    #[test]
    fn sizes_stand_in_order_and_none_is_no_size() {
        assert_eq!(with_sizes(("granian", vec![5, 0, 1])), "granian 1, 5");
        assert_eq!(with_sizes(("coroutine", vec![0])), "coroutine");
    }
}
