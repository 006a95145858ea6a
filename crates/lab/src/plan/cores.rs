//! Which cores the subject has and which the generator. Pure.

use prony_record::Cores;

/// Splits the processors of a machine, given by core: the first half is the
/// subject's, the rest the generator's, and the threads of one core stay together.
/// `threads`: how many processors the subject is to have; at least one core is
/// left to the generator. A single core of several threads is split between them;
/// a single processor is shared, which a finding then says.
pub fn split(groups: &[Vec<u32>], threads: Option<u32>) -> Cores {
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
        };
    }
    let most = groups.len() - 1;
    let Some(wanted) = threads else {
        let half = groups.len() / 2;
        return Cores {
            subject: groups[..half].concat(),
            generator: groups[half..].concat(),
        };
    };
    let mut taken = 0;
    let mut subject: Vec<u32> = Vec::new();
    while taken < most && subject.len() < wanted as usize {
        subject.extend(&groups[taken]);
        taken += 1;
    }
    // A sibling of the subject's last core stays idle rather than disturb it.
    subject.truncate(wanted as usize);
    Cores {
        subject,
        generator: groups[taken..].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(groups: &[&[u32]], threads: Option<u32>) -> (Vec<u32>, Vec<u32>) {
        let groups: Vec<Vec<u32>> = groups.iter().map(|group| group.to_vec()).collect();
        let cores = split(&groups, threads);
        (cores.subject, cores.generator)
    }

    #[test]
    fn each_side_has_its_own_cores() {
        assert_eq!(of(&[&[0], &[1]], None), (vec![0], vec![1]));
        assert_eq!(
            of(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]], None),
            (vec![0, 4, 1, 5], vec![2, 6, 3, 7])
        );
        assert_eq!(
            of(&[&[0, 4], &[1, 5], &[2, 6]], Some(1)),
            (vec![0], vec![1, 5, 2, 6])
        );
        assert_eq!(of(&[&[0], &[1], &[2]], Some(9)), (vec![0, 1], vec![2]));
    }

    #[test]
    fn one_core_is_split_by_thread_and_one_processor_is_shared() {
        assert_eq!(of(&[&[0, 1]], None), (vec![0], vec![1]));
        assert_eq!(of(&[&[3]], None), (vec![3], vec![3]));
        assert_eq!(of(&[], None), (vec![], vec![]));
    }

    proptest! {
        #[test]
        fn sides_are_disjoint(sizes in proptest::collection::vec(1_usize..4, 2..9), threads in proptest::option::of(1_u32..40)) {
            let mut next = 0;
            let groups: Vec<Vec<u32>> = sizes.iter().map(|&size| {
                (0..size).map(|_| { next += 1; next - 1 }).collect()
            }).collect();
            let cores = split(&groups, threads);
            prop_assert!(!cores.subject.is_empty() && !cores.generator.is_empty());
            prop_assert!(cores.subject.iter().all(|core| !cores.generator.contains(core)));
        }
    }
}
