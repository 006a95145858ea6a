//! The mark on a document whose figures were measured by another method than this program measures by.

/// The sentence that a document begins its answer with, of a run that was made by one method in a program that measures by another.
pub fn mark(made: u32, now: u32) -> Option<String> {
    let how = match made.cmp(&now) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Less => "an older method",
        std::cmp::Ordering::Greater => "a newer method",
    };
    Some(format!(
        "Measured by {how} ({made}) than the Prony that wrote this document measures by ({now}): its figures are not to be compared with those of the other."
    ))
}

#[cfg(test)]
mod tests {
    use prony_record::{METHOD, Plan};

    use super::*;

    #[test]
    fn a_document_of_another_method_is_marked_on_its_face() {
        assert_eq!(mark(3, 3), None);
        assert!(mark(0, 1).expect("marked").contains("an older method (0)"));
        assert!(mark(2, 1).expect("marked").contains("a newer method (2)"));
        let newer = Plan {
            method: METHOD + 1,
            title: "T".into(),
            ..Plan::default()
        };
        let run = crate::Run {
            plan: newer,
            ..crate::Run::default()
        };
        let rendered = crate::render(&run);
        for face in [
            rendered.document_md,
            rendered.index_html,
            rendered.answer_txt,
            rendered.summary_json,
        ] {
            let head: String = face.chars().take(30_000).collect();
            assert!(head.contains("Measured by a newer method"), "{head}");
        }
    }

    #[test]
    fn nothing_is_claimed_between_runs_of_different_methods() {
        use crate::compare::{Compared, Comparison};
        use prony_stats::Conclusion;
        let figure = Compared {
            place: "hello".to_owned(),
            metric: "rate",
            baseline: 1.0,
            other: 2.0,
            ratio: 2.0,
            interval: Some((1.9, 2.1)),
            conclusion: Conclusion::Higher,
            bound: None,
        };
        let compared = Comparison {
            schema: 1,
            baseline: "a".to_owned(),
            other: "b".to_owned(),
            figures: vec![figure],
            failed: Vec::new(),
            lengths: Vec::new(),
            left_out: Vec::new(),
            detectable: Some(0.1),
            basis: "sessions".to_owned(),
        };
        assert_eq!(compared.clone().of_methods(1, 1), compared);
        let apart = compared.of_methods(0, 1);
        assert_eq!(apart.figures[0].interval, None);
        assert_eq!(apart.figures[0].conclusion, Conclusion::NotClaimed);
        assert!(
            apart.sentence().contains("different methods (0 and 1)"),
            "{}",
            apart.sentence()
        );
    }
}
