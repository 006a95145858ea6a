//! What README.md shows is true: its commands run, its files are there, and its excerpts stand
//! word for word in the documents that they are from, which belong to the experiments as they
//! are. The commands in `docs` are ones that the program takes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{self, Ended};
use clap::Parser as _;
use prony_cli::words::Words;
use prony_lab::cap::Limits;
use prony_lab::experiment::Experiment;
use prony_lab::network::Refusal;
use prony_lab::plan::{self, Facts, KernelSetting};
use prony_lab::subject::{self, Subject};
use prony_record::layout;

use crate::server;

/// Commands of README that are not run here, each with what runs it, or what it is made of.
const NOT_RUN: [(&str, &str); 3] = [
    ("./test quick", "runs this test"),
    (
        "./prony compare runs/ping-001 runs/ping-002",
        "compare.rs, with two runs of the same cells",
    ),
    (
        "./prony load --find-max 'p99<10ms' -c 100 -t 1 http://127.0.0.1:8080/hello",
        "find_max.rs: it takes a minute, and on a busy machine may find that the generator is the limit",
    ),
];

/// What stands for a command of README because the whole of it takes minutes: one cell of an
/// experiment, or less of the same. What is not here runs as it stands.
const SHORTER: [(&str, &str); 16] = [
    (
        "./prony run experiments/ping.toml --quick",
        "./prony run experiments/ping.toml --quick --blocks 1 --only 'rust/prony ping c=2 services=off'",
    ),
    (
        "./prony run experiments/own-server.toml",
        "./prony run experiments/own-server.toml --quick --blocks 1",
    ),
    (
        "./prony run experiments/ping.toml --only rust/axum --blocks 12 --seed 7",
        "./prony run experiments/ping.toml --only 'rust/prony hello c=400' --blocks 1 --seed 7 --quick",
    ),
    (
        "./prony run experiments/ping.toml --quick --resume runs/ping-001",
        "./prony run experiments/ping.toml --quick --resume runs/ping-001 --blocks 1 --only 'rust/prony ping c=2 services=off'",
    ),
    (
        "./prony compare --interleave './prony serve --port {port}' './prony serve --port {port} --services on' --path /hello --fail-on 5%",
        "./prony compare --interleave './prony serve --port {port}' './prony serve --port {port} --services on' --path /hello --fail-on 5% \
         --blocks 1 -d 100ms",
    ),
    (
        "./prony load -c 100 -t 1 -d 10s --latency http://127.0.0.1:8080/hello",
        "./prony load -c 100 -t 1 -d 1s --latency http://127.0.0.1:8080/hello",
    ),
    (
        "./prony load -n 100000 --method POST --body '{\"sequence\":2}' -H 'Content-Type: application/json' --json - http://127.0.0.1:8080/ping",
        "./prony load -n 1000 --method POST --body '{\"sequence\":2}' -H 'Content-Type: application/json' --json - http://127.0.0.1:8080/ping",
    ),
    (
        "./prony run experiments/ichor-runtime.toml --quick",
        "./prony run experiments/ichor-runtime.toml --quick --only 'rust/prony start n=10000 allocator=std threads=1'",
    ),
    (
        "./prony run experiments/realtime.toml --only \"*throttle=-1*\"",
        "./prony run experiments/realtime.toml --only \"rust/prony*throttle=-1*\" --quick --blocks 1",
    ),
    (
        "./prony run experiments/lift.toml --quick",
        "./prony run experiments/lift.toml --quick --only 'rust/prony-load c1-t1-s1 *'",
    ),
    (
        "./prony run experiments/haiku-net-bench.toml --quick",
        "./prony run experiments/haiku-net-bench.toml --quick --only 'ring prony *'",
    ),
    (
        "./prony serve --port 8080 --payload 200MiB",
        "./prony serve --port 8080 --payload 2MiB",
    ),
    (
        "./prony bench client http://127.0.0.1:8080/hello 5 10 1",
        "./prony bench client http://127.0.0.1:8080/hello 1 10 1",
    ),
    // Each of its subjects takes minutes to build; subjects.rs builds them and holds them to their
    // contract, and lab/tests/faults/services.rs runs such trials.
    (
        "./prony run experiments/clicky.toml --quick",
        "./prony run experiments/clicky.toml --quick --dry-run",
    ),
    (
        "./prony load -c 100 -d 10 --seconds seconds.log http://127.0.0.1:8080/hello",
        "./prony load -c 100 -d 5 --seconds seconds.log http://127.0.0.1:8080/hello",
    ),
    (
        "./prony run experiments/nibiru.toml --quick",
        "./prony run experiments/nibiru.toml --quick --only 'lua/prony-host hello c=1'",
    ),
];

/// Parts of commands and what they need of a machine.
const NEEDS: [(&str, Need); 5] = [
    ("own-server.toml", Need::Program("python3")),
    ("lift.toml", Need::Program("nginx")),
    ("realtime.toml", Need::Setting("kernel.sched_rt_runtime_us")),
    ("--strategy ring", Need::Ring),
    ("'ring prony", Need::Ring),
];

enum Need {
    Program(&'static str),
    /// A kernel setting that may be written.
    Setting(&'static str),
    Ring,
}

impl Need {
    /// Whether it is there; what is not has been said.
    fn is_met(&self) -> bool {
        match self {
            Need::Program(name) => prony_testkit::need(name).is_some(),
            Need::Setting(name) => {
                let writable = prony_lab::sysctl::is_writable(name);
                if !writable {
                    prony_testkit::skip_without("root", &format!("{name} may not be written here"));
                }
                writable
            }
            Need::Ring => server::drivers().contains(&"ring"),
        }
    }
}

/// README and the guide that it points to.
fn readme() -> String {
    let text = |path| fs::read_to_string(prony_testkit::root().join(path)).expect("text");
    format!("{}\n{}", text("README.md"), text("docs/guide.md"))
}

/// The lines of all blocks of `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let opened = text.split(&opening).skip(1);
    opened
        .filter_map(|rest| rest.split("```").next())
        .flat_map(str::lines)
        .map(str::to_owned)
        .collect()
}

/// Splits as a shell does: words, `'…'`, `"…"`, and `#` for a comment.
fn words(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match c {
            '\'' | '"' if quote.is_none() => quote = Some(c),
            c if quote == Some(c) => quote = None,
            '#' if quote.is_none() => break,
            ' ' if quote.is_none() => found.push(String::new()),
            other => found.last_mut().expect("a word").push(other),
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

/// A folder in which README's commands can be typed as they stand, and change nothing here.
struct Desk {
    folder: PathBuf,
    /// The server that was started last, and its port.
    server: Option<(Ended, u16)>,
}

impl Desk {
    fn new() -> Desk {
        let (folder, root) = (common::folder("readme"), prony_testkit::root());
        for name in ["experiments", "examples"] {
            symlink(root.join(name), folder.join(name)).expect("a link");
        }
        symlink(common::PRONY, folder.join("prony")).expect("a link");
        // A log is written into its document.
        let log = Path::new("docs/documents/nibiru.md");
        fs::create_dir_all(folder.join("docs/documents")).expect("a folder");
        fs::copy(root.join(log), folder.join(log)).expect("a copy");
        Desk {
            folder,
            server: None,
        }
    }

    fn shell(&self, line: &str) -> Command {
        // What is still there after this long hangs.
        let mut command = Command::new("timeout");
        command.args(["--foreground", "300", "sh", "-c", &format!("exec {line}")]);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(&self.folder)
            .env("PATH", format!("{path}:/usr/sbin"))
            .env("PRONY_HOME", prony_testkit::root())
            .env("PRONY_CACHE", self.folder.join("cache"))
            .env_remove("PRONY_DRIVER");
        command
    }

    /// Ends the last server and starts another, which listens when this returns.
    fn serve(&mut self, line: &str) {
        self.server = None;
        let mut command = self.shell(line);
        let mut server = Ended::start(command.stdout(Stdio::piped()));
        let out = BufReader::new(server.0.stdout.take().expect("its output"));
        let mut said = out.lines().map_while(Result::ok);
        let url = said.find(|line| line.contains("listening on http://"));
        let port = url.and_then(|url| url.rsplit(':').next()?.trim().parse().ok());
        let port = port.unwrap_or_else(|| panic!("{line}: it does not listen"));
        assert!(!common::get(port, "/").is_empty(), "{line}: it answers");
        self.server = Some((server, port));
    }

    fn run(&self, line: &str) -> Output {
        let port = self.server.as_ref().map(|(_, port)| *port);
        let line = match port {
            Some(port) => line
                .replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"))
                .replace("127.0.0.1 8080", &format!("127.0.0.1 {port}")),
            None => line.to_owned(),
        };
        self.shell(&line).output().expect("it starts")
    }
}

/// The command of a line of README, without its comment.
fn command_of(line: &str) -> &str {
    line.split("  #").next().unwrap_or_default().trim()
}

#[test]
fn its_commands_run() {
    let text = readme();
    let lines = blocks(&text, "sh");
    let mut commands: Vec<&str> = lines.iter().map(|line| command_of(line)).collect();
    // What README and the guide both have runs once.
    let all = commands.clone();
    let mut at = 0;
    commands.retain(|command| {
        at += 1;
        !all[..at - 1].contains(command)
    });
    let tables = SHORTER.iter().chain(&NOT_RUN);
    for (command, _) in tables {
        assert!(commands.contains(command), "README has no `{command}`");
    }
    let mut desk = Desk::new();
    let mut ran = 0;
    for command in commands {
        if NOT_RUN.iter().any(|&(name, _)| name == command) {
            continue;
        }
        let shorter = SHORTER.iter().find(|&&(long, _)| long == command);
        let line = shorter.map_or(command, |&(_, short)| short);
        let mut needs = NEEDS.iter().filter(|(part, _)| line.contains(part));
        if !needs.all(|(_, need)| need.is_met()) {
            continue;
        }
        ran += 1;
        if line.starts_with("./prony serve") {
            desk.serve(&line.replace("--port 8080", "--port 0"));
        } else if line.starts_with("./prony host") {
            desk.serve(&format!("{line} 0"));
        } else {
            let output = desk.run(line);
            let said = String::from_utf8_lossy(&output.stderr);
            // 3: of so short a window, or of so high a rate, a busy machine makes a figure that is not valid.
            let measures = ["run ", "load ", "compare ", "bench "];
            let is_measured = measures
                .iter()
                .any(|word| line.contains(&format!("prony {word}")));
            let code = output.status.code();
            assert!(
                code == Some(0) || is_measured && code == Some(3),
                "{line}: {code:?}\n{said}"
            );
        }
    }
    assert!(ran >= 15, "its commands were found");
    let fetched = fs::metadata(desk.folder.join("payload")).expect("what was fetched");
    assert_eq!(fetched.len(), 2 << 20);
    let log = fs::read_to_string(desk.folder.join("docs/documents/nibiru.md")).expect("the log");
    let before = prony_testkit::root().join("docs/documents/nibiru.md");
    let before = fs::read_to_string(before).expect("the log");
    assert!(log.len() > before.len(), "an entry was added");
    drop(desk.server.take());
    fs::remove_dir_all(&desk.folder).expect("it can go");
}

/// Programs in blocks of `docs` that are not `prony`, with what runs them.
const OTHERS: [(&str, &str); 9] = [
    (
        "cargo",
        "./test builds lua54 by it, and the tests of prony-systems the program that they start",
    ),
    (
        "gcc",
        "builds truth/responder.c, which the truth's own tests do",
    ),
    ("./responder", "its own head says what it takes"),
    (".ci/run", "what CI runs"),
    ("sudo", "the same as an ordinary user without namespaces"),
    ("wrk", "shown beside prony load"),
    ("wrk2", "shown beside prony load"),
    ("pip", "python/test installs the wheel"),
    ("prony-wsgi", "python/tests drives its command line"),
];

#[test]
fn the_commands_in_docs_are_ones_that_the_program_takes() {
    let (mut seen, mut wrong) = (0, Vec::new());
    let docs = fs::read_dir(prony_testkit::root().join("docs")).expect("docs");
    for path in docs.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        for line in blocks(&text, "sh") {
            let words = words(before_shell(&line));
            let Some((program, rest)) = words.split_first() else {
                continue;
            };
            if OTHERS.iter().any(|(other, _)| other == program) {
                continue;
            }
            seen += 1;
            let rest = rest.iter().map(String::as_str);
            let all: Vec<String> = std::iter::once("prony")
                .chain(rest)
                .map(str::to_owned)
                .collect();
            let parsed = takes(&all);
            let is_prony = ["prony", "./prony"].contains(&program.as_str());
            if !is_prony || parsed.is_err() {
                wrong.push(format!("{}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 10, "only {seen} commands were found");
}

/// A line up to what is for the shell: a pipe or a redirection outside of quotes.
fn before_shell(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match c {
            '\'' | '"' if quote.is_none() => quote = Some(c),
            c if quote == Some(c) => quote = None,
            '|' | '>' if quote.is_none() => return &line[..at],
            _ => {}
        }
    }
    line
}

/// The code within sentences of a document: what stands between two backquotes outside of blocks.
fn spans(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let spans = prose.split('`').skip(1).step_by(2);
    let one_line = |span: &str| span.split_whitespace().collect::<Vec<_>>().join(" ");
    spans.map(one_line).collect()
}

/// Whether the program takes these words; those of `prony-systems` by what that says of them.
fn takes(words: &[String]) -> Result<(), clap::Error> {
    use prony_cli::words::Command::{Bench, Fetch, Host, Lua};
    let parsed = prony_cli::parsed(words)?;
    match parsed.command {
        Bench(_) | Fetch(_) | Host(_) | Lua(_) => {
            let _systems = common::systems();
            prony_cli::command(Path::new(common::PRONY))
                .try_get_matches_from(words)
                .map(drop)
        }
        _ => Ok(()),
    }
}

/// Whether the program takes these words, or would if more followed.
fn is_begun(words: &[String]) -> bool {
    use clap::error::ErrorKind;
    match takes(words) {
        Ok(()) => true,
        Err(error) => match error.kind() {
            ErrorKind::MissingRequiredArgument
            | ErrorKind::WrongNumberOfValues
            | ErrorKind::TooFewValues
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
            // `PORT` stands for a number.
            ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
                let stands_for = |word: &String| word.chars().all(char::is_uppercase);
                words.iter().any(stands_for) || error.to_string().contains("a value is required")
            }
            _ => false,
        },
    }
}

/// Of a sentence a command may lack what it needs; its flags and their values are ones that there are.
#[test]
fn commands_within_sentences_of_docs_are_ones_that_the_program_takes() {
    let (mut seen, mut wrong) = (0, Vec::new());
    let docs = fs::read_dir(prony_testkit::root().join("docs")).expect("docs");
    for path in docs.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        for span in spans(&fs::read_to_string(&path).expect("text")) {
            let words = words(&span);
            if words.first().is_some_and(|first| first == "prony") && words.len() > 1 {
                seen += 1;
                if !is_begun(&words) {
                    wrong.push(format!("{}: {span}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 50, "only {seen} commands were found");
}

/// The tests that docs/method.md names are there: `cargo test … -p prony-NAME --test all FILE`.
#[test]
fn tests_that_the_method_names_are_there() {
    let root = prony_testkit::root();
    let text = fs::read_to_string(root.join("docs/method.md")).expect("the page");
    let mut seen = 0;
    for span in spans(&text) {
        let words = words(&span);
        let after = |flag: &str| {
            let place = words.iter().position(|word| word == flag)?;
            words.get(place + 1)
        };
        if !words.iter().any(|word| word == "cargo") {
            continue;
        }
        let name = after("-p").and_then(|name| name.strip_prefix("prony-"));
        let krate = root.join("crates").join(name.expect("a crate"));
        assert!(krate.is_dir(), "{span}");
        if let Some(module) = after("all") {
            let name = module.split("::").next().unwrap_or_default();
            let file = krate.join(format!("tests/all/{name}.rs"));
            assert!(file.is_file(), "{span}");
        }
        seen += 1;
    }
    assert!(seen >= 5, "only {seen} were found");
}

#[test]
fn its_commands_are_ones_that_the_program_takes() {
    let mut seen = 0;
    for line in blocks(&readme(), "sh") {
        let words = words(&line);
        let (program, rest) = words.split_first().expect("a command");
        assert!(
            prony_testkit::root().join(program).is_file(),
            "{program} is there"
        );
        if program == "./prony" {
            let parsed =
                prony_cli::parsed(std::iter::once("prony").chain(rest.iter().map(String::as_str)));
            assert!(
                parsed.is_ok(),
                "{line}: {}",
                parsed
                    .err()
                    .map(|error| error.to_string())
                    .unwrap_or_default()
            );
            seen += 1;
        }
        for file in rest.iter().filter(|word| word.ends_with(".toml")) {
            assert!(prony_testkit::root().join(file).is_file(), "{line}: {file}");
        }
    }
    assert!(seen >= 8, "its commands were found");
}

#[test]
fn its_excerpts_stand_in_their_documents() {
    let text = readme();
    let mut rows = 0;
    for part in text.split("<!-- excerpt: ").skip(1) {
        let (comment, rest) = part.split_once(" -->").expect("what it is from");
        let (name, of) = comment
            .split_once(" of ")
            .expect("`DOCUMENT of EXPERIMENT`");
        let excerpt = rest.split("<!-- /excerpt -->").next().expect("its end");
        let document = fs::read_to_string(prony_testkit::root().join(name)).expect(name);
        for line in excerpt.lines().filter(|line| !line.is_empty()) {
            assert!(
                document.lines().any(|there| there == line),
                "{line}\nis not in {name}"
            );
            rows += 1;
        }
        let told = with_appendix(name);
        let told = Told::by(&told).expect("a document of one run");
        let plan = told.plan.map(|plan| format!(", plan {plan}"));
        let wanted = format!("{}{}", told.experiment, plan.unwrap_or_default());
        assert_eq!(of, wanted, "which experiment the excerpt of {name} is of");
        let is_older = OLDER.iter().any(|&(older, _)| older == name);
        assert_eq!(
            text.contains("older than its experiment"),
            is_older,
            "README says so where {name} is older, and only there"
        );
    }
    assert!(rows > 10, "a table was found");
}

/// The project's own prose: figures that are bound to runs, excerpts, and the data that lies beside documents for it.
#[test]
fn what_prose_quotes_of_documents_is_what_they_say() {
    let output = Command::new(common::PRONY)
        .current_dir(prony_testkit::root())
        .args(["verify", "docs/documents/ping", "docs/documents/nibiru"])
        .args(["README.md", "docs/documents/nibiru.md"])
        .output()
        .expect("prony runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for right in [
        "README.md: 20 lines of excerpts are right",
        "nibiru.md: 10 bound figures are right",
    ] {
        assert!(said.contains(right), "{right}: {said}");
    }
}

/// The text of a document, and of the appendix beside it.
fn with_appendix(name: &str) -> String {
    let path = prony_testkit::root().join(name);
    let document = fs::read_to_string(&path).expect(name);
    let appendix = fs::read_to_string(path.with_file_name(layout::APPENDIX));
    document + "\n" + &appendix.unwrap_or_default()
}

/// Documents that are older than their experiments, each with the reason. They are to be made
/// again on an idle machine, by the command that stands in each.
const OLDER: [(&str, &str); 1] = [(
    "docs/documents/ichor-runtime/document.md",
    "the experiment has another quick run since; the whole one is as it was",
)];
/// Documents of many runs.
const LOGS: [&str; 1] = ["docs/documents/nibiru.md"];

/// What a document says of where it comes from.
struct Told<'a> {
    experiment: &'a str,
    sha256: &'a str,
    /// Those of older Pronys do not say it.
    plan: Option<&'a str>,
    /// The command that makes it again, without `prony`.
    command: &'a str,
    /// The limit of open files by which its machine could not have all connections.
    open_files: Option<u64>,
    /// The networks that its machine could not have.
    refused_networks: Vec<&'a str>,
}

impl<'a> Told<'a> {
    fn by(document: &'a str) -> Option<Told<'a>> {
        let after = |start: &str| document.lines().find_map(|line| line.strip_prefix(start));
        let fact = |name: &str| {
            let mut rows = document.lines().filter_map(|line| {
                let (head, value) = line.strip_prefix("| ")?.split_once(" | `")?;
                (head.trim_end() == name).then_some(value)
            });
            rows.next()?.split('`').next()
        };
        Some(Told {
            experiment: fact("experiment")?,
            sha256: fact("its SHA-256")?,
            plan: fact("plan"),
            command: after("`prony run ")?.strip_suffix('`')?,
            open_files: document
                .split_once("(open files of the generator: ")
                .and_then(|(_, rest)| rest.split_once(',')?.0.parse().ok()),
            refused_networks: document
                .split("the network \\`")
                .skip(1)
                .filter_map(|rest| rest.split_once("\\` cannot be made"))
                .map(|(name, _)| name)
                .collect(),
        })
    }

    /// Whether the experiment and what Prony makes of it are the same as then.
    fn is_as_it_is_now(&self) -> bool {
        let root = prony_testkit::root();
        let experiment = Experiment::load(&root.join(self.experiment)).expect("an experiment");
        let words = words(&format!("prony run {}", self.command));
        let Ok(Words {
            command: prony_cli::words::Command::Run(words),
            ..
        }) = Words::try_parse_from(words)
        else {
            panic!("`{}` is what `prony run` takes", self.command);
        };
        let subjects = subject::load_all(&experiment, &root.join("subjects"));
        let subjects = subjects.unwrap_or_else(|wrong| panic!("{}", wrong.len()));
        let options = plan::Options {
            quick: words.quick,
            only: words.only.clone(),
            blocks: words.blocks,
            seed: words.seed,
            duration: words.duration,
            warmup: words.warmup,
            visits: words.visits,
            cores: words.cores.clone(),
            ..plan::Options::default()
        };
        let mut facts = all_there(&experiment, &subjects);
        if let Some(files) = self.open_files {
            facts.limits.open_files = files;
        }
        let refused = self.refused_networks.iter();
        facts.networks = refused
            .map(|&name| (name.to_owned(), Refusal::default()))
            .collect();
        let plan = plan::plan(&experiment, &subjects, &facts, &options).expect("a plan");
        let same = |told: &str| told == prony_report::plan_hash(&plan);
        self.sha256 == experiment.sha256 && self.plan.is_none_or(same)
    }
}

/// A machine with two cores that lacks nothing.
fn all_there(experiment: &Experiment, subjects: &[Subject]) -> Facts {
    let settings = experiment.settings.iter().filter_map(|s| s.sysctl.clone());
    let writable = KernelSetting {
        value: String::new(),
        writable: true,
    };
    let needs = || subjects.iter().map(|subject| &subject.needs);
    Facts {
        cores: vec![vec![0], vec![1]],
        commands: needs().flat_map(|n| n.commands.clone()).collect(),
        files: needs().flat_map(|n| n.files.clone()).collect(),
        limits: Limits::example(),
        kernel: settings.map(|name| (name, writable.clone())).collect(),
        ..Facts::default()
    }
}

#[test]
fn documents_are_of_experiments_as_they_are_now() {
    let root = prony_testkit::root();
    let kept = fs::read_dir(root.join("docs/documents")).expect("documents");
    let kept = kept.flatten().map(|entry| entry.file_name());
    let in_folder = |name: String| match root.join(&name).join(layout::DOCUMENT).exists() {
        true => format!("{name}/{}", layout::DOCUMENT),
        false => name,
    };
    let names: Vec<String> = kept
        .map(|name| in_folder(format!("docs/documents/{}", name.to_string_lossy())))
        .collect();
    let mut seen = 0;
    for name in names {
        if !name.ends_with(".md") || LOGS.contains(&name.as_str()) {
            continue;
        }
        let document = with_appendix(&name);
        let told = Told::by(&document).unwrap_or_else(|| panic!("{name} says where it is from"));
        let is_older = OLDER.iter().any(|&(older, _)| older == name);
        assert_eq!(
            told.is_as_it_is_now(),
            !is_older,
            "whether {name} is of {} as it is now; where it is older: `prony run {}`, or else take it off the list here",
            told.experiment,
            told.command
        );
        seen += 1;
    }
    assert!(seen >= 5, "the documents were found");
}

/// A command that selects nothing measures nothing, and a comparison of which one side is gone is none.
#[test]
fn a_comparison_of_equal_work_selected_no_cell() {
    let root = prony_testkit::root();
    let text = fs::read_to_string(root.join("docs/equal-work.md")).expect("the page");
    let (mut seen, mut wrong) = (0, Vec::new());
    for line in blocks(&text, "sh") {
        let Ok(Words {
            command: prony_cli::words::Command::Run(words),
            ..
        }) = Words::try_parse_from(words(&line))
        else {
            panic!("`{line}` is what `prony run` takes");
        };
        let experiment = Experiment::load(&root.join(&words.experiment)).expect("an experiment");
        let subjects = subject::load_all(&experiment, &root.join("subjects"));
        let subjects = subjects.unwrap_or_else(|wrong| panic!("{}", wrong.len()));
        let facts = all_there(&experiment, &subjects);
        for pattern in &words.only {
            seen += 1;
            let options = plan::Options {
                only: vec![pattern.clone()],
                ..plan::Options::default()
            };
            let planned = plan::plan(&experiment, &subjects, &facts, &options);
            if !planned.is_ok_and(|plan| !plan.cells.is_empty()) {
                wrong.push(format!("{pattern}: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 20, "only {seen} patterns were found");
}

/// Of most experiments there is no document here, and so no other test that would read them.
#[test]
fn each_experiment_resolves_to_cells() {
    let root = prony_testkit::root();
    let mut seen = 0;
    for entry in fs::read_dir(root.join("experiments")).expect("experiments") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.display();
        let experiment = Experiment::load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
        let subjects = subject::load_all(&experiment, &root.join("subjects"));
        let subjects = subjects.unwrap_or_else(|wrong| panic!("{name}: {} faults", wrong.len()));
        let facts = all_there(&experiment, &subjects);
        let planned = plan::plan(&experiment, &subjects, &facts, &plan::Options::default());
        let planned = planned.unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(!planned.cells.is_empty(), "{name} has no cell");
        seen += 1;
    }
    assert!(seen >= 15, "only {seen} experiments were found");
}

#[test]
fn its_experiment_is_the_example() {
    let example = fs::read_to_string(prony_testkit::root().join("experiments/own-server.toml"))
        .expect("the example");
    for line in blocks(&readme(), "toml") {
        assert!(example.lines().any(|there| there == line), "{line}");
    }
}
