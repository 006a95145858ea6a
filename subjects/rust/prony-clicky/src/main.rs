//! `prony-clicky`: the service. Everything is set by the environment.

fn main() {}
