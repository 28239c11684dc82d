//! The null server's side of one connection. Everything that arrived is answered by one write.

use std::{collections::HashMap, io, sync::Arc};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{
    account::{Counters, Workers},
    statements::{Effect, Known, Prepared, first_word},
};
use crate::messages::{authentication, command_complete, error_message, message, parameter_status};

const START_BYTES: usize = 16 * 1024;
/// A larger message is not one of ours.
const MESSAGE_BYTES_MAX: usize = 1 << 24;
const SSL_REQUEST: i32 = 80_877_103;
const GSS_REQUEST: i32 = 80_877_104;
const CANCEL_REQUEST: i32 = 80_877_102;
const READY: [u8; 5] = [b'Z', 0, 0, 0, 5];
const BIND_COMPLETE: [u8; 5] = [b'2', 0, 0, 0, 4];

/// Serves one client until it goes away.
pub(super) async fn serve<S>(
    stream: S,
    known: Known,
    counters: Arc<Counters>,
    workers: Option<Workers>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = Connection {
        stream,
        bytes: vec![0; START_BYTES],
        filled: 0,
        session: Session::new(known),
        workers,
    };
    match connection.run(&counters).await {
        // The client went away, with or without a goodbye.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        result => result,
    }
}

struct Connection<S> {
    stream: S,
    /// Always initialised to its end.
    bytes: Vec<u8>,
    filled: usize,
    session: Session,
    workers: Option<Workers>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn run(&mut self, counters: &Counters) -> io::Result<()> {
        if !self.greet().await? {
            return Ok(());
        }
        let mut goes_on = true;
        while goes_on {
            self.fill().await?;
            let mut at = 0;
            while let Some((tag, body)) = next(&self.bytes[at..self.filled])? {
                at += 5 + body.len();
                goes_on = self.session.take(tag, body)?;
                if !goes_on {
                    break;
                }
            }
            self.bytes.copy_within(at..self.filled, 0);
            self.filled -= at;
            if let Some(workers) = &self.workers {
                for _ in 0..self.session.batches {
                    workers.hold().await;
                }
            }
            counters.add(self.session.executions, self.session.batches);
            (self.session.executions, self.session.batches) = (0, 0);
            self.stream.write_all(&self.session.out).await?;
            self.session.out.clear();
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<()> {
        if self.filled == self.bytes.len() {
            self.bytes.resize(self.filled * 2, 0);
        }
        let read = self.stream.read(&mut self.bytes[self.filled..]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.filled += read;
        Ok(())
    }

    /// Lets anybody in; whether a session begins.
    async fn greet(&mut self) -> io::Result<bool> {
        loop {
            let length = usize::try_from(self.stream.read_i32().await?).unwrap_or(0);
            if !(8..=START_BYTES).contains(&length) {
                return Err(bad(&format!("startup packet of {length} bytes")));
            }
            let mut packet = vec![0; length - 4];
            self.stream.read_exact(&mut packet).await?;
            match packet.first_chunk::<4>().map(|code| i32::from_be_bytes(*code)) {
                Some(SSL_REQUEST | GSS_REQUEST) => self.stream.write_all(b"N").await?,
                Some(CANCEL_REQUEST) => return Ok(false),
                _ => break,
            }
        }
        let out = &mut self.session.out;
        out.extend(authentication(0, &[]));
        for (name, value) in PARAMETERS {
            out.extend(parameter_status(name, value));
        }
        out.extend(message(b'K', &[0, 0, 0, 1, 0, 0, 0, 1]));
        self.session.ready();
        self.stream.write_all(&self.session.out).await?;
        self.session.out.clear();
        Ok(true)
    }
}

/// What clients want to know of a server.
const PARAMETERS: [(&str, &str); 9] = [
    ("server_version", "18.0 (pgdyno null server)"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("standard_conforming_strings", "on"),
    ("integer_datetimes", "on"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("in_hot_standby", "off"),
    ("default_transaction_read_only", "off"),
];

/// The next message if it is here whole: its type and its body.
fn next(bytes: &[u8]) -> io::Result<Option<(u8, &[u8])>> {
    let Some(([tag, length @ ..], rest)) = bytes.split_first_chunk::<5>() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
    if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
        return Err(bad(&format!("message {tag:#04x} has length {length}")));
    }
    Ok(rest.get(..length - 4).map(|body| (*tag, body)))
}

/// One client's session, without its stream.
struct Session {
    known: Known,
    prepared: HashMap<Vec<u8>, Prepared>,
    out: Vec<u8>,
    /// The answer to the execution that was bound last.
    answer: Vec<u8>,
    bound: Option<Effect>,
    /// As `ReadyForQuery` shows it: `I`, `T` or `E`.
    status: u8,
    /// After an error in a batch, until its Sync.
    skipping: bool,
    executions: u64,
    batches: u64,
}

impl Session {
    fn new(known: Known) -> Self {
        Self {
            known,
            prepared: HashMap::new(),
            out: Vec::with_capacity(START_BYTES),
            answer: Vec::new(),
            bound: None,
            status: b'I',
            skipping: false,
            executions: 0,
            batches: 0,
        }
    }

    /// Answers a message; whether the session goes on.
    fn take(&mut self, tag: u8, body: &[u8]) -> io::Result<bool> {
        match tag {
            b'B' if !self.skipping => self.bind(body)?,
            b'E' if !self.skipping => self.execute(),
            b'S' => {
                self.skipping = false;
                self.batches += 1;
                self.ready();
            }
            b'P' if !self.skipping => self.parse(body)?,
            b'C' if !self.skipping => self.close(body),
            b'Q' => self.query(body)?,
            b'X' => return Ok(false),
            b'H' | b'B' | b'E' | b'P' | b'C' | b'D' if self.skipping || tag == b'H' => {}
            tag => self.refuse("0A000", &format!("the null server knows no {:?}", char::from(tag))),
        }
        Ok(true)
    }

    fn ready(&mut self) {
        self.out.extend_from_slice(&READY);
        self.out.push(self.status);
    }

    fn refuse(&mut self, sqlstate: &str, fact: &str) {
        self.out.extend(error_message("ERROR", sqlstate, fact));
        self.skipping = true;
        if self.status == b'T' {
            self.status = b'E';
        }
    }

    fn parse(&mut self, body: &[u8]) -> io::Result<()> {
        let (name, rest) = string(body)?;
        let (sql, _types) = string(rest)?;
        let sql = String::from_utf8_lossy(sql);
        match self.known.find(&sql) {
            Some(prepared) => {
                self.prepared.insert(name.to_vec(), prepared);
                self.out.extend(message(b'1', &[]));
            }
            None => self.refuse("0A000", &format!("the null server has no answer to: {sql}")),
        }
        Ok(())
    }

    fn close(&mut self, body: &[u8]) {
        if let Some((b'S', name)) = body.split_first() {
            self.prepared.remove(name.strip_suffix(&[0]).unwrap_or(name));
        }
        self.out.extend(message(b'3', &[]));
    }

    /// Computes the answer at once: the parameters do not outlive the message.
    fn bind(&mut self, body: &[u8]) -> io::Result<()> {
        let (_portal, rest) = string(body)?;
        let (name, rest) = string(rest)?;
        let Some(prepared) = self.prepared.get(name) else {
            let name = String::from_utf8_lossy(name);
            self.refuse("26000", &format!("prepared statement {name:?} does not exist"));
            return Ok(());
        };
        let params = binary_params(rest)?;
        let Some(params) = params else {
            self.refuse("0A000", "the null server takes parameters in binary format only");
            return Ok(());
        };
        self.answer.clear();
        (prepared.respond)(params, &mut self.answer);
        self.bound = Some(prepared.effect);
        self.out.extend_from_slice(&BIND_COMPLETE);
        Ok(())
    }

    fn execute(&mut self) {
        let Some(effect) = self.bound.take() else {
            self.refuse("34000", "portal \"\" does not exist");
            return;
        };
        if self.status == b'E' && effect != Effect::Ends {
            self.refuse("25P02", "current transaction is aborted");
            return;
        }
        self.out.extend_from_slice(&self.answer);
        self.executions += 1;
        self.end(effect);
    }

    fn end(&mut self, effect: Effect) {
        match effect {
            Effect::Begins => self.status = b'T',
            Effect::Ends => self.status = b'I',
            Effect::None => {}
        }
    }

    fn query(&mut self, body: &[u8]) -> io::Result<()> {
        let sql = String::from_utf8_lossy(string(body)?.0).into_owned();
        let word = first_word(&sql);
        let effect = Effect::of(&sql);
        if self.status == b'E' && effect != Effect::Ends {
            self.refuse("25P02", "current transaction is aborted");
        } else {
            match word.as_str() {
                "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "SET" | "DO" => {
                    self.out.extend(command_complete(&word));
                }
                "CREATE" => self.out.extend(command_complete("CREATE FUNCTION")),
                "SELECT" | "SHOW" if literal(&sql).is_some() => {
                    self.one_row(literal(&sql).unwrap_or_default());
                    self.out.extend(command_complete(&format!("{word} 1")));
                }
                _ => self.refuse("0A000", &format!("the null server has no answer to: {sql}")),
            }
            self.end(effect);
        }
        self.skipping = false;
        self.ready();
        Ok(())
    }

    /// One column of text, in text format.
    fn one_row(&mut self, value: &str) {
        let mut description = vec![0, 1];
        description.extend_from_slice(b"?column?\0");
        // No table, no column number; type text of any length, no modifier, text format.
        description.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 255, 255, 255, 255]);
        description.extend_from_slice(&[255, 255, 0, 0]);
        self.out.extend(message(b'T', &description));
        self.out.extend(crate::data_row(&[Some(value.as_bytes().to_vec())]));
    }
}

/// What `SELECT <literal>` selects; every parameter that is shown is off, for a server that does
/// nothing.
fn literal(sql: &str) -> Option<&str> {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    let (word, rest) = sql.split_once(char::is_whitespace)?;
    if word.eq_ignore_ascii_case("SHOW") {
        return Some("off");
    }
    let rest = rest.trim();
    let text = rest.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let number = (!rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())).then_some(rest);
    text.filter(|text| !text.contains('\'')).or(number)
}

/// A string that ends with a zero byte, and what follows it.
fn string(bytes: &[u8]) -> io::Result<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0).ok_or_else(|| bad("a string has no end"))?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

/// The parameters of a Bind after its names; `None`: some are in text format.
fn binary_params(bytes: &[u8]) -> io::Result<Option<&[u8]>> {
    let cut = || bad("Bind is cut short");
    let (formats, rest) = bytes.split_first_chunk::<2>().ok_or_else(cut)?;
    let formats = usize::from(u16::from_be_bytes(*formats));
    let (formats, rest) = rest.split_at_checked(2 * formats).ok_or_else(cut)?;
    let (count, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let binary = !formats.is_empty() && formats.chunks_exact(2).all(|format| format == [0, 1]);
    Ok((binary || *count == [0, 0]).then_some(rest))
}

fn bad(fact: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fact.to_owned())
}
