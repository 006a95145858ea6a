//! A headless Chromium, driven over a pair of pipes by the DevTools protocol: messages of
//! JSON, each ended by a zero byte. Every wait has a deadline.

use std::cell::{Cell, RefCell};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than a page takes on a machine that others use, too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser that runs; killed when dropped.
pub struct Browser {
    child: Child,
    to: RefCell<ChildStdin>,
    from: Receiver<Value>,
    next_id: Cell<u64>,
    /// What came beside answers.
    events: RefCell<Vec<Value>>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one with an empty profile. The shell puts its pipes where Chromium looks for
    /// them: descriptors 3 and 4.
    pub fn start(program: &Path) -> Browser {
        let profile = tempfile::tempdir().expect("a folder");
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--disable-background-networking"])
            .args(["--disable-component-update", "--no-proxy-server"])
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("a pipe");
        let out = child.stdout.take().expect("a pipe");
        let (tell, from) = mpsc::channel();
        thread::spawn(move || {
            for message in BufReader::new(out).split(0) {
                let Ok(message) = message else { return };
                let value = serde_json::from_slice(&message).expect("JSON");
                if tell.send(value).is_err() {
                    return;
                }
            }
        });
        Browser {
            child,
            to: RefCell::new(to),
            from,
            next_id: Cell::new(1),
            events: RefCell::default(),
            _profile: profile,
        }
    }

    /// Calls a method of the protocol and yields its result.
    fn call(&self, session: Option<&str>, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let bytes = format!("{message}\0");
        let sent = self.to.borrow_mut().write_all(bytes.as_bytes());
        sent.map_err(|error| format!("the browser is gone: {error}"))?;
        let due = Instant::now() + PATIENCE;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            let received = self.from.recv_timeout(left);
            let message = received.map_err(|error| format!("{method}: {error}"))?;
            if message["id"] != id {
                self.events.borrow_mut().push(message);
                continue;
            }
            return match message.get("error") {
                Some(error) => Err(format!("{method}: {error}")),
                None => Ok(message["result"].clone()),
            };
        }
    }

    /// Opens a page in a tab of its own.
    pub fn open(&self, url: &str) -> Tab<'_> {
        let created = self.call(None, "Target.createTarget", json!({"url": "about:blank"}));
        let target = created.expect("a tab")["targetId"].clone();
        let attach = json!({"targetId": target, "flatten": true});
        let attached = self.call(None, "Target.attachToTarget", attach);
        let session = attached.expect("a session")["sessionId"].clone();
        let tab = Tab {
            browser: self,
            session: session.as_str().expect("a name").to_owned(),
        };
        for domain in ["Page", "Runtime", "Network", "Log"] {
            tab.call(&format!("{domain}.enable"), json!({}));
        }
        tab.call("Page.navigate", json!({"url": url}));
        tab.until("document.readyState === 'complete' && location.href !== 'about:blank'");
        tab
    }

    fn events(&self, method: &str) -> Vec<Value> {
        let events = self.events.borrow();
        let wanted = events.iter().filter(|event| event["method"] == method);
        wanted.map(|event| event["params"].clone()).collect()
    }

    /// What all pages have asked for.
    pub fn asked(&self) -> Vec<String> {
        let requests = self.events("Network.requestWillBeSent");
        let urls = requests
            .iter()
            .filter_map(|request| request["request"]["url"].as_str());
        urls.map(str::to_owned).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself; without its pipe it does.
        let _ = self.call(None, "Browser.close", json!({}));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A tab with a page.
pub struct Tab<'b> {
    browser: &'b Browser,
    session: String,
}

impl Tab<'_> {
    #[track_caller]
    fn call(&self, method: &str, params: Value) -> Value {
        let called = self.browser.call(Some(&self.session), method, params);
        called.unwrap_or_else(|error| panic!("{error}"))
    }

    /// What an expression of the page is worth.
    #[track_caller]
    pub fn evaluate(&self, expression: &str) -> Value {
        let result = self
            .try_evaluate(expression)
            .unwrap_or_else(|error| panic!("{error}"));
        let thrown = result.get("exceptionDetails");
        assert!(thrown.is_none(), "{expression}: {thrown:?}");
        result["result"]["value"].clone()
    }

    fn try_evaluate(&self, expression: &str) -> Result<Value, String> {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        self.browser
            .call(Some(&self.session), "Runtime.evaluate", params)
    }

    /// Waits until an expression of the page is true. A page that is about to be replaced
    /// forgets the question, which is then asked again.
    #[track_caller]
    pub fn until(&self, condition: &str) {
        let promise = format!(
            "new Promise((resolve) => {{ let left = 400; const look = () => \
             ({condition}) ? resolve(true) : (left -= 1) > 0 ? setTimeout(look, 25) : resolve(false); \
             look(); }})"
        );
        let due = Instant::now() + PATIENCE;
        while Instant::now() < due {
            let looked = self.try_evaluate(&promise);
            if looked.is_ok_and(|looked| looked["result"]["value"] == true) {
                return;
            }
        }
        let shown = self.evaluate("document.body.innerText");
        panic!("not in {PATIENCE:?}: {condition}; the page shows {shown}");
    }

    /// Presses the main button of the mouse in the middle of an element.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let middle = self.evaluate(&format!(
            "(() => {{ const at = document.querySelector('{selector}').getBoundingClientRect(); \
             return [at.x + at.width / 2, at.y + at.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Moves the focus of the keyboard to an element.
    pub fn focus(&self, selector: &str) {
        self.evaluate(&format!("document.querySelector('{selector}').focus()"));
    }

    /// Presses a key.
    pub fn press(&self, key: &str, code: u32) {
        let text = if key == "Enter" { "\r" } else { key };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code,
            });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.evaluate("window.isOld = true");
        self.call("Page.reload", json!({}));
        self.until("!window.isOld && document.readyState === 'complete'");
    }

    /// Gives the page another size.
    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 1000});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Roles and names as a screen reader finds them.
    pub fn accessibility(&self) -> Vec<(String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().expect("nodes").iter();
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        nodes
            .map(|node| (text(&node["role"]), text(&node["name"])))
            .collect()
    }

    /// What the browser has complained about: exceptions, and what the policy forbids.
    pub fn complaints(&self) -> Vec<String> {
        let mut all = self.browser.events("Runtime.exceptionThrown");
        all.extend(self.browser.events("Log.entryAdded"));
        all.iter().map(Value::to_string).collect()
    }

    /// Closes the tab, as a person does: the page is told.
    pub fn close(self) {
        self.call("Page.close", json!({}));
    }
}
