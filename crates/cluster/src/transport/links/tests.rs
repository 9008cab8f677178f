use super::*;
use crate::transport::frames::Frame;
use raft::eraftpb::{Entry, Message, MessageType};

/// Some parts, and not all of the last one.
const LONG_BYTES: usize = 3 * PART_BYTES + 100;

fn packet(kind: MessageType, entry_bytes: Option<usize>) -> Packet {
    let mut message = Message { from: 2, to: 1, ..Message::default() };
    message.set_msg_type(kind);
    let entry = |bytes| Entry {
        index: 1,
        term: 1,
        data: (0..bytes).map(|at| (at % 251) as u8).collect::<Vec<_>>().into(),
        context: b"f"[..].into(),
        ..Entry::default()
    };
    message.entries = entry_bytes.map(entry).into_iter().collect::<Vec<_>>().into();
    Packet { message }
}

fn long() -> Packet {
    packet(MessageType::MsgAppend, Some(LONG_BYTES))
}

fn word() -> Packet {
    packet(MessageType::MsgHeartbeat, None)
}

fn opened() -> Queue {
    let queue = Queue::default();
    queue.set_open(true);
    queue
}

/// What the other end reads.
async fn read(mut sent: &[u8], parts: &mut BytesMut) -> Vec<Packet> {
    let mut read = Vec::new();
    while let Ok(Frame::Packet(packet)) = frames::read(&mut sent, parts).await {
        read.push(packet);
    }
    assert!(sent.is_empty());
    read
}

#[tokio::test]
async fn a_word_goes_between_the_parts_of_a_long_packet() {
    let (queue, mut parts, mut writes) = (opened(), BytesMut::new(), Vec::new());
    queue.push(vec![long(), packet(MessageType::MsgAppend, Some(1)), word()]);
    let mut long_one = None;
    loop {
        let mut out = BytesMut::new();
        queue.pop(&mut long_one, &mut out);
        if out.is_empty() {
            break;
        }
        assert!(out.len() < 2 * PART_BYTES, "a write is long");
        writes.push(read(&out, &mut parts).await);
        if writes.len() == 2 {
            queue.push(vec![word()]);
        }
    }
    let short = packet(MessageType::MsgAppend, Some(1));
    let all = [vec![word()], vec![], vec![word()], vec![long(), short]];
    assert!(writes == all, "{writes:?}");
}

#[test]
fn words_that_are_not_taken_are_bounded_and_keep_no_entries_out() {
    let queue = opened();
    queue.push((0..2 * WAITING_WORDS_MAX).map(|_| word()).chain([long()]).collect());
    let waiting = queue.waiting.lock();
    assert_eq!((waiting.words.len(), waiting.appends.len()), (WAITING_WORDS_MAX, 1));
}
