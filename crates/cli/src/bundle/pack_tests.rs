use std::io::Write as _;

use proptest::prelude::*;

use super::*;

fn file(path: &str, text: &str) -> File {
    File {
        path: path.to_owned(),
        bytes: text.as_bytes().to_vec(),
        executable: false,
    }
}

fn good() -> Vec<File> {
    vec![
        file("run/plan.json", "{}"),
        file("source/a/b.rs", "fn main() {}"),
    ]
}

fn refused(packed: &[u8]) -> Fault {
    read(packed, &Limits::default()).expect_err("refused")
}

/// A bundle of an archive that was made by hand.
fn by_hand(make: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    make(&mut archive);
    compressed(&archive.into_inner().expect("an archive")).expect("packed")
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
        append(
            archive,
            MANIFEST,
            &serde_json::to_vec(&manifest).expect("json"),
        )
        .expect("in");
        for (name, text) in blobs {
            append(archive, &format!("{BLOBS}{name}"), text.as_bytes()).expect("in");
        }
    })
}

#[test]
fn the_same_files_give_the_same_bytes_whatever_their_order() {
    let (one, mut other) = (good(), good());
    other.reverse();
    let packed = write(Manifest::default(), one).expect("packed");
    assert_eq!(write(Manifest::default(), other).expect("packed"), packed);
    let (manifest, files) = read(&packed, &Limits::default()).expect("read");
    assert_eq!(files, good());
    assert_eq!(manifest.files.len(), 2);
}

#[test]
fn a_content_that_two_files_share_is_there_once() {
    let same = vec![file("source/a", "text"), file("source/b", "text")];
    let packed = write(Manifest::default(), same.clone()).expect("packed");
    let archive = decompressed(&packed, 1 << 20).expect("an archive");
    let mut archive = Archive::new(Cursor::new(archive));
    assert_eq!(archive.entries().expect("entries").count(), 2);
    assert_eq!(read(&packed, &Limits::default()).expect("read").1, same);
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
    ] {
        let fault = refused(&with_manifest(&[(path, "x")]));
        assert_eq!(fault, Fault::Path(path.to_owned()), "{path:?}");
        assert!(write(Manifest::default(), vec![file(path, "x")]).is_err());
    }
    let fault = refused(&with_manifest(&[("run/a", "x"), ("run/a/b", "y")]));
    assert_eq!(fault, Fault::Path("run/a".to_owned()));
    let fault = refused(&with_manifest(&[("run/a", "x"), ("run/a", "y")]));
    assert_eq!(fault, Fault::Twice("run/a".to_owned()));
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
        assert_eq!(
            refused(&packed),
            Fault::Kind("run/x".to_owned()),
            "{kind:?}"
        );
    }
}

#[test]
fn a_name_that_has_no_place_is_refused() {
    let plain = serde_json::to_vec(&Manifest {
        schema: SCHEMA,
        ..Manifest::default()
    });
    let plain = plain.expect("json");
    // By hand, as no library writes such names.
    let named = |name: &str| {
        by_hand(|archive| {
            append(archive, MANIFEST, &plain).expect("in");
            let mut header = Header::new_ustar();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(EntryType::Regular);
            header.set_size(1);
            header.set_cksum();
            archive.append(&header, &b"x"[..]).expect("in");
        })
    };
    for name in ["../x", "/etc/passwd", "blobs/../../x", "blobs/abc", "x"] {
        assert_eq!(refused(&named(name)), Fault::Name(name.to_owned()));
    }
    assert_eq!(refused(&named(MANIFEST)), Fault::Twice(MANIFEST.to_owned()));
    let unused = format!("{BLOBS}{}", digest(b"x"));
    assert_eq!(refused(&named(&unused)), Fault::Name(unused));
    let first = by_hand(|archive| append(archive, "x", b"x").expect("in"));
    assert_eq!(refused(&first), Fault::Name("x".to_owned()));
    let empty = by_hand(|_| {});
    assert_eq!(refused(&empty), Fault::Missing(MANIFEST.to_owned()));
}

#[test]
fn a_content_that_is_not_what_was_promised_is_refused() {
    let missing = Manifest {
        schema: SCHEMA,
        files: vec![Listed {
            path: "run/a".to_owned(),
            sha256: digest(b"x"),
            bytes: 1,
            ..Listed::default()
        }],
        ..Manifest::default()
    };
    let packed = |manifest: &Manifest, blob: Option<&[u8]>| {
        by_hand(|archive| {
            append(
                archive,
                MANIFEST,
                &serde_json::to_vec(manifest).expect("json"),
            )
            .expect("in");
            if let Some(blob) = blob {
                let name = format!("{BLOBS}{}", digest(b"x"));
                append(archive, &name, blob).expect("in");
            }
        })
    };
    assert_eq!(
        refused(&packed(&missing, None)),
        Fault::Missing("run/a".to_owned())
    );
    let mismatch = Fault::Digest("run/a".to_owned());
    assert_eq!(refused(&packed(&missing, Some(b"y"))), mismatch);
    let mut longer = missing.clone();
    longer.files[0].bytes = 2;
    assert_eq!(refused(&packed(&longer, Some(b"x"))), mismatch);
    let mut coded = missing.clone();
    coded.files[0].coding = "unheard-of".to_owned();
    assert_eq!(refused(&packed(&coded, Some(b"x"))), mismatch);
    let mut twice = packed(&missing, Some(b"x"));
    assert!(read(&twice, &Limits::default()).is_ok());
    twice.push(0);
    assert!(matches!(refused(&twice), Fault::Damaged(_)));
    let newer = by_hand(|archive| append(archive, MANIFEST, b"{\"schema\":9}").expect("in"));
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
    let bomb = compressed(&vec![0; 64 << 20]).expect("packed");
    assert!(bomb.len() < 1 << 14);
    let too_large = |packed: &[u8]| matches!(read(packed, &small), Err(Fault::TooLarge { .. }));
    assert!(too_large(&bomb));
    assert!(too_large(&vec![0; (1 << 20) + 1]));
    let many: Vec<File> = (0..6)
        .map(|n| file(&format!("run/{n}"), &n.to_string()))
        .collect();
    let many = write(Manifest::default(), many).expect("packed");
    assert!(too_large(&many));
    // One content under many names: the archive is small, and what it would write is not.
    let half = "x".repeat(400 << 10);
    let names: Vec<File> = (0..4).map(|n| file(&format!("run/{n}"), &half)).collect();
    assert!(too_large(
        &write(Manifest::default(), names).expect("packed")
    ));
    // A length that is only declared.
    let declared = by_hand(|archive| {
        let mut header = Header::new_ustar();
        header.set_path(MANIFEST).expect("a path");
        header.set_size(1 << 32);
        header.set_cksum();
        archive.append(&header, &b"{}"[..]).expect("in");
    });
    assert!(matches!(
        refused(&declared),
        Fault::CutOff | Fault::Damaged(_)
    ));
}

#[test]
fn what_is_no_bundle_or_cut_off_anywhere_is_refused() {
    assert_eq!(refused(b""), Fault::Magic);
    assert_eq!(refused(b"PK\x03\x04 a zip archive"), Fault::Magic);
    let packed = write(Manifest::default(), good()).expect("packed");
    for end in 0..packed.len() {
        assert!(read(&packed[..end], &Limits::default()).is_err(), "{end}");
    }
    let mut no_archive = Vec::new();
    no_archive
        .write_all(b"not an archive at all")
        .expect("in memory");
    assert!(
        read(
            &compressed(&no_archive).expect("packed"),
            &Limits::default()
        )
        .is_err()
    );
}

proptest! {
    #[test]
    fn what_is_packed_comes_back(
        files in prop::collection::btree_map("(run|source)/[a-z]{1,4}(-[a-z.]{1,8})?", (prop::collection::vec(any::<u8>(), 0..300), any::<bool>()), 0..12)
    ) {
        let files: Vec<File> = files
            .into_iter()
            .map(|(path, (bytes, executable))| File { path, bytes, executable })
            .collect();
        let packed = write(Manifest::default(), files.clone()).expect("packed");
        prop_assert_eq!(read(&packed, &Limits::default()).expect("read").1, files);
    }

    #[test]
    fn a_changed_byte_never_gives_other_files(at in any::<prop::sample::Index>(), by in 1_u8..) {
        let packed = write(Manifest::default(), good()).expect("packed");
        let mut changed = packed.clone();
        let at = at.index(changed.len());
        changed[at] ^= by;
        if let Ok((_, files)) = read(&changed, &Limits::default()) {
            prop_assert_eq!(files, good());
        }
    }
}
