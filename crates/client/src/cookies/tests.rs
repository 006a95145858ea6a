//! What is kept, what is refused, what is sent, and what a file has of it.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

const NOW: u64 = 784_111_777;

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

fn jar() -> CookieJar {
    CookieJar::new(CookieLimits::default())
}

fn store(jar: &mut CookieJar, from: &str, line: &str) -> Stored {
    jar.store(&url(from), line.as_bytes(), NOW)
}

fn with(from: &str, line: &str) -> CookieJar {
    let mut jar = jar();
    assert_eq!(store(&mut jar, from, line), Stored::Kept, "{line}");
    jar
}

fn sent(jar: &mut CookieJar, to: &str) -> String {
    jar.header(&url(to), NOW).unwrap_or_default()
}

#[test]
fn a_cookie_goes_back_where_it_belongs() {
    let cases = [
        // (set by, line, asked, sent back)
        ("http://a.com/", "x=1", "http://a.com/any", true),
        ("http://a.com/", "x=1", "http://b.a.com/", false),
        (
            "http://a.com/",
            "x=1; Domain=a.com",
            "http://b.a.com/",
            true,
        ),
        (
            "http://b.a.com/",
            "x=1; domain=.A.com",
            "http://a.com/",
            true,
        ),
        (
            "http://b.a.com/",
            "x=1; Domain=a.com",
            "http://ba.com/",
            false,
        ),
        ("http://a.com:81/", "x=1", "https://a.com/", true),
        ("http://a.com/", "x=1; Path=/y", "http://a.com/y", true),
        ("http://a.com/", "x=1; Path=/y", "http://a.com/y/z", true),
        ("http://a.com/", "x=1; Path=/y", "http://a.com/yz", false),
        ("http://a.com/", "x=1; Path=/y/", "http://a.com/y", false),
        ("http://a.com/", "x=1; Path=y", "http://a.com/", true),
        ("http://a.com/p/q", "x=1", "http://a.com/p", true),
        ("http://a.com/p/q", "x=1", "http://a.com/p/r", true),
        ("http://a.com/p/q", "x=1", "http://a.com/", false),
        ("https://a.com/", "x=1; Secure", "https://a.com/", true),
        ("https://a.com/", "x=1; Secure", "http://a.com/", false),
        ("http://10.0.0.1/", "x=1", "http://10.0.0.1/", true),
        (
            "http://10.0.0.1/",
            "x=1; Domain=10.0.0.1",
            "http://10.0.0.1/",
            true,
        ),
        ("http://[::1]/", "x=1", "http://[::1]:8080/", true),
        (
            "http://localhost/",
            "x=1; Domain=localhost",
            "http://localhost/",
            true,
        ),
        ("http://a.com/", "x=1; Domain=", "http://a.com/", true),
        (
            "http://b\u{fc}cher.de/",
            "x=1; Domain=b\u{fc}cher.de",
            "http://xn--bcher-kva.de/",
            true,
        ),
    ];
    for (from, line, to, is_sent) in cases {
        let expected = if is_sent { "x=1" } else { "" };
        assert_eq!(
            sent(&mut with(from, line), to),
            expected,
            "{line} from {from} to {to}"
        );
    }
}

#[test]
fn what_a_server_may_not_set_is_refused() {
    let cases = [
        ("http://a.com/", "no equals sign", Refused::Malformed),
        ("http://a.com/", "=1", Refused::Malformed),
        ("http://a.com/", "", Refused::Malformed),
        ("http://a.com/", "x=a\u{1}b", Refused::Malformed),
        ("http://a.com/", "x=1; Domain=b.com", Refused::OtherDomain),
        ("http://a.com/", "x=1; Domain=b.a.com", Refused::OtherDomain),
        ("http://ba.com/", "x=1; Domain=a.com", Refused::OtherDomain),
        ("http://a.com/", "x=1; Domain=com", Refused::PublicSuffix),
        (
            "http://a.co.uk/",
            "x=1; Domain=co.uk",
            Refused::PublicSuffix,
        ),
        (
            "http://me.github.io/",
            "x=1; Domain=github.io",
            Refused::PublicSuffix,
        ),
        (
            "http://a.internal/",
            "x=1; Domain=internal",
            Refused::PublicSuffix,
        ),
        (
            "http://10.0.0.1/",
            "x=1; Domain=0.0.1",
            Refused::OtherDomain,
        ),
        (
            "http://10.0.0.1/",
            "x=1; Domain=a.com",
            Refused::OtherDomain,
        ),
        (
            "http://a.com/",
            "x=1; Domain=10.0.0.1",
            Refused::OtherDomain,
        ),
        ("http://a.com/", "x=1; Domain=a b", Refused::OtherDomain),
        ("http://a.com/", "x=1; Secure", Refused::NotSecure),
        ("https://a.com/", "__Secure-x=1", Refused::Prefix),
        ("https://a.com/", "__Host-x=1; Secure", Refused::Prefix),
        (
            "https://a.com/",
            "__host-x=1; Secure; Path=/; Domain=a.com",
            Refused::Prefix,
        ),
    ];
    for (from, line, refused) in cases {
        assert_eq!(
            store(&mut jar(), from, line),
            Stored::Refused(refused),
            "{line} from {from}"
        );
    }
    let no_text = jar().store(&url("http://a.com/"), b"x=\xff", NOW);
    assert_eq!(no_text, Stored::Refused(Refused::Malformed));
    let kept = [
        "__Host-x=1; Secure; Path=/",
        "__Secure-x=1; Secure; Domain=a.com",
    ];
    for line in kept {
        with("https://a.com/", line);
    }
}

#[test]
fn a_secure_cookie_is_not_hidden_without_tls() {
    let mut jar = with("https://a.com/", "x=1; Secure; Path=/y");
    let hide = |jar: &mut CookieJar, line| store(jar, "http://a.com/", line);
    for line in ["x=2; Path=/y", "x=2; Path=/y/z", "x=2; Path=/y; Max-Age=0"] {
        assert_eq!(hide(&mut jar, line), Stored::Refused(Refused::NotSecure));
    }
    assert_eq!(hide(&mut jar, "x=2; Path=/"), Stored::Kept);
    assert_eq!(sent(&mut jar, "https://a.com/y"), "x=1; x=2");
}

#[test]
fn time_ends_cookies() {
    let from = "http://a.com/";
    let until = |line: &str| with(from, line).cookies()[0].expires;
    assert_eq!(until("x=1"), None);
    assert_eq!(until("x=1; Max-Age=10"), Some(NOW + 10));
    assert_eq!(until("x=1; Max-Age=99999999999999999999"), Some(u64::MAX));
    assert_eq!(until("x=1; Max-Age=ten"), None);
    assert_eq!(
        until("x=1; Expires=Sun, 06 Nov 1994 08:50:00 GMT"),
        Some(784_111_800)
    );
    assert_eq!(until("x=1; Expires=never; max-age=10"), Some(NOW + 10));
    let both = "x=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
    assert_eq!(until(both), Some(NOW + 10));

    let mut jar = with(from, "x=1; Max-Age=10");
    assert!(jar.header(&url(from), NOW + 9).is_some());
    assert!(jar.header(&url(from), NOW + 10).is_none());
    for line in [
        "x=; Max-Age=0",
        "x=; Max-Age=-5",
        "x=; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
    ] {
        let mut jar = with(from, "x=1");
        assert_eq!(store(&mut jar, from, line), Stored::Removed);
        assert!(jar.is_empty(), "{line}");
    }
    jar.expire(NOW + 10);
    assert!(jar.is_empty());
}

#[test]
fn one_of_the_same_name_and_place_is_replaced() {
    let from = "http://a.com/";
    let mut jar = with(from, "x=1");
    for line in ["y=1", "x=2", "x=3; Path=/p", "x=4; Domain=a.com"] {
        assert_eq!(store(&mut jar, from, line), Stored::Kept);
    }
    // Longer paths first, then the older ones; x keeps its age.
    assert_eq!(sent(&mut jar, "http://a.com/p"), "x=3; x=2; y=1; x=4");
    assert_eq!(jar.len(), 4);
}

#[test]
fn changes_are_what_a_server_would_see() {
    let from = "http://a.com/";
    let mut jar = jar();
    let mut changed = |line: &str| {
        let before = jar.changes();
        store(&mut jar, from, line);
        jar.changes() != before
    };
    assert!(changed("x=1"));
    assert!(!changed("x=1; Max-Age=10"));
    assert!(changed("x=2"));
    assert!(!changed("y; Max-Age=10"));
    assert!(changed("x=; Max-Age=0"));
    assert!(!changed("x=; Max-Age=0"));
}

#[test]
fn limits_are_kept() {
    let mut jar = CookieJar::new(CookieLimits {
        cookies_max: 5,
        domain_cookies_max: 3,
        cookie_bytes_max: 6,
        header_bytes_max: 12,
    });
    let names = |jar: &CookieJar| {
        let names: Vec<String> = jar.cookies().iter().map(|one| one.name.clone()).collect();
        names.concat()
    };
    for line in ["a=1", "b=1", "c=1", "d=1"] {
        store(&mut jar, "http://a.com/", line);
    }
    assert_eq!(names(&jar), "bcd");
    for line in ["e=1", "f=1", "g=1"] {
        store(&mut jar, "http://b.com/", line);
    }
    assert_eq!(names(&jar), "cdefg");
    assert_eq!(sent(&mut jar, "http://b.com/"), "e=1; f=1");
    let long = store(&mut jar, "http://a.com/", "h=123456");
    assert_eq!(long, Stored::Refused(Refused::TooLong));
    // What is over goes before what is old.
    store(&mut jar, "http://b.com/", "g=1; Max-Age=5");
    let line = b"i=1".as_slice();
    assert_eq!(
        jar.store(&url("http://a.com/"), line, NOW + 5),
        Stored::Kept
    );
    assert_eq!(names(&jar), "cdefi");
    jar.clear();
    assert_eq!(
        (jar.len(), sent(&mut jar, "http://b.com/").as_str()),
        (0, "")
    );
}

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("prony-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const FILE: &str = "# Netscape HTTP Cookie File\n\
    # Written by prony.\n\
    \n\
    a.com\tFALSE\t/p\tFALSE\t0\tx\t1\n\
    #HttpOnly_.a.com\tTRUE\t/\tTRUE\t784112777\ty\ta=b c\n";

#[test]
fn a_file_is_as_curl_writes_it() {
    let mut jar = with("https://a.com/p/q", "x=1");
    let line = "y=a=b c; Path=/; Domain=a.com; Secure; HttpOnly; Max-Age=1000";
    store(&mut jar, "https://a.com/", line);
    store(&mut jar, "https://a.com/", "z=1; Max-Age=1");
    assert_eq!(jar.to_text(NOW + 1), FILE);
    let mut read = CookieJar::default();
    read.read_text(FILE, NOW).expect("as it was written");
    assert_eq!(read.to_text(NOW), FILE);
    assert_eq!(sent(&mut read, "https://a.com/p"), "x=1; y=a=b c");
}

#[test]
fn files_of_others_are_read() {
    let text = "# a comment\n\n.a.com\ttrue\t/\tfalse\t-1\tx\t\r\n\
        a.com\tFALSE\t/\tFALSE\t784112777.5\tempty\n\
        a.com\tFALSE\t/\tFALSE\t7\tgone\t1\n";
    let mut jar = jar();
    jar.read_text(text, NOW).expect("fine");
    assert_eq!(sent(&mut jar, "http://a.com/"), "x=; empty=");
    for bad in [
        "x",
        "a.com\tYES\t/\tFALSE\t0\tx\t1",
        "a.com\tTRUE\tp\tFALSE\t0\tx\t1",
    ] {
        let error = jar.read_text(&format!("# one\n{bad}\n"), NOW).unwrap_err();
        assert!(
            error.to_string().starts_with("line 2 is no cookie"),
            "{error}"
        );
    }
}

#[test]
fn a_jar_survives_in_its_file_alone_and_whole() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("cookies");
    let path = folder.0.join("jar");
    let limits = CookieLimits::default();
    let missing = CookieJar::load(&path, limits, NOW).unwrap_err();
    assert!(missing.to_string().contains("No such file"), "{missing}");
    let jar = with("http://a.com/", "x=1");
    jar.save(&path, NOW).expect("it can be written");
    jar.save(&path, NOW).expect("and again");
    let mut again = CookieJar::load(&path, limits, NOW).expect("it can be read");
    assert_eq!(sent(&mut again, "http://a.com/"), "x=1");
    let mode = std::fs::metadata(&path)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let files = std::fs::read_dir(&folder.0).expect("the folder").count();
    assert_eq!(files, 1, "nothing else is left");
    // A folder in the way: the error is told, and nothing is left of the try.
    let blocked = folder.0.join("folder");
    std::fs::create_dir_all(blocked.join("full")).expect("a folder");
    assert!(matches!(jar.save(&blocked, NOW), Err(FileError::Io(_))));
    assert_eq!(std::fs::read_dir(&folder.0).expect("the folder").count(), 2);
}

proptest! {
    #[test]
    fn any_line_is_kept_or_refused_and_limits_hold(
        lines in proptest::collection::vec(
            ("[a-z.=; ]{0,20}|x[0-9]=[a-z]; (Path=/[a-z]|Domain=a.com|Max-Age=[0-9]|Secure)", 0_u8..4),
            0..60,
        ),
    ) {
        let limits = CookieLimits { cookies_max: 9, domain_cookies_max: 4, ..CookieLimits::default() };
        let mut jar = CookieJar::new(limits);
        for (line, host) in lines {
            let from = url(&format!("https://{host}.a.com/p/q"));
            jar.store(&from, line.as_bytes(), NOW);
            prop_assert_eq!(jar.cookies().len(), jar.len());
            prop_assert!(jar.len() <= 9);
            if let Some(line) = jar.header(&from, NOW) {
                prop_assert!(!line.contains(['\r', '\n']) && line.len() <= 8_192);
            }
        }
        let mut again = CookieJar::new(limits);
        again.read_text(&jar.to_text(NOW), NOW).expect("its own text");
        prop_assert_eq!(again.to_text(NOW), jar.to_text(NOW));
    }

    #[test]
    fn any_bytes_do_no_harm(line in proptest::collection::vec(any::<u8>(), 0..100), text in ".{0,200}") {
        let mut jar = jar();
        jar.store(&url("https://a.com/"), &line, NOW);
        let _ = jar.read_text(&text, NOW);
    }
}
