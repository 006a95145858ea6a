//! Tables by `TypeId`.
//! Not for: other keys, which need a hash.

use std::any::TypeId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash of a `TypeId` is one already.
#[derive(Default)]
pub(super) struct TypeIdHasher(u64);

impl Hasher for TypeIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
    fn write_u64(&mut self, id: u64) {
        self.0 ^= id;
    }
}

pub(super) type ByType<T> = HashMap<TypeId, T, BuildHasherDefault<TypeIdHasher>>;
