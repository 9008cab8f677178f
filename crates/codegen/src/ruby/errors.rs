//! The reply codes as exception classes.

use super::lines::Lines;
use super::notice;
use crate::model::{Closes, Protocol};
use crate::names::pascal;

pub(super) fn render(protocol: &Protocol) -> String {
    let mut lines = Lines::default();
    lines.line("# frozen_string_literal: true");
    lines.line("");
    notice().iter().for_each(|line| lines.line(line));
    lines.line("");
    lines.block("module AMQ", |lines| {
        lines.block("module Protocol", |lines| {
            let mut separate = false;
            for code in &protocol.reply_codes {
                let parent = match code.closes {
                    Some(Closes::Channel) => "SoftError",
                    Some(Closes::Connection) => "HardError",
                    None => continue,
                };
                if separate {
                    lines.line("");
                }
                separate = true;
                lines.comment(&code.doc);
                lines.block(format!("class {} < {parent}", pascal(&code.name)), |lines| {
                    lines.line(format!("VALUE = {}", code.value));
                });
            }
        });
    });
    lines.into_text()
}
