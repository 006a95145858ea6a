//! What a plan must know of a machine, as a value, and the one function that
//! finds it out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use prony_record::PlannedNetwork;

use crate::cap::Limits;
use crate::experiment::Experiment;
use crate::launch::{SYSTEM_FOLDERS, found_in, on_path};
use crate::network::Refusal;
use crate::preload;
use crate::root;
use crate::sample::parse::cpu_list;
use crate::subject::{Needs, RootFs, Subject, originals};
use crate::sysctl;

/// Facts about a machine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Facts {
    /// Processors that Prony may use, those of one core together, in order.
    pub cores: Vec<Vec<u32>>,
    /// All processors of the machine, rising, whether Prony may use them or not; empty: not known.
    pub online: Vec<u32>,
    /// Key of the packages' commands: `debian` on Debian and what is made from it,
    /// empty elsewhere.
    pub distribution: String,
    /// The commands that the subjects need and the machine has.
    pub commands: BTreeSet<String>,
    /// The commands that are not on PATH and yet in a folder for programs of the system, which
    /// an ordinary user's PATH often lacks: where.
    pub elsewhere: BTreeMap<String, String>,
    /// The files that the subjects need and the machine has, as they name them.
    pub files: BTreeSet<String>,
    /// Paths outside of the subjects' folders that builds need and the machine does not have.
    pub absent_inputs: BTreeSet<PathBuf>,
    /// Folder of what the user has built; `None`: none is named, or it is not there.
    pub originals: Option<PathBuf>,
    /// Whether Prony may mount and enter root file systems.
    pub may_root: bool,
    /// Limits on connections.
    pub limits: Limits,
    /// The libraries that subjects and settings preload and the loader would not find.
    pub absent_libraries: BTreeSet<String>,
    /// The kernel settings that the experiment varies and the machine has.
    pub kernel: BTreeMap<String, KernelSetting>,
    /// The networks of the experiment that this machine cannot have, and why.
    pub networks: BTreeMap<String, Refusal>,
}

/// A kernel setting.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KernelSetting {
    /// Its present value.
    pub value: String,
    /// Whether Prony may write it.
    pub writable: bool,
}

impl Facts {
    /// Looks at this machine. `path` is the variable PATH, `originals` the folder that PRONY_ORIGINALS names
    /// ([`crate::build::source::originals`]); `own_network`: trials run in networks of their own.
    pub fn gather(
        subjects: &[Subject],
        path: &str,
        originals: Option<&Path>,
        own_network: bool,
    ) -> Facts {
        let originals = originals.filter(|folder| folder.is_dir());
        let needed = subjects.iter().flat_map(|subject| &subject.needs.commands);
        let mut needed: Vec<&str> = needed.map(String::as_str).collect();
        let roots = subjects.iter().filter_map(|subject| subject.root.as_ref());
        for command in roots.flat_map(RootFs::commands) {
            needed.push(command);
        }
        let (there, away): (Vec<&str>, Vec<&str>) = needed
            .into_iter()
            .partition(|command| on_path(command, path));
        let files = subjects.iter().flat_map(|subject| &subject.needs.files);
        let preloaded = subjects.iter().flat_map(Subject::environments);
        let is_there = |file: &&String| match originals::below(file) {
            Some(path) => originals.is_some_and(|folder| folder.join(path).exists()),
            None => Path::new(file).exists(),
        };
        Facts {
            cores: cores(),
            online: online(),
            distribution: distribution(),
            commands: there.into_iter().map(str::to_owned).collect(),
            elsewhere: away
                .into_iter()
                .filter_map(|command| Some((command.to_owned(), in_system(command)?)))
                .collect(),
            files: files.filter(is_there).cloned().collect(),
            absent_inputs: subjects
                .iter()
                .flat_map(inputs_outside)
                .filter(|path| !path.exists())
                .collect(),
            originals: originals.map(Path::to_path_buf),
            absent_libraries: preload::absent(preloaded.flat_map(preload::named)),
            may_root: root::allowed(),
            limits: Limits::read(own_network && subjects.iter().all(Subject::is_started)),
            kernel: BTreeMap::new(),
            networks: BTreeMap::new(),
        }
    }

    /// The same with those networks of `experiment` that cannot be had, as `refusal` finds
    /// out ([`crate::network::refusal`]).
    #[must_use]
    pub fn with_networks(
        mut self,
        experiment: &Experiment,
        refusal: impl Fn(&PlannedNetwork) -> Option<Refusal>,
    ) -> Facts {
        let planned = experiment.networks.iter().map(|network| &network.planned);
        let refused = planned.filter_map(|n| Some((n.name.clone(), refusal(n)?)));
        self.networks = refused.collect();
        self
    }

    /// The same with what the values of the settings of `experiment` need: libraries and kernel settings.
    #[must_use]
    pub fn with_settings(mut self, experiment: &Experiment) -> Facts {
        for setting in &experiment.settings {
            let values = setting.values.iter();
            let preloaded = values.flat_map(|value| preload::named(&setting.env_with(value)));
            self.absent_libraries.extend(preload::absent(preloaded));
        }
        let names = experiment.settings.iter().filter_map(|s| s.sysctl.clone());
        let found = |name: String| {
            let writable = sysctl::is_writable(&name);
            let value = sysctl::read(&name).ok()?;
            Some((name, KernelSetting { value, writable }))
        };
        self.kernel = names.filter_map(found).collect();
        self
    }

    /// What of `needs` is not there, each as a message names it.
    pub fn missing(&self, needs: &Needs) -> Vec<String> {
        let command = |name: &String| match self.elsewhere.get(name) {
            Some(place) => format!("`{place}` is there, but its folder is not on PATH"),
            None if name.contains('/') => format!("`{name}` is not there"),
            None => format!("`{name}` is not on PATH"),
        };
        let commands = needs
            .commands
            .iter()
            .filter(|name| !self.commands.contains(*name));
        let files = self.absent_files(needs);
        let elsewhere = files
            .clone()
            .filter(|name| originals::below(name).is_none());
        let missing_files = elsewhere.map(|name| format!("`{name}` is not there"));
        let lacks = commands.map(command).chain(missing_files);
        lacks
            .chain(self.missing_originals(files.filter_map(|name| originals::below(name))))
            .collect()
    }

    fn absent_files<'a>(&'a self, needs: &'a Needs) -> impl Iterator<Item = &'a String> + Clone {
        let files = needs.files.iter();
        files.filter(|name| !self.files.contains(*name))
    }

    /// What is said of what the user has not built.
    fn missing_originals<'a>(&self, mut absent: impl Iterator<Item = &'a str>) -> Option<String> {
        let first = absent.next()?;
        if self.originals.is_none() {
            return Some("PRONY_ORIGINALS names no folder".to_owned());
        }
        Some(match absent.count() {
            0 => format!("`{first}` is not in PRONY_ORIGINALS"),
            more => format!("`{first}` and {more} more are not in PRONY_ORIGINALS"),
        })
    }

    /// Why `subject` cannot run here, and the command that would change it (empty where none is known); `None`: it can.
    pub fn lacks(&self, subject: &Subject) -> Option<(String, String)> {
        if let Some(reason) = self.lacks_checkout(subject) {
            return Some((reason, CHECKOUT.to_owned()));
        }
        let reason = self.why_missing(&subject.needs);
        let Some(root) = subject.root_if(reason.is_some()) else {
            let preloaded = || {
                subject
                    .environments()
                    .find_map(|env| self.absent_library(env))
                    .map(|name| preload::why_absent(&name))
            };
            return Some((reason.or_else(preloaded)?, self.remedy(&subject.needs)));
        };
        let (why, remedy) = self.without_root(root)?;
        let why = format!("its root file system of {}: {why}", root.title());
        Some(match reason {
            Some(reason) => (format!("{reason}; {why}"), remedy),
            None => (why, remedy),
        })
    }

    /// The first library that `env` preloads and the loader would leave out; `None`: they are there, or only the
    /// loader can tell.
    pub fn absent_library(&self, env: &BTreeMap<String, String>) -> Option<String> {
        let mut names = preload::named(env).into_iter();
        names.find(|name| self.absent_libraries.contains(name))
    }

    /// The command that brings a library; empty where none is known.
    pub fn library_remedy(&self, name: &str) -> String {
        match preload::debian_package(name) {
            Some(package) if self.distribution == "debian" => {
                format!("apt-get install -y {package}")
            }
            _ => String::new(),
        }
    }

    /// Why a subject that is built from more than its folder cannot be built here.
    fn lacks_checkout(&self, subject: &Subject) -> Option<String> {
        let mut absent = inputs_outside(subject).filter(|path| self.absent_inputs.contains(path));
        let first = absent.next()?;
        let rest = match absent.count() {
            0 => ", which it is built from, is not there".to_owned(),
            more => format!(" and {more} more that it is built from are not there"),
        };
        Some(format!("needs a checkout: {}{rest}", first.display()))
    }

    /// Why there can be no root file system `root`, and what changes it.
    fn without_root(&self, root: &RootFs) -> Option<(String, String)> {
        if !self.may_root {
            let why = "only root may mount and enter it".to_owned();
            return Some((why, "sudo ./prony run …".to_owned()));
        }
        let mut tools = root.commands().iter();
        let tool = tools.find(|name| !self.commands.contains(**name))?;
        let why = format!("`{tool}` is not on PATH");
        let remedy = match self.distribution.as_str() {
            "debian" => format!("apt-get install -y {tool}"),
            _ => String::new(),
        };
        Some((why, remedy))
    }

    /// Why what has these `needs` cannot run, in a sentence; `None`: all is there.
    pub fn why_missing(&self, needs: &Needs) -> Option<String> {
        let lacks = self.missing(needs);
        if lacks.is_empty() {
            return None;
        }
        let mut reason = lacks.join(", ");
        if !needs.when.is_empty() {
            reason.push_str(&format!(" (needs {})", needs.when));
        }
        Some(reason)
    }

    /// The command that would bring what `needs` names; empty where none is known.
    pub fn remedy(&self, needs: &Needs) -> String {
        let absent = needs
            .commands
            .iter()
            .filter(|name| !self.commands.contains(*name));
        let places = absent.clone().map(|name| self.elsewhere.get(name));
        let places: Vec<Option<&String>> = places.collect();
        if let [Some(place)] = places.as_slice()
            && let Some((folder, _)) = place.rsplit_once('/')
        {
            return format!("export PATH=$PATH:{folder}");
        }
        let mut files = self.absent_files(needs);
        let is_built_by_user = |name: &String| originals::below(name).is_some();
        let is_original_absent = files.clone().any(is_built_by_user);
        let original = needs.original.iter().filter(|_| is_original_absent);
        let original = original.map(|its| originals::remedy(its, self.originals.is_some()));
        let (alone, rest): (Vec<&String>, Vec<&String>) =
            absent.partition(|name| needs.packages.contains_key(*name));
        let alone = alone.into_iter().map(|name| &needs.packages[name]);
        let alone: BTreeSet<&String> = alone.collect();
        // Packages do not bring what its user builds, nor what a command of its own brings.
        let is_rest_there = rest.is_empty() && files.all(is_built_by_user);
        let is_package_wanted = !is_rest_there || alone.is_empty() && !is_original_absent;
        let of_distribution = needs.packages.get(&self.distribution);
        let packages = of_distribution.or_else(|| needs.packages.get("any"));
        let packages = packages.filter(|_| is_package_wanted).cloned();
        packages
            .into_iter()
            .chain(alone.into_iter().cloned())
            .chain(original)
            .collect::<Vec<String>>()
            .join("; ")
    }
}

/// What brings the sources that some subjects of Prony's are built from.
const CHECKOUT: &str = "run prony in a checkout of its sources, or name one: PRONY_HOME=DIR";

/// What a subject is built from that does not lie in its folder, as absolute paths without `..`.
fn inputs_outside(subject: &Subject) -> impl Iterator<Item = PathBuf> {
    let folder = subject.folder().map(Path::to_path_buf);
    let inputs = subject.build.iter().flat_map(|build| &build.inputs);
    let outside = inputs.filter(|input| input.starts_with("../"));
    outside.filter_map(move |input| {
        let mut path = folder.clone()?;
        for part in Path::new(input) {
            match part.to_str() {
                Some("..") => drop(path.pop()),
                _ => path.push(part),
            }
        }
        Some(path)
    })
}

/// Where in the system's own folders `command` is, if it is.
fn in_system(command: &str) -> Option<String> {
    let found = found_in(command, SYSTEM_FOLDERS.map(PathBuf::from));
    let found = found.filter(|_| !command.contains('/'))?;
    Some(found.display().to_string())
}

/// The processors that this process may use, grouped by core.
fn cores() -> Vec<Vec<u32>> {
    let allowed: Vec<u32> = match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU as u32)
            .filter(|&cpu| set.is_set(cpu as usize))
            .collect(),
        Err(_) => vec![0],
    };
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for &cpu in &allowed {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = fs::read_to_string(path).map_or_else(|_| vec![cpu], |text| cpu_list(&text));
        match groups.iter_mut().find(|group| siblings.contains(&group[0])) {
            Some(group) => group.push(cpu),
            None => groups.push(vec![cpu]),
        }
    }
    groups
}

/// The processors of this machine.
fn online() -> Vec<u32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online");
    text.map_or_else(|_| Vec::new(), |text| cpu_list(&text))
}

/// The key of this machine's package commands.
fn distribution() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let of_debian = text
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")))
        .any(|ids| ids.trim_matches('"').split(' ').any(|id| id == "debian"));
    if of_debian {
        "debian".to_owned()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_there_if_a_folder_of_path_has_it_executable() {
        assert!(on_path("sh", "/nowhere:/bin:/usr/bin"));
        assert!(on_path("/bin/sh", ""));
        assert!(!on_path("sh", "/nowhere"));
        assert!(!on_path("passwd", "/etc"));
    }

    #[test]
    fn this_machine_has_a_core() {
        let facts = Facts::gather(&[], "", None, false);
        assert!(facts.cores.iter().all(|core| !core.is_empty()) && !facts.cores.is_empty());
        let known = |core: &u32| facts.online.is_empty() || facts.online.contains(core);
        assert!(facts.cores.iter().flatten().all(known), "{facts:?}");
    }

    #[test]
    fn what_its_user_has_not_built_is_named_with_whose_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let toml = "name = 'x'\nlanguage = 'c'\nrole = 'server'\nsummary = 's'\nendpoints = ['/']\n\
                    [needs]\noriginal = { git = 'https://example.org/thing', revision = 'v1' }\n\
                    files = ['{originals}/thing/a', '{originals}/thing/b', '{originals}/thing/c']\n\
                    packages = { any = 'install it' }\n\
                    [start]\ncmd = ['{originals}/thing/a', '{port}']\n[ready]\nport = true\n[version]\ncmd = 'echo 1'\n";
        let origin = crate::experiment::Origin::new("subject.toml", "/srv/x");
        let subjects = [Subject::parse(toml, &origin).unwrap()];
        let needs = &subjects[0].needs;
        let found = |originals: Option<&Path>| {
            let facts = Facts::gather(&subjects, "", originals, false);
            (facts.why_missing(needs), facts.remedy(needs))
        };
        let remedy = |set: &str| {
            format!(
                "build https://example.org/thing at v1 as its own documentation says, and lay its programs in \
                 $PRONY_ORIGINALS/thing{set} (`prony docs contract`, Originals)"
            )
        };
        let unset = (
            Some("PRONY_ORIGINALS names no folder".to_owned()),
            remedy(", with PRONY_ORIGINALS exported"),
        );
        assert_eq!(found(None), unset);
        assert_eq!(found(Some(&folder.path().join("nowhere"))), unset);
        let because = |reason: &str| (Some(reason.to_owned()), remedy(""));
        let several = "`thing/a` and 2 more are not in PRONY_ORIGINALS";
        assert_eq!(found(Some(folder.path())), because(several));
        fs::create_dir(folder.path().join("thing")).unwrap();
        for name in ["a", "b"] {
            fs::write(folder.path().join("thing").join(name), "").unwrap();
        }
        let one = "`thing/c` is not in PRONY_ORIGINALS";
        assert_eq!(found(Some(folder.path())), because(one));
        fs::write(folder.path().join("thing/c"), "").unwrap();
        assert_eq!(found(Some(folder.path())).0, None);
        // What packages bring is named beside it where that lacks, too.
        let more = Needs {
            commands: vec!["no-such-command".to_owned()],
            ..needs.clone()
        };
        let facts = Facts::gather(&subjects, "", None, false);
        assert!(facts.remedy(&more).starts_with("install it; build "));
    }

    #[test]
    fn a_subject_that_is_built_from_more_than_its_folder_names_what_is_not_there() {
        let subjects = prony_testkit::root().join("subjects");
        let load = |id: &str| Subject::load(&subjects.join(id)).unwrap();
        let all = ["rust/prony-clicky", "rust/axum"].map(load);
        let commands = all.iter().flat_map(|one| one.needs.commands.clone());
        let mut facts = Facts {
            commands: commands.collect(),
            ..Facts::gather(&all, "", None, false)
        };
        assert_eq!(all.each_ref().map(|one| facts.lacks(one)), [None, None]);
        facts.absent_inputs = inputs_outside(&all[0]).collect();
        let (why, remedy) = facts.lacks(&all[0]).unwrap();
        assert!(why.starts_with("needs a checkout: /"), "{why}");
        let root = prony_testkit::root().canonicalize().unwrap();
        let first = root.join("Cargo.toml");
        assert!(
            why.contains(&format!("{} and 6 more", first.display())),
            "{why}"
        );
        assert!(remedy.contains("PRONY_HOME=DIR"), "{remedy}");
        assert_eq!(facts.lacks(&all[1]), None);
    }

    #[test]
    fn a_subject_with_a_root_runs_where_its_root_can_be_made_or_is_not_needed() {
        let mut subject =
            Subject::load(&prony_testkit::root().join("subjects/cpp/drogon")).unwrap();
        let mut facts = Facts {
            distribution: "debian".to_owned(),
            ..Facts::default()
        };
        let (why, remedy) = facts.lacks(&subject).unwrap();
        assert!(
            why.ends_with(
                "; its root file system of Debian trixie: only root may mount and enter it"
            ),
            "{why}"
        );
        assert_eq!(remedy, "sudo ./prony run …");
        facts.may_root = true;
        let (why, remedy) = facts.lacks(&subject).unwrap();
        assert!(
            why.ends_with("Debian trixie: `mmdebstrap` is not on PATH"),
            "{why}"
        );
        assert_eq!(remedy, "apt-get install -y mmdebstrap");
        facts.commands = ["mmdebstrap", "apt-get"].map(str::to_owned).into();
        assert_eq!(facts.lacks(&subject), None);
        // One that has all that it needs on the machine takes no root file system.
        facts = Facts {
            commands: subject.needs.commands.iter().cloned().collect(),
            files: subject.needs.files.iter().cloned().collect(),
            ..Facts::default()
        };
        assert_eq!(facts.lacks(&subject), None);
        assert_eq!(
            (subject.root_if(false), subject.root_if(true).is_some()),
            (None, true)
        );
        subject.needs = Needs::default();
        assert!(facts.lacks(&subject).is_some() && subject.root_if(false).is_some());
    }

    #[test]
    fn the_command_of_the_own_distribution_goes_before_any() {
        let needs = Needs {
            packages: [
                ("debian".into(), "apt".into()),
                ("any".into(), "web".into()),
            ]
            .into(),
            ..Needs::default()
        };
        let mut facts = Facts::default();
        assert_eq!(facts.remedy(&needs), "web");
        facts.distribution = "debian".into();
        assert_eq!(facts.remedy(&needs), "apt");
        assert_eq!(facts.remedy(&Needs::default()), "");
    }

    #[test]
    fn cargo_was_answered_with_the_package_of_a_compiler_for_c() {
        let subjects = prony_testkit::root().join("subjects");
        let mut seen = 0;
        for (id, folder) in crate::subject::folders(&subjects)
            .into_iter()
            .map(|id| (id.clone(), subjects.join(id)))
        {
            let needs = Subject::load(&folder).unwrap().needs;
            let remedy_of = |missing: &str| {
                let there = needs.commands.iter().filter(|command| *command != missing);
                let facts = Facts {
                    distribution: "debian".to_owned(),
                    commands: there.cloned().collect(),
                    files: needs.files.iter().cloned().collect(),
                    ..Facts::default()
                };
                facts.remedy(&needs)
            };
            let others = needs.commands.iter().filter(|command| *command != "cargo");
            if others.clone().count() < needs.commands.len() {
                let remedy = remedy_of("cargo");
                assert!(
                    remedy.starts_with("curl ") && !remedy.contains("apt-get"),
                    "{id}: {remedy}"
                );
                for other in others {
                    let remedy = remedy_of(other);
                    assert!(
                        remedy.starts_with("apt-get ") && !remedy.contains("rustup"),
                        "{id} without {other}: {remedy}"
                    );
                }
                seen += 1;
            }
        }
        assert!(seen > 8, "{seen}");
    }
}
