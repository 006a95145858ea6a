//! Services: their dependencies and their life cycle.
