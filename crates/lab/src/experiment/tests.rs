use std::path::Path;

use prony_base::Nanos;
use proptest::prelude::*;

use super::*;
use crate::diagnosis::Diagnoses;
use crate::plan::fuzz;

fn parse(text: &str) -> Result<Experiment, Diagnoses> {
    Experiment::parse(text, &Origin::new("e.toml", "/srv"))
}

/// An experiment of plain servers, and one with all that can stand around them.
fn example(has_services: bool) -> String {
    if has_services {
        let page = include_str!("../../../../docs/experiments.md");
        let chapter = page.split("## Services").nth(1).unwrap();
        let block = chapter.split("```toml").nth(1).unwrap();
        return block.split("```").next().unwrap().to_owned();
    }
    let path = prony_testkit::root().join("experiments/ping.toml");
    std::fs::read_to_string(path).unwrap()
}

/// docs/experiments.md is the guide for writers.
#[test]
fn the_documented_file_parses_whole() {
    let page = include_str!("../../../../docs/experiments.md");
    let opened = page.split("```toml").skip(1);
    let blocks: Vec<&str> = opened
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 12);
    for block in &blocks {
        if let Err(wrong) = parse(block) {
            panic!("{wrong}");
        }
    }
    let experiment = parse(blocks[1]).unwrap();
    assert_eq!(experiment.subjects.len(), 3);
    assert_eq!(experiment.run.threads, Some(1));
    assert_eq!(experiment.exclude.len(), 1);
    let arrivals = parse(blocks[2]).unwrap();
    assert!(arrivals.workloads[0].arrival.is_open());
    assert_eq!(arrivals.quick.rates.unwrap().into_inner(), [1_000.0]);
    assert!(parse(blocks[3]).unwrap().workloads[0].source.is_some());
    let users = parse(blocks[4]).unwrap();
    assert_eq!(users.workloads[0].name.get_ref(), "shop");
    assert_eq!(users.workloads[0].require[0].step.as_deref(), Some("login"));
    assert!(users.workloads[1].arrival.is_open());
    assert_eq!(parse(blocks[5]).unwrap().workloads[0].require.len(), 2);
    let search = parse(blocks[6]).unwrap().workloads[0].find_max.unwrap();
    assert_eq!(search.step, Nanos::from_secs(1));
    let services = parse(blocks[7]).unwrap();
    assert_eq!((services.backings.len(), services.fronts.len()), (1, 1));
    let table = &services.workloads[0];
    assert_eq!(
        (table.rows.len(), &table.rows[5].baseline),
        (6, &Baseline::Nothing)
    );
    assert_eq!(table.rows[3].baseline_of(3, &table.rows), Some("Redis"));
    assert_eq!(
        table.rows[4].baseline_of(4, &table.rows),
        Some("No backend")
    );
    assert_eq!(table.rows[3].baseline_of(3, &table.rows), Some("Redis"));
    assert_eq!(
        table.rows[4].baseline_of(4, &table.rows),
        Some("No backend")
    );
    let programs = parse(blocks[8]).unwrap();
    assert_eq!(programs.workloads[0].timeout, Nanos::from_secs(60));
    assert_eq!(programs.quick.count_max, Some(10_000));
    let ichor = parse(blocks[9]).unwrap();
    assert_eq!(ichor.subjects[0].works, ["coroutine"]);
    let clients = parse(blocks[10]).unwrap();
    assert_eq!((clients.peers.len(), clients.networks.len()), (1, 1));
    let client = |at: usize| clients.workloads[at].client.clone().unwrap();
    assert_eq!((client(0).threads, client(0).peer_threads), (2, 4));
    assert_eq!(
        (client(1).path.as_str(), client(1).payload_bytes),
        ("/testpayload", 200 << 20)
    );
    assert_eq!(clients.quick.payload_max, Some(20 << 20));
    let claims = parse(blocks[11]).unwrap().published;
    assert_eq!(claims.len(), 4);
    let first = claims[0].original.as_ref().unwrap();
    let over = first.over.as_ref().unwrap();
    assert_eq!(first.subject.get_ref(), "go/fasthttp");
    assert_eq!(over.subject.get_ref(), "cpp/beast");
    assert_eq!(
        (&over.workload, over.metric),
        (&first.workload, first.metric)
    );
    assert_eq!(claims[3].why_not, "no cell is of 200 requests");
}

/// Claims of others change nothing that is measured, and so not the digest of the experiment.
#[test]
fn published_claims_are_not_in_the_digest_of_an_experiment() {
    let before = example(false);
    let bare = before.split("\n# Claims of").next().unwrap().to_owned();
    let claims = "\n# Of others.\n\n[[published]]\n# A remark.\ntext = \"a\\n[[published]]\"\nwhere = 'b'\nwhy_not = 'c'\n";
    let claims = claims.replace("\\n", "");
    let read = |text: &str| parse(text).unwrap();
    let (without, with) = (read(&bare), read(&format!("{bare}{claims}{claims}")));
    assert_eq!((without.published.len(), with.published.len()), (0, 2));
    assert_eq!(with.sha256, without.sha256);
    assert_eq!(read(&before).sha256, without.sha256);
    let other = bare.replace("blocks = 6", "blocks = 7");
    assert_ne!(read(&other).sha256, without.sha256);
    // A text that looks like a header is a text.
    let question = format!(
        "question = '''\n[[published]]\n'''\n{}",
        bare.replace("question =", "#")
    );
    let claimed = |text: &str| read(&format!("{text}{claims}")).sha256;
    assert_eq!(claimed(&question), read(&question).sha256);
    let other = question.replace("blocks = 6", "blocks = 7");
    assert_ne!(claimed(&question), claimed(&other));
    // A comment at the end of a file without claims is of the file.
    assert_ne!(read(&format!("{bare}# more\n")).sha256, without.sha256);
}

/// Claims in one line of a list are the same claims.
#[test]
fn published_claims_in_a_list_stand_last_or_are_refused() {
    let text = "published = [{ text = 'a', where = 'b', why_not = 'c' }]\n[[subject]]\ncmd = './s {port}'\n\
                [[workload]]\nrequest = { path = '/' }\n";
    let message = parse(text).unwrap_err().to_string();
    assert!(
        message.contains("`subject` stands behind [[published]]"),
        "{message}"
    );
    assert!(message.contains("e.toml:2:"), "{message}");
}

#[test]
fn the_text_of_a_published_claim_is_one_line_of_bounded_length() {
    let read = |text: &str| {
        parse(&format!(
            "[[subject]]\ncmd = './s {{port}}'\n[[workload]]\nrequest = {{ path = '/' }}\n\
             [[published]]\ntext = \"{text}\"\nwhere = 'b'\nwhy_not = 'c'\n"
        ))
    };
    let longest = "x".repeat(400);
    assert!(read(&longest).is_ok());
    for wrong in [
        format!("{longest}x"),
        "two\\nlines".to_owned(),
        "  ".to_owned(),
    ] {
        let message = read(&wrong).unwrap_err().to_string();
        assert!(
            message.contains("one line of at most 400 bytes"),
            "{message}"
        );
    }
}

/// A file with the names of before is read as the newer one is, and each of them is said with its place.
#[test]
fn older_names_are_read_with_a_warning() {
    let newer = example(true);
    let older = newer
        .replace("baseline = ", "beside = ")
        .replace("counter = {", "tally = {");
    let (newer, older) = (parse(&newer).unwrap(), parse(&older).unwrap());
    let rows = |of: &Experiment| {
        let titles = of.workloads[0].rows.iter().enumerate();
        let baselines = titles.map(|(at, row)| {
            let baseline = row.baseline_of(at, &of.workloads[0].rows);
            baseline.map(str::to_owned)
        });
        baselines.collect::<Vec<_>>()
    };
    assert_eq!(rows(&older), rows(&newer));
    let adds = |of: &Experiment| of.workloads[0].counter.as_ref().map(|counter| counter.adds);
    assert_eq!((adds(&older), adds(&newer)), (Some(500), Some(500)));
    assert_eq!((older.warnings.len(), newer.warnings.len()), (3, 0));
    let message = older
        .diagnoses(older.warnings.clone())
        .render_warnings(false);
    assert!(
        message.contains("warning: `tally` is called `counter` now"),
        "{message}"
    );
    assert!(message.contains("e.toml:52:"), "{message}");
}

/// Both names of one key do not stand beside each other.
#[test]
fn a_key_by_both_names_is_refused() {
    let both = "[[subject]]\ncmd = './s {port}'\n[[workload]]\nrequest = { path = '/' }\n\
                counter = { path = '/', adds = 1 }\ntally = { path = '/', adds = 2 }\n";
    let message = parse(both).unwrap_err().to_string();
    assert!(message.contains("unknown key `tally`"), "{message}");
}

/// What the page says of services holds of those that are shipped.
#[test]
fn the_documented_services_are_there() {
    let experiment = parse(&example(true)).unwrap();
    let root = prony_testkit::root().join("subjects");
    let all = match crate::subject::load_all(&experiment, &root) {
        Ok(all) => all,
        Err(wrong) => panic!("{}", wrong[0]),
    };
    let parts = experiment.split(&all);
    assert_eq!(
        (
            parts.subjects.len(),
            parts.backings.len(),
            parts.fronts.len()
        ),
        (2, 1, 1)
    );
}

#[test]
fn rows_name_settings_in_any_order_and_values_of_any_kind() {
    let experiment = parse(
        "subject = [{ ref = 'a/b' }]
         setting = [{ name = 'keep', values = [true, 5], args = ['{value}'] }, { name = 'z', values = ['x'], args = ['z'] }]
         workload = [{ request = { path = '/' }, rows = [{ z = 'x', title = 'A', keep = true, subject = 'a/b' }, { title = 'B', subject = 'a/b', keep = 5 }] }]",
    )
    .unwrap();
    let rows = &experiment.workloads[0].rows;
    let written = |row: &Row| -> Vec<(String, String)> {
        let own = row.written(&experiment.settings).into_iter();
        own.map(|(setting, value)| (setting.name.get_ref().clone(), value.to_owned()))
            .collect()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(written(&rows[0]), [pair("keep", "true"), pair("z", "x")]);
    assert_eq!(written(&rows[1]), [pair("keep", "5")]);
}

#[test]
fn five_lines_have_defaults_for_all_else() {
    let text = "title = 'x'\n[[subject]]\ncmd = './my-server --port {port}'\n[[workload]]\nrequest = { path = '/a/b?c' }";
    let experiment = parse(text).unwrap();
    let run = &experiment.run;
    assert_eq!((run.blocks, run.seed, run.copy), (6, 1, true));
    assert_eq!(run.duration, Nanos::from_secs(10));
    let workload = &experiment.workloads[0];
    assert_eq!(workload.name.get_ref(), "a-b");
    assert_eq!(workload.request.method, "GET");
    assert_eq!(workload.connections, [Connections::Exactly(100)]);
    assert_eq!(
        (workload.expect_status, workload.connections_max),
        (200, 20_000)
    );
    assert_eq!(
        experiment.subjects[0].from,
        From::Command(vec!["./my-server".into(), "--port".into(), "{port}".into()])
    );
}

#[test]
fn a_run_may_aim_at_a_time_or_at_a_precision() {
    let aim = |run: &str| {
        let text = format!(
            "run = {{ {run} }}\nsubject = [{{ url = 'http://h' }}]\nworkload = [{{ request = {{ path = '/' }} }}]"
        );
        parse(&text).unwrap().run.aim
    };
    assert_eq!(aim("blocks = 6"), None);
    assert_eq!(
        aim("budget = '20m'"),
        Some(Aim::Budget(Nanos::from_secs(1_200)))
    );
    assert_eq!(aim("precision = '2%'"), Some(Aim::Precision(0.02)));
}

#[test]
fn visits_have_a_length_that_is_worth_a_turn() {
    let read = |run: &str| {
        let text = format!(
            "run = {{ {run} }}\nsubject = [{{ url = 'http://h' }}]\nworkload = [{{ request = {{ path = '/' }} }}]"
        );
        parse(&text).map(|experiment| experiment.run.visits)
    };
    assert_eq!(read("blocks = 6").unwrap(), None);
    let visits = read("visits = '200ms'").unwrap();
    assert_eq!(visits, Some(Nanos::from_millis(200)));
    let wrong = read("visits = '10ms'").unwrap_err().to_string();
    assert!(
        wrong.contains("`visits`") && wrong.contains("it must be from 50.0ms to 5.00s"),
        "{wrong}"
    );
}

#[test]
fn headers_keep_the_order_in_which_they_are_written() {
    let text = "subject = [{ url = 'http://h' }]
        workload = [{ request = { path = '/', headers = { Z = '1', Accept = '2', B = '3' } } }]";
    let headers = &parse(text).unwrap().workloads[0].request.headers;
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Z", "Accept", "B"]);
}

/// What does not go with a scenario is refused by its name, its line, and with what to do.
#[test]
fn a_scenario_has_nothing_beside_it_that_says_otherwise_what_is_sent() {
    let message = |lines: &str| {
        let text = format!(
            "[[subject]]\nurl = 'http://h'\n[[workload]]\nscenario = 'a/shop.toml'\n{lines}\n"
        );
        let Err(all) = parse(&text) else {
            return String::new();
        };
        let line = |at: usize| {
            all.text[..at].lines().count() + usize::from(all.text[..at].ends_with('\n'))
        };
        let shown = all.problems.iter().map(|problem| {
            let (at, help) = (line(problem.span.start), &problem.help);
            format!("{at}: {} ({help})", problem.message)
        });
        shown.collect::<Vec<_>>().join("\n")
    };
    let all = [
        "request = { path = '/' }",
        "requests = [{ path = '/' }]",
        "requests_file = 'r.txt'",
        "format = 'urls'",
        "order = 'random'",
        "cookies = true",
        "expect = { status = 201 }",
        "counter = { path = '/', adds = 1 }",
        "find_max = 'p99<10ms'",
        "arrival = { think = '1s' }",
        "step = [{ name = 'a' }]",
        "users = 5",
        "work = 'start'\ncount = 5",
        "client = 'requests'\npath = '/'",
        "[[setting]]\nname = 'pipeline'\nvalues = [1, 4]",
        "[[setting]]\nname = 'protocol'\nvalues = ['http', 'h2']",
        "[run]\nrequire = ['login p99 < 1s']",
    ];
    let all: Vec<String> = all.into_iter().map(message).collect();
    insta::assert_snapshot!(all.join("\n---\n"));
    for goes in [
        "data = 'd.csv'\ndata_order = 'random'\nfollow = 5\ncompressed = true\nuser = 'a:b'",
        "require = ['log in p99 < 1s', 'errors < 1%']\narrival = { rate = 5 }",
        "[[setting]]\nname = 'protocol'\nvalues = ['http', 'https']",
    ] {
        assert_eq!(message(goes), "", "{goes}");
    }
    let wrong = "[[subject]]\nurl = 'http://h'\n[[workload]]\nrequest = { path = '/' }\nrequire = ['log in p99 < 1s']\n";
    let wrong = parse(wrong).unwrap_err().to_string();
    assert!(
        wrong.contains("`log in` is taken for a step: a step is one of a `scenario`"),
        "{wrong}"
    );
    let named = "[[subject]]\nurl = 'http://h'\n[[workload]]\nscenario = 'a/shop.toml'\n";
    assert_eq!(parse(named).unwrap().workloads[0].name.get_ref(), "shop");
}

#[test]
fn several_problems_are_reported_together() {
    let wrong = parse("titel = 'x'\n[run]\nblocks = 0\nduration = 5\n").unwrap_err();
    let messages: Vec<&str> = wrong.problems.iter().map(|p| p.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the experiment lacks `[[subject]]`",
            "the experiment lacks `[[workload]]`",
            "unknown key `titel` in the experiment",
            "`blocks` must be a whole number from 1 to 1000, not 0",
            "`duration` must be a length of time such as \"5s\", not 5",
        ]
    );
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.toml");
    let message = |path: &Path| Experiment::load(path).unwrap_err().to_string();
    assert!(message(&path).contains("this file cannot be read: No such file"));
    std::fs::write(&path, b"title = '\xff'").unwrap();
    assert!(message(&path).contains("not UTF-8 text (byte 9)"));
    std::fs::write(&path, vec![b'#'; FILE_BYTES_MAX as usize + 1]).unwrap();
    assert!(message(&path).contains("longer than 1048576 bytes"));
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let wrong = parse(&format!("title = {}", "[".repeat(200_000))).unwrap_err();
    assert!(!wrong.problems.is_empty());
    assert!(parse(&format!("a{} = 1", ".a".repeat(200_000))).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        fuzz(text.as_bytes());
    }

    #[test]
    fn no_arrangement_of_right_words_makes_it_panic(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..60),
    ) {
        fuzz(words.concat().as_bytes());
    }

    #[test]
    fn no_change_of_a_right_file_makes_it_panic(
        has_services: bool,
        cuts in proptest::collection::vec((any::<proptest::sample::Index>(), 0_usize..20, "[ -~\\n]{0,8}"), 1..6),
    ) {
        let mut text = example(has_services);
        for (at, length, put) in cuts {
            let floor = |mut at: usize| {
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let from = floor(at.index(text.len()));
            let to = floor((from + length).min(text.len()));
            text.replace_range(from..to.max(from), &put);
        }
        fuzz(text.as_bytes());
    }
}

const WORDS: &[&str] = &[
    "\n",
    "\n",
    "[run]\n",
    "[run.quick]\n",
    "[[subject]]\n",
    "[[workload]]\n",
    "[[setting]]\n",
    "[[exclude]]\n",
    "[[backing]]\n",
    "[[front]]\n",
    "rows",
    "counter",
    "adds",
    "kept",
    "'stop'",
    "baseline",
    "backing_of",
    "front_of",
    "output_of",
    "'instances'",
    "'{backing/x}'",
    "title",
    "blocks",
    "duration",
    "warmup",
    "visits",
    "seed",
    "reference",
    "copy",
    "threads",
    "cores",
    "'0-3,8/4-7'",
    "ref",
    "cmd",
    "url",
    "name",
    "request",
    "scenario",
    "path",
    "headers",
    "body",
    "connections",
    "max",
    "values",
    "env",
    "args",
    "subjects",
    "subject",
    " = ",
    " = ",
    " = ",
    "\"5s\"",
    "\"max\"",
    "'s {port}'",
    "'/'",
    "'http://127.0.0.1'",
    "3",
    "-1",
    "0.5",
    "true",
    "{ ",
    " }",
    "[",
    "]",
    ", ",
    ".",
    "''",
    "\"{random}\"",
    "1e400",
    "99999999999999999999",
    "1979-05-27",
];
