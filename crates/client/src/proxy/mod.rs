//! Proxies: which one is used for which host, and tunnels through it.
//!
//! For: the rules ([`Proxies`]), where they come from ([`Proxies::from_environment`]),
//! and the tunnel that https goes through ([`tunnel`]). A request in http is sent to the
//! proxy with a target in [`absolute_form`] and the proxy's credentials
//! ([`Proxy::authorization`]).
//! Not for: SOCKS, and proxy auto-configuration (PAC).

mod rules;
mod tunnel;

pub use rules::{Proxies, Proxy, absolute_form};
pub use tunnel::tunnel;
