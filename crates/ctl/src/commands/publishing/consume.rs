//! Consuming a queue or stream until there is no need for more.

use crate::amqp;
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::{Format, Style};
use crate::input::Input;
use crate::pairs;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, option, options, required};
use courser_client::{Connection, ConsumeOptions, Consumer, Delivery, FieldTable};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Messages that the broker sends before one of them is acknowledged.
const PREFETCH: u16 = 100;
/// Bytes of messages that wait to be printed, from which on no more are read.
const BUFFER_BYTES: usize = 32 << 20;
/// What a process that Ctrl-C has ended ends with.
const INTERRUPTED: i32 = 130;

pub(super) const SPEC: Spec = Spec {
    name: "consume",
    about: "Print messages of a queue or stream as they come, until Ctrl-C or --count",
    arguments: &[
        required("queue", "The queue's name"),
        option("count", "End after this many messages [default: never]"),
        option("prefetch", "Messages on their way at the same time [default: 100; with --count 1]"),
        option(
            "offset",
            "Where to begin in a stream: first, last, next, a number, or an interval such as 1h [default: next]",
        ),
        options("argument", "An argument of the consumer, may be repeated, such as x-priority=10"),
    ],
    examples: &[
        "consume greetings",
        "consume greetings --count 1",
        "consume log --offset first --formatter json | jq .payload",
        "--url https://broker:15671 --user ops --password-file pw consume -p orders failed",
    ],
    intent: "Consuming from queue '{queue}' in vhost '{vhost}', acknowledging what is printed; Ctrl-C ends it ...",
    action: Action::Run(consume),
};

fn consume(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    if matches!(session.style.format, Format::PrettyTable | Format::Erlang) {
        let why = "messages are printed as they come: use the formatters table, csv or json_stream";
        return Err(Failure::usage(why));
    }
    let count = input.count("count")?;
    let prefetch = match input.count("prefetch")?.map(u16::try_from) {
        Some(Ok(prefetch)) => prefetch,
        Some(Err(_)) => return Err(Failure::usage(format!("prefetch: at most {}", u16::MAX))),
        // No more are taken than are printed.
        None if count.is_some() => 1,
        None => PREFETCH,
    };
    let queue = input.text("queue").to_owned();
    let (arguments, style) = (arguments(input)?, session.style);
    session.client.amqp(input.vhost(), async move |connection| {
        let channel = connection.open_channel().await.map_err(|error| amqp::failure(&error))?;
        channel.qos(prefetch).await.map_err(|error| amqp::failure(&error))?;
        let buffer_bytes = Some(BUFFER_BYTES);
        let options = ConsumeOptions { arguments, buffer_bytes, ..ConsumeOptions::default() };
        let consumer = channel.consume(&queue, options).await;
        let consumer = consumer.map_err(|error| amqp::failure(&error))?;
        let interrupts = Interrupts::catch();
        let interrupts = interrupts.map_err(|error| Failure::error(UNAVAILABLE, error))?;
        let printing = Printing { style, count, printed: 0 };
        follow(consumer, printing, interrupts).await?;
        close(&connection).await
    })?;
    Ok(Output::Nothing)
}

/// Acknowledgements are on their way until the broker has answered.
async fn close(connection: &Connection) -> Result<(), Failure> {
    connection.close().await.map_err(|error| amqp::failure(&error))
}

fn arguments(input: &Input) -> Result<FieldTable, Failure> {
    let mut arguments = serde_json::Map::new();
    pairs::add_all(&mut arguments, input, "argument")?;
    if let Some(offset) = input.find("offset") {
        let offset = offset.parse::<i64>().map_or_else(|_| offset.into(), Value::from);
        pairs::add(&mut arguments, "x-stream-offset", offset)?;
    }
    amqp::to_table(arguments)
}

/// Prints messages and acknowledges them, until enough are printed, no reader is left, or Ctrl-C.
async fn follow(
    mut consumer: Consumer,
    mut printing: Printing,
    mut interrupts: Interrupts,
) -> Result<(), Failure> {
    while !printing.is_enough() {
        let delivery = tokio::select! {
            biased;
            () = interrupts.next() => return Ok(()),
            delivery = consumer.next() => delivery.map_err(|error| amqp::failure(&error))?,
        };
        let Some(delivery) = delivery else {
            return Err(Failure::error(UNAVAILABLE, "the broker has ended the consumer"));
        };
        // What is read slowly, as by a pager, must not keep the connection from being served.
        let row = amqp::row(&delivery);
        let write = tokio::task::spawn_blocking(move || printing.print(row));
        let written = tokio::select! {
            written = write => written,
            () = interrupts.next() => return Ok(()),
        };
        let is_read;
        (printing, is_read) = written.map_err(|error| Failure::error(UNAVAILABLE, error))??;
        if !is_read {
            return Ok(());
        }
        if printing.is_enough() {
            // Before the last one makes room for another.
            consumer.cancel().await.map_err(|error| amqp::failure(&error))?;
        }
        acknowledge(&delivery)?;
    }
    Ok(())
}

fn acknowledge(delivery: &Delivery) -> Result<(), Failure> {
    delivery.ack().map_err(|error| amqp::failure(&error))
}

/// How messages are printed, and how many there were.
struct Printing {
    style: Style,
    count: Option<u64>,
    printed: u64,
}

impl Printing {
    fn is_enough(&self) -> bool {
        self.count.is_some_and(|count| self.printed >= count)
    }

    /// Prints one, and tells whether it is still read.
    fn print(mut self, row: Vec<Value>) -> Result<(Self, bool), Failure> {
        let columns = amqp::COLUMNS.map(str::to_owned);
        let is_read = self.style.row(&columns, row, self.printed == 0)?;
        self.printed += 1;
        Ok((self, is_read))
    }
}

/// Ctrl-C, and the signal that ends a service. The second one ends the process at once.
struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    fn catch() -> io::Result<Self> {
        let is_second = Arc::new(AtomicBool::new(false));
        for number in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(number, INTERRUPTED, Arc::clone(&is_second))?;
            flag::register(number, Arc::clone(&is_second))?;
        }
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Interrupts { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
