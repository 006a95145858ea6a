//! Where a process has its code: `/proc/PID/maps` to values. Pure.

/// A piece of a process's memory that holds code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// The offset in its file at which it starts.
    pub offset: u64,
    /// What it is of.
    pub origin: Origin,
}

/// What code is of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A file, by its path as the process sees it.
    File(String),
    /// What the kernel lends to every process: `[vdso]`.
    Kernel(String),
    /// What the process wrote there itself, as compilers at run time do.
    Made,
}

/// Reads the lines of code; others are passed over.
pub fn read(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Mapping> {
    let mut rest = text;
    let mut field = || {
        let (field, more) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = more.trim_start();
        field
    };
    let (range, permissions, offset) = (field(), field(), field());
    // Device and inode.
    field();
    field();
    if !permissions.contains('x') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let path = rest.strip_suffix(" (deleted)").unwrap_or(rest);
    let origin = match path {
        "[vdso]" | "[vsyscall]" => Origin::Kernel(path.to_owned()),
        // Shared memory and files of no folder are where compilers at run time put code that is mapped twice.
        path if path.starts_with('/') && !path.starts_with("/memfd:") && path != "/dev/zero" => {
            Origin::File(path.to_owned())
        }
        _ => Origin::Made,
    };
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        origin,
    })
}

/// Functions that a compiler at run time wrote down: start, size, name, a line each (`/tmp/perf-PID.map`).
pub fn made(text: &str) -> Vec<(u64, u64, String)> {
    let line = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let (start, size) = (number(fields.next()?)?, number(fields.next()?)?);
        Some((start, size, fields.next()?.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0a00000-55d0c0a2c000 r--p 00000000 fe:00 1311 /usr/sbin/nginx
55d0c0a2c000-55d0c0b10000 r-xp 0002c000 fe:00 1311                       /usr/sbin/nginx
7f10a0000000-7f10a0021000 rwxp 00000000 00:00 0
7f10b0000000-7f10b0021000 r-xp 00000000 00:01 9 /memfd:doublemapper (deleted)
7f10c0000000-7f10c0021000 r-xp 00001000 fe:00 9 /opt/with a space/lib.so (deleted)
7ffd0c1f2000-7ffd0c1f4000 r-xp 00000000 00:00 0                          [vdso]
nonsense
";

    #[test]
    fn code_is_of_files_of_the_kernel_or_made_at_run_time() {
        let found = read(MAPS);
        let origins: Vec<&Origin> = found.iter().map(|mapping| &mapping.origin).collect();
        assert_eq!(
            origins,
            [
                &Origin::File("/usr/sbin/nginx".to_owned()),
                &Origin::Made,
                &Origin::Made,
                &Origin::File("/opt/with a space/lib.so".to_owned()),
                &Origin::Kernel("[vdso]".to_owned()),
            ]
        );
        assert_eq!(
            (found[0].start, found[0].offset),
            (0x55d0_c0a2_c000, 0x2c000)
        );
    }

    #[test]
    fn a_line_that_is_not_whole_is_passed_over() {
        for length in 0..MAPS.len() {
            assert!(read(&MAPS[..length]).len() <= 5);
        }
    }

    #[test]
    fn what_a_compiler_at_run_time_wrote_down() {
        let text =
            "3ef414c0 398 Builtins:a b\n0x10 1f LazyCompile:~handle /srv/app.js:3\nnonsense\n";
        let functions = made(text);
        assert_eq!(
            functions[0],
            (0x3ef4_14c0, 0x398, "Builtins:a b".to_owned())
        );
        assert_eq!(functions[1].2, "LazyCompile:~handle /srv/app.js:3");
        assert_eq!(functions.len(), 2);
    }
}
