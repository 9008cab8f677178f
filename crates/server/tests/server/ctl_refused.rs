//! What `courser ctl` ends with when it can't do what it is told.

use crate::ctl::{Operated, said};

#[test]
fn output_without_room_is_a_failure_and_no_panic() {
    let broker = Operated::start();
    for arguments in [
        &["list_vhosts"][..],
        &["-q", "list_vhosts"],
        &["status"],
        &["--formatter", "json", "list_vhosts"],
        &["export_definitions", "-"],
        &["hash_password", "secret"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
        let mut command = broker.command();
        command.args(["--data-dir", "data"]).args(arguments).stdout(full);
        let said = said(&mut command);
        assert_eq!(said.code, Some(73), "{arguments:?}: {said:?}");
        assert!(said.error.contains("can't write the output"), "{said:?}");
    }
}
