//! Typed events with priorities: a queue, its handlers and interceptors.
