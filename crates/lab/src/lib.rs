//! Experiments: plan, subjects, trials, samplers.
