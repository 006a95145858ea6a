//! Other ways to a server, and other forms of a request: a Unix socket, a proxy, HTTP/1.0, chunks, `Expect`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use prony_load::LoadSpec;
use prony_load::form::{RequestForm, head_and_body};
use prony_load::prepare::LoadUrl;
use prony_load::target::{OWNERSHIP_FLAG, check};
use prony_record::{HttpProtocol, PreparedRequest, Timestamps};

use prony_base::typed::size;

/// Bytes of a chunk, where none are given.
const CHUNK: &str = "16KiB";

/// Words about the form of requests, and the way that they go in it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Forms of HTTP/1, and further ways")]
pub struct FormWords {
    /// Connect to this Unix socket; the URL says what is asked of it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["resolve", "connect_to", "source", "proxy", "find_max"])]
    pub unix: Option<PathBuf>,
    /// Send requests through this proxy, as http://HOST:PORT: in absolute form, or for https:// through a tunnel (CONNECT)
    #[arg(long, value_name = "URL", conflicts_with_all = ["resolve", "connect_to"])]
    pub proxy: Option<String>,
    /// Speak HTTP/1.0, with keep-alive unless --no-keepalive is given
    #[arg(long = "http1.0", conflicts_with_all = ["http2", "pipeline", "chunked", "expect_continue"])]
    pub http10: bool,
    /// Send the body in chunks of this size, without its length
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = CHUNK,
        value_parser = size::parse_positive, conflicts_with = "http2")]
    pub chunked: Option<u64>,
    /// Send the body once the server has answered the head with 100; --timeout is how long that is waited for
    #[arg(long, conflicts_with_all = ["http2", "pipeline"])]
    pub expect_continue: bool,
}

/// Where connections go in place of the URL's own address, where these words say so. `is_owned`: the user says so.
pub fn address(
    form: &FormWords,
    url: &LoadUrl,
    is_owned: bool,
) -> anyhow::Result<Option<(SocketAddr, String)>> {
    if form.unix.is_some() {
        // It has no address, and is on this machine.
        return Ok(Some((
            SocketAddr::from(([127, 0, 0, 1], 0)),
            "localhost".to_owned(),
        )));
    }
    let Some(proxy) = &form.proxy else {
        return Ok(None);
    };
    let proxy = LoadUrl::parse(proxy).and_then(LoadUrl::plain);
    let proxy = proxy.context("--proxy takes http://HOST:PORT")?;
    if proxy.path != "/" {
        bail!(
            "--proxy takes http://HOST:PORT, without a path: `{}` has one",
            proxy.text
        );
    }
    if !is_owned {
        // What the proxy passes on is load on the URL's host.
        let behind = url.resolve().with_context(|| {
            format!("only the proxy may know the host: if it is yours, add {OWNERSHIP_FLAG}")
        })?;
        check(&url.host, &[behind.ip()], false)?;
    }
    Ok(Some((proxy.resolve()?, proxy.host)))
}

/// Gives requests their form, and connections their way.
pub fn apply(form: &FormWords, url: &LoadUrl, spec: &mut LoadSpec) -> anyhow::Result<()> {
    let is_proxied = form.proxy.is_some();
    if is_proxied && spec.protocol == HttpProtocol::Http2 && !url.is_secure {
        bail!(
            "--proxy takes requests of HTTP/1.1: leave --http2 out, or give an https:// URL, which goes through a tunnel"
        );
    }
    for (is_given, flag) in [
        (form.chunked.is_some(), "--chunked"),
        (form.expect_continue, "--expect-continue"),
    ] {
        if is_given && !spec.requests.iter().any(has_body) {
            bail!("{flag} is about the body: give one with --body or --body-file");
        }
        if is_given && spec.has_fields {
            bail!(
                "{flag} cannot go with fields such as {{counter}}: the body is not known beforehand"
            );
        }
    }
    if form.expect_continue && spec.cookies {
        bail!("--expect-continue sends the head as it is: leave --cookies out");
    }
    let is_stamped = spec.timestamps.is_some_and(|who| who != Timestamps::User);
    if form.unix.is_some() && is_stamped {
        bail!("the kernel does not stamp what comes over a Unix socket: leave --timestamps out");
    }
    spec.unix.clone_from(&form.unix);
    spec.tunnel = (is_proxied && url.is_secure).then(|| url.host_and_port());
    spec.expects_continue = form.expect_continue;
    let shape = RequestForm {
        is_http10: form.http10,
        origin: match is_proxied && !url.is_secure {
            true => format!("http://{}", url.authority),
            false => String::new(),
        },
        chunk_bytes: form
            .chunked
            .map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        expects_continue: form.expect_continue,
    };
    if shape != RequestForm::default() {
        for request in &mut spec.requests {
            request.bytes = shape.shape(&request.bytes);
        }
    }
    Ok(())
}

fn has_body(request: &PreparedRequest) -> bool {
    !head_and_body(&request.bytes).1.is_empty()
}
