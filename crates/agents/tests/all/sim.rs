//! A controller and its agents in a simulated world: clocks that are apart and drift, lines that are late, lost, doubled and out of turn,
//! machines that are cut off or gone at any moment. All of it follows from a seed.

use std::collections::{BTreeMap, BTreeSet};

use prony_agents::agent::{Agent, LoadOrder, LoadSaid};
use prony_agents::fleet::{Fleet, FleetError, FleetEvent, FleetOptions, FleetResult};
use prony_agents::link::MessageLink;
use prony_agents::message::{Greeting, ToAgent, VERSION};
use prony_base::{Instant, Nanos, Random};
use prony_load::{LoadTotals, PartResult};
use prony_record::{LoadPart, LoadSpec, LoadTarget, Pace, PreparedRequest};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    /// Nothing passes between the controller and this agent from here to there.
    cut: Option<(usize, u64, u64)>,
    /// This agent is gone.
    killed: Option<(usize, u64)>,
    /// The controller is gone.
    abandoned: Option<u64>,
}

/// One machine.
struct Machine {
    agent: Agent,
    /// Its clock shows this much more than the controller's at first, and so many nanoseconds more each second.
    ahead: u64,
    drift: u64,
    load: Option<FakeLoad>,
    is_gone: bool,
    /// When its load was last running, by the controller's clock.
    ran_until: u64,
}

impl Machine {
    fn clock(&self, now: u64) -> Instant {
        Instant(now + self.ahead + now / SECOND * self.drift + now % SECOND * self.drift / SECOND)
    }
}

/// A load that answers one request each millisecond, all with latencies of its thread's own.
struct FakeLoad {
    spec: LoadSpec,
    ready_at: Option<u64>,
    go: Option<Instant>,
    begun: Option<u64>,
    seconds: u64,
    stop: bool,
}

impl FakeLoad {
    fn part(&self) -> LoadPart {
        self.spec.part_here()
    }

    /// What was counted after so many milliseconds.
    fn totals(&self, ms: u64) -> LoadTotals {
        let mut totals = LoadTotals::default();
        (totals.counts.sent, totals.counts.completed) = (ms, ms);
        totals.counts.acknowledged = ms;
        totals.status = vec![(200, ms)];
        for n in 0..ms {
            let spread = Nanos(100_000 + n % 977 * 1_000 * u64::from(self.part().first + 1));
            totals.latency.record(spread);
        }
        totals
    }
}

/// The world.
struct World {
    now: u64,
    random: Random,
    trouble: Trouble,
    is_reliable: bool,
    fleet: Option<Fleet>,
    machines: Vec<Machine>,
    /// Lines on their way, by when they arrive: to the controller or from it.
    on_the_way: BTreeMap<(u64, u64), (usize, bool, Vec<u8>)>,
    /// Of each direction, when its last line arrives.
    last: BTreeMap<(usize, bool), u64>,
    number: u64,
    seconds: Vec<u64>,
    spec: LoadSpec,
}

impl World {
    fn new(seed: u64, agents: usize, is_reliable: bool, trouble: Trouble) -> World {
        let mut random = Random::of(seed, "world");
        let spec = LoadSpec {
            target: LoadTarget {
                url: "http://127.0.0.1/".to_owned(),
                address: "127.0.0.1:80".to_owned(),
            },
            threads: agents as u32 * 2,
            connections: agents as u32 * 8,
            // Left alone, an agent would go on for long.
            duration_ns: match trouble.abandoned {
                None => 4 * SECOND,
                Some(_) => 40 * SECOND,
            },
            timeout_ns: SECOND,
            requests: vec![PreparedRequest::default()],
            pace: Pace::Constant {
                rate_per_s: 1_000.0 * agents as f64,
            },
            ..LoadSpec::default()
        };
        let greeting = Greeting {
            version: VERSION,
            ..Greeting::default()
        };
        let now = 3_600 * SECOND;
        let machine = |_| {
            let mut machine = Machine {
                agent: Agent::new(greeting.clone(), is_reliable, Instant(0)),
                ahead: random.below(10 * SECOND),
                drift: random.below(100_000),
                load: None,
                is_gone: false,
                ran_until: 0,
            };
            machine.agent = Agent::new(greeting.clone(), is_reliable, machine.clock(now));
            machine
        };
        let machines: Vec<Machine> = (0..agents).map(machine).collect();
        let names: Vec<String> = (0..agents).map(|n| format!("m{n}")).collect();
        let options = FleetOptions {
            is_owned: false,
            is_reliable,
            greeting_max: Nanos::from_secs(60),
            greeting,
        };
        let fleet = Fleet::new(spec.clone(), &names, options, Instant(now));
        World {
            now,
            random,
            trouble,
            is_reliable,
            fleet: Some(fleet.expect("threads for all")),
            machines,
            on_the_way: BTreeMap::new(),
            last: BTreeMap::new(),
            number: 0,
            seconds: Vec::new(),
            spec,
        }
    }

    fn since_begin(&self) -> u64 {
        self.now - 3_600 * SECOND
    }

    /// A line leaves, and arrives sometime, or does not.
    fn carry(&mut self, agent: usize, to_agent: bool, line: Vec<u8>) {
        let copies = match (self.is_reliable, self.random.below(20)) {
            (true, _) | (false, 3..) => 1,
            (false, 0) => 2,
            (false, _) => 0,
        };
        for _ in 0..copies {
            let slow = if self.random.below(50) == 0 {
                40 * MS
            } else {
                2 * MS
            };
            let mut at = self.now + 20_000 + self.random.below(slow);
            if self.is_reliable {
                let last = self.last.entry((agent, to_agent)).or_default();
                at = at.max(*last + 1);
                *last = at;
            }
            self.number += 1;
            self.on_the_way
                .insert((at, self.number), (agent, to_agent, line.clone()));
        }
    }

    /// Whether nothing passes between the controller and `agent` now.
    fn is_cut(&self, agent: usize) -> bool {
        let now = self.since_begin();
        let cut = self
            .trouble
            .cut
            .is_some_and(|(of, from, to)| of == agent && (from..to).contains(&now));
        cut || self.machines[agent].is_gone
    }

    /// A millisecond's step, or to the next arrival.
    fn step(&mut self) -> Result<(), FleetError> {
        let next = self
            .on_the_way
            .keys()
            .next()
            .map_or(u64::MAX, |(at, _)| *at);
        self.now = next.max(self.now).min(self.now + MS);
        let since = self.since_begin();
        if let Some((agent, at)) = self.trouble.killed
            && since >= at
            && !self.machines[agent].is_gone
        {
            self.machines[agent].is_gone = true;
            self.machines[agent].load = None;
            if let (true, Some(fleet)) = (self.is_reliable, &mut self.fleet) {
                fleet.closed(agent, "killed".to_owned(), Instant(self.now))?;
            }
        }
        if self.trouble.abandoned.is_some_and(|at| since >= at) && self.fleet.take().is_some() {
            for machine in &mut self.machines {
                if self.is_reliable {
                    machine.agent.closed();
                }
            }
        }
        self.arrive()?;
        for number in 0..self.machines.len() {
            self.run_machine(number);
        }
        self.run_fleet()
    }

    fn arrive(&mut self) -> Result<(), FleetError> {
        while let Some(entry) = self
            .on_the_way
            .first_entry()
            .filter(|of| of.key().0 <= self.now)
        {
            let (agent, to_agent, line) = entry.remove();
            if self.is_cut(agent) {
                // What is sent again by TCP is late, and not lost.
                if let (true, Some((_, _, to))) = (self.is_reliable, self.trouble.cut) {
                    self.number += 1;
                    let at = 3_600 * SECOND + to;
                    self.on_the_way
                        .insert((at, self.number), (agent, to_agent, line));
                }
                continue;
            }
            if to_agent {
                let clock = self.machines[agent].clock(self.now);
                self.machines[agent].agent.received(&line, clock);
            } else if let Some(fleet) = &mut self.fleet {
                fleet.received(agent, &line, Instant(self.now))?;
            }
        }
        Ok(())
    }

    fn run_machine(&mut self, number: usize) {
        let now = self.now;
        let machine = &mut self.machines[number];
        if machine.is_gone {
            return;
        }
        let clock = machine.clock(now);
        machine.agent.tick(clock);
        for order in machine.agent.orders() {
            match (order, &mut machine.load) {
                (LoadOrder::Connect { spec, .. }, load) => {
                    *load = Some(FakeLoad {
                        spec: *spec,
                        ready_at: Some(now + 5 * MS * (number as u64 + 1)),
                        go: None,
                        begun: None,
                        seconds: 0,
                        stop: false,
                    });
                }
                (LoadOrder::Go(at), Some(load)) => load.go = Some(at),
                (LoadOrder::Stop, Some(load)) => load.stop = true,
                _ => {}
            }
        }
        if let Some(load) = &mut machine.load {
            for said in run_load(load, now, clock) {
                let is_end = matches!(said, LoadSaid::Ended(_));
                machine.agent.said(said, clock);
                if is_end {
                    machine.load = None;
                    break;
                }
            }
        }
        if machine
            .load
            .as_ref()
            .is_some_and(|load| load.begun.is_some())
        {
            machine.ran_until = now;
        }
        for line in self.machines[number].agent.outgoing() {
            self.carry(number, false, line);
        }
    }

    fn run_fleet(&mut self) -> Result<(), FleetError> {
        let Some(fleet) = &mut self.fleet else {
            return Ok(());
        };
        fleet.tick(Instant(self.now))?;
        while let Some(event) = fleet.event() {
            if let FleetEvent::Second(second) = event {
                self.seconds.push(second.completed);
            }
        }
        for (agent, line) in fleet.outgoing() {
            self.carry(agent, true, line);
        }
        Ok(())
    }

    /// To the end, or for so long.
    fn run(
        mut self,
        limit: u64,
    ) -> (
        Result<Option<FleetResult>, FleetError>,
        Vec<Machine>,
        Vec<u64>,
    ) {
        let mut failed = None;
        while self.since_begin() < limit {
            if let Err(error) = self.step() {
                // Whoever called it is gone with its carrier.
                failed = Some(error);
                self.fleet = None;
                if self.is_reliable {
                    self.machines
                        .iter_mut()
                        .for_each(|machine| machine.agent.closed());
                }
            }
            let is_over = self.fleet.as_ref().is_some_and(Fleet::is_over);
            let is_idle = self.machines.iter().all(|machine| machine.load.is_none());
            if is_idle && (is_over || self.fleet.is_none()) {
                break;
            }
        }
        let result = match (failed, self.fleet) {
            (Some(error), _) => Err(error),
            (None, Some(fleet)) if fleet.is_over() => fleet.result().map(Some),
            (None, _) => Ok(None),
        };
        (result, self.machines, self.seconds)
    }
}

/// What a load says at `now`.
fn run_load(load: &mut FakeLoad, now: u64, clock: Instant) -> Vec<LoadSaid> {
    let mut said = Vec::new();
    if load.ready_at.is_some_and(|at| now >= at) {
        load.ready_at = None;
        said.push(LoadSaid::Ready(8));
    }
    if load.begun.is_none() && load.ready_at.is_none() {
        if load.stop {
            said.push(LoadSaid::Ended(Err("called off".to_owned())));
        } else if load.go.is_some_and(|at| clock >= at) {
            load.begun = Some(now);
            said.push(LoadSaid::Begun(load.go.unwrap_or(clock).max(clock)));
        }
        return said;
    }
    let Some(begun) = load.begun else {
        return said;
    };
    let ms = ((now - begun) / MS).min(load.spec.duration_ns / MS);
    while (load.seconds + 1) * 1_000 <= ms {
        load.seconds += 1;
        let totals = load.totals(load.seconds * 1_000);
        said.push(LoadSaid::Second(load.seconds - 1, Box::new(totals)));
    }
    if load.stop || ms * MS >= load.spec.duration_ns {
        let part =
            PartResult::until_lost(&load.spec, load.part(), (&load.totals(ms), Nanos(ms * MS)));
        said.push(LoadSaid::Ended(Ok(Box::new(part))));
    }
    said
}

/// Counts and histogram of all agents are those of one machine, to the unit and to the bucket; and they began together.
#[test]
fn a_load_of_several_machines_is_that_of_one() {
    for seed in 0..prony_testkit::seeds(16, 100) {
        let agents = 1 + seed as usize % 8;
        let is_reliable = seed % 2 == 0;
        let world = World::new(seed, agents, is_reliable, Trouble::default());
        let spec = world.spec.clone();
        let (result, _, seconds) = world.run(60 * SECOND);
        let outcome = result
            .unwrap_or_else(|error| panic!("{seed}: {error}"))
            .unwrap_or_else(|| panic!("{seed}: not over"));
        let report = &outcome.result.report;
        assert_eq!(report.completed, 4_000 * agents as u64, "{seed}");
        let mut all = LoadTotals::default();
        for agent in &report.agents {
            let part = LoadSpec {
                part: Some(agent.part),
                ..spec.clone()
            };
            let load = FakeLoad {
                spec: part,
                ready_at: None,
                go: None,
                begun: None,
                seconds: 0,
                stop: false,
            };
            all.add(&load.totals(4_000));
            assert!(
                agent.lost.is_none() && !agent.is_late,
                "{seed}: {}",
                agent.name
            );
            let after = agent.began_after_ns.expect("it began");
            assert!(
                after.unsigned_abs() <= 2 * MS + agent.clock_within_ns,
                "{seed}: {after}, {}",
                agent.clock_within_ns
            );
        }
        assert_eq!(outcome.result.histogram, all.latency.histogram(), "{seed}");
        let told: u64 = seconds.iter().sum::<u64>() + outcome.rest.map_or(0, |rest| rest.completed);
        assert_eq!(told, report.completed, "{seed}: {seconds:?}");
        let threads: u32 = report.agents.iter().map(|agent| agent.part.threads()).sum();
        assert_eq!(threads, spec.threads);
    }
}

/// At any moment an agent is killed, cut off, or left by its controller: no result hides it, and nothing goes on.
#[test]
fn whoever_is_lost_at_any_moment_is_named_and_nothing_runs_on() {
    let mut kinds = BTreeSet::new();
    for seed in 1_000..1_000 + prony_testkit::seeds(50, 400) {
        let mut random = Random::of(seed, "trouble");
        let agents = 2 + random.below(4) as usize;
        let victim = random.below(agents as u64) as usize;
        // Some before the load has begun, others in it.
        let span = if seed % 4 == 0 {
            SECOND / 8
        } else {
            5 * SECOND
        };
        let at = random.below(span);
        let trouble = match seed % 3 {
            0 => Trouble {
                killed: Some((victim, at)),
                ..Trouble::default()
            },
            1 => Trouble {
                cut: Some((victim, at, at + random.below(40 * SECOND))),
                ..Trouble::default()
            },
            _ => Trouble {
                abandoned: Some(at),
                ..Trouble::default()
            },
        };
        let is_reliable = random.below(2) == 0;
        let world = World::new(seed, agents, is_reliable, trouble);
        let (result, machines, _) = world.run(120 * SECOND);
        // The load's four seconds, and the lease of who is left alone; where nothing passed for a while, from then on.
        let since = trouble.cut.map_or(at, |(_, _, to)| to);
        let last = machines
            .iter()
            .map(|machine| machine.ran_until)
            .max()
            .unwrap_or(0);
        assert!(
            last <= 3_600 * SECOND + since + 20 * SECOND,
            "{seed}: {trouble:?}"
        );
        assert!(
            machines.iter().all(|machine| machine.load.is_none()),
            "{seed}: {trouble:?}"
        );
        match result {
            Err(FleetError::Agent { name, .. }) => {
                assert_eq!(name, format!("m{victim}"), "{seed}: {trouble:?}");
                kinds.insert("refused");
            }
            // Gone between being told when to begin and that moment.
            Err(FleetError::NoneLeft(why)) => {
                assert!(why.contains(&format!("m{victim}: ")), "{seed}: {why}");
            }
            Err(error) => panic!("{seed}: {error}"),
            Ok(None) => {
                assert!(trouble.abandoned.is_some(), "{seed}: {trouble:?}");
                kinds.insert("abandoned");
            }
            Ok(Some(outcome)) => {
                let report = outcome.result.report;
                let whole = report.completed == 4_000 * agents as u64;
                let named = report
                    .agents
                    .iter()
                    .filter(|agent| agent.lost.is_some() || agent.is_late);
                let named: Vec<&str> = named.map(|agent| agent.name.as_str()).collect();
                // All was measured before, or the one is named.
                assert!(
                    whole && named.is_empty() || named == [format!("m{victim}")],
                    "{seed}: {trouble:?} {named:?} {}",
                    report.completed
                );
                assert!(report.unbalanced().is_none());
                kinds.insert(if whole { "whole" } else { "named" });
            }
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

/// Lines of anyone else, changed in any way: they are refused, and no work is done.
#[test]
fn what_is_no_message_is_refused_and_does_nothing() {
    let greeting = Greeting {
        version: VERSION,
        ..Greeting::default()
    };
    let mut random = Random::of(7, "lines");
    let spec = World::new(1, 1, true, Trouble::default()).spec;
    for round in 0..10_000_u64 {
        let mut agent = Agent::new(greeting.clone(), true, Instant(1));
        let mut link = MessageLink::new(true);
        let hello = Greeting {
            version: VERSION + u32::from(round % 7 == 0),
            ..Greeting::default()
        };
        let work = ToAgent::Work {
            spec: Box::new(spec.clone()),
            is_owned: false,
        };
        let mut lines = vec![
            link.say(&ToAgent::Hello(hello), Instant(1)).unwrap(),
            link.say(&work, Instant(1)).unwrap(),
        ];
        let at = random.below(2) as usize;
        match round % 4 {
            // One byte is another.
            0 => {
                let place = random.below(lines[at].len() as u64) as usize;
                lines[at][place] ^= 1 << random.below(8);
            }
            // Cut short.
            1 => {
                let length = random.below(lines[at].len() as u64 - 1) as usize;
                lines[at].truncate(length);
            }
            // Work for an agent that was not greeted.
            2 => lines = vec![MessageLink::new(true).say(&work, Instant(1)).unwrap()],
            // Replayed.
            _ => lines[1] = lines[0].clone(),
        }
        for line in &lines {
            agent.received(line, Instant(2));
        }
        let orders = agent.orders();
        let connects = orders
            .iter()
            .filter(|order| matches!(order, LoadOrder::Connect { .. }))
            .count();
        assert!(connects <= 1);
        if round % 4 != 0 {
            assert_eq!(connects, 0, "{round}");
        }
    }
}
