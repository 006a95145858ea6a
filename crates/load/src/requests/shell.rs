//! A text as a shell splits it: words, quotes, escapes, continued lines, comments. What a shell would do with them is not done.

use std::iter::Peekable;
use std::str::Chars;

/// A part of a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ShellToken {
    /// A word, without its quotes.
    Word(String),
    /// A character that stands for itself between words.
    Operator(char),
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ShellFault {
    /// A quotation mark that is never closed.
    #[error("a {0} that does not end")]
    Open(char),
    /// An escape of `$'…'` that stands for no character.
    #[error("an escape in $'…' that is no character")]
    NoCharacter,
}

/// The tokens of a text, each with the line that it begins on, from 1.
pub struct ShellTokens<'a> {
    rest: Peekable<Chars<'a>>,
    operators: &'a str,
    line: u64,
}

impl<'a> ShellTokens<'a> {
    /// Of `text`, in which each of these characters outside of quotes is an operator.
    pub fn new(text: &'a str, operators: &'a str) -> ShellTokens<'a> {
        ShellTokens {
            rest: text.chars().peekable(),
            operators,
            line: 1,
        }
    }

    fn take(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += u64::from(next == Some('\n'));
        next
    }

    fn take_if(&mut self, wanted: char) -> bool {
        self.rest.peek() == Some(&wanted) && self.take().is_some()
    }

    /// What stands behind a backslash; `None`: a line end, which is left out, or the end of the text.
    fn escaped(&mut self) -> Option<char> {
        match self.take()? {
            '\n' => None,
            '\r' if self.take_if('\n') => None,
            other => Some(other),
        }
    }

    /// Takes what stands between quotes: of `$'…'` with the escapes that browsers write, where `is_ansi`.
    fn quoted(&mut self, quote: char, is_ansi: bool, word: &mut String) -> Result<(), ShellFault> {
        while let Some(next) = self.take() {
            match next {
                end if end == quote => return Ok(()),
                '\\' if is_ansi => word.push(self.ansi()?),
                '\\' if quote == '"' => match self.take() {
                    Some('\n') => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                    Some(other) => word.extend(['\\', other]),
                    None => break,
                },
                other => word.push(other),
            }
        }
        Err(ShellFault::Open(quote))
    }

    fn ansi(&mut self) -> Result<char, ShellFault> {
        let digits_max = match self.take().ok_or(ShellFault::Open('\''))? {
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'x' => 2,
            'u' => 4,
            other => return Ok(other),
        };
        let mut digits = String::new();
        while digits.len() < digits_max
            && let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit)
        {
            digits.push(digit);
        }
        let code = u32::from_str_radix(&digits, 16).ok();
        code.and_then(char::from_u32).ok_or(ShellFault::NoCharacter)
    }
}

impl Iterator for ShellTokens<'_> {
    type Item = Result<(u64, ShellToken), (u64, ShellFault)>;

    fn next(&mut self) -> Option<Self::Item> {
        // `None` between words: a word in quotes may be empty.
        let mut word: Option<String> = None;
        let mut begins = self.line;
        while let Some(&next) = self.rest.peek() {
            let is_operator = self.operators.contains(next);
            if word.is_some() && (is_operator || next.is_whitespace()) {
                break;
            }
            if word.is_none() {
                begins = self.line;
            }
            self.take();
            let taken = match next {
                _ if is_operator => return Some(Ok((begins, ShellToken::Operator(next)))),
                blank if blank.is_whitespace() => continue,
                '#' if word.is_none() => {
                    while self.rest.next_if(|next| *next != '\n').is_some() {}
                    continue;
                }
                '\\' => {
                    if let Some(escaped) = self.escaped() {
                        word.get_or_insert_default().push(escaped);
                    }
                    Ok(())
                }
                '$' if self.take_if('\'') => self.quoted('\'', true, word.get_or_insert_default()),
                '"' | '\'' => self.quoted(next, false, word.get_or_insert_default()),
                other => {
                    word.get_or_insert_default().push(other);
                    Ok(())
                }
            };
            if let Err(fault) = taken {
                return Some(Err((begins, fault)));
            }
        }
        word.map(|word| Ok((begins, ShellToken::Word(word))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<(u64, ShellToken)>, (u64, ShellFault)> {
        ShellTokens::new(text, ";").collect()
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let words = |text: &str| -> Vec<String> {
            let all = tokens(text).unwrap().into_iter();
            all.map(|(_, token)| match token {
                ShellToken::Word(word) => word,
                ShellToken::Operator(operator) => format!("<{operator}>"),
            })
            .collect()
        };
        assert_eq!(
            words("wrk  -c 1\t'a b' \"c \\\"d\\\" \\x\" e\\ f '';x # y"),
            [
                "wrk",
                "-c",
                "1",
                "a b",
                "c \"d\" \\x",
                "e f",
                "",
                "<;>",
                "x"
            ]
        );
        assert_eq!(
            words("curl \\\n -H 'a: b' \\\r\nx"),
            ["curl", "-H", "a: b", "x"]
        );
        assert_eq!(words(r"$'a\nb\u0041\'\x3b'c"), ["a\nbA';c"]);
        assert_eq!(words("http://h/?a=1&b=$x#y"), ["http://h/?a=1&b=$x#y"]);
    }

    #[test]
    fn a_token_has_the_line_that_it_begins_on() {
        let all = tokens("a 'b\nc' d\n\ne").unwrap();
        let lines: Vec<u64> = all.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 1, 2, 4]);
    }

    #[test]
    fn what_is_never_closed_and_what_is_no_character_are_faults() {
        for (text, fault) in [
            ("a\n'b\n", (2, ShellFault::Open('\''))),
            ("\"a\\", (1, ShellFault::Open('"'))),
            ("$'a", (1, ShellFault::Open('\''))),
            ("$'a\\", (1, ShellFault::Open('\''))),
            ("$'\\uZZZZ'", (1, ShellFault::NoCharacter)),
            ("$'\\ud83d'", (1, ShellFault::NoCharacter)),
        ] {
            assert_eq!(tokens(text), Err(fault), "{text}");
        }
    }
}
