//! A URL that was checked and whose host is known to the pool; requests for it share it.
//! Not for: names to addresses (`resolve`).

use std::cell::OnceCell;
use std::rc::Rc;

use percent_encoding::percent_decode_str;
use url::{Position, Url};

use super::auth;
use super::connections::Host;

/// A checked URL and the pool's entry of its host.
pub(super) struct Target {
    /// Without user and password.
    pub url: Url,
    pub host: Rc<Host>,
    /// From the URL's user and password, which are not sent otherwise.
    pub authorization: Option<String>,
    /// A GET of it with the client's own header lines alone, as it is sent.
    pub plain_get: OnceCell<Rc<[u8]>>,
}

impl Target {
    pub fn new(mut url: Url, host: Rc<Host>) -> Target {
        let authorization = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => {
                let decode = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
                let (user, password) = (decode(user), decode(password.unwrap_or_default()));
                Some(auth::basic(&user, &password))
            }
        };
        // Neither fails for a URL with a host. What is shown and logged is without them.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Target {
            url,
            host,
            authorization,
            plain_get: OnceCell::new(),
        }
    }

    /// Path and query.
    pub fn path(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }
}
