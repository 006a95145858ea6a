//! Records to findings and verdicts; pure.
#![forbid(unsafe_code)]
