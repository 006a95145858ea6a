//! What a text in Lua needs: its tokens are looked through, nothing is run.
//!
//! Not for: whether it is right; the Lua that loads it says that.

/// What LuaJIT cannot read.
const OPERATORS: [&str; 6] = ["//", "<<", ">>", "&", "|", "~"];
/// Fields of libraries that LuaJIT has not and cannot be given.
const FIELDS: [(&str, &str); 8] = [
    ("coroutine", "close"),
    ("math", "maxinteger"),
    ("math", "mininteger"),
    ("math", "type"),
    ("math", "ult"),
    ("string", "pack"),
    ("string", "packsize"),
    ("string", "unpack"),
];
/// A text with one of these names tells Luas apart, and knows what to do in each.
const KNOWS: [&str; 4] = ["_VERSION", "jit", "setfenv", "loadstring"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Name,
    /// What stands between the quotes.
    String,
    Number,
    Mark,
}

#[derive(Clone, Copy, Debug)]
struct Token<'t> {
    kind: TokenKind,
    text: &'t [u8],
    line: usize,
}

impl Token<'_> {
    fn is(&self, kind: TokenKind, text: &str) -> bool {
        self.kind == kind && self.text == text.as_bytes()
    }

    fn is_mark(&self, text: &str) -> bool {
        self.is(TokenKind::Mark, text)
    }

    fn is_name(&self, text: &str) -> bool {
        self.is(TokenKind::Name, text)
    }
}

/// A text, taken apart.
pub(super) struct Text<'t> {
    tokens: Vec<Token<'t>>,
}

impl<'t> Text<'t> {
    /// Takes any bytes apart; what is no Lua gives tokens of no use.
    pub fn read(text: &'t [u8]) -> Text<'t> {
        let mut reader = Reader {
            text,
            at: 0,
            line: 1,
        };
        if text.starts_with(b"#") {
            reader.skip_line();
        }
        let mut tokens = Vec::new();
        while let Some(token) = reader.next() {
            tokens.push(token);
        }
        Text { tokens }
    }

    /// The line and the name of the first thing that LuaJIT has not and Lua 5.4 has.
    pub fn needs(&self) -> Option<(usize, String)> {
        let syntax = (0..self.tokens.len()).find_map(|at| self.syntax(at));
        syntax.or_else(|| self.field())
    }

    /// The modules that it requires by names that it holds.
    pub fn required(&self) -> impl Iterator<Item = &'t str> {
        let tokens = &self.tokens;
        (0..tokens.len()).filter_map(|at| {
            if !tokens[at].is_name("require") {
                return None;
            }
            let name = match tokens.get(at + 1)? {
                token if token.kind == TokenKind::String => token,
                open if open.is_mark("(") => {
                    let closed = tokens.get(at + 3).is_some_and(|token| token.is_mark(")"));
                    let name = tokens.get(at + 2)?;
                    (name.kind == TokenKind::String && closed).then_some(name)?
                }
                _ => return None,
            };
            std::str::from_utf8(name.text).ok()
        })
    }

    fn syntax(&self, at: usize) -> Option<(usize, String)> {
        let token = self.tokens[at];
        let mark = OPERATORS.iter().find(|mark| token.is_mark(mark));
        if let Some(mark) = mark {
            return Some((token.line, format!("`{mark}`")));
        }
        // local NAME <const>
        let [_, name, open, attribute, close] = self.tokens.get(at..at + 5)? else {
            return None;
        };
        let is_attribute = attribute.is_name("const") || attribute.is_name("close");
        let stands = self.is_in_local(at)
            && name.kind == TokenKind::Name
            && open.is_mark("<")
            && close.is_mark(">");
        let attribute = String::from_utf8_lossy(attribute.text);
        (stands && is_attribute).then(|| (name.line, format!("`<{attribute}>`")))
    }

    /// Whether the names behind this token are declared by a `local`.
    fn is_in_local(&self, at: usize) -> bool {
        let before = self.tokens[..=at].iter().rev();
        let mut before = before.skip_while(|token| {
            let is_word = token.kind == TokenKind::Name && !token.is_name("local");
            is_word || [",", "<", ">"].iter().any(|mark| token.is_mark(mark))
        });
        let ends = self.tokens[at].is_name("local") || self.tokens[at].is_mark(",");
        ends && before.next().is_some_and(|token| token.is_name("local"))
    }

    /// A field of a library that is used. Where the text looks whether it is there, or gives it itself, it can do without.
    fn field(&self) -> Option<(usize, String)> {
        if self
            .tokens
            .iter()
            .any(|token| KNOWS.iter().any(|name| token.is_name(name)))
        {
            return None;
        }
        let mut found = FIELDS
            .iter()
            .filter_map(|&(library, name)| self.uses(library, name));
        let environment = || {
            let at = self.tokens.iter().find(|token| token.is_name("_ENV"))?;
            Some((at.line, "`_ENV`".to_owned()))
        };
        found.next().or_else(environment)
    }

    fn uses(&self, library: &str, name: &str) -> Option<(usize, String)> {
        let tokens = &self.tokens;
        let mut first = None;
        for at in 0..tokens.len().saturating_sub(2) {
            let is_it = tokens[at].is_name(library)
                && tokens[at + 1].is_mark(".")
                && tokens[at + 2].is_name(name);
            let before = at.checked_sub(1).map(|before| tokens[before]);
            if !is_it || before.is_some_and(|token| token.is_mark(".") || token.is_mark(":")) {
                continue;
            }
            let is_tested_before = before.is_some_and(|token| {
                ["not", "and", "or"].iter().any(|word| token.is_name(word))
                    || token.is_mark("==")
                    || token.is_mark("~=")
            });
            let is_tested_behind = tokens.get(at + 3).is_some_and(|token| {
                ["and", "or", "then"].iter().any(|word| token.is_name(word))
                    || ["==", "~=", "="].iter().any(|mark| token.is_mark(mark))
            });
            if is_tested_before || is_tested_behind {
                return None;
            }
            first = first.or(Some(tokens[at].line));
        }
        first.map(|line| (line, format!("`{library}.{name}`")))
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            let rest = &self.text[self.at..];
            match rest {
                [] => return None,
                [b'\n', ..] => {
                    self.line += 1;
                    self.at += 1;
                }
                [b'-', b'-', ..] => self.skip_comment(),
                [byte, ..] if byte.is_ascii_whitespace() => self.at += 1,
                _ => return Some(self.token()),
            }
        }
    }

    fn token(&mut self) -> Token<'t> {
        let (line, start) = (self.line, self.at);
        let byte = self.text[start];
        if let Some(text) = self.long_string() {
            return Token {
                kind: TokenKind::String,
                text,
                line,
            };
        }
        let rest = &self.text[start..];
        let (kind, text) = match byte {
            b'"' | b'\'' => (TokenKind::String, self.short_string(byte)),
            b'0'..=b'9' => (TokenKind::Number, number(rest)),
            b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => {
                (TokenKind::Number, number(rest))
            }
            _ if is_of_name(byte) => {
                let end = rest.iter().position(|byte| !is_of_name(*byte));
                (TokenKind::Name, &rest[..end.unwrap_or(rest.len())])
            }
            _ => (TokenKind::Mark, mark(rest)),
        };
        // Strings have moved on already.
        if kind != TokenKind::String {
            self.at += text.len();
        }
        Token { kind, text, line }
    }

    fn short_string(&mut self, quote: u8) -> &'t [u8] {
        let start = self.at + 1;
        let mut at = start;
        while let Some(&byte) = self.text.get(at) {
            match byte {
                b'\\' => {
                    self.line += usize::from(self.text.get(at + 1) == Some(&b'\n'));
                    at += 1;
                }
                // It has no end: wrong, and the next line is read as if nothing was.
                b'\n' => break,
                byte if byte == quote => break,
                _ => {}
            }
            at += 1;
        }
        let end = at.min(self.text.len());
        let is_closed = self.text.get(end) == Some(&quote);
        self.at = end + usize::from(is_closed);
        &self.text[start.min(end)..end]
    }

    /// What stands in `[[ … ]]` or `[==[ … ]==]`, if one begins here.
    fn long_string(&mut self) -> Option<&'t [u8]> {
        let rest = self.text[self.at..].strip_prefix(b"[")?;
        let level = rest.iter().take_while(|byte| **byte == b'=').count();
        let inner = rest[level..].strip_prefix(b"[")?;
        let close = [&b"]"[..], &vec![b'='; level], b"]"].concat();
        let length = inner
            .windows(close.len())
            .position(|window| window == close);
        let text = &inner[..length.unwrap_or(inner.len())];
        let whole = 2 + level + text.len() + length.map_or(0, |_| close.len());
        self.line += text.iter().filter(|byte| **byte == b'\n').count();
        self.at += whole;
        Some(text)
    }

    fn skip_comment(&mut self) {
        self.at += 2;
        if self.long_string().is_none() {
            self.skip_line();
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        self.at += end.unwrap_or(rest.len());
    }
}

fn is_of_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// A number, and what else stands with it in one piece; a sign belongs to an exponent.
fn number(rest: &[u8]) -> &[u8] {
    let mut end = 0;
    while let Some(&byte) = rest.get(end) {
        let exponent = end > 0 && matches!(rest[end - 1], b'e' | b'E' | b'p' | b'P');
        // `1..2` is two numbers with a mark between them.
        let is_mark = byte == b'.' && rest.get(end + 1) == Some(&b'.');
        let goes_on = is_of_name(byte) || byte == b'.' || (exponent && matches!(byte, b'+' | b'-'));
        if is_mark || !goes_on {
            break;
        }
        end += 1;
    }
    &rest[..end.max(1)]
}

fn mark(rest: &[u8]) -> &[u8] {
    let two = rest.get(..2).unwrap_or_default();
    let is_double = [
        &b"=="[..],
        b"~=",
        b"<=",
        b">=",
        b"//",
        b"<<",
        b">>",
        b"::",
        b"..",
    ]
    .contains(&two);
    &rest[..if is_double { 2 } else { 1 }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(text: &str) -> Option<String> {
        let found = Text::read(text.as_bytes()).needs();
        found.map(|(line, what)| format!("{line} {what}"))
    }

    #[test]
    fn syntax_that_luajit_cannot_read_is_found_with_its_line() {
        for (text, what) in [
            ("return 7 // 2", "1 `//`"),
            ("\nlocal a = b & 1", "2 `&`"),
            ("local a = b | 1", "1 `|`"),
            ("local a = ~b", "1 `~`"),
            ("local a = b ~ c", "1 `~`"),
            ("local a = 1<<3", "1 `<<`"),
            ("local a = 1>>3", "1 `>>`"),
            ("local a <const> = 1", "1 `<const>`"),
            ("local a,\n b < close > = f()", "2 `<close>`"),
            ("--[[\n\n]] return 1//2", "3 `//`"),
            ("#!/usr/bin/lua //\nreturn 1//2", "2 `//`"),
            ("x = [==[\n]]//]==] // 1", "2 `//`"),
            ("x = 'a\\\nb'\ny = 1//2", "3 `//`"),
            ("x = 'a\ny = 1//2", "2 `//`"),
            ("return 0x1p-2//1", "1 `//`"),
        ] {
            assert_eq!(needs(text).as_deref(), Some(what), "{text}");
        }
    }

    #[test]
    fn what_luajit_can_read_needs_nothing() {
        for text in [
            "",
            "return a ~= b",
            "-- a // b & c | d",
            "--[==[ a // b\n & c ]==]",
            "return 'a//b', \"&|~\", [[ << >> ]], [=[ // ]=]",
            "return 'it''s \\' // \\\\'",
            "goto done ::done::",
            "local a = x < const and y > z",
            "if a < const then b() end",
            "f('<const>')",
            "f(a, b < const > (c))",
            "return 1..2, 3 ... 4",
            "--[[ no end // ",
            "return [==[ no end // ",
            "\u{e4} = 1",
            "return a [b[1]]",
        ] {
            assert_eq!(needs(text), None, "{text}");
        }
    }

    #[test]
    fn functions_that_luajit_lacks_are_found_unless_the_text_can_do_without() {
        for (text, what) in [
            ("return math.type(x)", "1 `math.type`"),
            ("local pack = string.pack\n", "1 `string.pack`"),
            ("return math . maxinteger", "1 `math.maxinteger`"),
            ("local _ENV = {}", "1 `_ENV`"),
            ("coroutine.close(c)", "1 `coroutine.close`"),
        ] {
            assert_eq!(needs(text).as_deref(), Some(what), "{text}");
        }
        for text in [
            "local kind = math.type or type",
            "if math.type then return math.type(x) end",
            "if not string.pack then error('') end string.pack('x')",
            "math.type = function() end return math.type(1)",
            "if math.type == nil then return end math.type(x)",
            "if _VERSION == 'Lua 5.1' then f() else string.pack('x') end",
            "if jit then return end string.pack('x')",
            "return self.math.type",
            "return math.types",
            "table.pack(1) math.tointeger(1) utf8.char(1) table.unpack(t)",
        ] {
            assert_eq!(needs(text), None, "{text}");
        }
    }

    #[test]
    fn modules_are_those_that_are_required_by_name() {
        let text = b"require('a') require \"b.c\" require[[d]] local e = require([=[e]=])\n\
                     require('f' .. g) require(h) x.require 'i' -- require('j')\n'require(\"k\")'";
        let found: Vec<_> = Text::read(text).required().collect();
        assert_eq!(found, ["a", "b.c", "d", "e", "i"]);
    }

    #[test]
    fn any_bytes_are_read_to_their_end() {
        let mut random = prony_base::Random::new(7);
        let letters = b"[]=-'\"\\\n~/<>&|.0eax_ \x80\x00";
        for _ in 0..20_000 {
            let length = random.below(24);
            let byte = |_| letters[random.below(letters.len() as u64) as usize];
            let text: Vec<u8> = (0..length).map(byte).collect();
            let lines = 1 + text.iter().filter(|byte| **byte == b'\n').count();
            let tokens = Text::read(&text).tokens;
            assert!(
                tokens.iter().all(|token| (1..=lines).contains(&token.line)),
                "{text:?}"
            );
        }
    }
}
