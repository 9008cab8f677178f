//! What TLS connections of clients can be like.

use crate::failure::Failure;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, flag, option};
use serde_json::{Value, json};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "cipher_suites",
        about: "List the cipher suites that the broker's settings allow",
        arguments: &[
            option("format", "openssl or iana: whose names are shown [default: openssl]"),
            flag("all", "Also those that the oldest version of TLS in the settings rules out"),
        ],
        examples: &["cipher_suites", "cipher_suites --format iana --all"],
        intent: "Listing available cipher suites ...",
        action: Action::Run(suites),
    },
    Spec {
        name: "tls_versions",
        about: "List the versions of TLS that the broker supports; its settings may allow fewer",
        arguments: &[],
        examples: &["-q tls_versions"],
        intent: "Listing all TLS versions supported by the broker ...",
        action: Action::Run(versions),
    },
];

/// The names of what is wanted.
fn names(list: &Value, is_wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let wanted = list.as_array().into_iter().flatten().filter(|one| is_wanted(one));
    wanted.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

fn suites(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let rename: fn(&str) -> String = match input.find("format").unwrap_or("openssl") {
        "openssl" => of_openssl,
        "iana" => str::to_owned,
        other @ ("erlang" | "map") => {
            return Err(Failure::usage(format!(
                "the broker is not an Erlang program and has no names in the format {other}: use openssl or iana"
            )));
        }
        other => {
            return Err(Failure::usage(format!("Format should be openssl or iana, not {other}")));
        }
    };
    let found = session.client.get("/api/tls")?;
    let is_wanted = |suite: &Value| input.has("all") || suite["enabled"] == true;
    let names = names(&found["cipher_suites"], is_wanted);
    let names: Vec<String> = names.iter().map(|name| rename(name)).collect();
    Ok(Output::Both(crate::format::lines(&names), json!(names)))
}

/// A suite's name as OpenSSL has it: those of TLS 1.3 are the same there, and the others say less.
fn of_openssl(name: &str) -> String {
    let Some((exchange, cipher)) =
        name.strip_prefix("TLS_").and_then(|rest| rest.split_once("_WITH_"))
    else {
        return name.to_owned();
    };
    // The hash goes without saying there.
    let cipher =
        cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305").replace("AES_", "AES");
    format!("{exchange}_{cipher}").replace('_', "-")
}

fn versions(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let names = names(&session.client.get("/api/tls")?["versions"], |_| true);
    Ok(Output::Both(crate::format::lines(&names), json!({ "versions": names })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_the_names_that_openssl_has_for_them() {
        for (iana, openssl) in [
            ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ] {
            assert_eq!(of_openssl(iana), openssl);
        }
    }
}
