//! Subjects that are built from somebody's repository, and those that its user has built, by `prony run`: where it cannot be had the run goes on and says what
//! would bring it; where it can, the document says which revision was measured.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{self, PRONY, git, text};

const SUBJECT: &str = r#"
name = "theirs"
language = "python"
role = "server"
summary = "A server of somebody else's"
endpoints = ["/"]
[needs]
commands = ["python3"]
[source]
git = "file://REPOSITORY"
revision = "v1"
[start]
cmd = ["python3", "{build}/source/server.py", "{port}"]
[ready]
http = "/"
[version]
cmd = "echo 1"
"#;

const SERVER: &str = r#"
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", 65536
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"#;

/// Theirs beside ours.
fn experiment() -> String {
    format!(
        "title = 'e'\n[run]\nblocks = 1\nduration = '100ms'\nwarmup = '20ms'\n\
         [[subject]]\nref = './theirs'\n[[subject]]\nname = 'ours'\ncmd = '{PRONY} serve --port {{port}}'\n\
         [[workload]]\nname = 'root'\nrequest = {{ path = '/' }}\nconnections = [1]\nsubjects = ['python/theirs']\n\
         [[workload]]\nname = 'hello'\nrequest = {{ path = '/hello' }}\nconnections = [1]\nsubjects = ['ours']\n"
    )
}

fn run(folder: &Path, out: &str, originals: Option<&Path>) -> Output {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"))
        .env_remove("PRONY_ORIGINALS")
        .args(["run", "e.toml", "--out", out]);
    if let Some(originals) = originals {
        command.env("PRONY_ORIGINALS", originals);
    }
    command.output().expect("prony runs")
}

#[test]
fn the_run_goes_on_without_what_its_user_has_not_built() {
    let Some(_) = prony_testkit::need("python3") else {
        return;
    };
    let folder = common::folder("originals");
    let subject = folder.join("theirs");
    fs::create_dir_all(&subject).expect("a folder");
    let git = "https://example.org/a/theirs";
    let described = SUBJECT
        .replace(
            "[source]\ngit = \"file://REPOSITORY\"\nrevision = \"v1\"\n",
            "",
        )
        .replace("{build}/source/server.py", "{originals}/theirs/server.py")
        .replace("echo 1", "head -n 1 {originals}/theirs/VERSION")
        .replace(
            "commands = [\"python3\"]",
            &format!(
                "commands = [\"python3\"]\noriginal = {{ git = \"{git}\", revision = \"v1\" }}\n\
                 files = [\"{{originals}}/theirs/server.py\"]"
            ),
        );
    fs::write(subject.join("subject.toml"), described).expect("a subject");
    fs::write(folder.join("e.toml"), experiment()).expect("an experiment");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");

    let built = folder.join("built");
    fs::create_dir_all(built.join("theirs")).expect("a folder");
    let nothing = "PRONY_ORIGINALS names no folder";
    let not_there = "`theirs/server.py` is not in PRONY_ORIGINALS";
    for (out, originals, reason) in [
        ("unset", None, nothing),
        ("empty", Some(built.as_path()), not_there),
    ] {
        let said = run(&folder, out, originals);
        assert!(matches!(said.status.code(), Some(0 | 3)), "{said:?}");
        let said = text(&said.stderr);
        let line = format!("not run: python/theirs: {reason}; to change it: build {git} at v1 ");
        assert!(said.contains(&line), "{said}");
        let document = read(&format!("{out}/document.md")) + &read(&format!("{out}/appendix.md"));
        // Markdown has a backslash before what it would take for its own.
        assert!(document.replace('\\', "").contains(reason), "{document}");
        assert!(
            document.contains("as its own documentation says"),
            "{document}"
        );
    }

    fs::write(built.join("theirs/server.py"), SERVER).expect("a server");
    fs::write(built.join("theirs/VERSION"), "theirs v1 of mine\n").expect("a version");
    let with = run(&folder, "with", Some(&built));
    assert!(matches!(with.status.code(), Some(0 | 3)), "{with:?}");
    let plan: serde_json::Value = serde_json::from_str(&read("with/plan.json")).expect("JSON");
    let subjects = plan["subjects"].as_array().expect("subjects");
    let theirs = subjects.iter().find(|one| one["id"] == "python/theirs");
    let theirs = theirs.expect("it is run");
    assert_eq!(theirs["originals_dir"], built.display().to_string());
    assert_eq!(theirs["version"], "theirs v1 of mine");
    assert_eq!(theirs["files_sha256"].as_str().map(str::len), Some(64));
    assert!(read("with/trials.jsonl").contains("python/theirs"));
}

#[test]
fn the_run_goes_on_without_a_repository_and_names_the_revision_with_it() {
    let (Some(_), Some(_)) = (prony_testkit::need("python3"), prony_testkit::need("git")) else {
        return;
    };
    let folder = common::folder("sources");
    let repository = folder.join("away/theirs");
    fs::create_dir_all(&repository).expect("a folder");
    git(&repository, &["init", "--quiet"]);
    fs::write(repository.join("server.py"), SERVER).expect("a server");
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "-m", "one"]);
    git(&repository, &["tag", "v1"]);
    let commit = git(&repository, &["rev-parse", "HEAD"]);

    let subject = folder.join("theirs");
    fs::create_dir_all(&subject).expect("a folder");
    let nowhere = folder.join("nowhere/theirs").display().to_string();
    let described = SUBJECT.replace("REPOSITORY", &nowhere);
    fs::write(subject.join("subject.toml"), described).expect("a subject");
    fs::write(folder.join("e.toml"), experiment()).expect("an experiment");

    let without = run(&folder, "without", None);
    let said = text(&without.stderr);
    let reason = "not run: python/theirs: its source cannot be had: git ls-remote";
    let remedy =
        format!("git clone --bare file://{nowhere} originals/theirs && export PRONY_ORIGINALS=");
    assert!(said.contains(reason) && said.contains(&remedy), "{said}");
    let appendix = fs::read_to_string(folder.join("without/appendix.md")).expect("an appendix");
    let document = fs::read_to_string(folder.join("without/document.md")).expect("a document");
    let both = format!("{document}{appendix}");
    assert!(
        both.contains("its source cannot be had") && both.contains("git clone --bare"),
        "{both}"
    );
    assert!(both.contains("ours"), "{both}");

    let with = run(&folder, "with", Some(&folder.join("away")));
    let said = text(&with.stderr);
    assert!(said.contains("built python/theirs"), "{said}");
    let appendix = fs::read_to_string(folder.join("with/appendix.md")).expect("an appendix");
    let named = format!("file://{nowhere} at {} (v1)", &commit[..12]);
    assert!(appendix.contains(&named), "{appendix}");
}
