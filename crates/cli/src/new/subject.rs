//! Subjects to start from: a small server in a language, with its `subject.toml`.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use prony_lab::diagnosis::suggest;

use super::files::Files;

/// Longest name of a subject.
const NAME_BYTES_MAX: usize = 64;

/// `prony new subject`
#[derive(Debug, Args)]
#[command(
    after_help = "Writes subjects/LANGUAGE/NAME in this folder: a subject.toml and a server built on the language's \
     own library, which passes `prony check`. Languages: go, node, python, rust. Replace it with your framework; \
     keep the answers."
)]
pub struct SubjectWords {
    /// LANGUAGE/NAME: python/mine
    #[arg(value_name = "LANGUAGE/NAME")]
    pub subject: String,
}

/// The files of a subject in one language.
struct Template {
    language: &'static str,
    /// Command that must be there, and the package of Debian that brings it.
    needs: (&'static str, &'static str),
    endpoints: &'static str,
    /// `[build]`, where there is one.
    build: &'static str,
    start: &'static str,
    version: &'static str,
    files: &'static [(&'static str, &'static str)],
}

const BOTH: &str = "\"/ping\", \"/hello\"";
const TEMPLATES: [Template; 4] = [
    Template {
        language: "go",
        needs: ("go", "apt-get install -y golang-go"),
        endpoints: BOTH,
        build: "cmd = \"go build -o {build}/server .\"\ninputs = [\"go.mod\", \"main.go\"]\n",
        start: "cmd = [\"{build}/server\", \"{host}:{port}\"]\n# As many threads as the lab says.\nenv = { GOMAXPROCS = \"{threads}\" }\n",
        version: "go version",
        files: &[
            ("main.go", include_str!("templates/main.go.txt")),
            ("go.mod", include_str!("templates/go.mod.txt")),
        ],
    },
    Template {
        language: "node",
        needs: ("node", "apt-get install -y nodejs"),
        endpoints: BOTH,
        build: "",
        start: "cmd = [\"node\", \"{dir}/server.js\", \"{host}\", \"{port}\", \"{threads}\"]\n",
        version: "echo node $(node --version)",
        files: &[("server.js", include_str!("templates/server.js.txt"))],
    },
    Template {
        language: "python",
        needs: ("python3", "apt-get install -y python3"),
        endpoints: BOTH,
        build: "",
        start: "cmd = [\"python3\", \"{dir}/server.py\", \"{host}\", \"{port}\"]\n",
        version: "python3 --version",
        files: &[("server.py", include_str!("templates/server.py.txt"))],
    },
    Template {
        language: "rust",
        needs: ("cargo", "curl -sSf https://sh.rustup.rs | sh -s -- -y"),
        endpoints: "\"/hello\"",
        build: "cmd = \"cargo build --release --locked --target-dir {build}\"\ninputs = [\"Cargo.toml\", \"Cargo.lock\", \"src\"]\n",
        start: "cmd = [\"{build}/release/server\", \"{host}:{port}\"]\n",
        version: "rustc --version",
        files: &[
            ("Cargo.toml", include_str!("templates/Cargo.toml.txt")),
            ("Cargo.lock", include_str!("templates/Cargo.lock.txt")),
            ("src/main.rs", include_str!("templates/main.rs.txt")),
        ],
    },
];

/// The files of `prony new subject`.
pub fn files(words: &SubjectWords) -> anyhow::Result<Files> {
    let typed = words.subject.as_str();
    let Some((language, name)) = typed.split_once('/') else {
        bail!("`{typed}` is not written like python/mine");
    };
    let Some(template) = TEMPLATES
        .iter()
        .find(|template| template.language == language)
    else {
        let all = TEMPLATES.map(|template| template.language);
        bail!(
            "there is nothing to start from for `{language}`: {}",
            suggest(language, "language", &all)
        );
    };
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase());
    if !begins || !name.bytes().all(plain) || name.len() > NAME_BYTES_MAX {
        bail!(
            "`{name}` is not a valid name of a subject: lower-case letters, digits and -, a letter first, at most {NAME_BYTES_MAX}"
        );
    }
    let folder = PathBuf::from("subjects").join(language).join(name);
    let mut files = vec![(folder.join("subject.toml"), declared(template, name), false)];
    let templates = template.files.iter();
    files.extend(
        templates.map(|(file, text)| (folder.join(file), text.replace("@NAME@", name), false)),
    );
    let shown = folder.display();
    Ok(Files {
        files,
        next: vec![
            format!("prony check {shown}"),
            format!("name it in an experiment by its folder: ref = \"{shown}\""),
        ],
    })
}

fn declared(template: &Template, name: &str) -> String {
    let (language, (command, package)) = (template.language, template.needs);
    let (endpoints, start, version) = (template.endpoints, template.start, template.version);
    let build = match template.build {
        "" => String::new(),
        build => format!(
            "# Run by `sh -c` in this folder; built again when an input or a tool has changed.\n[build]\n{build}timeout_s = 900\n\n"
        ),
    };
    format!(
        "# What this server is, and how it is built, started and stopped. All keys: `prony docs contract`.\n\
         # It is held to the contract by `prony check`.\n\
         name = \"{name}\"           # the folder's name\nlanguage = \"{language}\"\nrole = \"server\"\n\
         summary = \"A server to start from, on what the language brings\"\n\
         endpoints = [{endpoints}]   # paths of the contract that it answers\n\n\
         [needs]\ncommands = [\"{command}\"]       # must be on PATH\npackages = {{ any = \"{package}\" }}\n\n\
         {build}# An argument vector, no shell.\n[start]\n{start}\n\
         [ready]\nhttp = \"/hello\"            # answered with 200: it can be asked\ntimeout_s = 20\n\n\
         [stop]\nsignal = \"TERM\"            # status 0, or death by this signal, within 5 s\ntimeout_s = 10\n\n\
         [version]\ncmd = \"{version}\"\n"
    )
}
