//! A program of its own that belongs to this one and lies beside it: where it is, and how it is built.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// The variable in which `./prony` names itself; it builds what is missing.
const LAUNCHER: &str = "PRONY_LAUNCHER";

/// A program beside this one, of the same version.
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    /// Its name, `prony-` and a word.
    pub name: &'static str,
    /// The beginning of a sentence about what needs it; its path follows.
    pub what: &'static str,
    /// The variable that names another place, if one may.
    pub place: Option<&'static str>,
    /// The words by which `cargo build` knows it.
    pub cargo: &'static str,
    /// The version that it must have.
    pub version: &'static str,
}

/// The systems that Prony brings to be measured, which subjects start as `{systems}`.
pub const SYSTEMS: Sibling = Sibling {
    name: "prony-systems",
    what: "bench, fetch, host and lua are of",
    place: None,
    cargo: "--package prony-systems",
    version: env!("CARGO_PKG_VERSION"),
};

impl Sibling {
    /// Its path; `./prony` builds it first where it is missing or old.
    ///
    /// # Errors
    /// It is not there, or of another version: the text has the command that builds it.
    pub fn path(&self) -> anyhow::Result<PathBuf> {
        let named = self.place.and_then(env::var_os);
        let program = match (named, env::var_os(LAUNCHER)) {
            (Some(place), _) => PathBuf::from(place),
            (None, Some(launcher)) => self.built_by(Path::new(&launcher))?,
            (None, None) => self.beside(&env::current_exe().context("cannot find this program")?),
        };
        if !program.is_file() {
            bail!(
                "{} the program {}, which is missing; {}",
                self.what,
                program.display(),
                self.advice(&program)
            );
        }
        self.check(&program)?;
        Ok(program)
    }

    /// Where it is looked for beside `program`.
    pub fn beside(&self, program: &Path) -> PathBuf {
        program.with_file_name(self.name)
    }

    /// Becomes the program, with these words.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn become_it(
        &self,
        program: &Path,
        words: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>,
    ) -> anyhow::Error {
        use std::os::unix::process::CommandExt as _;
        let error = Command::new(program).args(words).exec();
        anyhow::Error::new(error).context(format!("cannot run {}", program.display()))
    }

    /// The command that builds it in Prony's sources, for the place where it is looked for.
    fn advice(&self, program: &Path) -> String {
        let is_debug = program.parent().is_some_and(|dir| dir.ends_with("debug"));
        let target = program.parent().and_then(Path::parent);
        let of_cargo = target.filter(|target| target.join("CACHEDIR.TAG").exists());
        let command = format!("cargo build --locked {} --target-dir", self.cargo);
        match of_cargo {
            Some(target) => format!(
                "in Prony's sources, `{command} {}{}` builds it",
                target.display(),
                if is_debug { "" } else { " --release" }
            ),
            None => format!(
                "in Prony's sources, `{command} target --release` builds target/release/{}, to be put there",
                self.name
            ),
        }
    }

    /// Has the launcher build it; it says on standard error what it does.
    fn built_by(&self, launcher: &Path) -> anyhow::Result<PathBuf> {
        let word = self.name.trim_start_matches("prony-");
        let asked = Command::new(launcher)
            .arg(format!("__build-{word}"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output();
        let output = asked.with_context(|| format!("cannot run {}", launcher.display()))?;
        if !output.status.success() {
            bail!("{} could not be built: see above", self.name);
        }
        let path = String::from_utf8(output.stdout).context("the launcher names no path")?;
        Ok(PathBuf::from(path.trim_end()))
    }

    fn check(&self, program: &Path) -> anyhow::Result<()> {
        let output = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let found = String::from_utf8_lossy(&output.stdout);
        let wanted = format!("{} {}", self.name, self.version);
        if found.trim_end() != wanted {
            bail!(
                "{} is {:?}, not {wanted:?} as this program; {}",
                program.display(),
                found.trim_end(),
                self.advice(program)
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_builds_it_is_for_the_place_where_it_is_looked_for() {
        let sibling = Sibling {
            name: "prony-lua54",
            what: "Lua 5.4 needs",
            place: Some("PRONY_LUA54"),
            cargo: "--manifest-path lua54/Cargo.toml",
            version: "1",
        };
        let text = sibling.advice(Path::new("/opt/bin/prony-lua54"));
        assert!(text.contains(
            "--manifest-path lua54/Cargo.toml --target-dir target --release` builds target/release/prony-lua54, to be put there"
        ));
    }
}
