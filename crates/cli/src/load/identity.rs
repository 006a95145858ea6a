//! Credentials and forms that `prony load` sends.

use anyhow::bail;
use clap::Args;
use prony_load::has_fields;
use prony_load::prepare::form_encoded;
use prony_wire::encode::basic;

/// Words about credentials and forms.
#[derive(Debug, Args)]
#[command(next_help_heading = "Credentials and forms")]
pub struct IdentityWords {
    /// Send this name and password (basic authentication)
    #[arg(long, value_name = "NAME:PASSWORD", conflicts_with = "bearer")]
    pub user: Option<String>,
    /// Send this token: `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "TOKEN")]
    pub bearer: Option<String>,
    /// Send a form with this field, by POST; may be repeated
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["body", "body_file"])]
    pub form: Vec<String>,
    /// Keep the cookies that the server sets, for each connection by itself, and send them back; of HTTP/2 those that came before a stream began
    #[arg(long, conflicts_with_all = ["pipeline", "no_keepalive"])]
    pub cookies: bool,
}

/// The headers that these words add.
pub fn headers(words: &IdentityWords) -> anyhow::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    if let Some(user) = &words.user {
        if !user.contains(':') {
            bail!("--user is NAME:PASSWORD: there is no colon in it");
        }
        if has_fields(user.as_bytes(), &[]) {
            bail!("--user has no fields: send them with -H 'Authorization: …'");
        }
        headers.push(("Authorization".to_owned(), basic(user)));
    }
    if let Some(token) = &words.bearer {
        headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    if !words.form.is_empty() {
        let of = "application/x-www-form-urlencoded";
        headers.push(("Content-Type".to_owned(), of.to_owned()));
    }
    Ok(headers)
}

/// The body of a form; `None` where none is sent. Fields such as `{random}` stay fields.
pub fn form(words: &IdentityWords) -> anyhow::Result<Option<String>> {
    if words.form.is_empty() {
        return Ok(None);
    }
    let mut fields = Vec::new();
    for text in &words.form {
        let Some((name, value)) = text.split_once('=') else {
            bail!("`{text}` is no field of a form: write it as NAME=VALUE");
        };
        fields.push(format!("{}={}", form_encoded(name), with_fields(value)));
    }
    Ok(Some(fields.join("&")))
}

/// A value of a form in which names in braces are kept.
fn with_fields(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, from)) = rest.split_once('{') {
        out.push_str(&form_encoded(before));
        let end = from.find('}');
        let field = end.map(|end| &rest[before.len()..before.len() + end + 2]);
        match field.filter(|field| has_fields(field.as_bytes(), &[])) {
            Some(field) => {
                out.push_str(field);
                rest = &from[field.len() - 1..];
            }
            None => {
                out.push_str("%7B");
                rest = from;
            }
        }
    }
    out.push_str(&form_encoded(rest));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(form: &[&str]) -> IdentityWords {
        IdentityWords {
            user: None,
            bearer: None,
            form: form.iter().map(|text| (*text).to_owned()).collect(),
            cookies: false,
        }
    }

    #[test]
    fn a_form_is_encoded_and_its_fields_stay() {
        let body = form(&words(&["a b=c&d", "n={random}", "j={ x}{}"])).expect("a form");
        assert_eq!(
            body.as_deref(),
            Some("a+b=c%26d&n={random}&j=%7B+x%7D%7B%7D")
        );
        assert!(form(&words(&["a"])).is_err());
    }

    #[test]
    fn credentials_are_headers() {
        let of = |user: &str| {
            let words = IdentityWords {
                user: Some(user.to_owned()),
                ..words(&[])
            };
            headers(&words)
        };
        assert_eq!(of("a:b").expect("a header")[0].1, "Basic YTpi");
        assert!(of("a").is_err() && of("a:{random}").is_err());
    }
}
