//! Tests of controller and agents together.

mod sim;
