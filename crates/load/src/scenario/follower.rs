//! Follows the answers on one user's connection: checks each as its step says, and takes values and cookies from it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use prony_wire::Headers;

use super::compiled::Scenario;
use super::memory::UserMemory;
use crate::checks::AnswerChecker;
use crate::follow::AnswerFollower;
use crate::source::EncodedRequest;

/// Follows one answer after the other; one for each connection.
pub struct StepFollower {
    scenario: Arc<Scenario>,
    /// Of each step; `None` where its body says nothing.
    checkers: Vec<Option<AnswerChecker>>,
    step: usize,
    user: Option<Rc<RefCell<UserMemory>>>,
    /// What the head had for each value that the step takes: whether it is there, and its bytes.
    of_head: Vec<(bool, Vec<u8>)>,
}

impl StepFollower {
    /// Of a connection on which no request was sent yet.
    pub fn new(scenario: &Arc<Scenario>) -> StepFollower {
        let checkers = scenario.steps.iter().map(|step| {
            let needs_body = step.takes.iter().any(|take| take.needs_body());
            let is_looked_at = step.checks.count_of_checks() > 0 || step.checks.keeps();
            let is_needed = needs_body || is_looked_at;
            is_needed.then(|| step.checks.holding(needs_body))
        });
        let takes = scenario.steps.iter().map(|step| step.takes.len());
        let most = takes.max().unwrap_or_default();
        StepFollower {
            checkers: checkers.collect(),
            scenario: Arc::clone(scenario),
            step: 0,
            user: None,
            of_head: vec![(false, Vec::new()); most],
        }
    }

    /// Takes what the step takes. The number of the first that is not there.
    fn take(&mut self, status: u16) -> Option<u16> {
        let step = self.scenario.steps.get(self.step)?;
        let mut memory = self.user.as_ref()?.borrow_mut();
        let checker = self.checkers[self.step].as_ref();
        let body = checker.and_then(AnswerChecker::held);
        let mut missing = None;
        for (number, take) in step.takes.iter().enumerate() {
            let head = self.of_head.get(number).filter(|(is_there, _)| *is_there);
            let head = head.map(|(_, value)| value.as_slice());
            let is_there = memory.set(take.place, |cookies, out| {
                take.write(head, body, cookies, out)
            });
            if !is_there && missing.is_none() {
                missing = Some(number);
                if let Some(checker) = checker {
                    checker.keep(&take.words, status);
                }
            }
        }
        let before = usize::from(step.first_check) + step.checks.count_of_checks();
        missing.map(|number| (before + number) as u16)
    }
}

impl AnswerFollower for StepFollower {
    fn begin(&mut self, request: Option<&EncodedRequest>) {
        if let Some(request) = request {
            self.step = usize::from(request.step);
            self.user.clone_from(&request.user);
        }
        if let Some(Some(checker)) = self.checkers.get_mut(self.step) {
            checker.begin();
        }
    }

    fn head(&mut self, headers: &Headers<'_>) {
        if let Some(user) = &self.user {
            let cookies = &mut user.borrow_mut().cookies;
            let all = headers.get_all("set-cookie");
            all.for_each(|of| cookies.set(of));
        }
        if let Some(step) = self.scenario.steps.get(self.step) {
            for (take, (is_there, value)) in step.takes.iter().zip(&mut self.of_head) {
                let found = take.of_head(headers);
                *is_there = found.is_some();
                value.clear();
                value.extend_from_slice(found.unwrap_or_default());
            }
        }
        if let Some(Some(checker)) = self.checkers.get_mut(self.step) {
            checker.head(headers);
        }
    }

    fn body(&mut self, data: &[u8]) {
        if let Some(Some(checker)) = self.checkers.get_mut(self.step) {
            checker.body(data);
        }
    }

    fn end(&mut self, status: u16) -> Option<u16> {
        let checker = self.checkers.get_mut(self.step).and_then(Option::as_mut);
        let failed = checker.and_then(|checker| checker.end(status));
        let first = self
            .scenario
            .steps
            .get(self.step)
            .map(|step| step.first_check);
        match failed {
            Some(number) => Some(first.unwrap_or_default().saturating_add(number)),
            None => self.take(status),
        }
    }
}
