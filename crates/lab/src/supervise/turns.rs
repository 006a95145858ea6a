//! Requests to a running trial, passed from the thread that reads standard input to the trial's event loop: an
//! interruption, and the turns of a trial in turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prony_engine::{Receiver, Sender, mailbox};

use super::order::{INTERRUPT, TURN, TurnOrder};

/// Messages that may wait in the mailbox: the run sends one turn at a time, and an interruption may come on top.
const LINES_MAX: usize = 16;

/// A flag that requests the end of what is running; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that a signal handler can raise by setting `flag`.
    pub fn by_flag(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    /// Requests the end.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was requested.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A message to the trial.
enum Message {
    Turn(TurnOrder),
    /// The run ends, or the line was not a valid turn.
    End,
}

/// The sending side, of the thread that reads.
pub struct TurnSender {
    interrupt: Interrupt,
    send: Sender<Message>,
}

/// The receiving side, of the trial.
pub struct Turns(Receiver<Message>);

/// Makes both sides. `interrupt` is raised before the trial receives the message.
pub fn channel(interrupt: Interrupt) -> (TurnSender, Turns) {
    let (send, receive) = mailbox(LINES_MAX);
    (TurnSender { interrupt, send }, Turns(receive))
}

impl TurnSender {
    /// Forwards a line of standard input.
    pub fn forward(&self, line: &str) {
        let message = match line.strip_prefix(TURN) {
            Some(turn) => serde_json::from_str(turn).map_or(Message::End, Message::Turn),
            None if line == INTERRUPT => {
                self.interrupt.raise();
                Message::End
            }
            None => return,
        };
        // A closed mailbox means that the trial has ended.
        let _ = self.send.send(message);
    }
}

impl Turns {
    /// Waits for the next turn; `None`: the run ends. Costs nothing while there is none.
    pub async fn next(&mut self) -> Option<TurnOrder> {
        match self.0.recv().await? {
            Message::Turn(turn) => Some(turn),
            Message::End => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_engine::Config;

    use super::*;

    #[test]
    fn turns_come_in_their_order_and_an_interruption_ends_them() {
        let interrupt = Interrupt::default();
        let (sender, mut turns) = channel(interrupt.clone());
        let visit = TurnOrder::Visit {
            lead_in_ns: 1,
            window_ns: 2,
        };
        sender.forward(&format!(
            "{TURN}{}",
            serde_json::to_string(&visit).expect("JSON")
        ));
        sender.forward("something else");
        sender.forward(INTERRUPT);
        sender.forward("turn {}");
        assert!(interrupt.is_raised());
        let heard = prony_engine::run(&Config::default(), move |_| async move {
            (turns.next().await, turns.next().await, turns.next().await)
        });
        assert_eq!(heard.expect("a loop"), (Some(visit), None, None));
    }
}
