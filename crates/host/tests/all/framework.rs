//! The framework in Lua: each file of `tests/lua` is run as `prony lua` runs one, and says
//! which of its tests failed.

use std::path::PathBuf;

use super::common::root;
use prony_host::library::{Script, Surroundings, run};

fn passes(file: &str) {
    let here = root().join("crates/host/tests/lua");
    let script = Script {
        file: here.join(file),
        arguments: Vec::new(),
        path: vec![here],
        around: Surroundings {
            development: false,
            static_files: Some((PathBuf::from("/nowhere"), "/files".to_owned())),
        },
    };
    assert_eq!(
        run(&script),
        Ok(0),
        "{file} has tests that failed: see above"
    );
}

macro_rules! files {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            passes(concat!(stringify!($name), ".lua"));
        })*

        #[test]
        fn every_file_is_run() {
            let here = root().join("crates/host/tests/lua");
            let known = [$(concat!(stringify!($name), ".lua")),*];
            for entry in std::fs::read_dir(here).expect("the folder is there").flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                assert!(!name.ends_with(".lua") || known.contains(&name.as_str()), "{name} is not run");
            }
        }
    };
}

files!(
    application,
    configuration,
    forms,
    markdown,
    newer,
    pages,
    routes,
    templates,
    values
);
