//! The rows: what is done, on which input, with whose buffer.
//!
//! `reused` writes into a buffer that is lent, `fresh` into a new one each time, as the peer does.
//! `borrowed` reads without a copy, `owned` makes values that can be kept. Nothing can be worked out
//! beforehand: inputs go through `black_box`, at every call where that costs little beside the work,
//! or come from memory that the compiler knows nothing of.

use std::hint::black_box;
use std::io::Read;

use courser_codec::{
    ContentHeader, FieldTable, Frame, FrameKind, Properties, Reader, ShortString, Sink, Table,
    basic, connection,
};

use crate::inputs::{self, text};

/// One row with one way to do it.
pub struct Row {
    /// What is done; the same on all sides of the comparison.
    pub name: &'static str,
    /// With whose buffer.
    pub variant: &'static str,
    /// Does it so many times.
    pub work: Box<dyn FnMut(u64)>,
}

/// All rows in the order of the report.
pub fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    frames(&mut rows);
    methods(&mut rows);
    tables(&mut rows);
    strings(&mut rows);
    headers(&mut rows);
    rows
}

fn row(
    rows: &mut Vec<Row>,
    name: &'static str,
    variant: &'static str,
    mut once: impl FnMut() + 'static,
) {
    let work = Box::new(move |calls| {
        for _ in 0..calls {
            once();
        }
    });
    rows.push(Row { name, variant, work });
}

/// What a lent buffer holds already, as a connection's outbox does. Half a page: buffers that lie
/// about a multiple of 4 KiB apart are copied at half the speed, which is to be no matter of luck.
const OUTBOX_USED: usize = 2048;

fn outbox() -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * 1024);
    out.resize(OUTBOX_USED, 0);
    out
}

/// A row that writes, once into a lent buffer and once into a new one.
fn writing(
    rows: &mut Vec<Row>,
    name: &'static str,
    write: impl Fn(&mut Vec<u8>) + Clone + 'static,
) {
    let (mut out, with_fresh) = (outbox(), write.clone());
    row(rows, name, "reused", move || {
        out.truncate(OUTBOX_USED);
        write(&mut out);
        black_box(&out);
    });
    row(rows, name, "fresh", move || {
        let mut out = Vec::new();
        with_fresh(&mut out);
        black_box(&out);
    });
}

fn frames(rows: &mut Vec<Row>) {
    for (name, len) in [("frame/marshal/100", 100), ("frame/marshal/1024", 1024)] {
        let payload = vec![0; len];
        writing(rows, name, move |out| marshal(&payload, out));
    }
    for (name, len) in [("frame/unmarshal/100", 100), ("frame/unmarshal/1024", 1024)] {
        let input = inputs::frame(len);
        row(rows, name, "borrowed", {
            let input = input.clone();
            move || _ = black_box(Frame::parse(black_box(&input), 131_072))
        });
        row(rows, name, "owned", move || {
            let (frame, _) =
                Frame::parse(black_box(&input), 131_072).expect("a frame").expect("all of it");
            black_box((frame.kind, frame.channel, frame.payload.to_vec()));
        });
    }
    for (name, len) in [("frame/read/4", 4), ("frame/read/1024", 1024)] {
        let (input, mut buffer) = (inputs::frame(len), vec![0; 4096]);
        row(rows, name, "reused", move || {
            _ = black_box(read_frames(black_box(&*input), &mut buffer))
        });
    }
    // A vector is the writer here, which is what a connection gathers its output in.
    let mut target = outbox();
    row(rows, "frame/write/4", "reused", move || {
        target.truncate(OUTBOX_USED);
        marshal(black_box(&[0; 4]), &mut target);
        black_box(&target);
    });
    let (many, mut buffer) = (inputs::frame(64).repeat(256), vec![0; 16 * 1024]);
    row(rows, "frame/read-many/256x64", "reused", move || {
        _ = black_box(read_frames(black_box(&*many), &mut buffer))
    });
    let sizes = [
        ("frame/round-trip/100", 100),
        ("frame/round-trip/1024", 1024),
        ("frame/round-trip/4096", 4096),
        ("frame/round-trip/16384", 16384),
    ];
    for (name, len) in sizes {
        let payload = vec![0; len];
        writing(rows, name, move |out| {
            let start = out.len();
            marshal(&payload, out);
            _ = black_box(Frame::parse(&black_box::<&Vec<u8>>(out)[start..], 131_072));
        });
    }
}

fn marshal(payload: &[u8], out: &mut Vec<u8>) {
    Frame { kind: FrameKind::Method, channel: 1, payload }.encode(out);
}

/// Takes all frames out of a reader through a buffer, as a connection does; gives the bytes in
/// their payloads.
fn read_frames(mut reader: impl Read, buffer: &mut [u8]) -> usize {
    let (mut start, mut end, mut sum) = (0, 0, 0);
    loop {
        while let Some((frame, used)) = Frame::parse(&buffer[start..end], 131_072).expect("frames")
        {
            sum += black_box(frame).payload.len();
            start += used;
        }
        buffer.copy_within(start..end, 0);
        (start, end) = (0, end - start);
        match reader.read(&mut buffer[end..]).expect("memory") {
            0 => return sum,
            read => end += read,
        }
    }
}

fn methods(rows: &mut Vec<Row>) {
    let server = FieldTable::new().with("product", "test").with("version", "1.0");
    writing_with_table(rows, "method/connection.start", server, |server_properties, out| {
        let start = connection::Start {
            version_major: 0,
            version_minor: 9,
            server_properties,
            mechanisms: b"PLAIN",
            locales: b"en_US",
        };
        black_box(start).encode(out);
    });
    let client = FieldTable::new().with("product", "client");
    writing_with_table(rows, "method/connection.start-ok", client, |client_properties, out| {
        let start_ok = connection::StartOk {
            client_properties,
            mechanism: text("PLAIN"),
            response: b"\0guest\0guest",
            locale: text("en_US"),
        };
        black_box(start_ok).encode(out);
    });
    let publish = basic::Publish {
        exchange: text("test.exchange"),
        routing_key: text("test.key"),
        ..Default::default()
    };
    writing(rows, "method/basic.publish", move |out| black_box(&publish).encode(out));
    let mut args = Vec::new();
    publish.encode(&mut args);
    row(rows, "method/basic.publish/decode", "borrowed", move || {
        _ = black_box(basic::Publish::decode(black_box(&args)))
    });
    let deliver = basic::Deliver {
        consumer_tag: text("consumer-123"),
        delivery_tag: 1,
        redelivered: false,
        exchange: text("test.exchange"),
        routing_key: text("test.key"),
    };
    writing(rows, "method/basic.deliver", move |out| black_box(&deliver).encode(out));
    writing(rows, "method/basic.deliver/frame", move |out| black_box(&deliver).write_frame(1, out));
}

/// As `writing`, for a method whose table is encoded anew each time, as the peer does from its map.
fn writing_with_table(
    rows: &mut Vec<Row>,
    name: &'static str,
    table: FieldTable,
    write: impl Fn(Table<'_>, &mut Vec<u8>) + Clone + 'static,
) {
    let (mut entries, mut out) = (Vec::new(), Vec::new());
    row(rows, name, "reused", {
        let (table, write) = (table.clone(), write.clone());
        move || {
            entries.clear();
            out.clear();
            black_box(&table).encode_entries(&mut entries);
            write(Table::from_entries(&entries), &mut out);
            black_box(&out);
        }
    });
    row(rows, name, "fresh", move || {
        let (entries, mut out) = (black_box(&table).to_entries(), Vec::new());
        write(Table::from_entries(&entries), &mut out);
        black_box(&out);
    });
}

fn tables(rows: &mut Vec<Row>) {
    let tables = [
        ("table/encode/2", inputs::table_2()),
        ("table/encode/10", inputs::table_10()),
        ("table/encode/nested", inputs::table_nested()),
    ];
    for (name, table) in tables {
        writing(rows, name, move |out| black_box(&table).encode(out));
    }
    let entries = inputs::table_5().to_entries();
    row(rows, "table/decode/5", "borrowed", {
        let entries = entries.clone();
        move || {
            for entry in Table::from_entries(black_box(&entries)) {
                _ = black_box(entry);
            }
        }
    });
    row(rows, "table/decode/5", "owned", move || {
        _ = black_box(Table::from_entries(black_box(&entries)).to_owned());
    });
}

fn strings(rows: &mut Vec<Row>) {
    // Hidden from the compiler once: at each call it would cost as much as the work.
    let word = black_box(text("hello world"));
    writing(rows, "short-string/encode", move |out| word.encode(out));
    let mut short = Vec::new();
    text("hello world").encode(&mut short);
    row(rows, "short-string/decode", "borrowed", {
        let short = short.clone();
        move || _ = black_box(Reader::new(black_box(&short)).short_str())
    });
    row(rows, "short-string/decode", "owned", move || {
        _ = black_box(Reader::new(black_box(&short)).short_str().map(ShortString::from));
    });
    let content = vec![b'a'; 1000];
    writing(rows, "long-string/encode", move |out| {
        let content = black_box(&content);
        out.put_with(4 + content.len(), |window| {
            window.put_u32(content.len() as u32);
            window.put(content);
        });
    });
    let mut long = 1000u32.to_be_bytes().to_vec();
    long.extend_from_slice(&[b'a'; 1000]);
    row(rows, "long-string/decode", "borrowed", {
        let long = long.clone();
        move || _ = black_box(Reader::new(black_box(&long)).long_str())
    });
    row(rows, "long-string/decode", "owned", move || {
        _ = black_box(Reader::new(black_box(&long)).long_str().map(<[u8]>::to_vec));
    });
}

fn headers(rows: &mut Vec<Row>) {
    let minimal = Properties::default();
    writing(rows, "header/encode/minimal", move |out| black_box(&minimal).encode_header(1024, out));
    let table = inputs::header_table();
    let (mut headers, mut out) = (Vec::new(), Vec::new());
    row(rows, "header/encode/full", "reused", {
        let table = table.clone();
        move || {
            headers.clear();
            out.clear();
            black_box(&table).encode_entries(&mut headers);
            black_box(&inputs::full_properties(&headers)).encode_header(1024, &mut out);
            black_box(&out);
        }
    });
    row(rows, "header/encode/full", "fresh", move || {
        let (headers, mut out) = (black_box(&table).to_entries(), Vec::new());
        black_box(&inputs::full_properties(&headers)).encode_header(1024, &mut out);
        black_box(&out);
    });
    let mut payload = Vec::new();
    inputs::two_properties().encode_header(1024, &mut payload);
    row(rows, "header/decode/2", "borrowed", {
        let payload = payload.clone();
        move || {
            let header = ContentHeader::parse(black_box(&payload)).expect("a header");
            _ = black_box((header.body_size, header.properties.decode()));
        }
    });
    row(rows, "header/decode/2", "owned", {
        let payload = payload.clone();
        move || {
            let header = ContentHeader::parse(black_box(&payload)).expect("a header");
            let properties = header.properties.decode().expect("properties");
            _ = black_box((header.body_size, properties.to_owned()));
        }
    });
    row(rows, "header/parse", "borrowed", move || {
        _ = black_box(ContentHeader::parse(black_box(&payload)))
    });
}

/// Walks all frames, reads every method and content header, and gives something that depends on all
/// of them.
pub fn parse_stream(stream: &[u8]) -> u64 {
    let (mut rest, mut sum) = (stream, 0u64);
    while let Ok(Some((frame, used))) = Frame::parse(rest, 131_072) {
        rest = &rest[used..];
        match frame.kind {
            FrameKind::Method => {
                let publish = basic::Publish::decode(&frame.payload[4..]).expect("a publish");
                sum += publish.exchange.len() as u64 + publish.routing_key.len() as u64;
            }
            FrameKind::Header => {
                sum += ContentHeader::parse(frame.payload).expect("a header").body_size
            }
            FrameKind::Body => sum += frame.payload.len() as u64,
            FrameKind::Heartbeat => {}
        }
    }
    assert!(rest.is_empty());
    sum
}
