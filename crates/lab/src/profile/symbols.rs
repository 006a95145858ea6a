//! Names of addresses: of the kernel from `/proc/kallsyms`, of programs and libraries from the symbols in their files, of
//! compilers at run time from what they wrote down.
//!
//! Files and mappings are kept while a process lives ([`Symbols::remember`]); names are looked up when it may be gone. A
//! program without symbols has the names that it exports; what none of these knows is the file's own name in brackets.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read as _, Take};
use std::rc::Rc;

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use super::fold::Names;
use super::maps::{self, Mapping, Origin};

/// Files of symbols that are kept open at the most.
const FILES_MAX: usize = 256;
/// Largest file whose symbols are read.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// Functions by where they start.
#[derive(Debug, Default)]
pub struct Table {
    /// Start, end, name as it is in the file; sorted.
    functions: Vec<(u64, u64, String)>,
}

impl Table {
    /// `functions`: start, size, name. One without a size reaches to the next.
    pub fn new(mut functions: Vec<(u64, u64, String)>) -> Table {
        functions.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        functions.dedup_by_key(|function| function.0);
        let next: Vec<u64> = functions.iter().skip(1).map(|f| f.0).collect();
        for (index, function) in functions.iter_mut().enumerate() {
            function.1 = match function.1 {
                0 => next.get(index).copied().unwrap_or(u64::MAX),
                size => function.0.saturating_add(size),
            };
        }
        Table { functions }
    }

    /// The function at `address`.
    pub fn find(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|f| f.0 <= address);
        let (_, end, name) = self.functions.get(after.checked_sub(1)?)?;
        (address < *end).then_some(name)
    }
}

/// Reads the functions of `/proc/kallsyms`; `None` where it hides their addresses.
pub fn kallsyms(text: &str) -> Option<Table> {
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
        let name = fields.next()?;
        (is_code && address > 0).then(|| (address, 0, name.to_owned()))
    };
    let functions: Vec<_> = text.lines().filter_map(line).collect();
    (!functions.is_empty()).then(|| Table::new(functions))
}

/// The functions of a program or library, and where its code is to be in memory.
#[derive(Debug, Default)]
struct Program {
    table: Table,
    /// Offset in the file, length there, address.
    segments: Vec<(u64, u64, u64)>,
}

impl Program {
    /// Reads an ELF file; one that cannot be read has no functions.
    fn read(bytes: &[u8]) -> Program {
        let Ok(file) = object::File::parse(bytes) else {
            return Program::default();
        };
        let segments = file.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, length, segment.address())
        });
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let code = symbols.filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
        let function = |symbol: object::Symbol<'_, '_>| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some((symbol.address(), symbol.size(), name.to_owned()))
        };
        Program {
            segments: segments.collect(),
            table: Table::new(code.filter_map(function).collect()),
        }
    }

    /// The function at an offset in the file.
    fn find(&self, offset: u64) -> Option<&str> {
        let segment = self
            .segments
            .iter()
            .find(|(start, length, _)| (*start..start.saturating_add(*length)).contains(&offset))?;
        self.table.find(segment.2.wrapping_add(offset - segment.0))
    }
}

/// The names of one profile trial.
#[derive(Debug, Default)]
pub struct Symbols {
    mappings: BTreeMap<u32, Vec<Mapping>>,
    /// What compilers at run time wrote down, by process.
    made: BTreeMap<u32, Table>,
    files: BTreeMap<String, File>,
    programs: HashMap<String, Rc<Program>>,
    /// Names that were made readable.
    readable: HashMap<String, String>,
    kernel: Option<Option<Table>>,
    threads: BTreeMap<u32, String>,
}

impl Symbols {
    /// Keeps where a living process has its code, and opens its files; of one that is gone, what was kept before.
    pub fn remember(&mut self, pid: u32) {
        let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mappings = maps::read(&String::from_utf8_lossy(&maps));
        if mappings.is_empty() {
            return;
        }
        for mapping in &mappings {
            if let Origin::File(path) = &mapping.origin
                && !self.files.contains_key(path)
                && self.files.len() < FILES_MAX
                && let Ok(file) = File::open(format!("/proc/{pid}/root{path}"))
            {
                self.files.insert(path.clone(), file);
            }
        }
        self.mappings.insert(pid, mappings);
    }

    /// Keeps what compilers at run time wrote down of a living process. It names itself as it knows its number, and may
    /// be the only one in its namespace.
    pub fn remember_made(&mut self, pid: u32) {
        let has_any = self.mappings.get(&pid).is_some_and(|mappings| {
            let mut origins = mappings.iter().map(|mapping| &mapping.origin);
            origins.any(|origin| *origin == Origin::Made)
        });
        let name = format!("/tmp/perf-{pid}.map");
        // Numbers of processes come again, and what an earlier one wrote may still lie there: the own one is held open.
        let holds = || {
            let descriptors = crate::launch::numbered(&format!("/proc/{pid}/fd")).into_iter();
            let mut targets =
                descriptors.map(|fd| std::fs::read_link(format!("/proc/{pid}/fd/{fd}")));
            targets.any(|target| target.is_ok_and(|target| target.as_os_str() == name.as_str()))
        };
        let path = format!("/proc/{pid}/root{name}");
        if has_any
            && holds()
            && let Some(bytes) = File::open(path).ok().and_then(|file| read_all(&file))
        {
            let functions = maps::made(&String::from_utf8_lossy(&bytes));
            self.made.insert(pid, Table::new(functions));
        }
    }

    /// The name of a thread.
    pub fn name_thread(&mut self, tid: u32, name: &str) {
        self.threads.insert(tid, name.to_owned());
    }

    fn program(&mut self, path: &str) -> Rc<Program> {
        if let Some(program) = self.programs.get(path) {
            return program.clone();
        }
        let bytes = self.files.get(path).and_then(read_all).unwrap_or_default();
        let program = Rc::new(Program::read(&bytes));
        self.programs.insert(path.to_owned(), program.clone());
        program
    }

    fn readable(&mut self, name: &str) -> String {
        if let Some(known) = self.readable.get(name) {
            return known.clone();
        }
        let readable = demangled(name);
        self.readable.insert(name.to_owned(), readable.clone());
        readable
    }
}

fn read_all(file: &File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited: Take<&File> = file.take(FILE_BYTES_MAX);
    limited.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A name as its author wrote it, of Rust and C++; others are as they are.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // The version that a library gives it.
    let bare = name.split_once('@').map_or(name, |(bare, _)| bare);
    scopes(bare).unwrap_or_else(|| bare.to_owned())
}

/// The scopes and the name of a function of C++, without arguments and without what templates were made for, which is mostly
/// longer than all else: `boost::beast::http::parser<…>::put`. A whole demangler is 400 KB, and what it says would be cut.
fn scopes(mangled: &str) -> Option<String> {
    let rest = mangled.strip_prefix("_Z")?;
    let rest = rest.strip_prefix('L').unwrap_or(rest);
    let (mut rest, is_nested) = match rest.strip_prefix('N') {
        // `const`, `volatile` and references of a method's object.
        Some(nested) => (nested.trim_start_matches(['K', 'V', 'r', 'R', 'O']), true),
        None => (rest, false),
    };
    let mut names: Vec<String> = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix("St") {
            names.push("std".to_owned());
            rest = after;
            continue;
        }
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        if digits == 0 {
            break;
        }
        let length: usize = rest[..digits].parse().ok()?;
        names.push(rest.get(digits..digits.checked_add(length)?)?.to_owned());
        rest = &rest[digits + length..];
        if !is_nested {
            break;
        }
    }
    // What follows is a template's arguments, a constructor or an operator, or the end.
    let name = names.join("::");
    let is_whole = !is_nested || rest.starts_with('E');
    match names.is_empty() {
        true => None,
        false if is_whole => Some(name),
        false => Some(format!("{name}<…>")),
    }
}

impl Names for Symbols {
    fn kernel(&mut self, address: u64) -> String {
        let table = self.kernel.get_or_insert_with(|| {
            let text = std::fs::read("/proc/kallsyms").unwrap_or_default();
            kallsyms(&String::from_utf8_lossy(&text))
        });
        let name = table.as_ref().and_then(|table| table.find(address));
        name.unwrap_or("[kernel]").to_owned()
    }

    fn user(&mut self, pid: u32, address: u64) -> Option<String> {
        let mappings = self.mappings.get(&pid)?;
        let mapping = mappings
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&address))?
            .clone();
        match mapping.origin {
            Origin::Kernel(name) => Some(name),
            Origin::Made => {
                let name = self.made.get(&pid).and_then(|table| table.find(address));
                Some(format!("{}_[j]", name.unwrap_or("jit")))
            }
            Origin::File(path) => {
                let program = self.program(&path);
                let file = || format!("[{}]", path.rsplit('/').next().unwrap_or(&path));
                match program.find(address - mapping.start + mapping.offset) {
                    Some(name) => Some(self.readable(name)),
                    None => Some(file()),
                }
            }
        }
    }

    fn thread(&mut self, pid: u32, tid: u32) -> String {
        let of_process = || self.threads.get(&pid);
        let name = self.threads.get(&tid).or_else(of_process);
        name.map_or_else(|| "[thread]".to_owned(), Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(functions: &[(u64, u64, &str)]) -> Table {
        let all = functions.iter().map(|&(a, s, n)| (a, s, n.to_owned()));
        Table::new(all.collect())
    }

    #[test]
    fn an_address_is_in_the_function_that_reaches_over_it() {
        let table = table(&[(30, 0, "last"), (10, 5, "first"), (20, 0, "middle")]);
        let at = |address| table.find(address);
        assert_eq!(at(9), None);
        assert_eq!(
            (at(10), at(14), at(15)),
            (Some("first"), Some("first"), None)
        );
        assert_eq!((at(20), at(29)), (Some("middle"), Some("middle")));
        assert_eq!(at(u64::MAX - 1), Some("last"));
    }

    #[test]
    fn kernel_symbols_that_are_hidden_are_none() {
        let text =
            "ffffffff81000000 T _stext\nffffffff81000010 t tcp_sendmsg\nffffffff82000000 D data\n";
        let table = kallsyms(text).expect("symbols");
        assert_eq!(table.find(0xffff_ffff_8100_0011), Some("tcp_sendmsg"));
        assert!(kallsyms("0000000000000000 T _stext\n").is_none());
        assert!(kallsyms("").is_none());
    }

    #[test]
    fn names_read_as_their_authors_wrote_them() {
        let names = [
            "_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
            "_ZN5boost5beast4http6parserILb1ENS1_10empty_bodyEE3putEv",
            "_ZNK3app7Handler4nameEv",
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "_Z5serveiPPc",
            "_ZL6helperv",
            "_ZN99999999999999999999999x",
            "_ZN4",
            "_ZTV3app",
            "_Z",
            "_ZN5boost5beast4http5parseEv",
            "ngx_http_write_filter",
            "main.(*server).serve",
            "memcpy@@GLIBC_2.14",
        ];
        insta::assert_snapshot!(names.map(demangled).join("\n"));
    }

    #[test]
    fn the_functions_of_this_test_have_names() {
        let pid = std::process::id();
        let mut symbols = Symbols::default();
        symbols.remember(pid);
        let address = the_functions_of_this_test_have_names as fn() as usize as u64;
        let name = symbols.user(pid, address).expect("code of this process");
        assert!(
            name.ends_with("the_functions_of_this_test_have_names"),
            "{name}"
        );
        // On its stack there is no code.
        let on_stack = std::ptr::from_ref(&address) as usize as u64;
        assert_eq!(symbols.user(pid, on_stack), None);
    }

    #[test]
    fn a_file_that_is_no_program_has_no_functions() {
        assert_eq!(Program::read(b"#!/bin/sh\n").find(3), None);
        assert_eq!(Program::read(&[]).find(0), None);
    }
}
