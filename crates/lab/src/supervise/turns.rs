//! What Prony says to a trial in turns while it runs, on its way from the thread that reads it to the trial's loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prony_engine::{Receiver, Sender, mailbox};

use super::order::{INTERRUPT, TURN, TurnOrder};

/// Lines that wait to be heard; Prony gives one turn at a time, and an interruption may come on top.
const LINES_MAX: usize = 16;

/// Whether what is under way is to end now.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that is raised by setting `flag`, as a signal handler can.
    pub fn by_flag(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    /// Asks for the end.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was said.
enum Message {
    Turn(TurnOrder),
    /// The run is to end, or what was said is no turn.
    End,
}

/// The thread's side.
pub struct TurnSender {
    interrupt: Interrupt,
    send: Sender<Message>,
}

/// The trial's side.
pub struct Turns(Receiver<Message>);

/// Both sides. `interrupt` is raised before the trial hears of it.
pub fn channel(interrupt: Interrupt) -> (TurnSender, Turns) {
    let (send, receive) = mailbox(LINES_MAX);
    (TurnSender { interrupt, send }, Turns(receive))
}

impl TurnSender {
    /// Passes on a line of Prony's.
    pub fn forward(&self, line: &str) {
        let message = match line.strip_prefix(TURN) {
            Some(turn) => serde_json::from_str(turn).map_or(Message::End, Message::Turn),
            None if line == INTERRUPT => {
                self.interrupt.raise();
                Message::End
            }
            None => return,
        };
        // A trial that waits for no turn any more has ended.
        let _ = self.send.send(message);
    }
}

impl Turns {
    /// The next turn; `None`: the run is to end. Costs nothing while there is none.
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
