//! Cores by role, as a person writes them: `0-3,8/4-7`, or `0-3/4-7/8`. Pure.
//!
//! Not for: which of them a machine has ([`crate::plan`]).

use prony_base::counted;
use prony_record::Cores;

use super::words::short;

/// Highest number of a core: the kernel's set of cores, as Prony passes it, has 1,024.
const CORE_MAX: u32 = 1_023;
/// Whose the parts are, in their order.
const ROLES: [&str; 3] = ["subject", "generator", "lab"];
/// How it is written.
const FORM: &str = "write the subject's cores, a slash and the generator's, as in `0-3,8/4-7`; a third part, as in \
                    `0-3/4-7/8`, is for the lab's own sampler";

/// Reads `SUBJECT/GENERATOR` or `SUBJECT/GENERATOR/LAB`, each a list as taskset takes it. Cores stay in the order in which they
/// are written. Errors: what is wrong, and what to do.
pub fn parse(text: &str) -> Result<Cores, (String, String)> {
    let wrong = |message: String| (message, FORM.to_owned());
    let parts: Vec<&str> = text.split('/').collect();
    if !(2..=ROLES.len()).contains(&parts.len()) {
        let parts = counted(parts.len(), "part");
        return Err(wrong(format!(
            "`{}` has {parts}, and must have 2 or 3",
            short(text)
        )));
    }
    let mut lists = [Vec::new(), Vec::new(), Vec::new()];
    for (at, part) in parts.iter().enumerate() {
        if part.trim().is_empty() {
            let message = format!("`{}` gives the {} no core", short(text), ROLES[at]);
            return Err(wrong(message));
        }
        lists[at] = read_list(part).map_err(wrong)?;
    }
    check_once(&lists)?;
    let [subject, generator, lab] = lists;
    Ok(Cores {
        subject,
        generator,
        lab,
    })
}

/// `0-3,8`
fn read_list(text: &str) -> Result<Vec<u32>, String> {
    let mut cores = Vec::new();
    for item in text.split(',').map(str::trim) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (number(first, item)?, number(last, item)?);
        if first > last {
            return Err(format!("`{item}` runs backwards: `{last}-{first}`"));
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

/// A number of `item`.
fn number(text: &str, item: &str) -> Result<u32, String> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    match number {
        Some(number) if number <= CORE_MAX => Ok(number),
        None if !is_plain => Err(format!("`{}` is neither a core nor a range", short(item))),
        _ => Err(format!(
            "`{}` is no core: their numbers end at {CORE_MAX}",
            short(text)
        )),
    }
}

/// Checks that each core has one role, once.
fn check_once(lists: &[Vec<u32>; 3]) -> Result<(), (String, String)> {
    let mut owners: [Option<usize>; CORE_MAX as usize + 1] = [None; CORE_MAX as usize + 1];
    for (role, list) in lists.iter().enumerate() {
        for &core in list {
            let Some(before) = owners[core as usize].replace(role) else {
                continue;
            };
            let message = match before == role {
                true => format!("core {core} stands twice among the {}'s", ROLES[role]),
                false => format!(
                    "core {core} is both the {}'s and the {}'s",
                    ROLES[before], ROLES[role]
                ),
            };
            return Err((message, "give each core to one side, once".to_owned()));
        }
    }
    Ok(())
}

/// The text that [`parse`] reads as `cores`.
pub fn typed(cores: &Cores) -> String {
    let mut parts = vec![list(&cores.subject), list(&cores.generator)];
    if !cores.lab.is_empty() {
        parts.push(list(&cores.lab));
    }
    parts.join("/")
}

/// `0-3,8`: cores in their order, those that follow each other as a range.
pub fn list(cores: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &core in cores {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(core) => *last = core,
            _ => ranges.push((core, core)),
        }
    }
    let range = |(first, last)| match first == last {
        true => format!("{first}"),
        false => format!("{first}-{last}"),
    };
    let ranges: Vec<String> = ranges.into_iter().map(range).collect();
    ranges.join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cores(subject: &[u32], generator: &[u32], lab: &[u32]) -> Cores {
        Cores {
            subject: subject.to_vec(),
            generator: generator.to_vec(),
            lab: lab.to_vec(),
        }
    }

    #[test]
    fn lists_are_read_as_taskset_takes_them() {
        let read = |text: &str| parse(text).unwrap();
        assert_eq!(read("1/0"), cores(&[1], &[0], &[]));
        let larger = cores(&[0, 1, 2, 3, 8], &[4, 5, 6, 7], &[]);
        assert_eq!(read("0-3,8/4-7"), larger);
        assert_eq!(read(" 0-3, 8 / 4-7 "), larger);
        assert_eq!(read("8,0/5-5/1023"), cores(&[8, 0], &[5], &[1_023]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("", "`` has 1 part, and must have 2 or 3"),
            ("0-3", "`0-3` has 1 part, and must have 2 or 3"),
            ("0/1/2/3", "`0/1/2/3` has 4 parts, and must have 2 or 3"),
            ("/1", "`/1` gives the subject no core"),
            ("0/ ", "`0/ ` gives the generator no core"),
            ("0/1/", "`0/1/` gives the lab no core"),
            ("0-2/2", "core 2 is both the subject's and the generator's"),
            ("0/1/0", "core 0 is both the subject's and the lab's"),
            ("0,0/1", "core 0 stands twice among the subject's"),
            ("3-1/0", "`3-1` runs backwards: `1-3`"),
            ("0,/1", "`` is neither a core nor a range"),
            ("a/1", "`a` is neither a core nor a range"),
            ("0-1-2/3", "`0-1-2` is neither a core nor a range"),
            ("+0/1", "`+0` is neither a core nor a range"),
            ("-1/0", "`-1` is neither a core nor a range"),
            ("0-8:2/1", "`0-8:2` is neither a core nor a range"),
            ("0/1024", "`1024` is no core: their numbers end at 1023"),
            (
                "0-4294967296/1",
                "`4294967296` is no core: their numbers end at 1023",
            ),
        ];
        for (text, message) in cases {
            let (found, help) = parse(text).unwrap_err();
            assert_eq!(found, message, "{text}");
            assert!(!help.is_empty(), "{text}");
        }
    }

    /// Disjoint lists: the numbers in an order, cut in two or three.
    fn any_cores() -> impl Strategy<Value = Cores> {
        let numbers = proptest::collection::btree_set(0..=CORE_MAX, 3..40);
        let numbers = numbers.prop_map(|set| set.into_iter().collect::<Vec<u32>>());
        let shuffled = prop_oneof![numbers.clone().prop_shuffle(), numbers];
        (shuffled, any::<prop::sample::Index>(), any::<bool>()).prop_map(|(all, cut, has_lab)| {
            let cut = 1 + cut.index(all.len() - 2);
            let end = all.len() - usize::from(has_lab);
            cores(&all[..cut], &all[cut..end], &all[end..])
        })
    }

    proptest! {
        #[test]
        fn what_is_typed_is_read_again(cores in any_cores()) {
            prop_assert_eq!(parse(&typed(&cores)), Ok(cores));
        }

        #[test]
        fn any_text_is_cores_of_one_role_each_or_an_error(text in "[0-9,/\\- ]{0,16}|\\PC{0,16}") {
            match parse(&text) {
                Ok(cores) => {
                    prop_assert!(!cores.subject.is_empty() && !cores.generator.is_empty());
                    let mut all = [cores.subject, cores.generator, cores.lab].concat();
                    let count = all.len();
                    all.sort_unstable();
                    all.dedup();
                    prop_assert_eq!(all.len(), count);
                }
                Err((message, help)) => prop_assert!(!message.is_empty() && !help.is_empty()),
            }
        }
    }
}
