//! The trials of a plan, each with what it takes from the plan, and the folders that they work in.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use prony_record::{Cell, Plan, PlannedNetwork, PlannedSubject, PlannedWorkload};
use sha2::{Digest, Sha256};

use super::options::{RunError, Wrk};
use crate::plan;
use crate::profile::Means;
use crate::sums::hex;
use crate::supervise::Generator;

/// One trial to run.
#[derive(Clone, Debug)]
pub(super) struct Task<'a> {
    pub cell: &'a Cell,
    pub block: u32,
    pub position: u32,
    pub generator: Generator,
}

impl Task<'_> {
    /// Name of its files: `b00-p03-rust_axum_ping_c_400`.
    pub fn stem(&self) -> String {
        const NAME_CHARS_MAX: usize = 100;
        let plain = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '.' | '-') {
            true => c,
            false => '_',
        };
        let name = self.cell.id.chars().map(plain);
        let name: String = name.take(NAME_CHARS_MAX).collect();
        let by = match &self.generator {
            Generator::Prony => String::new(),
            other => format!("-{}", other.kind().name()),
        };
        format!("b{:02}-p{:02}-{name}{by}", self.block, self.position)
    }
}

/// Every trial of a plan in its order; the cross-checks follow the first block, profiles the last.
pub(super) fn tasks<'a>(
    plan: &'a Plan,
    wrk: Option<&Wrk>,
    profile: Option<&Means>,
) -> Result<Vec<Task<'a>>, RunError> {
    let mut tasks = Vec::new();
    for (block, order) in (0..).zip(&plan.order) {
        for (position, &index) in (0..).zip(order) {
            let broken = || RunError::Plan {
                cell: index.to_string(),
                what: "a place in the list of cells".to_owned(),
            };
            tasks.push(Task {
                cell: plan.cells.get(index as usize).ok_or_else(broken)?,
                block,
                position,
                generator: Generator::Prony,
            });
        }
        if let (0, Some(wrk)) = (block, wrk) {
            tasks.extend(cross_checks(plan, wrk, order.len()));
        }
    }
    tasks.extend(profile.map_or_else(Vec::new, |means| profiles(plan, means)));
    for task in &tasks {
        subject_of(plan, task.cell)?;
        let workload = workload_of(plan, task.cell)?;
        peer_of(plan, task.cell, workload)?;
        network_of(plan, task.cell, workload)?;
        services_of(plan, task.cell)?;
    }
    Ok(tasks)
}

/// One trial by wrk for each cell of the reference.
fn cross_checks<'a>(plan: &'a Plan, wrk: &Wrk, from: usize) -> Vec<Task<'a>> {
    let of_reference = |cell: &&Cell| plan::is_cross_checked(plan, cell);
    let task = |(position, cell)| Task {
        cell,
        block: 0,
        position,
        generator: Generator::Wrk {
            path: wrk.path.clone(),
            version: wrk.version.clone(),
        },
    };
    let from = u32::try_from(from).unwrap_or(u32::MAX);
    (from..)
        .zip(plan.cells.iter().filter(of_reference))
        .map(task)
        .collect()
}

/// The profile trials of each cell that has any, in a block of their own.
fn profiles<'a>(plan: &'a Plan, means: &Means) -> Vec<Task<'a>> {
    let passes = |cell: &Cell| match plan::is_server(plan, cell) {
        true => means.passes(),
        false => vec![means.only_pass()],
    };
    let cells = plan.cells.iter().filter(|c| plan::is_profiled(plan, c));
    let each = cells.flat_map(|cell| passes(cell).into_iter().map(move |pass| (cell, pass)));
    let task = |(position, (cell, pass))| Task {
        cell,
        block: plan.blocks,
        position,
        generator: Generator::Profile { pass },
    };
    (0..).zip(each).map(task).collect()
}

/// The one of `all` that `is_it`. Errors: the plan has none, though `cell` names `what`.
fn named<'a, T>(
    all: &'a [T],
    is_it: impl Fn(&T) -> bool,
    cell: &Cell,
    what: (&str, &str),
) -> Result<&'a T, RunError> {
    let found = all.iter().find(|one| is_it(one));
    found.ok_or_else(|| RunError::Plan {
        cell: cell.id.clone(),
        what: format!("{} `{}`", what.0, what.1),
    })
}

pub(super) fn subject_of<'a>(plan: &'a Plan, cell: &Cell) -> Result<&'a PlannedSubject, RunError> {
    let id = &cell.subject;
    named(&plan.subjects, |one| one.id == *id, cell, ("subject", id))
}

pub(super) fn workload_of<'a>(
    plan: &'a Plan,
    cell: &Cell,
) -> Result<&'a PlannedWorkload, RunError> {
    let name = &cell.workload;
    named(
        &plan.workloads,
        |one| one.name == *name,
        cell,
        ("workload", name),
    )
}

/// The peer of a workload of clients.
pub(super) fn peer_of<'a>(
    plan: &'a Plan,
    cell: &Cell,
    workload: &PlannedWorkload,
) -> Result<Option<&'a PlannedSubject>, RunError> {
    let peer = workload.client.as_ref().map(|client| &client.peer);
    let find = |id: &String| named(&plan.peers, |one| one.id == *id, cell, ("peer", id));
    peer.map(find).transpose()
}

/// The network of a cell, between a client or the generator and the servers; `None`: loopback.
pub(super) fn network_of<'a>(
    plan: &'a Plan,
    cell: &Cell,
    workload: &PlannedWorkload,
) -> Result<Option<&'a PlannedNetwork>, RunError> {
    let network = workload.client.as_ref().map(|client| &client.network);
    let name = Some(network.unwrap_or(&cell.around.network)).filter(|name| !name.is_empty());
    let find = |name: &String| {
        named(
            &plan.networks,
            |one| one.name == *name,
            cell,
            ("network", name),
        )
    };
    name.map(find).transpose()
}

/// The services of a cell: backing services in start order, and the front.
pub(super) type Services<'a> = (Vec<&'a PlannedSubject>, Option<&'a PlannedSubject>);

pub(super) fn services_of<'a>(plan: &'a Plan, cell: &Cell) -> Result<Services<'a>, RunError> {
    let find = |all: &'a [PlannedSubject], kind: &str, id: &String| {
        named(all, |one| one.id == *id, cell, (kind, id))
    };
    let backings = cell.around.backings.iter();
    let backings = backings.map(|id| find(&plan.backings, "backing service", id));
    let front = cell.around.front.as_ref();
    let front = front.map(|id| find(&plan.fronts, "front", id));
    Ok((backings.collect::<Result<_, _>>()?, front.transpose()?))
}

/// The folder of a run, in the system's temporary folder, in which each trial has a fresh one. (Not in the run
/// directory: a server that gives up its rights could often not reach it there.) What a killed run left in it is removed when it is opened,
/// and all of it when it is dropped.
#[derive(Debug)]
pub struct WorkFolder(PathBuf);

impl WorkFolder {
    /// The folder of the run in `run_dir` (absolute): always the same one, so that a
    /// resumed run finds what it has to remove.
    pub fn open(run_dir: &Path) -> io::Result<WorkFolder> {
        let digest = Sha256::digest(run_dir.as_os_str().as_encoded_bytes());
        let path = std::env::temp_dir().join(format!("prony-{}", hex(&digest[..6])));
        if let Ok(metadata) = std::fs::symlink_metadata(&path) {
            let is_mine =
                metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
            if !is_mine {
                // Its name can be guessed: never follow what another user put there.
                return Err(io::Error::other(format!(
                    "{} belongs to another user",
                    path.display()
                )));
            }
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir(&path)?;
        Ok(WorkFolder(path))
    }

    /// The folder of one trial, not made yet.
    pub fn folder(&self, stem: &str) -> PathBuf {
        self.0.join(stem)
    }

    /// Removes the folder of one trial.
    pub fn remove(&self, stem: &str) {
        // What cannot be removed now is removed with the run's folder, or stays in /tmp.
        let _ = std::fs::remove_dir_all(self.folder(stem));
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
