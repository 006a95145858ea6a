//! The page in a headless Chromium: clicked, reloaded, in two tabs, without its server.

mod browser;
mod service;

use browser::{Browser, Tab};
use service::{Service, start};

/// The service with a counter that outlives it.
fn kept(folder: &tempfile::TempDir, address: &str) -> Service {
    let file = folder.path().join("clicky.log");
    start(&[
        ("SERVER_ADDRESS", address),
        ("CLICKY_BACKEND", "file"),
        ("CLICKY_COUNTER_FILE", file.to_str().expect("a path")),
    ])
}

fn browser() -> Option<Browser> {
    prony_testkit::need("chromium").map(|program| Browser::start(&program))
}

fn url(service: &Service) -> String {
    format!("http://{}/", service.address)
}

/// Waits until the page shows so many clicks.
fn shows(tab: &Tab<'_>, clicks: u64) {
    let shown = "document.getElementById('count').dataset.count";
    tab.until(&format!("{shown} === '{clicks}'"));
}

/// Waits until the server has so many.
fn has(service: &Service, path: &str, clicks: u64) {
    let mut listener = service.connect();
    listener.send(service::get(path).as_bytes());
    listener.head();
    while listener.event() != clicks.to_string() {}
}

#[test]
fn clicks_are_counted_survive_a_reload_and_two_tabs_agree() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let service = kept(&folder, "127.0.0.1:0");
    let first = browser.open(&url(&service));
    shows(&first, 0);
    for _ in 0..3 {
        first.click("#click");
    }
    first.focus("#click");
    first.press("Enter", 13);
    first.press(" ", 32);
    shows(&first, 5);
    has(&service, "/events", 5);
    first.reload();
    shows(&first, 5);

    let second = browser.open(&url(&service));
    shows(&second, 5);
    second.click("#click");
    shows(&second, 6);
    shows(&first, 6);
    // What is not sent yet is sent when a tab closes.
    second.click("#click");
    second.click("#click");
    second.close();
    has(&service, "/events", 8);
    shows(&first, 8);
    let foreign = browser.asked();
    let foreign: Vec<_> = foreign
        .iter()
        .filter(|asked| !asked.starts_with(&url(&service)) && !asked.starts_with("data:"))
        .collect();
    assert!(foreign.is_empty(), "it asked others: {foreign:?}");
}

#[test]
fn clicks_whose_answer_is_on_its_way_when_the_page_is_loaded_again_are_counted_once() {
    let Some(browser) = browser() else { return };
    let service = start(&[]);
    let tab = browser.open(&url(&service));
    shows(&tab, 0);
    // What is sent arrives, and the answer does not.
    tab.evaluate(
        "{ const real = fetch; window.fetch = (...request) => { real(...request); \
         return new Promise(() => {}); }; \
         const button = document.getElementById('click'); button.click(); button.click(); }",
    );
    has(&service, "/events", 2);
    tab.reload();
    shows(&tab, 2);
    // Clicks that were sent already would go once more with the next.
    tab.click("#click");
    has(&service, "/events", 3);
    shows(&tab, 3);
}

#[test]
fn clicks_without_a_server_are_kept_and_sent_later() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let service = kept(&folder, "127.0.0.1:0");
    let (address, page) = (service.address.to_string(), url(&service));
    let tab = browser.open(&page);
    shows(&tab, 0);
    assert_eq!(service.stop().code, Some(0));
    tab.until("document.getElementById('state').textContent.includes('cannot be reached')");
    tab.click("#click");
    tab.click("#click");
    shows(&tab, 2);
    tab.until("document.getElementById('state').textContent.includes('2 clicks wait')");
    // Closed without a server: they wait on this device.
    tab.close();
    let service = kept(&folder, &address);
    let tab = browser.open(&page);
    shows(&tab, 2);
    has(&service, "/events", 2);
    tab.until("document.getElementById('state').textContent === ''");
    assert_eq!(service.stop().code, Some(0));
    // And in an open tab: they go when it is there again.
    tab.click("#click");
    shows(&tab, 3);
    let service = kept(&folder, &address);
    has(&service, "/events", 3);
    shows(&tab, 3);
}

#[test]
fn more_clicks_than_a_request_takes_go_in_several() {
    let Some(browser) = browser() else { return };
    let service = start(&[]);
    let tab = browser.open(&format!("{}c/tea", url(&service)));
    shows(&tab, 0);
    tab.until("document.getElementById('title').textContent === 'tea'");
    tab.evaluate("for (let i = 0; i < 1234; i += 1) document.getElementById('click').click()");
    shows(&tab, 1_234);
    has(&service, "/c/tea/events", 1_234);
    assert_eq!(service.get("/"), "0", "the other counter is another");
}

#[test]
fn a_screen_reader_finds_the_button_the_count_and_what_is_wrong() {
    let Some(browser) = browser() else { return };
    let service = start(&[]);
    let tab = browser.open(&url(&service));
    shows(&tab, 0);
    let tree = tab.accessibility();
    for (role, name) in [
        ("button", "Click"),
        ("heading", "Clicks so far"),
        ("status", "Clicks so far"),
    ] {
        assert!(
            tree.iter()
                .any(|node| node == &(role.to_owned(), name.to_owned())),
            "{role} {name}: {tree:?}"
        );
    }
    // What is said aloud is said once the clicking pauses.
    tab.click("#click");
    tab.until("document.getElementById('spoken').textContent === '1 clicks'");
}

#[test]
fn the_page_fits_on_a_phone_and_obeys_its_own_policy() {
    let Some(browser) = browser() else { return };
    let service = start(&[]);
    let tab = browser.open(&url(&service));
    shows(&tab, 0);
    for (width, height) in [(320, 568), (412, 915), (915, 412), (1920, 1080)] {
        tab.resize(width, height);
        tab.until("document.documentElement.scrollWidth <= innerWidth");
        tab.until("document.getElementById('click').getBoundingClientRect().bottom <= innerHeight");
    }
    assert_eq!(tab.complaints(), Vec::<String>::new());
}
