//! Hands answers to the script's `response`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prony_load::{AnswerEnd, AnswerFollower, AnswerFollowers, EncodedRequest};
use prony_wire::Headers;

use crate::machine::{HandedBody, HandedFields};
use crate::{ScriptRun, ScriptThread, lock};

/// Bytes of a body that `response` is given, at the most.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Status, headers and body.
const ALL: u8 = 3;
/// Bytes of memory for bodies that a connection keeps between two answers.
const BODY_BYTES_KEPT: usize = 1 << 20;

/// Makes the followers of a load's connections.
pub struct ScriptFollowers {
    pub threads: Vec<Arc<ScriptThread>>,
    pub run: Arc<ScriptRun>,
}

impl std::fmt::Debug for ScriptFollowers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptFollowers").finish_non_exhaustive()
    }
}

impl AnswerFollowers for ScriptFollowers {
    fn follower(
        &self,
        thread: u32,
        checker: Option<Box<dyn AnswerFollower>>,
        failed: u16,
    ) -> Box<dyn AnswerFollower> {
        Box::new(ScriptFollower {
            thread: Arc::clone(&self.threads[thread as usize]),
            run: Arc::clone(&self.run),
            checker,
            failed,
            fields: HandedFields::default(),
            body: Vec::new(),
            is_long: false,
            parts_stored: ALL,
        })
    }
}

/// Follows the answers on one connection.
struct ScriptFollower {
    thread: Arc<ScriptThread>,
    run: Arc<ScriptRun>,
    checker: Option<Box<dyn AnswerFollower>>,
    failed: u16,
    fields: HandedFields,
    body: Vec<u8>,
    /// There is more of the body than is taken.
    is_long: bool,
    /// How many of status, headers and body are stored, which is what `response` may take.
    parts_stored: u8,
}

impl AnswerFollower for ScriptFollower {
    fn begin(&mut self, request: Option<&EncodedRequest>) {
        self.fields.clear();
        self.body.clear();
        self.body.shrink_to(BODY_BYTES_KEPT);
        self.is_long = false;
        self.parts_stored = lock(&self.thread.lua).takes();
        if let Some(checker) = &mut self.checker {
            checker.begin(request);
        }
    }

    fn head(&mut self, headers: &Headers<'_>) {
        if self.parts_stored >= 2 {
            for header in headers {
                self.fields.add(header.name.as_bytes(), header.value);
            }
        }
        if let Some(checker) = &mut self.checker {
            checker.head(headers);
        }
    }

    fn body(&mut self, data: &[u8]) {
        self.is_long |= self.body.len() + data.len() > BODY_BYTES_MAX;
        if self.parts_stored >= ALL && !self.is_long {
            self.body.extend_from_slice(data);
        }
        if let Some(checker) = &mut self.checker {
            checker.body(data);
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.parts_stored >= 2 {
            self.fields.add(name, value);
        }
        if let Some(checker) = &mut self.checker {
            checker.field(name, value);
        }
    }

    fn end(&mut self, status: u16) -> AnswerEnd {
        let checker = self.checker.as_mut();
        let check = checker.map_or(AnswerEnd::Passed, |checker| checker.end(status));
        // What the script was to take in, and did not, is not completed.
        if self.run.is_over() {
            return AnswerEnd::Failed(self.failed);
        }
        if self.thread.wish.stopped.load(Relaxed) {
            return check;
        }
        let fields = (self.parts_stored >= 2).then_some(&self.fields);
        let body = match self.is_long {
            true => HandedBody::TooLong,
            false => HandedBody::Whole(&self.body),
        };
        let body = (self.parts_stored >= ALL).then_some(body);
        match lock(&self.thread.lua).response(status, fields, body) {
            Ok(()) => check,
            Err(why) => {
                self.run.fail("response()", &why);
                AnswerEnd::Failed(self.failed)
            }
        }
    }
}
