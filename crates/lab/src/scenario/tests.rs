//! What a scenario's file says, and what is wrong with one, by name and line.

use prony_record::{BodyForm, TakeFrom, ThinkTime};

use super::*;

const SHOP: &str = r#"
url = "http://127.0.0.1:8080"
think = "1s"
headers = { Accept = "application/json" }

[[step]]
name = "login"
path = "/login"
form = { user = "u {counter}", password = "{env:PASSWORD}" }
take.token = { json = "$.token" }
take.session = { cookie = "sid" }
expect = { status = [200, "3xx"], json = ["$.token"], time = "1s", headers = ["X-A", "X-B: 1"] }

[[step]]
name = "buy"
method = "PUT"
path = "/buy?s={session}"
headers = { Authorization = "Bearer {token}", accept = "*/*" }
json = { id = 5, name = "a \"{token}\"", list = [1.5, true, { x = "{ y }", e = "{env:QUOTED}" }] }
think = "500ms..2s"
on_failure = "continue"
expect.body = "done"
"#;

fn parsed(text: &str, has_data: bool) -> Result<ScenarioFile, Diagnoses> {
    let variables = |name: &str| match name {
        "PASSWORD" => Some("p&q".to_owned()),
        "QUOTED" => Some("\"".to_owned()),
        _ => None,
    };
    let context = ScenarioContext {
        variables: &variables,
        has_data,
    };
    ScenarioFile::parse(text, "s.toml", &context)
}

#[test]
fn a_file_becomes_steps_and_their_requests() {
    let file = parsed(SHOP, false).unwrap();
    let spec = file.spec();
    let [login, buy] = &spec.flows[0].steps[..] else {
        panic!("two steps");
    };
    assert_eq!((login.body, buy.body), (BodyForm::Form, BodyForm::Json));
    assert_eq!(login.takes.len(), 2);
    assert_eq!(login.takes[1].from, TakeFrom::Json("$.token".into()));
    assert_eq!(login.expected_status.len(), 101);
    let checks = login.checks.as_ref().unwrap();
    assert_eq!(
        (checks.headers.len(), checks.within_ns),
        (2, Some(1_000_000_000))
    );
    let time = |min_ns: u64, max_ns: u64| ThinkTime {
        min_ns: min_ns * 1_000_000,
        max_ns: max_ns * 1_000_000,
    };
    assert_eq!(
        (login.think, buy.think),
        (time(1_000, 1_000), time(500, 2_000))
    );
    assert!(!login.goes_on && buy.goes_on);
    let typed = [("authorization".to_owned(), "none".to_owned())];
    let sent: Vec<String> = file
        .requests("a:1", &typed)
        .unwrap()
        .into_iter()
        .map(|request| String::from_utf8(request.bytes).unwrap().replace('\r', ""))
        .collect();
    insta::assert_snapshot!(sent.join("\n\n"), @r#"
    POST /login HTTP/1.1
    Host: a:1
    Accept: application/json
    Content-Type: application/x-www-form-urlencoded
    authorization: none
    Content-Length: 31

    user=u+{counter}&password=p%26q

    PUT /buy?s={session} HTTP/1.1
    Host: a:1
    accept: */*
    Content-Type: application/json
    authorization: none
    Content-Length: 72

    {"id":5,"list":[1.5,true,{"e":"\"","x":"{ y }"}],"name":"a \"{token}\""}
    "#);
}

fn wrong(text: &str) -> String {
    let all = parsed(text, false).unwrap_err();
    let place = |at: usize| all.text[..at.min(all.text.len())].lines().count().max(1);
    let shown = all.problems.iter().map(|problem| {
        let help = match problem.help.as_str() {
            "" => String::new(),
            help => format!(" ({help})"),
        };
        format!(
            "{}: {}{help}",
            place(problem.span.start + 1),
            problem.message
        )
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_wrong_is_said_by_its_place() {
    let step = "[[step]]\nname = \"a\"\npath = \"/\"\n";
    let messages: Vec<String> = [
        "",
        "step = []",
        "users = 5\n",
        "[[step]]\n",
        "[[step]]\nname = \"a\"\nurl = \"http://b/\"\n",
        "[[step]]\nname = \"a\"\npath = \"x\"\n",
        &format!("{step}naem = 5\n"),
        &format!("{step}{step}"),
        &format!("{step}once = true\n"),
        &format!("{step}body = \"a\"\njson = {{}}\n"),
        &format!("{step}think = \"2s..1s\"\n"),
        &format!("{step}on_failure = \"stop\"\n"),
        &format!("{step}take.x = \"$.a\"\n"),
        &format!("{step}take.x = {{ json = \"$.a\", header = \"B\" }}\n"),
        &format!("{step}take.x = {{ regex = \"(\" }}\n"),
        &format!("{step}take.counter = {{ json = \"$.a\" }}\n"),
        &format!("{step}take.\"a b\" = {{ json = \"$.a\" }}\n"),
        &format!("{step}headers = {{ A = \"{{x}}\" }}\ntake.x = {{ json = \"$.a\" }}\n"),
        &format!("{step}headers = {{ A = \"{{nobody}}\" }}\n"),
        &format!("{step}headers = {{ A = \"{{env:NOBODY}}\" }}\n"),
        &format!("{step}headers = {{ \"A:\" = \"b\" }}\n"),
        &format!("{step}expect = {{ status = \"9xx\", json = [\"a\"] }}\n"),
        &format!("url = \"http://a/b\"\n{step}"),
        &format!("{step}[[scenario]]\nname = \"b\"\n"),
    ]
    .into_iter()
    .map(wrong)
    .collect();
    insta::assert_snapshot!(messages.join("\n---\n"));
}

#[test]
fn a_name_may_be_a_column_where_there_is_a_data_file() {
    let text = "[[step]]\nname = \"a\"\npath = \"/{user}\"\n";
    assert!(parsed(text, false).is_err());
    assert!(parsed(text, true).is_ok());
}

#[test]
fn several_scenarios_have_weights_and_what_all_of_their_steps_have() {
    let text = "think = \"1s\"\n\
                [[scenario]]\nname = \"reader\"\nweight = 3\n[[scenario.step]]\nname = \"a\"\npath = \"/\"\n\
                [[scenario]]\nname = \"buyer\"\nthink = \"2s\"\n[[scenario.step]]\nname = \"a\"\npath = \"/\"\n";
    let spec = parsed(text, false).unwrap().spec();
    let both: Vec<_> = spec
        .flows
        .iter()
        .map(|flow| (flow.name.as_str(), flow.weight, flow.steps[0].think.min_ns))
        .collect();
    assert_eq!(
        both,
        [("reader", 3, 1_000_000_000), ("buyer", 1, 2_000_000_000)]
    );
}
