//! One event loop per thread: tasks, timers, sockets; drivers ring, epoll and sim.
