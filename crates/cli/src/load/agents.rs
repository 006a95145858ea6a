//! `prony load` with agents: the load is driven from other machines, and shown and judged as if it were from this one.

use clap::Args;
use prony_agents::drive;
use prony_agents::fleet::FleetOptions;
use prony_agents::message::{Greeting, VERSION};
use prony_agents::pipes::Pipes;
use prony_agents::place::SentProgram;
use prony_agents::worker;
use prony_base::Nanos;
use prony_load::{LoadResult, LoadSpec, Observer};
use prony_record::AgentReport;

use super::summary::format_latency;
use crate::report::version_and_commit;
use crate::typed::connections;

/// Longest until an agent is started, and the program copied where it is wanted.
const STARTED_MAX: Nanos = Nanos::from_secs(60);
/// Longest until Slurm has found a place for it.
const PLACED_MAX: Nanos = Nanos::from_secs(600);
/// Medians that differ by more than this are told of.
const DISAGREE: f64 = 1.25;
/// Answers from which a median says something.
const ANSWERS_MIN: u64 = 100;
/// An agent that was busy for so much of the window may have been the limit.
const BUSY: f64 = 0.95;

/// Words about agents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several machines")]
pub struct AgentWords {
    /// Drive the load from these machines and not from this one: each gets a part of its threads, connections and requests. Reached by
    /// ssh, as ~/.ssh/config says; this program is copied there once
    #[arg(long, value_name = "HOST[,HOST…]", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new(),
        conflicts_with_all = ["script", "find_max", "source", "unix", "keep_failed", "debug", "print_request"])]
    pub ssh: Vec<String>,
    /// Have Slurm place this many agents, each on a node of its own, and drive the load from there
    #[arg(long, value_name = "N", value_parser = connections,
        conflicts_with_all = ["ssh", "script", "find_max", "source", "unix", "keep_failed", "debug", "print_request"])]
    pub slurm: Option<u32>,
    /// The partition of these nodes [default: Slurm's]
    #[arg(long, value_name = "NAME", requires = "slurm")]
    pub partition: Option<String>,
}

impl AgentWords {
    /// How many machines drive the load; `None`: this one.
    pub fn count(&self) -> Option<u32> {
        let hosts = (!self.ssh.is_empty()).then_some(self.ssh.len() as u32);
        hosts.or(self.slurm)
    }

    /// What the agents are called: the hosts, those that are named twice with a number; those of Slurm by number alone.
    fn names(&self) -> Vec<String> {
        if let Some(count) = self.slurm {
            return (1..=count)
                .map(|number| format!("slurm-{number}"))
                .collect();
        }
        let name = |(place, host): (usize, &String)| {
            let before = self.ssh[..place].iter().filter(|other| *other == host);
            match before.count() {
                0 => host.clone(),
                several => format!("{host}#{}", several + 1),
            }
        };
        self.ssh.iter().enumerate().map(name).collect()
    }
}

/// Who this program is, to the other side.
pub fn greeting() -> Greeting {
    let version = version_and_commit(env!("CARGO_PKG_VERSION"), env!("PRONY_COMMIT"));
    Greeting {
        version: VERSION,
        program: format!("prony {version}"),
        machine: worker::machine(),
        cores: worker::cores(),
    }
}

/// Runs a load with agents.
///
/// # Errors
/// One could not do its part before the load began, or nothing is left of it.
pub fn run(
    spec: &LoadSpec,
    words: &AgentWords,
    is_owned: bool,
    observer: &mut dyn Observer,
) -> anyhow::Result<LoadResult> {
    let program = SentProgram::this()?;
    let commands = match words.slurm {
        None => words.ssh.iter().map(|host| program.by_ssh(host)).collect(),
        Some(count) => {
            let place = || program.by_slurm(words.partition.as_deref());
            (0..count).map(|_| place()).collect()
        }
    };
    let options = FleetOptions {
        is_owned,
        is_reliable: true,
        greeting_max: match words.slurm {
            None => STARTED_MAX,
            Some(_) => PLACED_MAX,
        },
        greeting: greeting(),
    };
    let pipes = Pipes::start(commands)?;
    Ok(drive::run(spec, &words.names(), options, pipes, observer)?)
}

/// Whether an agent did not do its part, so that the load was another one.
pub fn has_failed(agents: &[AgentReport]) -> bool {
    agents
        .iter()
        .any(|agent| agent.lost.is_some() || agent.is_late)
}

/// The lines about agents after a run; empty without any.
pub fn text(agents: &[AgentReport]) -> String {
    if agents.is_empty() {
        return String::new();
    }
    let mut lines =
        vec!["  Agent            Requests/s       p50       p99    busy    began".to_owned()];
    for agent in agents {
        let (p50, p99) = (agent.latency_ns.p50, agent.latency_ns.p99);
        lines.push(format!(
            "  {:<16} {:>10.0}  {:>8}  {:>8}  {:>5.0}%  {:>7}",
            agent.name,
            agent.rate_per_s,
            format_latency(p50),
            format_latency(p99),
            agent.busy * 100.0,
            began(agent)
        ));
    }
    lines.extend(spread(agents));
    lines.extend(agents.iter().filter_map(fault));
    lines.extend(disagreement(agents));
    lines.join("\n") + "\n"
}

fn began(agent: &AgentReport) -> String {
    match agent.began_after_ns {
        None => "–".to_owned(),
        Some(after) => format!("{:+.2}ms", after as f64 / 1e6),
    }
}

/// How far apart they began.
fn spread(agents: &[AgentReport]) -> Option<String> {
    let begun = || agents.iter().filter_map(|agent| agent.began_after_ns);
    let (first, last) = (begun().min()?, begun().max()?);
    let within = agents.iter().map(|agent| agent.clock_within_ns).max()?;
    Some(format!(
        "  They began within {:.2}ms of each other; their clocks are known to {:.2}ms",
        (last - first) as f64 / 1e6,
        within as f64 / 1e6
    ))
}

fn fault(agent: &AgentReport) -> Option<String> {
    let name = &agent.name;
    if let Some(why) = &agent.lost {
        return Some(format!(
            "  {name} was lost: {why}. The others were stopped, and the figures are those until then: they are not of the load that was asked for"
        ));
    }
    if agent.is_late {
        return Some(format!(
            "  {name} began late: the load was not the one that was asked for"
        ));
    }
    (agent.busy >= BUSY).then(|| {
        format!(
            "  {name} was busy for {:.0}% of the window: it may have been the limit",
            agent.busy * 100.0
        )
    })
}

/// Agents whose medians are far apart see different servers, networks or clocks.
fn disagreement(agents: &[AgentReport]) -> Option<String> {
    let told = || {
        let many = agents
            .iter()
            .filter(|agent| agent.latency_ns.count >= ANSWERS_MIN);
        many.map(|agent| (agent.latency_ns.p50, &agent.name))
    };
    let (least, most) = (told().min()?, told().max()?);
    (most.0 as f64 > least.0 as f64 * DISAGREE).then(|| {
        format!(
            "  They disagree: half of the answers came within {} at {}, and within {} at {}; what is between each and the server differs",
            format_latency(least.0), least.1, format_latency(most.0), most.1
        )
    })
}

#[cfg(test)]
mod tests {
    use prony_record::LatencyNs;

    use super::*;

    fn agent(name: &str, p50: u64) -> AgentReport {
        AgentReport {
            name: name.to_owned(),
            rate_per_s: 1_000.0,
            latency_ns: LatencyNs {
                count: 5_000,
                p50,
                p99: p50 * 2,
                ..LatencyNs::default()
            },
            busy: 0.2,
            began_after_ns: Some(120_000),
            clock_within_ns: 60_000,
            ..AgentReport::default()
        }
    }

    #[test]
    fn agents_are_told_of_with_what_is_wrong_with_them() {
        assert_eq!(text(&[]), "");
        let mut agents = vec![agent("a", 1_000_000), agent("b", 1_200_000)];
        agents[1].began_after_ns = Some(-80_000);
        let plain = text(&agents);
        assert!(
            plain.contains("within 0.20ms of each other; their clocks are known to 0.06ms"),
            "{plain}"
        );
        assert_eq!(plain.lines().count(), 4, "{plain}");
        agents[1].latency_ns.p50 = 1_300_000;
        agents[0].busy = 0.97;
        agents.push(AgentReport {
            lost: Some("it is gone".to_owned()),
            ..agent("c", 1_000_000)
        });
        let lines = text(&agents);
        for said in [
            "a was busy for 97%",
            "c was lost: it is gone.",
            "within 1.00ms at a, and within 1.30ms at b",
        ] {
            assert!(lines.contains(said), "{said}: {lines}");
        }
        assert!(has_failed(&agents) && !has_failed(&agents[..2]));
    }

    #[test]
    fn a_host_that_is_named_twice_has_two_names() {
        let words = AgentWords {
            ssh: ["a", "b", "a"].map(str::to_owned).to_vec(),
            slurm: None,
            partition: None,
        };
        assert_eq!(words.names(), ["a", "b", "a#2"]);
        assert_eq!(words.count(), Some(3));
    }
}
