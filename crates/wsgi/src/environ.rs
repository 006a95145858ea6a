//! A request as its environ: a copy of one template with what the request adds.
//! Not for: the answer (`start`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use prony_hosting::Settings;
use prony_http::{Header, Headers, Method, Request, Version};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::file::FileWrapper;
use crate::python_settings::PythonSettings;

/// Names of headers, and addresses, whose strings are kept. Clients choose them, so that
/// there is a limit; what comes after is made anew each time.
const KEPT_MAX: usize = 256;
/// Bytes of a header's name that is kept.
const KEPT_BYTES_MAX: usize = 64;
/// Names that are kept from the beginning, as they are here and in small letters: no client
/// can take their places.
const KNOWN: [&str; 22] = [
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Cache-Control",
    "Connection",
    "Content-Length",
    "Content-Type",
    "Cookie",
    "Host",
    "If-Modified-Since",
    "If-None-Match",
    "Origin",
    "Pragma",
    "Range",
    "Referer",
    "Transfer-Encoding",
    "User-Agent",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Requested-With",
];
/// Entries that the template once had: with them, its table is one step larger than its
/// entries need, and has room for 16 headers. Not more: CPython copies a table as a whole
/// only while two thirds of the entries that it ever had are there, and entry by entry else.
const ROOM: usize = 8;

/// The parts of a request, wherever it is kept.
#[derive(Clone, Copy)]
pub(crate) struct WsgiRequest<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) version: Version,
    pub(crate) headers: Headers<'a>,
    pub(crate) body: &'a [u8],
    pub(crate) peer: Option<SocketAddr>,
}

impl<'a> WsgiRequest<'a> {
    pub(crate) fn new(request: &Request<'a>, peer: Option<SocketAddr>) -> WsgiRequest<'a> {
        WsgiRequest {
            method: request.method(),
            path: request.path(),
            query: request.query(),
            version: request.version(),
            headers: request.headers(),
            body: request.body(),
            peer,
        }
    }

    /// For those who read of what went wrong.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == Method::Head
    }
}

/// Makes environs; belongs to one thread.
pub(crate) struct Environs {
    template: Py<PyDict>,
    keys: Keys,
    methods: Methods,
    http10: Py<PyString>,
    /// `io.BytesIO`.
    bytes_io: Py<PyAny>,
    names: RefCell<HashMap<Box<[u8]>, Name>>,
    peers: RefCell<HashMap<IpAddr, Py<PyString>>>,
}

struct Keys {
    request_method: Py<PyString>,
    path_info: Py<PyString>,
    query_string: Py<PyString>,
    server_protocol: Py<PyString>,
    remote_addr: Py<PyString>,
    content_length: Py<PyString>,
    input: Py<PyString>,
}

struct Methods {
    head: Py<PyString>,
    post: Py<PyString>,
    put: Py<PyString>,
    delete: Py<PyString>,
    options: Py<PyString>,
    patch: Py<PyString>,
}

/// The name of a header in an environ.
enum Name {
    /// It is an entry with this key, and lines with the same key are joined by this.
    Key(Py<PyString>, &'static [u8]),
    /// It is none: an underscore in it makes it look like another's key, and the length
    /// and coding of the body are told in another way.
    Dropped,
}

impl Environs {
    pub(crate) fn new(
        py: Python<'_>,
        settings: &Settings,
        python_settings: &PythonSettings,
    ) -> PyResult<Environs> {
        let intern = |text: &str| PyString::intern(py, text).unbind();
        Ok(Environs {
            template: template(py, settings, python_settings)?.unbind(),
            keys: Keys {
                request_method: intern("REQUEST_METHOD"),
                path_info: intern("PATH_INFO"),
                query_string: intern("QUERY_STRING"),
                server_protocol: intern("SERVER_PROTOCOL"),
                remote_addr: intern("REMOTE_ADDR"),
                content_length: intern("CONTENT_LENGTH"),
                input: intern("wsgi.input"),
            },
            methods: Methods {
                head: intern("HEAD"),
                post: intern("POST"),
                put: intern("PUT"),
                delete: intern("DELETE"),
                options: intern("OPTIONS"),
                patch: intern("PATCH"),
            },
            http10: intern("HTTP/1.0"),
            bytes_io: py.import("io")?.getattr("BytesIO")?.unbind(),
            names: RefCell::new(known(py)),
            peers: RefCell::default(),
        })
    }

    /// The environ of a request.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        parts: &WsgiRequest<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let environ = self.template.bind(py).copy()?;
        let keys = &self.keys;
        if parts.method != Method::Get {
            environ.set_item(keys.request_method.bind(py), self.method(py, &parts.method))?;
        }
        environ.set_item(keys.path_info.bind(py), path(py, parts.path))?;
        if !parts.query.is_empty() {
            let query = latin1(py, parts.query.as_bytes());
            environ.set_item(keys.query_string.bind(py), query)?;
        }
        if parts.version == Version::Http10 {
            environ.set_item(keys.server_protocol.bind(py), self.http10.bind(py))?;
        }
        if let Some(peer) = parts.peer {
            environ.set_item(keys.remote_addr.bind(py), self.peer(py, peer.ip()))?;
        }
        for header in &parts.headers {
            self.put(&environ, &header, &parts.headers)?;
        }
        let has_body = !parts.body.is_empty();
        if has_body || parts.headers.get("content-length").is_some() {
            let length = PyString::new(py, &parts.body.len().to_string());
            environ.set_item(keys.content_length.bind(py), length)?;
        }
        let input = match has_body {
            true => self
                .bytes_io
                .bind(py)
                .call1((PyBytes::new(py, parts.body),))?,
            false => self.bytes_io.bind(py).call0()?,
        };
        environ.set_item(keys.input.bind(py), input)?;
        Ok(environ)
    }

    fn method<'py>(&self, py: Python<'py>, method: &Method) -> Bound<'py, PyString> {
        let methods = &self.methods;
        let object = match method {
            Method::Head => &methods.head,
            Method::Post => &methods.post,
            Method::Put => &methods.put,
            Method::Delete => &methods.delete,
            Method::Options => &methods.options,
            Method::Patch => &methods.patch,
            other => return PyString::new(py, other.name()),
        };
        object.bind(py).clone()
    }

    fn peer<'py>(&self, py: Python<'py>, address: IpAddr) -> Bound<'py, PyString> {
        let mut peers = self.peers.borrow_mut();
        if let Some(object) = peers.get(&address) {
            return object.bind(py).clone();
        }
        let text = PyString::new(py, &address.to_string());
        if peers.len() < KEPT_MAX {
            peers.insert(address, text.clone().unbind());
        }
        text
    }

    /// Adds `header`, which is one of `all`.
    fn put(
        &self,
        environ: &Bound<'_, PyDict>,
        header: &Header<'_>,
        all: &Headers<'_>,
    ) -> PyResult<()> {
        let py = environ.py();
        let name = header.name;
        let mut names = self.names.borrow_mut();
        let made;
        let known = match names.get(name.as_bytes()) {
            Some(known) => known,
            None => {
                let is_kept = names.len() < KEPT_MAX && name.len() <= KEPT_BYTES_MAX;
                let new = Name::new(py, name, is_kept);
                if is_kept {
                    names.entry(name.as_bytes().into()).or_insert(new)
                } else {
                    made = new;
                    &made
                }
            }
        };
        let Name::Key(key, joint) = known else {
            return Ok(());
        };
        let before = environ.len();
        environ.set_item(key.bind(py), latin1(py, header.value))?;
        if environ.len() == before {
            let values: Vec<&[u8]> = all.get_all(header.name).collect();
            environ.set_item(key.bind(py), latin1(py, &values.join(*joint)))?;
        }
        Ok(())
    }
}

impl Name {
    /// A name that is interned may live as long as the process: only those that are kept are.
    fn new(py: Python<'_>, name: &str, is_kept: bool) -> Name {
        let key = match name.to_ascii_lowercase().as_str() {
            "content-length" | "transfer-encoding" => return Name::Dropped,
            name if name.contains('_') => return Name::Dropped,
            "content-type" => "CONTENT_TYPE".to_owned(),
            name => format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_")),
        };
        let joint: &[u8] = match key.as_str() {
            "HTTP_COOKIE" => b"; ",
            _ => b",",
        };
        let key = match is_kept {
            true => PyString::intern(py, &key),
            false => PyString::new(py, &key),
        };
        Name::Key(key.unbind(), joint)
    }
}

fn known(py: Python<'_>) -> HashMap<Box<[u8]>, Name> {
    KNOWN
        .into_iter()
        .flat_map(|name| [name.to_owned(), name.to_ascii_lowercase()])
        .map(|name| (name.as_bytes().into(), Name::new(py, &name, true)))
        .collect()
}

/// The entries that all environs of an application share.
fn template<'py>(
    py: Python<'py>,
    settings: &Settings,
    python_settings: &PythonSettings,
) -> PyResult<Bound<'py, PyDict>> {
    let template = PyDict::new(py);
    let room: Vec<String> = (0..ROOM).map(|number| format!("room {number}")).collect();
    for name in &room {
        template.set_item(name, name)?;
    }
    for (key, text) in [
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_NAME", ""),
        ("PATH_INFO", ""),
        ("QUERY_STRING", ""),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        (
            "SERVER_SOFTWARE",
            concat!("prony-wsgi/", env!("CARGO_PKG_VERSION")),
        ),
        ("REMOTE_ADDR", ""),
        ("wsgi.url_scheme", "http"),
    ] {
        template.set_item(PyString::intern(py, key), text)?;
    }
    template.set_item("SERVER_NAME", settings.address.ip().to_string())?;
    template.set_item("SERVER_PORT", settings.address.port().to_string())?;
    for (key, truth) in [
        ("wsgi.multithread", python_settings.threads > 1),
        ("wsgi.multiprocess", settings.workers > 1),
        ("wsgi.run_once", false),
        ("wsgi.input_terminated", true),
    ] {
        template.set_item(PyString::intern(py, key), truth)?;
    }
    template.set_item("wsgi.version", (1, 0))?;
    template.set_item("wsgi.errors", py.import("sys")?.getattr("stderr")?)?;
    template.set_item("wsgi.file_wrapper", py.get_type::<FileWrapper>())?;
    template.set_item("wsgi.input", py.None())?;
    for name in &room {
        template.del_item(name)?;
    }
    Ok(template)
}

/// The path, its percent-encoded bytes decoded.
fn path<'py>(py: Python<'py>, path: &str) -> Bound<'py, PyString> {
    if !path.contains('%') {
        return latin1(py, path.as_bytes());
    }
    latin1(py, &decode(path.as_bytes()))
}

/// `bytes` with `%XX` decoded; what only looks like it stays.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let pair = after
            .get(..2)
            .and_then(|pair| Some((digit(pair[0])?, digit(pair[1])?)));
        match pair {
            Some((high, low)) if first == b'%' => {
                decoded.push(high << 4 | low);
                rest = &after[2..];
            }
            _ => {
                decoded.push(first);
                rest = after;
            }
        }
    }
    decoded
}

fn digit(byte: u8) -> Option<u8> {
    // At most 15.
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// A string with a character for each byte, as PEP 3333 has strings.
pub(crate) fn latin1<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    // A slice is never longer than `isize::MAX` bytes.
    let length = bytes.len() as ffi::Py_ssize_t;
    // SAFETY: `bytes` are so many bytes and only read; the interpreter is attached, by
    // `py`; the result is a new reference to a str, or null, at which this panics as
    // PyO3's own functions do where there is no memory.
    unsafe {
        let text = ffi::PyUnicode_DecodeLatin1(bytes.as_ptr().cast(), length, std::ptr::null());
        Bound::from_owned_ptr(py, text).cast_into_unchecked()
    }
}
