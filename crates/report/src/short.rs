//! Holds the short answer to what a reader takes in before the first picture: so many lines of so many characters.
//!
//! What does not fit loses nothing: it is told in full in the appendix, and in a folded part of the page. Not for: what
//! is said and in which order, which is for `answer` and for each kind of work.

use crate::answer::Answer;
use crate::words::Point;

/// Lines of the short answer in the document, the one that points to the rest among them.
pub const LINES_MAX: usize = 8;

/// Characters of one of its lines, its head included.
pub const LINE_MAX: usize = 600;

/// What a line ends with that was cut.
const CUT: &str = "; the rest is told in full in the appendix.";

/// The answer within its limits. What came first comes first; a sentence that is left out or cut is in `more` as it was.
pub fn fit(answer: Answer) -> Answer {
    let Answer {
        mut before,
        mut points,
        mut after,
        mut more,
    } = answer;
    let all = before.len() + points.len() + after.len();
    let sentences = before.iter().chain(&after);
    let is_long = sentences.map(|text| length("", text));
    let is_long = is_long.chain(points.iter().map(|p| length(&p.head, &p.text)));
    let points_to_more = all > LINES_MAX || !more.is_empty() || is_long.max() > Some(LINE_MAX);
    let room = LINES_MAX - usize::from(points_to_more);
    after.truncate(room);
    let left = before.split_off(before.len().min(room - after.len()));
    let kept = before.len() + after.len();
    let dropped = points.split_off(points.len().min(room - kept));
    more.extend(left.into_iter().map(in_full));
    for sentence in before.iter_mut().chain(&mut after) {
        if let Some(short) = cut(sentence, LINE_MAX) {
            more.push(in_full(std::mem::replace(sentence, short)));
        }
    }
    for point in &mut points {
        let head = length(&point.head, "");
        if let Some(short) = cut(&point.text, LINE_MAX.saturating_sub(head)) {
            more.push(point.clone());
            point.text = short;
        }
    }
    more.extend(dropped);
    Answer {
        before,
        points,
        after,
        more,
    }
}

/// Characters of a line.
fn length(head: &str, text: &str) -> usize {
    let head = match head {
        "" => 0,
        head => head.chars().count() + ": ".len(),
    };
    head + text.chars().count()
}

fn in_full(text: String) -> Point {
    Point {
        head: "In full".to_owned(),
        text,
    }
}

/// The parts of a line that stay within so many characters; `None` where all of it does.
fn cut(line: &str, most: usize) -> Option<String> {
    if line.chars().count() <= most {
        return None;
    }
    let room = most.saturating_sub(CUT.chars().count());
    let end = line
        .char_indices()
        .nth(room)
        .map_or(line.len(), |(at, _)| at);
    let kept = &line[..end];
    let last = |ends: &[&str]| ends.iter().filter_map(|end| kept.rfind(end)).max();
    // Rather within a part than without most of the line.
    let most = |at: &usize| *at >= kept.len() / 2;
    let at = last(&["; ", ". "]).filter(most);
    let at = at
        .or_else(|| last(&[", "]).filter(most))
        .or_else(|| last(&[" "]));
    Some(format!("{}{CUT}", &kept[..at.unwrap_or(kept.len())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: usize, points: usize, after: usize, characters: usize) -> Answer {
        let line = |n: usize| format!("{n}{}", ", word".repeat(characters / 6));
        Answer {
            before: (0..before).map(line).collect(),
            points: (0..points)
                .map(|n| Point {
                    head: format!("Head {n}"),
                    text: line(n),
                })
                .collect(),
            after: (0..after).map(line).collect(),
            more: Vec::new(),
        }
    }

    #[test]
    fn no_answer_is_longer_than_its_limits_and_nothing_is_lost() {
        for before in 0..12 {
            for (points, after, characters) in [(0, 0, 60), (4, 2, 60), (20, 3, 60), (9, 2, 1200)] {
                let whole = of(before, points, after, characters);
                let said = fit(whole.clone());
                let lines = said.before.len() + said.points.len() + said.after.len();
                assert!(lines + usize::from(!said.more.is_empty()) <= LINES_MAX);
                let heads = said
                    .points
                    .iter()
                    .map(|p| format!("{}: {}", p.head, p.text));
                for line in said.before.iter().chain(&said.after).cloned().chain(heads) {
                    assert!(line.chars().count() <= LINE_MAX, "{line}");
                }
                let told = format!("{said:?}");
                let texts = whole.before.iter().chain(&whole.after);
                for text in texts.chain(whole.points.iter().map(|p| &p.text)) {
                    assert!(told.contains(text), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_line_is_cut_where_a_part_of_it_ends() {
        assert_eq!(cut("a; b", 10), None);
        let of = |words: &str| cut(&format!("{words}{}", " x".repeat(100)), 65).expect("cut");
        assert_eq!(of("first of it; second"), format!("first of it{CUT}"));
        assert_eq!(of("first; second of, it"), format!("first; second of{CUT}"));
        assert!(
            cut(&"é".repeat(700), LINE_MAX)
                .expect("cut")
                .chars()
                .count()
                <= LINE_MAX
        );
    }
}
