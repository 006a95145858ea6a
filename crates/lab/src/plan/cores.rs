//! Which cores the subject has, which the generator, and which the lab itself. Pure.
//!
//! Not for: how lists of cores are written ([`crate::experiment::cores`]).

use prony_record::Cores;
use toml::Spanned;

use super::facts::Facts;
use super::options::{Options, PlanError};
use crate::diagnosis::Diagnosis;
use crate::experiment::Experiment;
use crate::experiment::cores::list;

/// Groups from which on the lab has one of its own.
const GROUPS_FOR_LAB: usize = 3;

/// The cores that the command line gives, or else the experiment.
pub fn given<'a>(experiment: &'a Experiment, options: &'a Options) -> Option<&'a Cores> {
    let written = experiment.run.cores.as_ref().map(Spanned::get_ref);
    options.cores.as_ref().or(written)
}

/// Checks that this process may use the cores that are given.
pub fn check(experiment: &Experiment, facts: &Facts, options: &Options) -> Result<(), PlanError> {
    let lacking = given(experiment, options).and_then(|given| lacking(given, facts));
    let Some((message, help)) = lacking else {
        return Ok(());
    };
    Err(match &experiment.run.cores {
        Some(written) if options.cores.is_none() => {
            let wrong = Diagnosis::new(written.span(), message)
                .help(format!("{help}; `--cores` goes before what the file says"));
            PlanError::InFile(experiment.diagnoses(vec![wrong]))
        }
        _ => PlanError::NoSuchCores { message, help },
    })
}

/// What of `given` cannot be had, and what to do about it; `None`: all of it can.
fn lacking(given: &Cores, facts: &Facts) -> Option<(String, String)> {
    let named = || {
        given
            .subject
            .iter()
            .chain(&given.generator)
            .chain(&given.lab)
    };
    let sorted = |cores: &mut dyn Iterator<Item = u32>| {
        let mut cores: Vec<u32> = cores.collect();
        cores.sort_unstable();
        cores
    };
    let allowed = sorted(&mut facts.cores.iter().flatten().copied());
    let there = |core: &u32| allowed.contains(core) || facts.online.contains(core);
    let absent = sorted(&mut named().copied().filter(|core| !there(core)));
    if !absent.is_empty() {
        let message = format!(
            "{} not there: this machine has {}",
            subject_and_verb(&absent),
            subject_of(if facts.online.is_empty() {
                &allowed
            } else {
                &facts.online
            })
        );
        return Some((
            message,
            "name cores that are there, as `lscpu --extended` lists them".to_owned(),
        ));
    }
    let barred = sorted(&mut named().copied().filter(|core| !allowed.contains(core)));
    if barred.is_empty() {
        return None;
    }
    let message = format!(
        "{} there, but this process may use only {}",
        subject_and_verb(&barred),
        subject_of(&allowed)
    );
    let help = "name others, or start Prony with more: its affinity (taskset) or its cpuset (a container) leaves these out";
    Some((message, help.to_owned()))
}

/// `core 4`, `cores 4-11`
fn subject_of(cores: &[u32]) -> String {
    let word = if cores.len() == 1 { "core" } else { "cores" };
    format!("{word} {}", list(cores))
}

fn subject_and_verb(cores: &[u32]) -> String {
    let verb = if cores.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", subject_of(cores))
}

/// Splits the processors of a machine, given by core; the threads of one core stay together.
///
/// `given`: what a person gives to each side; a lab to which nothing is given has a core of which no side has a thread, if there
/// is one. Otherwise from three cores on one is the lab's, the first half of the others the subject's, and the rest the
/// generator's. `threads`: how many processors the subject is to have, of its own where some are given. Otherwise it has
/// them before the lab has a core, and at least one core is left to the generator.
///
/// A single core of several threads is split between them; a single processor is shared, which a finding then says.
pub fn split(groups: &[Vec<u32>], threads: Option<u32>, given: Option<&Cores>) -> Cores {
    if let Some(given) = given {
        return split_given(groups, threads, given);
    }
    let singles: Vec<Vec<u32>>;
    let groups = if groups.len() == 1 {
        singles = groups[0].iter().map(|&cpu| vec![cpu]).collect();
        &singles
    } else {
        groups
    };
    if groups.len() < 2 {
        let all = groups.concat();
        return Cores {
            subject: all.clone(),
            generator: all,
            ..Cores::default()
        };
    }
    let of_subject = match threads {
        Some(threads) => taken(groups, threads),
        None => halved(groups.len()),
    };
    let mut subject = groups[..of_subject].concat();
    // A sibling of the subject's last core stays idle rather than disturb it.
    subject.truncate(threads.map_or(usize::MAX, |threads| threads as usize));
    let has_lab = groups.len() >= GROUPS_FOR_LAB && groups.len() - of_subject >= 2;
    let of_lab = groups.len() - usize::from(has_lab);
    Cores {
        subject,
        generator: groups[of_subject..of_lab].concat(),
        lab: groups[of_lab..].concat(),
    }
}

/// Groups of the subject where nothing is asked for.
fn halved(groups: usize) -> usize {
    match groups < GROUPS_FOR_LAB {
        true => groups / 2,
        false => (groups - 1) / 2,
    }
}

/// Groups that have `threads` processors, or all but one.
fn taken(groups: &[Vec<u32>], threads: u32) -> usize {
    let mut taken = 0;
    let mut processors = 0;
    while taken < groups.len() - 1 && processors < threads as usize {
        processors += groups[taken].len();
        taken += 1;
    }
    taken
}

fn split_given(groups: &[Vec<u32>], threads: Option<u32>, given: &Cores) -> Cores {
    let mut cores = Cores {
        lab: lab_beside(groups, given),
        ..given.clone()
    };
    if let Some(threads) = threads {
        cores.subject = by_core(groups, &given.subject);
        cores.subject.truncate(threads as usize);
    }
    cores
}

/// The lab's cores beside those that are given: the last core of which no side has a thread. Empty: there is none.
fn lab_beside(groups: &[Vec<u32>], given: &Cores) -> Vec<u32> {
    if !given.lab.is_empty() {
        return given.lab.clone();
    }
    let is_free = |group: &&Vec<u32>| {
        let mut sides = given.subject.iter().chain(&given.generator);
        !sides.any(|core| group.contains(core))
    };
    groups.iter().rfind(is_free).cloned().unwrap_or_default()
}

/// `processors` with the threads of one core beside each other, otherwise in their order.
fn by_core(groups: &[Vec<u32>], processors: &[u32]) -> Vec<u32> {
    let mut ordered: Vec<u32> = Vec::new();
    for processor in processors {
        if ordered.contains(processor) {
            continue;
        }
        let group = groups.iter().find(|group| group.contains(processor));
        let beside = processors.iter().filter(|other| match group {
            Some(group) => group.contains(other),
            None => *other == processor,
        });
        ordered.extend(beside);
    }
    ordered
}

/// The cores of each side, as a dry run prints them; `None`: nothing is pinned.
pub fn line(cores: &Cores) -> Option<String> {
    let sides = [
        ("subject", &cores.subject),
        ("generator", &cores.generator),
        ("sampler", &cores.lab),
    ];
    let texts = sides.iter().filter(|(_, cores)| !cores.is_empty());
    let texts: Vec<String> = texts
        .map(|(who, cores)| format!("{who} {}", list(cores)))
        .collect();
    (!texts.is_empty()).then(|| format!("cores: {}", texts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::cores::parse;
    use proptest::prelude::*;

    fn divided(groups: &[&[u32]], threads: Option<u32>) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        beside(groups, threads, None)
    }

    fn beside(
        groups: &[&[u32]],
        threads: Option<u32>,
        given: Option<&str>,
    ) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        let groups: Vec<Vec<u32>> = groups.iter().map(|group| group.to_vec()).collect();
        let given = given.map(|text| parse(text).unwrap());
        let cores = split(&groups, threads, given.as_ref());
        (cores.subject, cores.generator, cores.lab)
    }

    #[test]
    fn each_side_has_its_own_cores() {
        assert_eq!(divided(&[&[0], &[1]], None), (vec![0], vec![1], vec![]));
        assert_eq!(divided(&[&[0], &[1]], Some(3)), (vec![0], vec![1], vec![]));
        assert_eq!(
            divided(&[&[0], &[1], &[2]], None),
            (vec![0], vec![1], vec![2])
        );
        assert_eq!(
            divided(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]], None),
            (vec![0, 4], vec![1, 5, 2, 6], vec![3, 7])
        );
        assert_eq!(
            divided(&[&[0], &[1], &[2], &[3], &[4]], None),
            (vec![0, 1], vec![2, 3], vec![4])
        );
        assert_eq!(
            divided(&[&[0, 4], &[1, 5], &[2, 6]], Some(1)),
            (vec![0], vec![1, 5], vec![2, 6])
        );
    }

    #[test]
    fn the_subject_has_the_processors_asked_for_before_the_lab_has_a_core() {
        let three: &[&[u32]] = &[&[0], &[1], &[2]];
        assert_eq!(divided(three, Some(1)), (vec![0], vec![1], vec![2]));
        assert_eq!(divided(three, Some(2)), (vec![0, 1], vec![2], vec![]));
        assert_eq!(divided(three, Some(9)), (vec![0, 1], vec![2], vec![]));
    }

    #[test]
    fn one_core_is_split_by_thread_and_one_processor_is_shared() {
        assert_eq!(divided(&[&[0, 1]], None), (vec![0], vec![1], vec![]));
        assert_eq!(divided(&[&[3]], None), (vec![3], vec![3], vec![]));
        assert_eq!(divided(&[], None), (vec![], vec![], vec![]));
    }

    #[test]
    fn given_cores_are_as_they_are_given() {
        let two: &[&[u32]] = &[&[0], &[1]];
        assert_eq!(beside(two, None, Some("1/0")), (vec![1], vec![0], vec![]));
        let six: &[&[u32]] = &[&[0, 6], &[1, 7], &[2, 8], &[3, 9], &[4, 10], &[5, 11]];
        // A core whose other thread is given is not the lab's.
        assert_eq!(
            beside(six, None, Some("0-1/2-3,11")),
            (vec![0, 1], vec![2, 3, 11], vec![4, 10])
        );
        assert_eq!(
            beside(six, None, Some("0-1/2-3/1000")),
            (vec![0, 1], vec![2, 3], vec![1_000])
        );
        assert_eq!(
            beside(six, None, Some("0-5/6-11")),
            ((0..6).collect(), (6..12).collect(), vec![])
        );
    }

    #[test]
    fn threads_take_the_first_of_the_given_cores_whole_cores_first() {
        let four: &[&[u32]] = &[&[0, 4], &[1, 5], &[2, 6], &[3, 7]];
        let subject = |threads, given| beside(four, Some(threads), Some(given)).0;
        assert_eq!(subject(1, "0-1,4-5/2-3"), [0]);
        assert_eq!(subject(2, "0-1,4-5/2-3"), [0, 4]);
        assert_eq!(subject(3, "0-1,4-5/2-3"), [0, 4, 1]);
        assert_eq!(subject(3, "1,0/2-3"), [1, 0]);
        assert_eq!(subject(9, "5,0,1/2-3"), [5, 1, 0]);
        // What the subject does not use stays idle.
        let cores = beside(four, Some(1), Some("0-2/3"));
        assert_eq!(cores, (vec![0], vec![3], vec![]));
    }

    #[test]
    fn cores_that_cannot_be_had_are_named_with_the_reason() {
        let facts = Facts {
            cores: vec![vec![0, 2], vec![1, 3]],
            online: (0..6).collect(),
            ..Facts::default()
        };
        let texts =
            |given: &str| lacking(&parse(given).unwrap(), &facts).map(|(message, _)| message);
        assert_eq!(texts("0,2/1,3"), None);
        assert_eq!(
            texts("9,0-1/6-7").as_deref(),
            Some("cores 6-7,9 are not there: this machine has cores 0-5")
        );
        assert_eq!(
            texts("0/1/5").as_deref(),
            Some("core 5 is there, but this process may use only cores 0-3")
        );
        let unknown = Facts {
            online: Vec::new(),
            ..facts
        };
        let (message, _) = lacking(&parse("0/4").unwrap(), &unknown).unwrap();
        assert_eq!(message, "core 4 is not there: this machine has cores 0-3");
    }

    #[test]
    fn a_dry_run_says_who_has_which_cores() {
        let texts = |given: &str| line(&parse(given).unwrap()).unwrap();
        assert_eq!(texts("1/0"), "cores: subject 1, generator 0");
        assert_eq!(
            texts("0-3/4-10/11"),
            "cores: subject 0-3, generator 4-10, sampler 11"
        );
        assert_eq!(line(&Cores::default()), None);
    }

    /// Cores of one to three threads, numbered in order.
    fn any_groups() -> impl Strategy<Value = Vec<Vec<u32>>> {
        let sizes = proptest::collection::vec(1_usize..4, 2..9);
        sizes.prop_map(|sizes| {
            let mut next = 0;
            let mut group = |size| {
                next += size;
                (next - size..next).map(|core| core as u32).collect()
            };
            sizes.into_iter().map(&mut group).collect()
        })
    }

    fn are_disjoint(cores: &Cores) -> bool {
        let mut all = [&cores.subject[..], &cores.generator, &cores.lab].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() == count
    }

    proptest! {
        #[test]
        fn sides_are_disjoint(groups in any_groups(), threads in proptest::option::of(1_u32..40)) {
            let cores = split(&groups, threads, None);
            prop_assert!(!cores.subject.is_empty() && !cores.generator.is_empty());
            prop_assert!(are_disjoint(&cores), "{:?}", cores);
            // The lab has a whole core, or none; where nothing is asked for, from the third on.
            prop_assert!(cores.lab.is_empty() || groups.contains(&cores.lab));
            prop_assert!(threads.is_some() || cores.lab.is_empty() == (groups.len() < 3));
        }

        #[test]
        fn given_lists_are_kept(
            groups in any_groups(),
            threads in proptest::option::of(1_u32..40),
            cut in any::<prop::sample::Index>(),
            left in any::<prop::sample::Index>(),
        ) {
            let all = groups.concat();
            let cut = 1 + cut.index(all.len() - 1);
            let end = cut + 1 + left.index(all.len() - cut);
            let given = Cores {
                subject: all[..cut].to_vec(),
                generator: all[cut..end.min(all.len())].to_vec(),
                lab: Vec::new(),
            };
            let cores = split(&groups, threads, Some(&given));
            prop_assert_eq!(&cores.generator, &given.generator);
            let wanted = threads.map_or(cut, |threads| cut.min(threads as usize));
            prop_assert_eq!(&cores.subject[..], &given.subject[..wanted]);
            prop_assert!(are_disjoint(&cores), "{:?}", cores);
            prop_assert!(cores.lab.is_empty() || groups.contains(&cores.lab));
        }
    }
}
