//! What of the machine spoiled a run, in one sentence for the head of its document.
//!
//! Not for: what each thing does and how it is mended (`prony doctor` tells; environment.json has it).

use prony_record::{Environment, MachineState};

use crate::words::few;

/// The sentence; `None` where nothing was seen to spoil anything, or nobody looked.
pub fn sentence(environment: &Environment) -> Option<String> {
    let spoils = environment
        .checks
        .iter()
        .filter(|check| check.state == MachineState::Spoils);
    let briefs = spoils.map(|check| check.brief.clone());
    let all: Vec<String> = briefs.filter(|brief| !brief.is_empty()).collect();
    (!all.is_empty()).then(|| {
        format!(
            "This machine had problems when the run began: {} (prony doctor explains them and how to mend them).",
            few(&all)
        )
    })
}

#[cfg(test)]
mod tests {
    use prony_record::MachineCheck;

    use super::*;

    fn told(states: &[MachineState]) -> Option<String> {
        let check = |(number, state): (usize, &MachineState)| MachineCheck {
            name: format!("check {number}"),
            state: *state,
            found: "x".to_owned(),
            brief: match number {
                9 => String::new(),
                _ => format!("ailment {number}"),
            },
            ..MachineCheck::default()
        };
        sentence(&Environment {
            checks: states.iter().enumerate().map(check).collect(),
            ..Environment::default()
        })
    }

    #[test]
    fn what_spoils_is_named_and_what_does_not_or_is_unknown_is_not() {
        use MachineState::{Healthy, Spoils, Unknown};
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[Healthy, Unknown]), None);
        let tail = " (prony doctor explains them and how to mend them).";
        let of = |middle: &str| {
            Some(format!(
                "This machine had problems when the run began: {middle}{tail}"
            ))
        };
        assert_eq!(told(&[Healthy, Spoils, Unknown]), of("ailment 1"));
        let mut limits = [Healthy; 10];
        limits[9] = Spoils;
        assert_eq!(told(&limits), None);
        assert_eq!(told(&[Spoils; 3]), of("ailment 0, ailment 1 and ailment 2"));
        assert_eq!(
            told(&[Spoils; 5]),
            of("ailment 0, ailment 1, ailment 2 and 2 more")
        );
    }

    #[test]
    fn an_environment_of_before_this_was_recorded_is_still_read() {
        let now = serde_json::to_value(Environment::default()).unwrap();
        assert!(now.get("checks").is_none());
        let read: Environment = serde_json::from_value(now).unwrap();
        assert_eq!(read, Environment::default());
    }
}
