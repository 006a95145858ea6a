//! Redirects that are followed: the answer to a request leads to another, its hop, which goes out in the same slot.
//!
//! A hop is a request of its own in all counts. [`chain`] says where an answer leads, without I/O; [`follower`] asks it on a connection,
//! as the answer comes; [`source`] sends the hops. Not for: loads that follow none, on whose way nothing of this is.

pub mod chain;
pub mod figures;
pub mod follower;
pub mod source;
