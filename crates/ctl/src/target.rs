//! Which broker is meant: by options, by the environment, by a context, or the one on this machine.

use crate::contexts::{Context, Contexts};
use crate::failure::{CONFIG, DATA, Failure, UNAVAILABLE, say_error};
use hyper::Uri;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The name of the socket in a broker's data folder.
pub const SOCKET: &str = "ctl.sock";
/// Where the package's broker keeps its data.
const PACKAGED_DATA: &str = "/var/lib/courser";
/// Where a broker keeps its data that is told nothing.
const USUAL_DATA: &str = "courser-data";
/// Bytes of a file with a password.
const PASSWORD_FILE_BYTES_MAX: u64 = 4096;

/// A broker, and how to get at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The socket of a broker on this machine; no credentials are needed.
    Local(PathBuf),
    /// Its HTTP API.
    Http(Remote),
}

/// An HTTP API somewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// Whether TLS is spoken.
    pub tls: bool,
    /// The host's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What stands before `/api`; empty or with a slash in front.
    pub prefix: String,
    /// Who asks.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// The authorities that the broker's certificate may come from; the machine's own if not said.
    pub ca: Option<PathBuf>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remote({self})")
    }
}

impl std::fmt::Display for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        let host = &self.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        write!(f, "{scheme}://{host}:{}{}", self.port, self.prefix)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Local(path) => write!(f, "{}", path.display()),
            Target::Http(remote) => remote.fmt(f),
        }
    }
}

/// A login at an HTTP API, or part of one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// Who asks.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// Authorities in PEM form.
    pub ca: Option<PathBuf>,
}

impl Login {
    /// Leaves out what is the password of another user.
    fn leave_out_password_of_another(&mut self, user: &str) {
        if self.user.as_deref().is_some_and(|own| own != user) {
            (self.password, self.password_file) = (None, None);
        }
    }

    /// The password, if it is said here or in a file that is named here.
    fn secret(&self) -> Result<Option<String>, Failure> {
        match (&self.password, &self.password_file) {
            (Some(password), _) => Ok(Some(password.clone())),
            (None, Some(file)) => password_of(file).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// What the command line and the environment say of the broker.
#[derive(Clone, Default)]
pub struct Wanted {
    /// `http://HOST:PORT`, or `https`.
    pub url: Option<String>,
    /// The login that options say.
    pub options: Login,
    /// The login that the environment says.
    pub environment: Login,
    /// The name of a context.
    pub context: Option<String>,
    /// Whether the context is an option: its login counts before that of the environment.
    pub is_context_option: bool,
    /// The data folder of a broker on this machine.
    pub data_dir: Option<PathBuf>,
}

impl Wanted {
    /// The broker that is meant.
    ///
    /// # Errors
    /// If what is said is wrong, or says nothing and no broker is found.
    pub fn resolve(self) -> Result<Target, Failure> {
        if let Some(url) = self.url.clone() {
            return self.remote(&url, &Context::default()).map(Target::Http);
        }
        if self.context.is_none()
            && let Some(folder) = &self.data_dir
        {
            self.refuse_credentials()?;
            return Ok(Target::Local(folder.join(SOCKET)));
        }
        let contexts = Contexts::load()?;
        if let Some(context) = contexts.chosen(self.context.as_deref())? {
            return match &context.socket {
                Some(socket) => {
                    self.refuse_credentials()?;
                    Ok(Target::Local(socket.clone()))
                }
                None => self.remote(&context.url, context).map(Target::Http),
            };
        }
        self.refuse_credentials()?;
        local()
    }

    /// Over a socket everybody is an administrator. A caller who gives a login wants to be another user.
    fn refuse_credentials(&self) -> Result<(), Failure> {
        match self.options == Login::default() {
            true => Ok(()),
            false => Err(Failure::usage(
                "--user, --password-file and --ca have no effect with the local socket, which needs no login: add \
                 --url, which says where the broker's HTTP API is",
            )),
        }
    }

    /// What is to be said of a login in the environment where the socket is used; it may be meant for others.
    pub fn warning(&self) -> Option<&'static str> {
        let Login { user, password, .. } = &self.environment;
        let has_login = user.is_some() || password.is_some();
        has_login.then_some(
            "Warning: COURSER_CTL_USER and COURSER_CTL_PASSWORD have no effect with the local socket, which needs no \
             login; add --url to log in",
        )
    }

    fn remote(mut self, url: &str, context: &Context) -> Result<Remote, Failure> {
        let mut remote = parse(url)?;
        let mut saved = context.login();
        let user = self.ranked(&saved).iter().find_map(|login| login.user.clone());
        remote.user = user.ok_or_else(|| {
            Failure::usage(format!("{url} needs a login: give --user, and the password with --password-file or COURSER_CTL_PASSWORD"))
        })?;
        // The saved password is that of the saved user, and one in the environment that of the user there, unless an option says
        // whose it is.
        saved.leave_out_password_of_another(&remote.user);
        if self.options.user.is_none() {
            self.environment.leave_out_password_of_another(&remote.user);
        }
        let logins = self.ranked(&saved);
        let secret = logins.iter().find_map(|login| login.secret().transpose()).transpose()?;
        remote.password = secret.ok_or_else(|| {
            let user = &remote.user;
            Failure::usage(format!("the password of {user} is missing: give --password-file, or set COURSER_CTL_PASSWORD"))
        })?;
        remote.ca = logins.iter().find_map(|login| login.ca.clone());
        if remote.ca.is_some() && !remote.tls {
            return Err(Failure::usage(format!("--ca needs an https URL, not {url}")));
        }
        Ok(remote)
    }

    /// The logins that are known: what the first ones do not say, the others do.
    fn ranked<'a>(&'a self, saved: &'a Login) -> [&'a Login; 3] {
        match self.is_context_option {
            true => [&self.options, saved, &self.environment],
            false => [&self.options, &self.environment, saved],
        }
    }
}

/// The parts of a URL, without credentials.
pub fn parse(url: &str) -> Result<Remote, Failure> {
    let wrong = |why: &str| Failure::usage(format!("'{url}' is not the URL of a broker: {why}"));
    let uri: Uri =
        url.parse().map_err(|_| wrong("expected a URL such as http://127.0.0.1:15672"))?;
    let tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong("it must begin with http:// or https://")),
    };
    let authority = uri.authority().ok_or_else(|| wrong("the host is missing"))?;
    if authority.as_str().contains('@') {
        // Everybody on the machine sees the arguments of a program.
        return Err(Failure::usage(
            "a URL must not hold a password: use --user and --password-file, or COURSER_CTL_PASSWORD",
        ));
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = authority.port_u16().unwrap_or(if tls { 15671 } else { 15672 });
    let path = uri.path().trim_end_matches('/');
    let prefix = path.strip_suffix("/api").unwrap_or(path).to_owned();
    if uri.query().is_some() {
        return Err(wrong("it must not have a query"));
    }
    Ok(Remote { tls, host, port, prefix, user: String::new(), password: String::new(), ca: None })
}

/// The first line of a file.
pub fn password_of(file: &Path) -> Result<String, Failure> {
    let fail = |why: &dyn std::fmt::Display| {
        Failure::error(DATA, format!("can't read the password from {}: {why}", file.display()))
    };
    let opened = std::fs::File::open(file).map_err(|error| fail(&error))?;
    let mut text = String::new();
    opened.take(PASSWORD_FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| fail(&error))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(fail(&"its first line is empty")),
    }
}

/// Whether others than the caller and root have made this folder of a broker, a link in its place, or the socket in it.
fn is_of_others(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let (link, target) = (std::fs::symlink_metadata(folder), std::fs::metadata(folder));
    let found = [link, target, std::fs::symlink_metadata(folder.join(SOCKET))];
    found.into_iter().flatten().any(|found| ![0, own].contains(&found.uid()))
}

/// The folders to look for the broker on this machine in.
fn folders() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os("COURSER_DATA_DIR") {
        return vec![named.into()];
    }
    let (usual, packaged) = (PathBuf::from(USUAL_DATA), PathBuf::from(PACKAGED_DATA));
    // Where all may write, as in /tmp, others could wait there for commands, and passwords in them.
    if is_of_others(&usual) {
        say_error(&format_args!(
            "Warning: ./{USUAL_DATA} belongs to another user and is left out: if its broker is meant, add --data-dir \
             {USUAL_DATA}"
        ));
        return vec![packaged];
    }
    vec![usual, packaged]
}

/// The broker on this machine.
fn local() -> Result<Target, Failure> {
    let folders = folders();
    let sockets: Vec<PathBuf> = folders.iter().map(|folder| folder.join(SOCKET)).collect();
    for socket in &sockets {
        match std::fs::metadata(socket) {
            Ok(found) if found.file_type().is_socket() => return Ok(Target::Local(socket.clone())),
            Ok(_) => {
                let text = format!("{} is not a socket", socket.display());
                return Err(Failure::error(CONFIG, text));
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let text = format!(
                    "{} belongs to the user that the broker runs as: become that user or root, or give \
                     an HTTP API with --url",
                    socket.display()
                );
                return Err(Failure::error(crate::failure::NO_PERMISSION, text));
            }
            Err(_) => {}
        }
    }
    let looked: Vec<String> = sockets.iter().map(|socket| socket.display().to_string()).collect();
    Err(Failure::error(
        UNAVAILABLE,
        format!(
            "no broker was found on this machine: there is no {}. Give its data folder with --data-dir, or its \
             HTTP API with --url",
            looked.join(", and no ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let remote = parse("https://broker.example.com/mq/api/").expect("a URL");
        assert_eq!((remote.tls, &*remote.host, remote.port), (true, "broker.example.com", 15671));
        assert_eq!(remote.prefix, "/mq");
        let remote = parse("http://[::1]:8080").expect("a URL");
        assert_eq!((&*remote.host, remote.port, &*remote.prefix), ("::1", 8080, ""));
        assert_eq!(remote.to_string(), "http://[::1]:8080");
    }

    #[test]
    fn a_url_that_says_too_much_or_too_little_is_refused() {
        for url in
            ["broker", "ftp://broker", "http://me:secret@broker", "http://broker/?a=b", "http://"]
        {
            let failure = parse(url).expect_err(url);
            assert_eq!(failure.code, crate::failure::USAGE, "{url}");
            assert!(!failure.text.contains("secret"), "{failure}");
        }
    }

    #[test]
    fn a_folder_a_link_or_a_socket_of_another_user_is_of_others() {
        use std::os::unix::fs::{chown, lchown, symlink};
        let parent = tempfile::tempdir().expect("a folder");
        let (folder, link) = (parent.path().join("data"), parent.path().join("link"));
        std::fs::create_dir(&folder).expect("a folder");
        symlink(&folder, &link).expect("a link");
        let socket = folder.join(SOCKET);
        assert!(!is_of_others(&folder), "without a socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        assert!(!is_of_others(&folder) && !is_of_others(&link));
        assert!(!is_of_others(Path::new("/")), "root may have made it");
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let other = Some(12_345);
        lchown(&link, other, None).expect("given away");
        assert!(is_of_others(&link) && !is_of_others(&folder));
        lchown(&link, Some(0), None).expect("taken back");
        chown(&socket, other, None).expect("given away");
        assert!(is_of_others(&folder));
        chown(&socket, Some(0), None).expect("taken back");
        chown(&folder, other, None).expect("given away");
        assert!(is_of_others(&folder) && is_of_others(&link));
    }

    #[test]
    fn credentials_without_an_address_are_refused() {
        let folder = Some(PathBuf::from("data"));
        let login = Login { user: Some("me".into()), ..Login::default() };
        let environment = login.clone();
        let said = Wanted { environment, data_dir: folder, ..Wanted::default() };
        let found = said.clone().resolve().expect("one of the environment is only warned of");
        assert_eq!(found, Target::Local("data/ctl.sock".into()));
        assert!(said.warning().is_some_and(|text| text.contains("no effect")));
        let failure = Wanted { options: login, ..said }.resolve().expect_err("an option");
        assert_eq!(failure.code, crate::failure::USAGE);
        assert!(failure.text.contains("add --url"), "{failure}");
    }
}
