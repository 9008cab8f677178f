//! One look, printed as a table: for scripts, and where there is no terminal.

use super::app::App;
use super::look::Look;
use super::view::{Column, Show};
use crate::client::Client;
use crate::failure::{CANT_CREATE, Failure};
use std::io::{self, Write as _};
use unicode_width::UnicodeWidthStr as _;

/// Asks twice, because rates need two looks, and prints the second.
///
/// # Errors
/// If the broker does not answer, or the output can't be written.
pub(crate) fn print(client: &mut Client, app: App) -> Result<(), Failure> {
    Look::take(client, &app.ask)?;
    std::thread::sleep(app.interval);
    let look = Look::take(client, &app.ask)?;
    match io::stdout().lock().write_all(table(&look).as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::error(CANT_CREATE, error)),
    }
}

fn table(look: &Look) -> String {
    let columns = look.ask.view.columns();
    let mut lines = vec![columns.iter().map(|column| column.title.to_owned()).collect::<Vec<_>>()];
    let cell = |column: &Column, row| match column.show {
        Show::Text => column.text(row),
        _ => column.text(row).replace('·', "0"),
    };
    let row = |row| columns.iter().map(|column| cell(column, row)).collect();
    lines.extend(look.rows.iter().map(row));
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| lines.iter().map(|line| line[at].width()).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells = columns.iter().zip(&widths).zip(line).map(|((column, width), cell)| {
            let pad = " ".repeat(width - cell.width());
            if column.show == Show::Text { cell + &pad } else { pad + &cell }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::view::View;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn columns_stand_below_each_other() {
        let app = App::new(String::new(), View::Exchanges, None, Duration::ZERO);
        let look = Look {
            ask: app.ask,
            overview: json!({}),
            node: json!(null),
            attention: Vec::new(),
            rows: vec![
                json!({ "name": "", "vhost": "/", "type": "direct" }),
                json!({ "name": "a·b", "vhost": "/", "type": "fanout" }),
                json!({ "name": "日本", "vhost": "/", "type": "topic", "message_stats": { "publish_in_details": { "rate": 1234.0 } } }),
            ],
            pages: 1,
            count: 2,
            detail: None,
        };
        assert_eq!(
            table(&look),
            "exchange   vhost  type     in/s  out/s\n\
             (default)  /      direct      0      0\n\
             a·b        /      fanout      0      0\n\
             日本       /      topic   1,234      0\n"
        );
    }
}
