//! The worked example, `examples/docs`: its own tests, as `prony lua` runs them.

use super::common::root;
use prony_host::library::{Script, Surroundings, run};

#[test]
fn the_example_sites_tests_pass() {
    let root = root();
    let script = Script {
        file: root.join("examples/docs/tests/site.lua"),
        arguments: Vec::new(),
        path: vec![root.join("examples")],
        around: Surroundings::default(),
    };
    assert_eq!(run(&script), Ok(0), "tests failed: see above");
}
