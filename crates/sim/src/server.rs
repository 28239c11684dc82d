//! The server's side of one connection.

use std::io;

use postgres_protocol::authentication::md5_hash;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::sleep,
};

use crate::{
    messages::{
        authentication, command_complete, data_row, error_message, message, parameter_status,
    },
    script::{Auth, Call, Scripted, Step, lock},
};

const SALT: [u8; 4] = [1, 2, 3, 4];

/// Serves one client until it or the script closes the connection.
///
/// # Errors
///
/// The client broke the protocol, or the stream failed.
pub async fn serve<S>(stream: S, scripted: Scripted) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let number = scripted.next_connection();
    let mut server = Connection {
        stream,
        scripted,
        number,
        out: Vec::new(),
        parsed: Vec::new(),
        bound: None,
        status: b'I',
        skipping: false,
        first_of_batch: true,
    };
    let session = async { if server.greet().await? { server.run().await } else { Ok(()) } };
    match session.await {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(()), // the client went away
        result => result,
    }
}

struct Connection<S> {
    stream: S,
    scripted: Scripted,
    number: usize,
    out: Vec<u8>,
    parsed: Vec<(String, String)>,
    bound: Option<(String, Vec<Option<Vec<u8>>>)>,
    /// As `ReadyForQuery` shows it: `I`, `T` or `E`.
    status: u8,
    /// After an error in a batch, until its Sync.
    skipping: bool,
    first_of_batch: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Startup and authentication; whether the client is let in.
    async fn greet(&mut self) -> io::Result<bool> {
        let length = self.stream.read_u32().await?;
        let mut packet = vec![0; usize::try_from(length).unwrap_or(4).saturating_sub(4)];
        self.stream.read_exact(&mut packet).await?;
        if packet.first_chunk::<4>() == Some(&80_877_102_i32.to_be_bytes()) {
            return Ok(false); // a cancel request: read and forgotten
        }
        let user = field_after(&packet[4..], "user");
        let steps = lock(&self.scripted.script).greet(self.number);
        if !self.play("", steps).await? {
            return Ok(false);
        }
        if !self.authenticate(&user).await? {
            let refusal = error_message("FATAL", "28P01", "password authentication failed");
            self.out.extend(refusal);
            self.flush().await?;
            return Ok(false);
        }
        self.out.extend(authentication(0, &[]));
        self.out.extend(parameter_status("server_version", "18.0 (scripted)"));
        self.out.extend(message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]));
        self.ready().await?;
        Ok(true)
    }

    async fn authenticate(&mut self, user: &str) -> io::Result<bool> {
        let auth = lock(&self.scripted.script).auth();
        let (code, rest, wanted) = match auth {
            Auth::Trust => return Ok(true),
            Auth::Cleartext(password) => (3, Vec::new(), password),
            Auth::Md5(password) => {
                let hash = md5_hash(user.as_bytes(), password.as_bytes(), SALT);
                (5, SALT.to_vec(), hash)
            }
            Auth::Unknown(code) => (code, Vec::new(), String::new()),
        };
        self.out.extend(authentication(code, &rest));
        self.flush().await?;
        let (_tag, body) = self.read().await?;
        Ok(body.strip_suffix(&[0]) == Some(wanted.as_bytes()))
    }

    async fn run(&mut self) -> io::Result<()> {
        loop {
            let (tag, body) = self.read().await?;
            let goes_on = match tag {
                b'P' if !self.skipping => self.parse(&body).await?,
                b'D' if !self.skipping => self.describe(&body),
                b'B' if !self.skipping => self.bind(&body)?,
                b'E' if !self.skipping => {
                    let (sql, params) = self.bound.take().ok_or_else(|| bad("Execute, no Bind"))?;
                    self.execute(sql, params).await?
                }
                b'S' => {
                    self.skipping = false;
                    self.first_of_batch = true;
                    self.ready().await?;
                    true
                }
                b'Q' => self.query(&body).await?,
                b'X' => false,
                b'P' | b'D' | b'B' | b'E' | b'd' | b'c' | b'f' => true, // skipped after an error
                tag => return Err(bad(&format!("message {:?}", char::from(tag)))),
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    async fn parse(&mut self, body: &[u8]) -> io::Result<bool> {
        let mut parts = body.split(|&byte| byte == 0);
        let name = text(parts.next());
        let sql = text(parts.next());
        let steps = lock(&self.scripted.script).parse(&sql);
        if !self.play(&sql, steps).await? {
            return Ok(false);
        }
        if !self.skipping {
            self.parsed.push((name, sql));
            self.out.extend(message(b'1', &[]));
        }
        Ok(true)
    }

    /// Parameters are left out; the columns are those of the script.
    fn describe(&mut self, body: &[u8]) -> bool {
        let name = text(body.get(1..).and_then(|rest| rest.split(|&byte| byte == 0).next()));
        let sql = self.parsed.iter().find(|(known, _)| *known == name).map(|(_, sql)| sql);
        let columns = lock(&self.scripted.script).columns(sql.map_or("", String::as_str));
        self.out.extend(message(b't', &[0, 0]));
        if columns.is_empty() {
            self.out.extend(message(b'n', &[]));
            return true;
        }
        let count = u16::try_from(columns.len()).unwrap_or(u16::MAX);
        let mut description = count.to_be_bytes().to_vec();
        for column in columns {
            description.extend_from_slice(column.as_bytes());
            description.extend_from_slice(&[0; 1 + 18]);
        }
        self.out.extend(message(b'T', &description));
        true
    }

    fn bind(&mut self, body: &[u8]) -> io::Result<bool> {
        let mut cursor = Cursor(body);
        let _portal = cursor.name()?;
        let name = cursor.name()?;
        for _ in 0..cursor.u16()? {
            if cursor.u16()? > 1 {
                return Err(bad("a parameter is neither text nor binary"));
            }
        }
        let mut params = Vec::new();
        for _ in 0..cursor.u16()? {
            params.push(cursor.field()?);
        }
        let parsed = self.parsed.iter().find(|(known, _)| *known == name);
        let (_, sql) = parsed.ok_or_else(|| bad(&format!("statement {name:?} is unknown")))?;
        self.bound = Some((sql.clone(), params));
        self.out.extend(message(b'2', &[]));
        Ok(true)
    }

    async fn query(&mut self, body: &[u8]) -> io::Result<bool> {
        let sql = text(body.split(|&byte| byte == 0).next());
        self.first_of_batch = true;
        let params = if is_copy(&sql) { vec![Some(self.copied().await?)] } else { Vec::new() };
        let goes_on = self.execute(sql, params).await?;
        self.skipping = false;
        self.first_of_batch = true;
        if goes_on {
            self.ready().await?;
        }
        Ok(goes_on)
    }

    /// Invites data and returns all of it.
    async fn copied(&mut self) -> io::Result<Vec<u8>> {
        self.out.extend(message(b'G', &[0, 0, 0]));
        self.flush().await?;
        let mut data = Vec::new();
        loop {
            match self.read().await? {
                (b'd', body) => data.extend(body),
                (b'c' | b'f', _) => return Ok(data),
                (tag, _) => return Err(bad(&format!("{:?} within COPY", char::from(tag)))),
            }
        }
    }

    async fn execute(&mut self, sql: String, params: Vec<Option<Vec<u8>>>) -> io::Result<bool> {
        let first_of_batch = std::mem::replace(&mut self.first_of_batch, false);
        let call = Call { connection: self.number, sql, params, first_of_batch };
        let word = first_word(&call.sql);
        let ends = matches!(word.as_str(), "COMMIT" | "ROLLBACK" | "END");
        self.scripted.log.add(call.clone());
        let mut steps = if self.status == b'E' && !ends {
            vec![Step::error("25P02", "current transaction is aborted")]
        } else {
            lock(&self.scripted.script).call(&call)
        };
        let ended = |step: &Step| {
            matches!(step, Step::Complete(_) | Step::Error { .. } | Step::Close | Step::Raw(_))
        };
        if !steps.iter().any(ended) {
            steps.push(Step::Complete(if ends { word.clone() } else { format!("{word} 0") }));
        }
        let goes_on = self.play(&call.sql, steps).await?;
        if !self.skipping && ends {
            self.status = b'I';
        } else if !self.skipping && matches!(word.as_str(), "BEGIN" | "START") {
            self.status = b'T';
        }
        Ok(goes_on)
    }

    /// Performs steps; whether the connection goes on.
    async fn play(&mut self, sql: &str, steps: Vec<Step>) -> io::Result<bool> {
        for step in steps {
            match step {
                Step::Row(fields) => self.out.extend(data_row(&fields)),
                Step::Complete(tag) => self.out.extend(command_complete(&tag)),
                Step::Raw(bytes) => self.out.extend(bytes),
                Step::Wait(duration) => {
                    self.flush().await?;
                    sleep(duration).await;
                }
                Step::Close => {
                    self.flush().await?;
                    return Ok(false);
                }
                Step::Error { severity, sqlstate, message } => {
                    let shown = if sql.is_empty() { message } else { format!("{message}: {sql}") };
                    self.out.extend(error_message(severity, sqlstate, &shown));
                    if severity != "ERROR" {
                        self.flush().await?;
                        return Ok(false);
                    }
                    self.skipping = true;
                    if self.status == b'T' {
                        self.status = b'E';
                    }
                    return Ok(true);
                }
            }
        }
        Ok(true)
    }

    async fn ready(&mut self) -> io::Result<()> {
        self.out.extend(message(b'Z', &[self.status]));
        self.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        self.stream.flush().await
    }

    async fn read(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let tag = self.stream.read_u8().await?;
        let length = self.stream.read_u32().await?;
        let body = usize::try_from(length).unwrap_or(0).checked_sub(4);
        let mut body = vec![0; body.ok_or_else(|| bad("message without a length"))?];
        self.stream.read_exact(&mut body).await?;
        Ok((tag, body))
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn u16(&mut self) -> io::Result<u16> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(|| bad("Bind is cut short"))?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*head))
    }

    fn name(&mut self) -> io::Result<String> {
        let end = self.0.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| bad("Bind is cut short"))?;
        let name = text(Some(&self.0[..end]));
        self.0 = &self.0[end + 1..];
        Ok(name)
    }

    fn field(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(|| bad("Bind is cut short"))?;
        self.0 = rest;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*head)) else { return Ok(None) };
        let cut = || bad("Bind is cut short");
        let (value, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(Some(value.to_vec()))
    }
}

fn bad(fact: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fact.to_owned())
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

fn field_after(packet: &[u8], name: &str) -> String {
    let mut parts = packet.split(|&byte| byte == 0);
    parts.by_ref().find(|part| *part == name.as_bytes());
    text(parts.next())
}

fn first_word(sql: &str) -> String {
    sql.split_whitespace().next().unwrap_or("EMPTY").trim_end_matches(';').to_ascii_uppercase()
}

fn is_copy(sql: &str) -> bool {
    first_word(sql) == "COPY"
}
