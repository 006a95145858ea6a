//! A command line as a shell splits it: words, quotes, and commands between pipes. What only a shell could do is refused by name.

/// The commands of a pipeline, each as its words. None is empty.
pub fn commands(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut commands = vec![Vec::new()];
    // `None` between words: a word in quotes may be empty.
    let mut word: Option<String> = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            c if c.is_whitespace() => end(&mut word, &mut commands),
            '|' => {
                end(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            '\'' => quoted(&mut rest, word.get_or_insert_default())?,
            '"' => double(&mut rest, word.get_or_insert_default())?,
            '$' if rest.next_if_eq(&'\'').is_some() => {
                escaped(&mut rest, word.get_or_insert_default())?;
            }
            '\\' => match rest.next() {
                Some('\n') | None => {}
                Some(c) => word.get_or_insert_default().push(c),
            },
            ';' | '<' | '>' | '`' => {
                return Err(format!(
                    "--from: `{c}` is for a shell: give the tool's command alone"
                ));
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut commands);
    commands.retain(|command| !command.is_empty());
    Ok(commands)
}

fn end(word: &mut Option<String>, commands: &mut [Vec<String>]) {
    if let (Some(word), Some(command)) = (word.take(), commands.last_mut()) {
        command.push(word);
    }
}

/// What is missing at the end.
const OPEN: &str = "--from: a quotation mark is never closed";

fn quoted(rest: &mut impl Iterator<Item = char>, word: &mut String) -> Result<(), String> {
    for c in rest {
        if c == '\'' {
            return Ok(());
        }
        word.push(c);
    }
    Err(OPEN.to_owned())
}

fn double(rest: &mut impl Iterator<Item = char>, word: &mut String) -> Result<(), String> {
    while let Some(c) = rest.next() {
        match c {
            '"' => return Ok(()),
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                Some(c) => word.extend(['\\', c]),
                None => break,
            },
            c => word.push(c),
        }
    }
    Err(OPEN.to_owned())
}

/// `$'…'`, as browsers write what has line ends in it.
fn escaped(rest: &mut impl Iterator<Item = char>, word: &mut String) -> Result<(), String> {
    while let Some(c) = rest.next() {
        match c {
            '\'' => return Ok(()),
            '\\' => match rest.next() {
                Some('n') => word.push('\n'),
                Some('r') => word.push('\r'),
                Some('t') => word.push('\t'),
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    let c = u32::from_str_radix(&digits, 16)
                        .ok()
                        .and_then(char::from_u32);
                    word.push(c.ok_or_else(|| format!("--from: `\\u{digits}` is no character"))?);
                }
                Some(c) => word.push(c),
                None => break,
            },
            c => word.push(c),
        }
    }
    Err(OPEN.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let one = |text: &str| commands(text).expect(text).remove(0);
        assert_eq!(
            one("wrk  -c 1\t'a b' \"c \\\"d\\\" \\x\" e\\ f ''"),
            ["wrk", "-c", "1", "a b", "c \"d\" \\x", "e f", ""]
        );
        assert_eq!(one("curl \\\n -H 'a: b'"), ["curl", "-H", "a: b"]);
        assert_eq!(
            one(r"curl --data $'a\nb\u0041\''"),
            ["curl", "--data", "a\nbA'"]
        );
        assert_eq!(one("wrk http://h/?a=1&b=$x"), ["wrk", "http://h/?a=1&b=$x"]);
        assert_eq!(
            commands("echo 'GET /' | vegeta attack|x"),
            Ok(vec![
                vec!["echo".to_owned(), "GET /".to_owned()],
                vec!["vegeta".to_owned(), "attack".to_owned()],
                vec!["x".to_owned()],
            ])
        );
        assert_eq!(commands(" | "), Ok(Vec::new()));
    }

    #[test]
    fn what_only_a_shell_can_do_is_refused() {
        for text in [
            "wrk 'a",
            "wrk \"a",
            "wrk $'a",
            "wrk \"a\\",
            "wrk > x",
            "wrk; x",
            "wrk `x`",
            "curl $'\\uZZZZ'",
        ] {
            assert!(commands(text).is_err(), "{text}");
        }
    }
}
