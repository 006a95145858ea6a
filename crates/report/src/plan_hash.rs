//! A name for what was asked, so that a document can be held against its experiment as it is now.

use prony_record::{Plan, PlannedSetting, PlannedWorkload};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Bytes of the hash that are shown.
const BYTES: usize = 8;

/// Hash over what a plan asks for: the experiment's bytes, how often and how long, and the
/// workloads and settings as they were resolved. Not over what a machine brings with it
/// (subjects that it lacks, cores, places of builds): the same experiment has the same hash
/// wherever it runs, unless the machine's limits cut its connections.
pub fn plan_hash(plan: &Plan) -> String {
    #[derive(Serialize)]
    struct Asked<'a> {
        experiment_sha256: &'a str,
        quick: bool,
        seed: u64,
        blocks: u32,
        duration_ns: u64,
        warmup_ns: u64,
        workloads: &'a [PlannedWorkload],
        settings: &'a [PlannedSetting],
    }
    let mut workloads = plan.workloads.clone();
    for source in workloads.iter_mut().filter_map(|w| w.source.as_mut()) {
        // Where this machine has the files; what is in them stands beside it.
        source.dir.clear();
    }
    let asked = Asked {
        experiment_sha256: &plan.experiment_sha256,
        quick: plan.quick,
        seed: plan.seed,
        blocks: plan.blocks,
        duration_ns: plan.duration_ns,
        warmup_ns: plan.warmup_ns,
        workloads: &workloads,
        settings: &plan.settings,
    };
    let json = serde_json::to_vec(&asked).expect("plain values with string keys");
    let digest = Sha256::digest(json);
    let digits = digest.iter().take(BYTES).map(|byte| format!("{byte:02x}"));
    digits.collect()
}

#[cfg(test)]
mod tests {
    use prony_record::{PlannedSource, SourceFile};

    use super::*;

    fn plan() -> Plan {
        Plan {
            experiment_sha256: "ab".to_owned(),
            blocks: 2,
            workloads: vec![PlannedWorkload::default()],
            ..Plan::default()
        }
    }

    fn with_file(sha256: &str) -> PlannedSource {
        PlannedSource {
            file: Some(SourceFile {
                path: "requests.txt".to_owned(),
                sha256: sha256.to_owned(),
            }),
            dir: "/srv/experiments".to_owned(),
            ..PlannedSource::default()
        }
    }

    #[test]
    fn the_files_of_its_requests_are_part_of_it_and_where_they_lie_is_not() {
        let of = |sha256: &str, dir: &str| {
            let mut plan = plan();
            plan.workloads[0].source = Some(PlannedSource {
                dir: dir.to_owned(),
                ..with_file(sha256)
            });
            plan_hash(&plan)
        };
        assert_eq!(of("b", "/srv"), of("b", "/home"));
        assert_ne!(of("b", "/srv"), of("c", "/srv"));
    }

    #[test]
    fn what_is_asked_changes_it() {
        let hash = plan_hash(&plan());
        assert_eq!(hash.len(), 16);
        let mut others = [(); 8].map(|()| plan());
        others[0].experiment_sha256 = "ac".to_owned();
        others[1].quick = true;
        others[2].seed = 1;
        others[3].blocks = 3;
        others[4].duration_ns = 1;
        others[5].workloads[0].connections = vec![1];
        others[6].settings = vec![PlannedSetting::default()];
        others[7].workloads[0].source = Some(with_file("b"));
        for other in &others {
            assert_ne!(plan_hash(other), hash, "{other:?}");
        }
    }

    #[test]
    fn what_a_machine_brings_with_it_does_not() {
        let mut other = plan();
        other.cores.subject = vec![3];
        other.command = vec!["run".to_owned()];
        other.experiment = "elsewhere.toml".to_owned();
        other.not_run = vec![prony_record::NotRun::default()];
        assert_eq!(plan_hash(&other), plan_hash(&plan()));
    }
}
