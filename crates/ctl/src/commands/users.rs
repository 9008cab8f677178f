//! Users, their passwords and tags.

use crate::client::{body, good, segment};
use crate::failure::{DATA, Failure, NO_USER, SOFTWARE, UNAVAILABLE};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{
    Action, Body, Change, Output, Spec, any, flag, harmless, optional, refused, required,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const USER: crate::spec::Argument = required("user", "The user's name");
const PASSWORD: crate::spec::Argument =
    optional("password", "The password; read from standard input if left out");

/// What the API says to a user whose password is right, and who has no tag.
const NO_TAG: &str = "Not management user";

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "add_user",
        about: "Create a user, without access to any vhost yet",
        arguments: &[
            USER,
            PASSWORD,
            flag(
                "pre-hashed-password",
                "The password is its salted SHA-256 hash, as hash_password prints it",
            ),
        ],
        examples: &["add_user alice < password.txt", "add_user alice s3cret"],
        intent: "Adding user \"{user}\" ...",
        action: Action::Run(add),
    },
    Spec {
        name: "delete_user",
        about: "Delete a user",
        arguments: &[USER],
        examples: &["delete_user alice"],
        intent: "Deleting user \"{user}\" ...",
        action: Action::Change(Change {
            method: "DELETE",
            path: "/api/users/{user}",
            body: Body::Nothing,
            refusals: &[harmless(404, "There is no user \"{user}\"")],
            done: "",
        }),
    },
    Spec {
        name: "change_password",
        about: "Change a user's password",
        arguments: &[USER, PASSWORD],
        examples: &["change_password alice < password.txt"],
        intent: "Changing password for user \"{user}\" ...",
        action: Action::Run(change_password),
    },
    Spec {
        name: "clear_password",
        about: "Remove a user's password; only a certificate then logs it in",
        arguments: &[USER],
        examples: &["clear_password alice"],
        intent: "Clearing password for user \"{user}\" ...",
        action: Action::Run(clear_password),
    },
    Spec {
        name: "set_user_tags",
        about: "Set a user's tags: administrator, monitoring, policymaker, management",
        arguments: &[USER, any("tags", "Its new tags; none removes all")],
        examples: &["set_user_tags alice monitoring", "set_user_tags alice"],
        intent: "Setting tags for user \"{user}\" to [{tags}] ...",
        action: Action::Change(Change {
            method: "PUT",
            path: "/api/users/{user}/tags",
            body: Body::Made(|input| Ok(json!({ "tags": input.texts("tags") }))),
            refusals: &[refused(404, NO_USER, "User \"{user}\" does not exist")],
            done: "",
        }),
    },
    Spec {
        name: "authenticate_user",
        about: "Check a user's password",
        arguments: &[USER, PASSWORD],
        examples: &["authenticate_user alice < password.txt"],
        intent: "Authenticating user \"{user}\" ...",
        action: Action::Run(authenticate),
    },
    Spec {
        name: "hash_password",
        about: "Print the salted SHA-256 hash of a password, for definitions",
        arguments: &[PASSWORD],
        examples: &["-q hash_password < password.txt"],
        intent: "",
        action: Action::Run(hash),
    },
];

/// Fails if there is no such user.
pub(super) fn known(session: &mut Session, input: &Input) -> Result<(), Failure> {
    let name = input.text("user");
    match session.client.find(&format!("/api/users/{}", segment(name)))? {
        Some(_) => Ok(()),
        None => Err(Failure::error(NO_USER, format!("User \"{name}\" does not exist"))),
    }
}

/// Fails if it is known that there is no such user. Not everybody may ask.
pub(super) fn refuse_unknown(session: &mut Session, name: &str) -> Result<(), Failure> {
    match session.client.find(&format!("/api/users/{}", segment(name))) {
        Ok(None) => Err(Failure::error(NO_USER, format!("User \"{name}\" does not exist"))),
        _ => Ok(()),
    }
}

fn add(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let name = input.text("user");
    let path = format!("/api/users/{}", segment(name));
    let password = input.password()?;
    // A broker of an earlier version ignores the header, and would replace the user.
    if session.client.find(&path)?.is_some() {
        return Err(already_exists(name));
    }
    let user = match input.has("pre-hashed-password") {
        true => json!({ "tags": [], "password_hash": password }),
        false => json!({ "tags": [], "password": password }),
    };
    // Another may make it at the same time.
    let only_new = [("if-none-match", "*")];
    let answer = session.client.call_with(Method::PUT, &path, body(&user), &only_new)?;
    if answer.status == 412 {
        return Err(already_exists(name));
    }
    good(answer)?;
    Ok(Output::Text(
        "Done. Don't forget to grant the user permissions to some virtual hosts! See 'courser ctl help \
         set_permissions' to learn more."
            .to_owned(),
    ))
}

fn already_exists(name: &str) -> Failure {
    Failure::error(SOFTWARE, format!("User \"{name}\" already exists"))
}

fn change_password(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let password = input.password()?;
    set_password(session, input, &json!({ "password": password }))
}

fn clear_password(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    set_password(session, input, &json!({ "password_hash": "" }))
}

/// Sets only the password of a user.
fn set_password(session: &mut Session, input: &Input, sent: &Value) -> Result<Output, Failure> {
    let path = format!("/api/users/{}/password", segment(input.text("user")));
    let answer = session.client.call(Method::PUT, &path, body(sent))?;
    if answer.status == 404 {
        known(session, input)?;
        let why = "this broker can't set the password of a user alone: it is of an earlier version";
        return Err(Failure::error(UNAVAILABLE, why));
    }
    good(answer)?;
    Ok(Output::Nothing)
}

fn authenticate(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let (name, password) = (input.text("user"), input.password()?);
    let answer = session.client.log_in(name, &password)?;
    let reason = answer.reason();
    // A user without a tag has a good password and may still not use the API.
    if answer.is_good() || answer.status == 401 && reason == NO_TAG {
        return Ok(Output::Text("Success".to_owned()));
    }
    if answer.status != 401 {
        return good(answer).map(|_| Output::Nothing);
    }
    if reason != "Not_Authorized" {
        // The broker has not looked at the password, or does not say what it thinks of it.
        let text = format!("the password of user \"{name}\" can't be checked: {reason}");
        return Err(Failure::error(UNAVAILABLE, text));
    }
    let text = format!(
        "Error: failed to authenticate user \"{name}\"\nuser '{name}' - invalid credentials"
    );
    Err(Failure::error(DATA, text))
}

fn hash(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let password = input.password()?;
    session.style.say("Will hash the password")?;
    let mut salt = [0; 4];
    getrandom::fill(&mut salt).map_err(|error| {
        Failure::error(SOFTWARE, format!("the system gives no random numbers: {error}"))
    })?;
    let digest = Sha256::new().chain_update(salt).chain_update(password.as_bytes()).finalize();
    Ok(Output::Text(STANDARD.encode([&salt[..], &digest].concat())))
}
