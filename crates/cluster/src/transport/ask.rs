//! A question to another node, and its answer: `1 whether it is a refusal, 4 length, text`.

use super::frames::{malformed, read_exactly};
use super::handshake::{DialError, Endpoint, HandshakeError, Purpose};
use super::stream::Stream;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long an answer may take, to be made and to be sent.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer: room for a large piece of the definitions of a cluster.
const ANSWER_BYTES_MAX: usize = 64 << 20;

impl Endpoint {
    /// Asks the node at `address`. A refusal is an error.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ask(&self, address: &str, question: &str) -> Result<String, DialError> {
        let mut dialled = self.dial(address, Purpose::Ask, question).await?;
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, read(&mut dialled.stream)).await;
        let (is_refusal, text) =
            answer.unwrap_or(Err(io::ErrorKind::TimedOut.into())).map_err(HandshakeError::Io)?;
        if is_refusal { Err(DialError::Refused(text)) } else { Ok(text) }
    }
}

async fn read(stream: &mut Stream) -> io::Result<(bool, String)> {
    let is_refusal = stream.read_u8().await? != 0;
    let len = stream.read_u32_le().await? as usize;
    if len > ANSWER_BYTES_MAX {
        return Err(malformed("an answer of a node is too long"));
    }
    let text = read_exactly(stream, len).await?;
    let text =
        String::from_utf8(text.into()).map_err(|_| malformed("an answer of a node is no text"))?;
    Ok((is_refusal, text))
}

/// Sends the answer to a question. The node that asked may be gone.
pub(super) async fn answer(mut stream: Stream, answer: Result<String, String>) {
    let (is_refusal, text) = match &answer {
        Ok(text) if text.len() > ANSWER_BYTES_MAX => (true, "the answer is longer than 64 MiB"),
        Ok(text) => (false, text.as_str()),
        Err(text) => (true, text.as_str()),
    };
    let mut out = vec![u8::from(is_refusal)];
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    let sending = async {
        stream.write_all(&out).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(ANSWER_TIMEOUT, sending).await;
}
