//! Coroutines: tasks, scopes, and what they wait for.
