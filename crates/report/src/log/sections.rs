//! What a log asks the records of a workload for, beside the figures of a document.

use prony_findings::{Case, client};
use prony_record::PlannedWorkload;

use crate::numbers;

/// What was asked, as a line.
pub fn request(workload: &PlannedWorkload) -> String {
    let template = &workload.request;
    if let Some(program) = &workload.program {
        return format!("work {}", program.work);
    }
    if let Some(client) = &workload.client {
        return format!("clients ask for {}", client.path);
    }
    let mut line = format!("{} {}", template.method, template.path);
    for (name, value) in &template.headers {
        line.push_str(&format!(", {name}: {value}"));
    }
    if !template.body.is_empty() {
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
