//! Repositories of others: fetched once for each revision, checked to be that revision, and checked out as they are.
//!
//! ```text
//! <cache>/source/Ichor-0123456789ab/       a bare repository with one commit
//! <cache>/source/Ichor-0123456789ab/.done  written last: it is whole
//! <cache>/build/…/source/                  the work tree of one build, checked out by each anew
//! ```
//!
//! A fetch that was cut off has no marker and is begun anew. A hash names what it is the hash of, and is never looked up
//! again. A tag is looked up whenever its repository can be reached: one that moved is refused, as what was measured under
//! its name before was something else.
//!
//! Not for: builds, or access to repositories (git's own configuration has that).

use std::fs;
use std::path::{Path, PathBuf};

use prony_base::Nanos;
use prony_record::Repository as Recorded;
use sha2::{Digest as _, Sha256};

use super::job::{
    BuildContext, CommandSpec, Failed, Finished, Launcher, interrupted, part, plain_name, quote,
    tail, temporary,
};
use super::shelf::{Held, Shelf};
use crate::launch::Resolved;
use crate::subject::{AtRevision, Repository};
use crate::sums::hex;

/// Folder of the work tree in that of the build.
pub const TREE: &str = "source";
/// Environment variable that names a folder of the user's: repositories, which are used in place of the network, and what is
/// built of them, for `{originals}`.
pub const ORIGINALS: &str = "PRONY_ORIGINALS";
/// The branch by which a fetched commit is found again.
const BRANCH: &str = "refs/heads/prony";
/// A file with the hash of the commit, beside the marker.
const COMMIT: &str = ".commit";
/// Time-outs of a repository: to respond at all, to send a commit, and to be checked out.
const ANSWER_TIMEOUT: Nanos = Nanos::from_secs(30);
const FETCH_TIMEOUT: Nanos = Nanos::from_secs(900);
const LOCAL_TIMEOUT: Nanos = Nanos::from_secs(120);
/// Settings under which the files of a tree are those of the commit, whatever the user's own are.
const AS_IT_IS: [&str; 6] = [
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "advice.detachedHead=false",
];

/// A commit that is in the cache.
#[derive(Debug)]
pub(super) struct Fetched {
    /// For the record.
    pub(super) recorded: Recorded,
    /// Keeps the bare repository as long as this lives.
    held: Held,
}

/// Runs git, and knows where its repositories are kept.
pub(super) struct Git<'a> {
    launcher: &'a dyn Launcher,
    context: &'a BuildContext<'a>,
    shelf: Shelf<'a>,
}

impl<'a> Git<'a> {
    pub(super) fn new(
        context: &'a BuildContext<'a>,
        launcher: &'a dyn Launcher,
    ) -> Result<Git<'a>, Failed> {
        let shelf = Shelf::for_build(context, "source")?;
        Ok(Git {
            launcher,
            context,
            shelf,
        })
    }

    /// Brings all of `repositories` into the cache, the one of the work tree first.
    pub(super) fn fetched(&self, repositories: &[Repository]) -> Result<Vec<Fetched>, Failed> {
        let mut all: Vec<Fetched> = Vec::with_capacity(repositories.len());
        for repository in repositories {
            let mut fetched = self.fetch(repository)?;
            if let (Some(tree), false) = (all.first(), repository.path.is_empty()) {
                fetched.recorded.in_place_of = self.in_place_of(tree, &fetched.recorded)?;
            }
            all.push(fetched);
        }
        Ok(all)
    }

    /// Checks all of them out, below `dir`.
    pub(super) fn check_out(&self, all: &[Fetched], dir: &Path) -> Result<(), Failed> {
        let tree = dir.join(TREE);
        all.iter().try_for_each(|fetched| {
            let path = tree.join(&fetched.recorded.path);
            self.check_out_one(&fetched.recorded, &fetched.held.dir, &path)
        })
    }

    fn check_out_one(&self, recorded: &Recorded, bare: &Path, tree: &Path) -> Result<(), Failed> {
        let wrong = |error: std::io::Error| Failed::new(format!("{}: {error}", tree.display()));
        fs::create_dir_all(tree).map_err(wrong)?;
        if fs::read_dir(tree).map_err(wrong)?.next().is_some() {
            return Err(Failed::new(format!(
                "the module `{}` of its [source] is in the way of files of the repository",
                recorded.path
            )));
        }
        let bare = bare.display().to_string();
        self.local(tree, &["init", "--quiet", "."])?;
        self.local(
            tree,
            &[
                "fetch",
                "--quiet",
                "--no-tags",
                "--depth",
                "1",
                &bare,
                BRANCH,
            ],
        )?;
        self.local(tree, &["checkout", "--quiet", "--detach", "FETCH_HEAD"])?;
        self.check_tree(recorded, tree)
    }

    /// That a work tree is its commit, to the file.
    fn check_tree(&self, recorded: &Recorded, tree: &Path) -> Result<(), Failed> {
        let head = self.local(tree, &["rev-parse", "HEAD"])?;
        let differs = self.local(tree, &["status", "--porcelain", "--untracked-files=all"])?;
        match last_line(&head) == recorded.commit && differs.is_empty() {
            true => Ok(()),
            false => Err(Failed::new(format!(
                "the work tree of {} is not {}: at {}, {}",
                recorded.git,
                recorded.commit,
                last_line(&head),
                differs
                    .lines()
                    .next()
                    .unwrap_or("with no difference in files"),
            ))),
        }
    }

    /// One repository, in the cache.
    fn fetch(&self, repository: &Repository) -> Result<Fetched, Failed> {
        let mut hash = Sha256::new();
        part(&mut hash, &repository.git, repository.revision.as_bytes());
        let key = hex(&hash.finalize());
        let prefix = format!("{}-", plain_name(repository.name()));
        let stem = format!("{prefix}{}", &key[..12]);
        let from = self.local_repository(repository)?;
        let held = self.shelf.hold(&stem, &|bare| {
            self.fetch_now(repository, &from, bare)
                .map_err(|failed| self.with_remedy(failed, repository))
        })?;
        let commit = fs::read_to_string(held.dir.join(COMMIT));
        let commit =
            commit.map_err(|error| Failed::new(format!("{}: {error}", held.dir.display())))?;
        if held.cached && !repository.is_by_hash() {
            self.check_tag(repository, &from, &commit, &held.dir)?;
        }
        self.shelf
            .remove_old(&prefix, &stem, self.context.builds_max);
        Ok(Fetched {
            recorded: Recorded {
                git: repository.git.clone(),
                revision: repository.revision.clone(),
                commit,
                path: repository.path.clone(),
                ..Recorded::default()
            },
            held,
        })
    }

    /// What it is fetched from: a folder that the user named, or its own address.
    fn local_repository(&self, repository: &Repository) -> Result<String, Failed> {
        let folder = self
            .context
            .originals
            .map(|all| all.join(repository.name()));
        let Some(folder) = folder.filter(|folder| folder.exists()) else {
            return Ok(repository.git.clone());
        };
        let inside = self.local(&folder, &["rev-parse", "--is-inside-work-tree"])?;
        if last_line(&inside) == "true" {
            let differs =
                self.local(&folder, &["status", "--porcelain", "--untracked-files=no"])?;
            if let Some(first) = differs.lines().next() {
                return Err(Failed {
                    remedy: format!("git -C {} stash", quote(&folder.display().to_string())),
                    ..Failed::new(format!(
                        "{} was changed ({}): what is in no commit has no name by which a record could tell it",
                        folder.display(),
                        first.trim()
                    ))
                });
            }
        }
        let folder = folder.canonicalize().unwrap_or(folder);
        Ok(folder.display().to_string())
    }

    fn fetch_now(&self, repository: &Repository, from: &str, bare: &Path) -> Result<(), Failed> {
        let revision = &repository.revision;
        self.local(bare, &["init", "--quiet", "--bare", "."])?;
        // A server that does not answer is known after seconds, and not after the time that a large repository may take.
        self.git(
            bare,
            &["ls-remote", "--quiet", from, "HEAD"],
            ANSWER_TIMEOUT,
        )?;
        let wanted = match repository.is_by_hash() {
            true => revision.clone(),
            false => format!("refs/tags/{revision}"),
        };
        let one = ["fetch", "--quiet", "--no-tags", "--depth", "1", from];
        let by_itself = self.git(bare, &[&one[..], &[&wanted]].concat(), FETCH_TIMEOUT);
        match by_itself {
            Err(failed) if failed.interrupted => return Err(failed),
            Err(failed) if !repository.is_by_hash() => return Err(no_such(repository, failed)),
            // Some servers send no commit that is not the end of a branch; with all that they have it is there, too.
            Err(_) => {
                let all = [
                    "fetch",
                    "--quiet",
                    "--no-tags",
                    from,
                    "+refs/heads/*:refs/all/heads/*",
                    "+refs/tags/*:refs/all/tags/*",
                ];
                self.git(bare, &all, FETCH_TIMEOUT)?;
            }
            Ok(_) => {}
        }
        let named = match repository.is_by_hash() {
            true => revision.as_str(),
            false => "FETCH_HEAD",
        };
        let commit = format!("{named}^{{commit}}");
        let commit = self.local(bare, &["rev-parse", "--verify", "--quiet", &commit]);
        let commit = commit.map_err(|failed| no_such(repository, failed))?;
        let commit = last_line(&commit);
        if repository.is_by_hash() && commit != revision {
            return Err(Failed::new(format!(
                "`{revision}` of {} is no commit, but names {commit}: write that",
                repository.git
            )));
        }
        self.local(bare, &["update-ref", BRANCH, commit])?;
        let written = fs::write(bare.join(COMMIT), commit);
        written.map_err(|error| Failed::new(format!("{}: {error}", bare.display())))
    }

    /// That a tag still names `commit`, where it can be asked.
    fn check_tag(
        &self,
        repository: &Repository,
        from: &str,
        commit: &str,
        bare: &Path,
    ) -> Result<(), Failed> {
        let tag = format!("refs/tags/{}", repository.revision);
        let peeled = format!("{tag}^{{}}");
        let arguments = ["ls-remote", "--quiet", from, &tag, &peeled];
        let Ok(answer) = self.git(bare, &arguments, ANSWER_TIMEOUT) else {
            return Ok(());
        };
        let mut lines = answer.lines().filter_map(|line| line.split_once('\t'));
        let plain = lines.clone().find(|(_, name)| *name == tag);
        // An annotated tag is an object of its own, behind which the commit stands.
        let now = lines.find(|(_, name)| *name == peeled).or(plain);
        let now = now.map_or("nothing", |(hash, _)| hash);
        if now == commit {
            return Ok(());
        }
        Err(Failed {
            remedy: format!("rm -r {}", quote(&bare.display().to_string())),
            ..Failed::new(format!(
                "the tag {} of {} moved: it named {commit}, and names {now} now; a hash as `revision` does not move",
                repository.revision, repository.git
            ))
        })
    }

    /// The commit that the repository of the work tree records for the place of a module, where that is another one.
    fn in_place_of(&self, tree: &Fetched, module: &Recorded) -> Result<String, Failed> {
        let entry = self.local(
            &tree.held.dir,
            &["ls-tree", &tree.recorded.commit, "--", &module.path],
        )?;
        let mut words = entry.split_ascii_whitespace();
        let hash = match (words.next(), words.next(), words.next()) {
            (Some("160000"), Some("commit"), Some(hash)) if hash != module.commit => hash,
            _ => "",
        };
        Ok(hash.to_owned())
    }

    /// What would bring a repository that cannot be had here.
    fn with_remedy(&self, failed: Failed, repository: &Repository) -> Failed {
        if failed.interrupted || failed.due || !failed.remedy.is_empty() {
            return failed;
        }
        let clone = |into: &str| format!("git clone --bare {} {into}", quote(&repository.git));
        let remedy = match self.context.originals {
            Some(folder) => {
                let into = folder.join(repository.name());
                clone(&quote(&into.display().to_string()))
            }
            None => format!(
                "{} && export {ORIGINALS}=\"$PWD/originals\"",
                clone(&quote(&format!("originals/{}", repository.name())))
            ),
        };
        Failed { remedy, ..failed }
    }

    fn local(&self, folder: &Path, words: &[&str]) -> Result<String, Failed> {
        self.git(folder, words, LOCAL_TIMEOUT)
    }

    /// What git prints on its standard output and error together.
    fn git(&self, folder: &Path, words: &[&str], timeout: Nanos) -> Result<String, Failed> {
        let log = temporary(&self.shelf.root);
        let mut argv = vec!["git".to_owned()];
        argv.extend(AS_IT_IS.iter().chain(words).map(|&word| word.to_owned()));
        let quiet = [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
            ("GIT_OPTIONAL_LOCKS", "0"),
        ];
        let command = CommandSpec {
            resolved: Resolved {
                command: argv,
                env: quiet
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                dir: folder.to_path_buf(),
                ..Resolved::default()
            },
            rooted: None,
            log: log.clone(),
            timeout_ns: timeout.0,
        };
        let finished = self.launcher.run(&command, self.context.cancel);
        let text = fs::read_to_string(&log).unwrap_or_default();
        let last = tail(&log);
        let _ = fs::remove_file(&log);
        let what = words
            .iter()
            .find(|word| !word.starts_with('-'))
            .copied()
            .unwrap_or_default();
        let failed = |how: String| Err(Failed::new(format!("its source cannot be had: {how}")));
        match finished {
            Ok(Finished::Code(0)) => Ok(text),
            Ok(Finished::Interrupted) => Err(interrupted()),
            Ok(Finished::TimedOut) => failed(format!("git {what} took longer than {timeout}")),
            Ok(_) => failed(format!("git {what}: {}", last.join(" | "))),
            Err(error) => failed(format!("git cannot be started: {error}")),
        }
    }
}

/// Warnings stand before what was asked for.
fn last_line(text: &str) -> &str {
    text.lines().next_back().unwrap_or_default().trim()
}

/// Folders of the user's own repositories as they were at other revisions: checked out beside the builds, once for each
/// commit. They stay as long as this lives.
pub struct Revisions<'a> {
    context: &'a BuildContext<'a>,
    launcher: &'a dyn Launcher,
    held: std::cell::RefCell<Vec<Held>>,
}

impl<'a> Revisions<'a> {
    /// `launcher` runs git.
    pub fn new(context: &'a BuildContext<'a>, launcher: &'a dyn Launcher) -> Revisions<'a> {
        Revisions {
            context,
            launcher,
            held: std::cell::RefCell::default(),
        }
    }

    fn checked_out(&self, folder: &Path, revision: &str) -> Result<(PathBuf, Recorded), Failed> {
        let git = Git::new(self.context, self.launcher)?;
        if revision.starts_with('-') {
            return Err(Failed::new(format!("`{revision}` is no revision")));
        }
        let top = git.local(folder, &["rev-parse", "--show-toplevel"]);
        let top = top.map_err(|failed| Failed {
            reason: format!(
                "{} lies in no git repository ({})",
                folder.display(),
                failed.reason
            ),
            ..failed
        })?;
        let top = last_line(&top).to_owned();
        let below = git.local(folder, &["rev-parse", "--show-prefix"])?;
        let commit = format!("{revision}^{{commit}}");
        let commit = git.local(folder, &["rev-parse", "--verify", "--quiet", &commit]);
        let commit = commit.map_err(|failed| Failed {
            reason: format!("{top} has no revision `{revision}`"),
            ..failed
        })?;
        let commit = last_line(&commit).to_owned();
        let made = git.local(folder, &["show", "--no-patch", "--format=%ct", &commit])?;
        let recorded = Recorded {
            git: top.clone(),
            revision: revision.to_owned(),
            commit,
            committed_unix_s: last_line(&made).parse().unwrap_or(0),
            ..Recorded::default()
        };
        let mut hash = Sha256::new();
        part(&mut hash, &top, recorded.commit.as_bytes());
        let key = hex(&hash.finalize());
        let name = Path::new(&top).file_name().unwrap_or_default();
        let prefix = format!("{}-", plain_name(&name.to_string_lossy()));
        let stem = format!("{prefix}{}", &key[..12]);
        let held = git.shelf.hold(&stem, &|dir| {
            let tree = dir.join(TREE);
            let into = tree.display().to_string();
            git.local(
                dir,
                &["clone", "--quiet", "--shared", "--no-checkout", &top, &into],
            )?;
            git.local(
                &tree,
                &["checkout", "--quiet", "--detach", &recorded.commit],
            )?;
            git.check_tree(&recorded, &tree)
        })?;
        git.shelf
            .remove_old(&prefix, &stem, self.context.builds_max);
        let there = held.dir.join(TREE).join(last_line(&below));
        self.held.borrow_mut().push(held);
        Ok((there, recorded))
    }
}

impl AtRevision for Revisions<'_> {
    fn folder(&self, folder: &Path, revision: &str) -> Result<(PathBuf, Recorded), String> {
        self.checked_out(folder, revision)
            .map_err(|failed| failed.reason)
    }
}

fn no_such(repository: &Repository, failed: Failed) -> Failed {
    let what = match repository.is_by_hash() {
        true => "commit",
        false => "tag",
    };
    Failed {
        reason: format!(
            "{} has no {what} `{}` ({})",
            repository.git, repository.revision, failed.reason
        ),
        ..failed
    }
}

/// The folder `PRONY_ORIGINALS`, where it is set.
pub fn originals() -> Option<PathBuf> {
    let named = std::env::var_os(ORIGINALS).filter(|value| !value.is_empty())?;
    // Git is started elsewhere.
    std::path::absolute(PathBuf::from(named)).ok()
}
