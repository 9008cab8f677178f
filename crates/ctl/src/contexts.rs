//! Brokers under names of one's own, in a file that only its owner can read.

use crate::failure::{CANT_CREATE, CONFIG, DATA, Failure};
use crate::target::Login;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A broker with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Its name.
    pub name: String,
    /// Its HTTP API; empty where it is reached by a socket.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Its socket on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A file whose first line is the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// Authorities in PEM form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

impl Context {
    /// The login that is saved.
    pub fn login(&self) -> Login {
        let Context { user, password, password_file, ca, .. } = self.clone();
        Login { user, password, password_file, ca }
    }
}

/// All contexts of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// The one that counts where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// By name, in the order in which they were added.
    #[serde(default)]
    pub contexts: Vec<Context>,
}

/// `~/.config/courser/contexts.yaml`; none where there is no home.
fn path() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
    let folder = folder.map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
        Some(PathBuf::from(home).join(".config"))
    })?;
    Some(folder.join("courser/contexts.yaml"))
}

impl Contexts {
    /// Those in the user's file; none if there is no file.
    ///
    /// # Errors
    /// If the file can't be read, is no such file, or shows a password to others.
    pub fn load() -> Result<Self, Failure> {
        path().map_or_else(|| Ok(Contexts::default()), |path| Contexts::read(&path))
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let fail = |why: &dyn std::fmt::Display| {
            Failure::error(CONFIG, format!("{}: {why}", path.display()))
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contexts::default()),
            Err(error) => return Err(fail(&error)),
        };
        // Without the lines around what is wrong: they may hold a password.
        let unreadable = |error: serde_saphyr::Error| fail(error.without_snippet());
        let read: Option<Contexts> = serde_saphyr::from_str(&text).map_err(unreadable)?;
        let contexts = read.unwrap_or_default();
        let mode = fs::metadata(path).map_err(|error| fail(&error))?.permissions().mode();
        if mode & 0o077 != 0 && contexts.contexts.iter().any(|one| one.password.is_some()) {
            return Err(fail(
                &"it contains a password and others can read it: run chmod 600 on it",
            ));
        }
        Ok(contexts)
    }

    /// Writes them to the user's file, whole or not at all.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn save(&self) -> Result<(), Failure> {
        let path = path().ok_or_else(|| {
            Failure::error(CONFIG, "there is no home folder for the contexts file: set HOME")
        })?;
        self.write(&path).map_err(|error| {
            Failure::error(CANT_CREATE, format!("can't write {}: {error}", path.display()))
        })
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_saphyr::to_string(self).map_err(io::Error::other)?;
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let new = path.with_extension("yaml.new");
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        // One that was left behind keeps the mode that it had.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    }

    /// The context of this name, or else the current one.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn chosen(&self, name: Option<&str>) -> Result<Option<&Context>, Failure> {
        let Some(name) = name.or(self.current.as_deref()) else { return Ok(None) };
        self.named(name).map(Some)
    }

    /// The context of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(&self, name: &str) -> Result<&Context, Failure> {
        self.contexts.iter().find(|context| context.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.contexts.iter().map(|one| &*one.name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Failure::error(DATA, format!("there is no context '{name}'; saved contexts: {known}"))
        })
    }

    /// Adds a context, in the place of one of the same name. The first one is the current one.
    pub fn put(&mut self, context: Context) {
        if self.contexts.is_empty() {
            self.current = Some(context.name.clone());
        }
        match self.contexts.iter_mut().find(|known| known.name == context.name) {
            Some(known) => *known = context,
            None => self.contexts.push(context),
        }
    }

    /// Takes one away.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn remove(&mut self, name: &str) -> Result<(), Failure> {
        self.named(name)?;
        self.contexts.retain(|context| context.name != name);
        if self.current.as_deref() == Some(name) {
            self.current = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(name: &str) -> Context {
        let password = Some("it's: \"#secret\"".to_owned());
        Context { name: name.into(), url: "http://h:1".into(), password, ..Context::default() }
    }

    #[test]
    fn what_is_written_is_read_and_other_users_cannot_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/contexts.yaml");
        let mut contexts = Contexts::default();
        contexts.put(context("one"));
        contexts.put(context("two"));
        contexts.put(Context { url: "http://other".into(), ..context("two") });
        contexts.write(&path).expect("written");
        assert_eq!(Contexts::read(&path), Ok(contexts.clone()));
        assert_eq!(contexts.current.as_deref(), Some("one"));
        assert_eq!(contexts.named("two").expect("it").url, "http://other");
        let mode = fs::metadata(&path).expect("it").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
        let failure = Contexts::read(&path).expect_err("others can read it");
        assert_eq!(failure.code, CONFIG);
        assert!(failure.text.contains("chmod 600"), "{failure}");
    }

    #[test]
    fn a_file_with_a_mistake_is_refused_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("contexts.yaml");
        fs::write(&path, "contexts:\n  - name: a\n    uri: http://b\n").expect("written");
        let failure = Contexts::read(&path).expect_err("a mistake");
        assert!(failure.code == CONFIG && failure.text.contains("uri"), "{failure}");
    }

    #[test]
    fn what_is_removed_is_not_the_current_one_any_more() {
        let mut contexts = Contexts::default();
        contexts.put(context("one"));
        contexts.remove("one").expect("removed");
        assert_eq!(contexts.chosen(None), Ok(None));
        assert!(contexts.chosen(Some("one")).is_err());
        assert!(contexts.remove("one").is_err());
    }
}
