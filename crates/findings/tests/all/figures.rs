//! The figures that rules and documents share, each against numbers worked out by hand.

use prony_base::Nanos;
use prony_findings::{client, measure};
use prony_record::{
    ClientFigures, ClientReport, CoreUse, Cores, Counts, Failures, LatencyNs, LoadReport,
    MemoryMarks, PeerCounts, ProcessRecord, ProgramLine, ProgramReport, Role, ThreadCpu,
    ThreadRecord, Trial,
};
use prony_stats::{Bytes, Rate, Share, Time};

/// Ten seconds, of which each hundredth is a tenth of a second.
const WINDOW: u64 = 10_000_000_000;

fn hundredths(number: u64) -> u64 {
    WINDOW / 100 * number
}

fn process(role: Role, cpu: u64, threads: &[u64], peak_bytes: Option<u64>) -> ProcessRecord {
    let thread = |&cpu: &u64| ThreadRecord {
        cpu_ns: hundredths(cpu),
        ..ThreadRecord::default()
    };
    ProcessRecord {
        role,
        cpu_ns: hundredths(cpu),
        threads: threads.iter().map(thread).collect(),
        memory: MemoryMarks {
            peak_bytes,
            virtual_peak_bytes: peak_bytes.map(|bytes| bytes * 10),
            ..MemoryMarks::default()
        },
        ..ProcessRecord::default()
    }
}

fn core(core: u32, role: Role, busy: u64) -> CoreUse {
    CoreUse {
        core,
        role: Some(role),
        busy_ns: hundredths(busy),
        ..CoreUse::default()
    }
}

/// A server of two processes with a front, driven for ten seconds.
fn served() -> Trial {
    Trial {
        window_ns: WINDOW,
        sampled_ns: WINDOW * 2,
        load: Some(LoadReport {
            window_ns: WINDOW,
            completed: 50_000,
            received_bytes: 10_000_000,
            cpu_ns: hundredths(60),
            threads_cpu: [20, 40]
                .map(|cpu| ThreadCpu {
                    name: String::new(),
                    cpu_ns: hundredths(cpu),
                    spun_ns: 0,
                })
                .into(),
            ..LoadReport::default()
        }),
        processes: vec![
            process(Role::Subject, 30, &[10, 20], Some(7)),
            process(Role::Subject, 50, &[45, 5], Some(9)),
            process(Role::Front, 48, &[48], Some(100)),
            process(Role::Generator, 95, &[95], None),
        ],
        cores: vec![
            core(0, Role::Subject, 40),
            core(1, Role::Subject, 46),
            core(2, Role::Generator, 120),
        ],
        ..Trial::default()
    }
}

#[test]
fn a_trial_was_sampled_for_as_long_as_is_known() {
    let mut trial = served();
    trial.program = Some(ProgramReport {
        wall_ns: 5,
        ..ProgramReport::default()
    });
    assert_eq!(measure::sampled(&trial), Some(Nanos(WINDOW * 2)));
    trial.sampled_ns = 0;
    assert_eq!(measure::sampled(&trial), Some(Nanos(WINDOW)));
    trial.window_ns = 0;
    assert_eq!(measure::sampled(&trial), Some(Nanos(5)));
    trial.program = None;
    assert_eq!(measure::sampled(&trial), None);
    assert_eq!(measure::share_of_window(&trial, Nanos(1)), None);
    assert_eq!(measure::busiest_core(&trial, Role::Subject), None);
}

#[test]
fn time_of_a_role_is_of_all_its_processes_and_memory_of_the_largest() {
    let trial = served();
    assert_eq!(measure::processes(&trial, Role::Subject).count(), 2);
    assert_eq!(
        measure::cpu(&trial, Role::Subject),
        Some(Nanos(hundredths(80)))
    );
    assert_eq!(measure::cpu(&trial, Role::Backing), None);
    assert_eq!(
        measure::memory_peak(&trial, Role::Subject),
        Some(Bytes(9.0))
    );
    assert_eq!(
        measure::virtual_peak(&trial, Role::Subject),
        Some(Bytes(90.0))
    );
    assert_eq!(measure::memory_peak(&trial, Role::Generator), None);
    assert_eq!(measure::virtual_peak(&trial, Role::Generator), None);
}

#[test]
fn shares_are_of_the_time_over_which_was_sampled() {
    let trial = served();
    assert_eq!(
        measure::share_of_window(&trial, Nanos(WINDOW)),
        Some(Share(0.5))
    );
    assert_eq!(
        measure::busiest_core(&trial, Role::Subject),
        Some(Share(0.23))
    );
    assert_eq!(measure::busiest_core(&trial, Role::Peer), None);
    // The front's thread is busier than any core; without it the busier core of the subject is.
    assert_eq!(measure::subject_busy(&trial), Some(Share(0.24)));
    let mut without = served();
    without.processes.remove(2);
    assert_eq!(measure::subject_busy(&without), Some(Share(0.23)));
    without.cores.clear();
    assert_eq!(measure::subject_busy(&without), Some(Share(0.225)));
    without.processes.clear();
    assert_eq!(measure::subject_busy(&without), None);
    let mut short = served();
    (short.sampled_ns, short.window_ns) = (99_999_999, 50_000_000);
    assert_eq!(measure::busiest_core(&short, Role::Subject), None);
}

#[test]
fn cpu_time_of_a_number_of_requests_is_theirs_however_long_was_sampled() {
    let mut trial = served();
    let each = |trial: &Trial| measure::each_request(trial, Nanos(hundredths(30)));
    let over_the_window = each(&trial).expect("it was answered").0;
    let load = trial.load.as_mut().expect("a load");
    load.requests_max = Some(load.completed);
    let all = hundredths(30) as f64 / load.completed as f64;
    assert_eq!(each(&trial), Some(Time(all)));
    assert!(
        (over_the_window / all - 0.5).abs() < 0.001,
        "twice the window was sampled"
    );
}

#[test]
fn the_generator_is_as_busy_as_its_own_threads_say_unless_they_used_half_of_the_core() {
    let mut trial = served();
    let busy = |trial: &Trial| measure::generator_busy(trial, trial.load.as_ref().expect("a load"));
    // 60 % of the window by its own threads: its core, at 120 hundredths of twice the window, counts.
    assert_eq!(busy(&trial), Some(Share(0.6)));
    // A thread that looks for answers before it sleeps does not work meanwhile, and its core neither.
    let load = trial.load.as_mut().expect("a load");
    load.threads_cpu.truncate(1);
    load.threads_cpu[0].cpu_ns = hundredths(60);
    (load.threads_cpu[0].spun_ns, load.spun_ns) = (hundredths(9), hundredths(9));
    assert_eq!(busy(&trial), Some(Share(0.51)));
    assert_eq!(
        measure::generator_cpu_per_request(trial.load.as_ref().expect("a load")),
        Some(Time(102_000.0))
    );
    let load = trial.load.as_mut().expect("a load");
    load.spun_ns = hundredths(11);
    assert_eq!(
        busy(&trial),
        Some(Share(0.51)),
        "the thread's, not the core's"
    );
    // Which of two threads ran on the full core is not known.
    let mut two = served();
    two.load.as_mut().expect("a load").threads_cpu[0].spun_ns = hundredths(1);
    assert_eq!(busy(&two), Some(Share(0.4)));
    let load = trial.load.as_mut().expect("a load");
    load.threads_cpu[0].cpu_ns = hundredths(49);
    assert_eq!(busy(&trial), Some(Share(0.4)));
    let load = trial.load.as_mut().expect("a load");
    load.window_ns = 0;
    assert_eq!(busy(&trial), None);
}

#[test]
fn rates_and_costs_of_a_request_are_of_those_that_were_completed() {
    let trial = served();
    let load = trial.load.as_ref().expect("a load");
    assert_eq!(measure::rate(load), Some(Rate(5_000.0)));
    // 80 hundredths of 20 s are 0.4 cores: 80 µs at 5,000 a second.
    assert_eq!(
        measure::cpu_per_request(&trial, Role::Subject),
        Some(Time(80_000.0))
    );
    assert_eq!(
        measure::each_request(&trial, Nanos(WINDOW)),
        Some(Time(100_000.0))
    );
    assert_eq!(
        measure::generator_cpu_per_request(load),
        Some(Time(120_000.0))
    );
    assert_eq!(measure::bytes_per_answer(load), Some(Bytes(200.0)));
    let mut none = served();
    none.load.as_mut().expect("a load").completed = 0;
    let load = none.load.as_ref().expect("a load");
    assert_eq!(measure::rate(load), Some(Rate(0.0)));
    assert_eq!(measure::cpu_per_request(&none, Role::Subject), None);
    assert_eq!(measure::generator_cpu_per_request(load), None);
    assert_eq!(measure::bytes_per_answer(load), None);
    none.load.as_mut().expect("a load").window_ns = 0;
    assert_eq!(measure::rate(none.load.as_ref().expect("a load")), None);
}

#[test]
fn errors_are_all_that_went_wrong_in_and_after_the_window_and_in_connecting() {
    let failures = |refused, timeout| Failures {
        refused,
        timeout,
        ..Failures::default()
    };
    let load = LoadReport {
        counts: Counts {
            warmup_failed: 1_000_000,
            failed: failures(1, 20),
            unexpected_status: 300,
            drain_failed: 4_000,
            abandoned: 50_000,
            connect_failed: failures(600_000, 0),
            ..Counts::default()
        },
        ..LoadReport::default()
    };
    assert_eq!(measure::errors(&load), 654_321);
}

fn program() -> ProgramReport {
    let line = ProgramLine {
        threads: 2,
        count: 4_000,
        elapsed_ns: 2_000_000_000,
        bytes: 80_000,
        client: Some(ClientFigures {
            latency: Some(LatencyNs {
                mean: 5_000_000.0,
                max: 9_000_000,
                ..LatencyNs::default()
            }),
            ..ClientFigures::default()
        }),
        ..ProgramLine::default()
    };
    ProgramReport {
        wall_ns: 2_500_000_000,
        user_ns: 400_000,
        system_ns: 1_200_000,
        lines: vec![line, ProgramLine::default()],
        ..ProgramReport::default()
    }
}

#[test]
fn a_program_is_measured_by_its_own_clock() {
    let mut program = program();
    assert_eq!(measure::elapsed(&program), Some(Time(2e9)));
    assert_eq!(measure::program_rate(&program), Some(Rate(2_000.0)));
    assert_eq!(measure::program_cpu(&program), Nanos(1_600_000));
    assert_eq!(
        client::cpu_per_request(&program),
        Some((Time(100.0), Time(300.0)))
    );
    assert_eq!(client::bytes_per_s(&program), Some(Rate(40_000.0)));
    (program.lines[0].count, program.lines[0].bytes) = (0, 0);
    assert_eq!(measure::program_rate(&program), None);
    assert_eq!(client::cpu_per_request(&program), None);
    assert_eq!(client::bytes_per_s(&program), None);
    program.lines[0].elapsed_ns = 0;
    assert_eq!(measure::elapsed(&program), None);
}

#[test]
fn a_core_of_both_sides_is_one_core_of_a_program() {
    let cores = |subject: &[u32], generator: &[u32]| Cores {
        subject: subject.to_vec(),
        generator: generator.to_vec(),
        ..Cores::default()
    };
    assert_eq!(measure::program_cores(&cores(&[0, 1], &[1, 2])), 3);
    assert_eq!(measure::program_cores(&cores(&[3], &[])), 1);
    assert_eq!(measure::program_cores(&cores(&[], &[])), 0);
}

#[test]
fn a_client_has_in_flight_what_its_rate_and_mean_latency_say() {
    let mut trial = Trial {
        program: Some(program()),
        ..Trial::default()
    };
    let latency = |trial: &mut Trial, mean: f64, max: u64| {
        let line = &mut trial.program.as_mut().expect("a program").lines[0];
        let figures = line.client.as_mut().expect("a client");
        let latency = figures.latency.as_mut().expect("a latency");
        (latency.mean, latency.max) = (mean, max);
    };
    // 2,000 a second of 5 ms each.
    assert_eq!(client::little(&trial), Some(10.0));
    latency(&mut trial, 0.0, 9);
    assert!(client::latency(&trial).is_some());
    assert_eq!(client::little(&trial), None);
    latency(&mut trial, 5.0, 0);
    assert!(client::latency(&trial).is_some());
    latency(&mut trial, 0.0, 0);
    assert_eq!(client::latency(&trial), None);
    latency(&mut trial, f64::INFINITY, 9);
    assert_eq!(client::little(&trial), None);
}

#[test]
fn a_peers_time_is_shared_by_the_requests_that_it_counted_or_else_the_client() {
    let mut trial = Trial {
        program: Some(program()),
        client: Some(ClientReport {
            peer: PeerCounts {
                requests: Some(5_000),
                ..PeerCounts::default()
            },
            ..ClientReport::default()
        }),
        processes: vec![process(Role::Peer, 1, &[1], None)],
        ..Trial::default()
    };
    assert_eq!(client::peer_cpu_per_request(&trial), Some(Time(20_000.0)));
    trial.client = None;
    assert_eq!(client::peer_cpu_per_request(&trial), Some(Time(25_000.0)));
    trial.program.as_mut().expect("a program").lines[0].count = 0;
    assert_eq!(client::peer_cpu_per_request(&trial), None);
}

/// A client of two threads on one core beside a peer, which was asked for half of the time.
fn asked() -> (Trial, Cores) {
    let mut program = program();
    program.wall_ns = WINDOW;
    program.lines[0].elapsed_ns = WINDOW / 2;
    (program.user_ns, program.system_ns) = (hundredths(20), hundredths(40));
    let trial = Trial {
        sampled_ns: WINDOW,
        program: Some(program),
        processes: vec![process(Role::Peer, 40, &[15, 25], None)],
        cores: vec![
            core(0, Role::Subject, 70),
            core(1, Role::Peer, 45),
            core(2, Role::Generator, 10),
        ],
        ..Trial::default()
    };
    let cores = Cores {
        subject: vec![0],
        generator: vec![1, 2],
        ..Cores::default()
    };
    (trial, cores)
}

#[test]
fn a_client_and_its_peer_are_as_busy_as_their_busiest_core_or_thread() {
    let (mut trial, cores) = asked();
    let busy = client::Busy::new(&trial, &cores);
    assert_eq!(
        (busy.client, busy.peer),
        (Some(Share(0.7)), Some(Share(0.9)))
    );
    // Most of the core was busy with something else: what the client used counts.
    trial.program.as_mut().expect("a program").system_ns = hundredths(20);
    let busy = client::Busy::new(&trial, &cores);
    assert_eq!(busy.client, Some(Share(0.4)));
    // Likewise of the peer, of which 80 % of the time that it was asked are its own.
    trial.processes[0].cpu_ns = hundredths(24);
    let busy = client::Busy::new(&trial, &cores);
    assert_eq!(busy.peer, Some(Share(0.5)), "its thread's 25 hundredths");
    trial.cores[1].role = None;
    trial.processes.clear();
    let busy = client::Busy::new(&trial, &cores);
    assert_eq!(busy.peer, Some(Share(0.2)), "the generator's core");
    trial.cores[2].busy_ns = WINDOW;
    assert_eq!(client::Busy::new(&trial, &cores).peer, Some(Share(1.0)));
}

#[test]
fn a_clients_time_is_shared_by_its_threads_as_far_as_there_are_cores() {
    let (mut trial, mut cores) = asked();
    trial.cores.clear();
    let client = |trial: &Trial, cores: &Cores| client::Busy::new(trial, cores).client;
    assert_eq!(client(&trial, &cores), Some(Share(0.6)));
    cores.subject = vec![0, 3, 4];
    assert_eq!(client(&trial, &cores), Some(Share(0.3)), "two threads");
    cores.subject.clear();
    assert_eq!(client(&trial, &cores), Some(Share(0.3)), "not pinned");
    trial.program.as_mut().expect("a program").wall_ns = 0;
    assert_eq!(client(&trial, &cores), None);
}
