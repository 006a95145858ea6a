//! How an agent comes to run on another machine, by SSH or by Slurm: one command there, which asks for the program where it is not kept
//! from the time before. It is kept by its digest, so that it is this program and no other. How a host is reached, its port, user and
//! key, is what `~/.ssh/config` says.

use std::fs;
use std::io;
use std::process::Command;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::pipes::{AgentCommand, HAS, WANTS};

/// This program, as it is sent to other machines.
#[derive(Clone)]
pub struct SentProgram {
    bytes: Arc<[u8]>,
    digest: String,
}

impl SentProgram {
    /// The program that runs.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn this() -> io::Result<SentProgram> {
        let bytes = fs::read("/proc/self/exe")?;
        let digest = Sha256::digest(&bytes);
        let digest = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
        Ok(SentProgram {
            digest: digest.collect(),
            bytes: bytes.into(),
        })
    }

    /// The command that makes `host` an agent.
    pub fn by_ssh(&self, host: &str) -> AgentCommand {
        let mut command = Command::new("ssh");
        // No question is asked: there may be many hosts, and nobody who answers.
        command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
        command.args(["-o", "ServerAliveInterval=3", "-o", "ServerAliveCountMax=3"]);
        // One that stays behind for others would keep this one's standard error open.
        command.args(["-o", "ControlMaster=no"]);
        command
            .arg("--")
            .arg(host)
            .arg(format!("exec sh -c '{}'", self.script()));
        self.asked_for_by(command)
    }

    /// The command by which Slurm makes a node an agent, where nothing else runs meanwhile.
    pub fn by_slurm(&self, partition: Option<&str>) -> AgentCommand {
        let mut command = Command::new("srun");
        command.args([
            "--nodes=1",
            "--ntasks=1",
            "--exclusive",
            "--unbuffered",
            "--quiet",
        ]);
        command.args(partition.map(|name| format!("--partition={name}")));
        command.args(["sh", "-c"]).arg(self.script());
        self.asked_for_by(command)
    }

    fn asked_for_by(&self, command: Command) -> AgentCommand {
        AgentCommand {
            command,
            program: Arc::clone(&self.bytes),
        }
    }

    /// What its shell does. It has no single quote.
    fn script(&self) -> String {
        let (digest, size) = (&self.digest, self.bytes.len());
        let machine = std::env::consts::ARCH;
        format!(
            r#"
say() {{ echo "$1" >&2; exit 69; }}
m=$(uname -s)/$(uname -m)
[ "$m" = Linux/{machine} ] || say "it is $m, and this program is for Linux/{machine}"
d=${{XDG_CACHE_HOME:-$HOME/.cache}}/prony/agents
p=$d/{digest}
n=$p.$(uname -n).$$
if [ ! -x "$p" ] || [ "$(wc -c < "$p")" -ne {size} ]; then
  mkdir -p "$d" || say "no folder for the program can be made there"
  echo "{WANTS}"
  head -c {size} > "$n" && [ "$(wc -c < "$n")" -eq {size} ] && chmod 755 "$n" && mv "$n" "$p" || {{
    rm -f "$n"; say "the program could not be kept in $d there"; }}
fi
echo "{HAS}"
exec "$p" agent --stdio
"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_is_told_has_no_quote_that_ends_it() {
        let program = SentProgram {
            bytes: Arc::from(&b"abc"[..]),
            digest: "0123".to_owned(),
        };
        assert!(!program.script().contains('\''));
        let on = program.by_ssh("-oProxyCommand=evil");
        let words: Vec<_> = on
            .command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        let host = words.iter().position(|word| word.contains("evil")).unwrap();
        assert_eq!(words[host - 1], "--");
    }
}
