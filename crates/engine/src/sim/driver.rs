//! The driver of a simulated loop: passes everything on to the network.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::Instant;

use super::network::{Network, exactly};
use crate::buffers::Pool;
use crate::config::{ConnectOptions, DriverKind, ListenOptions};
use crate::driver::Wait;
use crate::driver::{
    Blocking, Completion, Completions, Driver, DriverStats, Op, OpOutcome, Socket, Token,
};

/// One loop's view of the network.
pub(super) struct SimDriver {
    network: Rc<RefCell<Network>>,
    pool: Rc<Pool>,
    index: usize,
    turns: u64,
}

impl SimDriver {
    pub fn new(network: Rc<RefCell<Network>>, pool: Rc<Pool>, index: usize) -> SimDriver {
        SimDriver {
            network,
            pool,
            index,
            turns: 0,
        }
    }
}

impl Driver for SimDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Sim
    }

    fn blocking(&self) -> Option<Blocking> {
        None
    }

    fn wakes_late(&self) -> bool {
        false
    }

    fn allows_threads(&self) -> bool {
        false
    }

    fn submit(&mut self, op: Op, token: Token, done: &mut Completions) {
        let mut network = self.network.borrow_mut();
        network.submit(self.index, op, token);
        if matches!(op, Op::Send(..) | Op::SendFile(..)) {
            done.push(Completion {
                token,
                outcome: Ok(OpOutcome::Offered(exactly(network.now))),
                more: true,
            });
        }
    }

    fn turn(&mut self, _: Wait, done: &mut Completions) -> io::Result<()> {
        self.turns += 1;
        let mut network = self.network.borrow_mut();
        network.take_completions(self.index, &self.pool, done);
        Ok(())
    }

    fn now(&self) -> Instant {
        self.network.borrow().now
    }

    fn listen(
        &mut self,
        address: SocketAddr,
        options: &ListenOptions,
    ) -> io::Result<(Socket, SocketAddr)> {
        let mut network = self.network.borrow_mut();
        Ok(network.listen(self.index, address, options)?)
    }

    fn open(&mut self, address: SocketAddr, options: &ConnectOptions) -> io::Result<Socket> {
        let mut network = self.network.borrow_mut();
        Ok(network.open(self.index, address, options.local))
    }

    fn local_addr(&self, socket: Socket) -> io::Result<SocketAddr> {
        Ok(self.network.borrow().addresses(socket)?.0)
    }

    fn peer_addr(&self, socket: Socket) -> io::Result<SocketAddr> {
        Ok(self.network.borrow().addresses(socket)?.1)
    }

    fn quiesce(&mut self) -> bool {
        self.network.borrow_mut().remove_loop(self.index);
        true
    }

    fn stats(&self) -> DriverStats {
        DriverStats {
            enters: self.turns,
            ..DriverStats::default()
        }
    }
}
