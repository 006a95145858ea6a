use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::run::code::digest;

/// What is read of anybody's.
const LIMITS: Limits = Limits {
    packed_bytes_max: 1 << 20,
    bytes_max: 128 << 20,
    files_max: 100,
};

fn file(path: &str, text: &str) -> File {
    File {
        path: path.to_owned(),
        content: FileContent::Bytes(text.as_bytes().to_vec()),
        executable: false,
    }
}

fn good() -> Vec<File> {
    vec![
        file("run/plan.json", "{}"),
        file("source/a/b.rs", "fn main() {}"),
    ]
}

fn written(files: Vec<File>) -> Vec<u8> {
    write(Manifest::default(), files, Vec::new()).expect("packed")
}

/// Path, content, and whether it may be executed.
type UnpackedFile = (String, Vec<u8>, bool);

fn of(files: Vec<File>) -> Vec<UnpackedFile> {
    let bytes = |content| match content {
        FileContent::Bytes(bytes) => bytes,
        FileContent::At(_) => unreachable!("none is"),
    };
    let files = files.into_iter();
    let mut all: Vec<_> = files
        .map(|file| (file.path, bytes(file.content), file.executable))
        .collect();
    all.sort();
    all
}

/// What two have.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The files of a bundle, as they come.
fn read_with(packed: &[u8], limits: &Limits) -> Result<Vec<UnpackedFile>, Fault> {
    let mut contents: BTreeMap<String, Shared> = BTreeMap::new();
    let read = read(packed, limits, |files| {
        let content = contents.entry(files[0].sha256.clone()).or_default();
        Ok(Box::new(content.clone()))
    });
    let (manifest, of_packed) =
        read.map_err(|error| error.downcast::<Fault>().expect("a fault"))?;
    assert_eq!(of_packed, digest(packed));
    let files = manifest.files.into_iter().map(|file| {
        let content = contents[&file.sha256].0.borrow().clone();
        (file.path, content, file.executable)
    });
    Ok(files.collect())
}

fn unpacked(packed: &[u8]) -> Result<Vec<UnpackedFile>, Fault> {
    read_with(packed, &LIMITS)
}

fn refused(packed: &[u8]) -> Fault {
    unpacked(packed).expect_err("refused")
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = Packer::new(Vec::new(), bytes.len() as u64).expect("made");
    packer.write_all(bytes).expect("packed");
    packer.finish().expect("packed")
}

/// Puts an entry into an archive.
fn put(archive: &mut Builder<Vec<u8>>, name: &str, bytes: &[u8]) {
    append(archive, name, bytes.len() as u64, bytes).expect("in");
}

/// A bundle of an archive that was made by hand.
fn by_hand(make: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    make(&mut archive);
    compressed(&archive.into_inner().expect("an archive"))
}

fn empty_manifest() -> Vec<u8> {
    let manifest = Manifest {
        schema: SCHEMA,
        ..Manifest::default()
    };
    serde_json::to_vec(&manifest).expect("json")
}

/// An archive with this manifest and these blobs.
fn with_manifest(files: &[(&str, &str)]) -> Vec<u8> {
    let listed = files.iter().map(|(path, text)| Listed {
        path: (*path).to_owned(),
        sha256: digest(text.as_bytes()),
        bytes: text.len() as u64,
        ..Listed::default()
    });
    let manifest = Manifest {
        schema: SCHEMA,
        files: listed.collect(),
        ..Manifest::default()
    };
    let blobs: BTreeMap<String, &str> = files
        .iter()
        .map(|(_, text)| (digest(text.as_bytes()), *text))
        .collect();
    by_hand(|archive| {
        put(
            archive,
            MANIFEST,
            &serde_json::to_vec(&manifest).expect("json"),
        );
        for (name, text) in blobs {
            put(archive, &format!("{BLOBS}{name}"), text.as_bytes());
        }
    })
}

#[test]
fn the_same_files_give_the_same_bytes_whatever_their_order() {
    let mut other = good();
    other.reverse();
    let packed = written(good());
    assert_eq!(written(other), packed);
    assert_eq!(unpacked(&packed).expect("read"), of(good()));
}

#[test]
fn a_content_that_two_files_share_is_there_once() {
    let same = vec![file("source/a", "text"), file("source/b", "text")];
    let packed = written(same.clone());
    let unpacker = Unpacker::new(&packed[..], 1 << 20).expect("an archive");
    let mut archive = Archive::new(unpacker);
    assert_eq!(archive.entries().expect("entries").count(), 2);
    assert_eq!(unpacked(&packed).expect("read"), of(same));
}

#[test]
fn a_path_that_leads_out_is_refused() {
    for path in [
        "../x",
        "/etc/passwd",
        "run/../../x",
        "run/..",
        "run/./x",
        "run//x",
        "run",
        "run/",
        "elsewhere/x",
        "",
        "run/a\\b",
        "run/a\nb",
        "source/\u{0}",
        "run/a",
        "run/HEAD",
        "run/document.md",
        "run/histograms/a/b.json",
        "run/histograms/a.sh",
        "run/logs/a.log",
    ] {
        let fault = refused(&with_manifest(&[(path, "x")]));
        assert_eq!(fault, Fault::Path(path.into()), "{path:?}");
        assert!(write(Manifest::default(), vec![file(path, "x")], Vec::new()).is_err());
    }
    let fault = refused(&with_manifest(&[("source/a", "x"), ("source/a/b", "y")]));
    assert_eq!(fault, Fault::Path("source/a".into()));
    let fault = refused(&with_manifest(&[("source/a", "x"), ("source/a", "y")]));
    assert_eq!(fault, Fault::Twice("source/a".into()));
}

#[test]
fn what_git_would_follow_was_unpacked() {
    for path in [
        "run/.git/config",
        "source/.git",
        "source/a/.GIT/config",
        "source/.Git. ./config",
        "source/.git::$INDEX_ALLOCATION/config",
        "source/.git .::$INDEX_ALLOCATION/config",
        "source/.g\u{200c}it/config",
        "source/GIT~1/config",
    ] {
        let fault = refused(&with_manifest(&[(path, "x")]));
        assert_eq!(fault, Fault::Git(path.into()), "{path:?}");
        assert!(fault.to_string().contains(path), "{fault}");
    }
    // One that is bare is taken for a repository wherever it lies.
    let with = |names: &[&str]| {
        let paths: Vec<String> = names
            .iter()
            .map(|name| format!("source/a/{name}"))
            .collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "x")).collect();
        unpacked(&with_manifest(&files)).map(|files| files.len())
    };
    let bare = Err(Fault::Git("source/a".into()));
    assert_eq!(with(&["HEAD", "config", "objects/x", "refs/x"]), bare);
    assert_eq!(with(&["HEAD", "config", "commondir"]), bare);
    // It asks only whether they may be entered, which a file that may be executed is for it.
    assert_eq!(with(&["HEAD", "config", "objects", "refs"]), bare);
    assert_eq!(with(&["Head", "config", "OBJECTS/x", "refs/x"]), bare);
    for plain in [
        &["HEAD", "config", "refs/x"][..],
        &[".gitignore", ".github/x", "a.git"],
        &["objects/x", "refs/x"],
    ] {
        assert!(with(plain).is_ok(), "{plain:?}");
    }
}

#[test]
fn paths_of_hundreds_of_folders_filled_the_disk() {
    let deep = |number: usize| format!("source/{number}/{}x", "a/".repeat(490));
    let file = |number| Listed {
        path: deep(number),
        ..Listed::default()
    };
    let files: Vec<Listed> = (0..250).map(file).collect();
    assert!(check_paths(&files[..200]).is_ok());
    let refused = check_paths(&files).unwrap_err().to_string();
    assert!(refused.contains("more than 100000 folders"), "{refused}");
}

#[test]
fn the_name_of_an_entry_began_a_line_of_the_programs() {
    let error = std::io::Error::other("in `x\nprony: every content matches its digest`");
    let text = format!("{:#}", Fault::from_error(error));
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn an_entry_that_is_no_plain_file_is_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::GNULongName,
        EntryType::GNULongLink,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
        EntryType::GNUSparse,
    ] {
        let packed = by_hand(|archive| {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(0);
            header.set_path("run/x").expect("a path");
            header.set_link_name("/etc/passwd").expect("a link");
            header.set_cksum();
            archive.append(&header, &[][..]).expect("in");
        });
        assert_eq!(refused(&packed), Fault::Kind("run/x".into()), "{kind:?}");
    }
}

#[test]
fn a_name_that_has_no_place_is_refused() {
    let plain = empty_manifest();
    // By hand, as no library writes such names.
    let named = |name: &str| {
        by_hand(|archive| {
            put(archive, MANIFEST, &plain);
            let mut header = Header::new_ustar();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(EntryType::Regular);
            header.set_size(1);
            header.set_cksum();
            archive.append(&header, &b"x"[..]).expect("in");
        })
    };
    for name in ["../x", "/etc/passwd", "blobs/../../x", "blobs/abc", "x"] {
        assert_eq!(refused(&named(name)), Fault::Name(name.into()));
    }
    assert_eq!(refused(&named(MANIFEST)), Fault::Twice(MANIFEST.into()));
    let unused = format!("{BLOBS}{}", digest(b"x"));
    assert_eq!(refused(&named(&unused)), Fault::Name(Untrusted(unused)));
    let first = by_hand(|archive| put(archive, "x", b"x"));
    assert_eq!(refused(&first), Fault::Name("x".into()));
    let empty = by_hand(|_| {});
    assert_eq!(refused(&empty), Fault::Missing(MANIFEST.into()));
}

#[test]
fn a_content_that_is_not_what_was_promised_is_refused() {
    let missing = Manifest {
        schema: SCHEMA,
        files: vec![Listed {
            path: "source/a".to_owned(),
            sha256: digest(b"x"),
            bytes: 1,
            ..Listed::default()
        }],
        ..Manifest::default()
    };
    let packed = |manifest: &Manifest, blob: Option<&[u8]>| {
        by_hand(|archive| {
            put(
                archive,
                MANIFEST,
                &serde_json::to_vec(manifest).expect("json"),
            );
            if let Some(blob) = blob {
                let name = format!("{BLOBS}{}", digest(b"x"));
                put(archive, &name, blob);
            }
        })
    };
    assert_eq!(
        refused(&packed(&missing, None)),
        Fault::Missing("source/a".into())
    );
    let mismatch = Fault::Digest("source/a".into());
    assert_eq!(refused(&packed(&missing, Some(b"y"))), mismatch);
    let mut longer = missing.clone();
    longer.files[0].bytes = 2;
    assert_eq!(refused(&packed(&longer, Some(b"x"))), mismatch);
    let mut coded = missing.clone();
    coded.files[0].coding = "unheard-of".to_owned();
    assert_eq!(refused(&packed(&coded, Some(b"x"))), mismatch);
    let mut twice = packed(&missing, Some(b"x"));
    assert!(unpacked(&twice).is_ok());
    twice.push(0);
    assert!(matches!(refused(&twice), Fault::Damaged(_)));
    let newer = by_hand(|archive| put(archive, MANIFEST, b"{\"schema\":9}"));
    assert_eq!(refused(&newer), Fault::Schema(9));
}

#[test]
fn what_is_too_large_is_refused_before_it_is_unpacked() {
    let small = Limits {
        packed_bytes_max: 1 << 20,
        bytes_max: 1 << 20,
        files_max: 4,
    };
    // Zeros pack to a ten thousandth.
    let mut archive = Builder::new(Vec::new());
    put(&mut archive, MANIFEST, &empty_manifest());
    let mut archive = archive.into_inner().expect("an archive");
    archive.resize(64 << 20, 0);
    let bomb = compressed(&archive);
    assert!(bomb.len() < 1 << 14);
    let too_large =
        |packed: &[u8]| matches!(read_with(packed, &small), Err(Fault::TooLarge { .. }));
    assert!(too_large(&bomb));
    let many: Vec<File> = (0..6)
        .map(|n| file(&format!("source/{n}"), &n.to_string()))
        .collect();
    assert!(too_large(&written(many)));
    // One content under many names: the archive is small, and what it would write is not.
    let half = "x".repeat(400 << 10);
    let names: Vec<File> = (0..4)
        .map(|n| file(&format!("source/{n}"), &half))
        .collect();
    assert!(too_large(&written(names)));
    // A length that is only declared.
    let declared = |bytes| {
        let packed = by_hand(|archive| {
            let mut header = Header::new_ustar();
            header.set_path(MANIFEST).expect("a path");
            header.set_size(bytes);
            header.set_cksum();
            archive.append(&header, &b"{}"[..]).expect("in");
        });
        refused(&packed)
    };
    assert!(matches!(declared(1 << 32), Fault::TooLarge { .. }));
    let cut_off = declared(1 << 20);
    assert!(matches!(cut_off, Fault::CutOff | Fault::Damaged(_)));
}

#[test]
fn what_is_no_bundle_or_cut_off_anywhere_is_refused() {
    assert_eq!(refused(b""), Fault::Magic);
    assert_eq!(refused(b"PK\x03\x04 a zip archive"), Fault::Magic);
    let packed = written(good());
    for end in 0..packed.len() {
        assert!(unpacked(&packed[..end]).is_err(), "{end}");
    }
    assert!(unpacked(&compressed(b"not an archive at all")).is_err());
}

proptest! {
    #[test]
    fn what_is_packed_comes_back(
        files in prop::collection::btree_map("(run/histograms/[a-z]{1,4}\\.json|source/[a-z]{1,4}(-[a-z.]{1,8})?)", (prop::collection::vec(any::<u8>(), 0..300), any::<bool>()), 0..12)
    ) {
        let files: Vec<File> = files
            .into_iter()
            .map(|(path, (bytes, executable))| File { path, content: FileContent::Bytes(bytes), executable })
            .collect();
        prop_assert_eq!(unpacked(&written(files.clone())).expect("read"), of(files));
    }

    #[test]
    fn a_changed_byte_never_gives_other_files(at in any::<prop::sample::Index>(), by in 1_u8..) {
        let packed = written(good());
        let mut changed = packed.clone();
        let at = at.index(changed.len());
        changed[at] ^= by;
        if let Ok(files) = unpacked(&changed) {
            prop_assert_eq!(files, of(good()));
        }
    }
}
