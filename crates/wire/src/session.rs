//! One connection: prepared statements, executions in batches, one Sync and one write per batch.

use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    time::sleep,
};

use crate::{
    answer::Answers,
    bind::{Effect, Prepared, server_name},
    error::Error,
    exchange::Exchange,
    inbox::{Inbox, Message, server_error, unexpected},
    startup::{CancelKey, Greeting, Place, greet},
    statement::{Results, Statement, StatementId},
    stream::Stream,
    target::{Prepare, Target},
    transport::Transport,
    value::Param,
};

const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];
/// Of all that a server answers to one round trip, which is kept until the next.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// What a message costs beside its body: a row is kept with its end, or as a list of texts.
const MESSAGE_COST_BYTES: usize = 32;

/// Whether a transaction is open, as of the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// None.
    Idle,
    /// Open.
    Active,
    /// Open, and failed: only its end is accepted.
    Failed,
}

/// What a session has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Executions of prepared statements.
    pub executions: u64,
    /// Batches, each one round trip.
    pub exchanges: u64,
}

/// One connection to a server.
#[derive(Debug)]
pub struct Session<S = Stream> {
    pub(crate) stream: S,
    pub(crate) inbox: Inbox,
    pub(crate) out: Vec<u8>,
    how: Prepare,
    prepared: Vec<Prepared>,
    answers: Answers,
    queued: usize,
    status: TransactionStatus,
    /// Between the first byte sent and the server's readiness; stays so when that never came.
    pub(crate) in_flight: bool,
    /// Whether the batch in flight (or queued) may commit something.
    may_commit: bool,
    /// The first execution of that batch that may commit, where `may_commit`.
    commits_at: usize,
    work: Work,
    greeting: Greeting,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Begins a session on a connected stream: authenticates and prepares the statements.
    ///
    /// # Errors
    ///
    /// The server refuses, or does not accept a statement.
    pub async fn start(
        stream: S,
        target: &Target,
        statements: &[Statement],
    ) -> Result<Self, Error> {
        target.check()?;
        let mut session = Self::greeted(stream, target, Place::default(), Transport::Plain).await?;
        session.prepare(statements).await?;
        Ok(session)
    }

    /// Authenticates at the target's server that `place` names.
    pub(crate) async fn greeted(
        mut stream: S,
        target: &Target,
        place: Place,
        transport: Transport,
    ) -> Result<Self, Error> {
        let mut inbox = Inbox::new();
        let greeting = greet(&mut stream, &mut inbox, target, place, transport).await?;
        inbox.let_in();
        Ok(Self {
            stream,
            inbox,
            out: Vec::new(),
            how: target.prepare,
            prepared: Vec::new(),
            answers: Answers::default(),
            queued: 0,
            status: TransactionStatus::Idle,
            in_flight: false,
            may_commit: false,
            commits_at: 0,
            work: Work::default(),
            greeting,
        })
    }

    /// Parses all statements with one Sync; an error names its statement. Unnamed ones are parsed
    /// as well, so that a statement that the server does not accept is known at once.
    pub(crate) async fn prepare(&mut self, statements: &[Statement]) -> Result<(), Error> {
        if statements.is_empty() {
            return Ok(());
        }
        self.prepared = Prepared::all(statements, self.how)?;
        let mut out = BytesMut::new();
        for (id, statement) in statements.iter().enumerate() {
            let name = server_name(id, self.how);
            let oids = statement.params.iter().map(|kind| kind.oid());
            frontend::parse(&name, &statement.sql, oids, &mut out)
                .map_err(|e| Error::io(format!("prepare {}", statement.name), e))?;
            if statement.results == Results::Text {
                frontend::describe(b'S', &name, &mut out)
                    .map_err(|e| Error::io(format!("describe {}", statement.name), e))?;
            }
        }
        frontend::sync(&mut out);
        self.out.extend_from_slice(&out);
        self.send().await?;
        let mut parsed = 0;
        let mut failed = None;
        let mut columns = vec![Vec::new(); statements.len()];
        self.receive(|message| {
            match message.tag {
                b'1' => parsed += 1,
                b'T' if parsed > 0 => columns[parsed - 1] = column_names(message.body)?,
                b't' | b'n' if parsed > 0 => {}
                b'E' if failed.is_none() => failed = Some(server_error(message.body)),
                b'E' => {}
                _ => return Err(unexpected(message, "preparation")),
            }
            Ok(())
        })
        .await
        .or_else(|e| if failed.is_some() { Ok(()) } else { Err(e) })?;
        for (prepared, columns) in self.prepared.iter_mut().zip(columns) {
            prepared.columns = columns;
        }
        match failed {
            None => Ok(()),
            Some(error) => {
                let name = statements.get(parsed).map_or("statements", |s| s.name.as_str());
                Err(error.while_doing(&format!("prepare {name}")))
            }
        }
    }

    /// Whether a transaction is open, as of the last answer.
    #[must_use]
    pub fn transaction_status(&self) -> TransactionStatus {
        self.status
    }

    /// Whether the session can still be used: every answer was read to its end.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        !self.in_flight
    }

    /// After a lost connection: whether the batch that was under way may have committed, so that
    /// its fate is unknown.
    #[must_use]
    pub fn may_have_committed(&self) -> bool {
        self.in_flight && self.may_commit
    }

    /// What the session has done so far.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// The last value that the server reported for a parameter, e.g. `server_version`.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.greeting.parameters.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// What lets another connection cancel this one's work.
    #[must_use]
    pub fn cancel_key(&self) -> Option<CancelKey> {
        self.greeting.key
    }

    /// Forgets what is queued, and rolls back if a transaction is open.
    ///
    /// # Errors
    ///
    /// A broken connection.
    pub async fn rollback(&mut self) -> Result<(), Error> {
        self.out.clear();
        self.queued = 0;
        self.may_commit = false;
        if self.status == TransactionStatus::Idle {
            return Ok(());
        }
        self.query("ROLLBACK")?;
        self.may_commit = false;
        self.answer_query().await.map(drop)
    }

    /// Runs SQL by the simple protocol and returns its rows as text, `None` for NULL. Not for the
    /// measured path.
    ///
    /// # Errors
    ///
    /// The server's first error, or a broken connection.
    pub async fn simple(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        self.query(sql)?;
        self.answer_query().await
    }

    async fn answer_query(&mut self) -> Result<Vec<Vec<Option<String>>>, Error> {
        self.send().await?;
        let mut rows = Vec::new();
        let mut failed = None;
        let read = self
            .receive(|message| {
                match message.tag {
                    b'D' => rows.push(text_row(message.body)?),
                    b'E' if failed.is_none() => failed = Some(server_error(message.body)),
                    b'E' | b'T' | b'C' | b'I' => {}
                    _ => return Err(unexpected(message, "a simple query")),
                }
                Ok(())
            })
            .await;
        finish(read, failed)?;
        Ok(rows)
    }

    /// Says goodbye; the server then ends the session without a complaint in its log.
    ///
    /// # Errors
    ///
    /// A broken connection.
    pub async fn close(mut self) -> Result<(), Error> {
        let gone = |e| Error::io("close the session", e);
        self.stream.write_all(&[b'X', 0, 0, 0, 4]).await.map_err(gone)?;
        self.stream.shutdown().await.map_err(gone)
    }

    /// Puts a simple query into the empty out buffer.
    pub(crate) fn query(&mut self, sql: &str) -> Result<(), Error> {
        assert_eq!(self.queued, 0, "executions are queued, a simple query would not wait for them");
        let mut out = BytesMut::new();
        frontend::query(sql, &mut out).map_err(|e| Error::io("write a query", e))?;
        self.out.extend_from_slice(&out);
        self.may_commit = true;
        Ok(())
    }

    /// Sends the out buffer. When the server is gone, its last words are the better error.
    pub(crate) async fn send(&mut self) -> Result<(), Error> {
        if self.in_flight {
            self.out.clear();
            return Err(Error::protocol("the session's last exchange did not end"));
        }
        self.in_flight = true;
        // Only TLS has something to flush.
        let written = async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        };
        let written = written.await;
        self.out.clear();
        let Err(source) = written else { return Ok(()) };
        Err(self.last_words().await.unwrap_or_else(|| Error::io("write to the server", source)))
    }

    /// What the server said before it closed the connection.
    pub(crate) async fn last_words(&mut self) -> Option<Error> {
        let mut said = None;
        let _end_of_stream = self
            .receive(|message| {
                if message.tag == b'E' {
                    said = Some(server_error(message.body));
                }
                Ok(())
            })
            .await;
        said.filter(Error::is_closed)
    }

    /// Gives messages to `take` until the server is ready for the next query.
    pub(crate) async fn receive(
        &mut self,
        mut take: impl FnMut(Message<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut answered = 0;
        loop {
            while let Some(message) = self.inbox.next()? {
                match message.tag {
                    b'Z' => {
                        self.status = status(message)?;
                        self.in_flight = false;
                        self.may_commit = false;
                        return Ok(());
                    }
                    b'N' | b'A' => {} // notices and notifications may come at any time
                    b'S' => self.greeting.take_parameter(message.body)?,
                    _ => {
                        answered += message.body.len() + MESSAGE_COST_BYTES;
                        if answered > ANSWER_BYTES_MAX {
                            return Err(Error::protocol(format!(
                                "answer has more than {ANSWER_BYTES_MAX} bytes"
                            )));
                        }
                        take(message)?;
                    }
                }
            }
            self.inbox.fill(&mut self.stream).await?;
        }
    }

    /// Sends the queue and receives its answers into `self.answers`.
    async fn run_queue(&mut self) -> Result<(), Error> {
        self.answers.clear();
        let queued = std::mem::take(&mut self.queued);
        if queued == 0 {
            return Ok(());
        }
        self.out.extend_from_slice(&SYNC);
        self.work.exchanges += 1;
        self.send().await?;
        let mut answers = std::mem::take(&mut self.answers);
        let unnamed = self.how == Prepare::Unnamed;
        let commits_at = self.commits_at;
        let (mut failed, mut prevented) = (None, false);
        let read = self
            .receive(|message| {
                match message.tag {
                    b'D' => match message.body.split_first_chunk::<2>() {
                        Some((_count, fields)) => answers.push_row(fields),
                        None => return Err(Error::protocol("data row is cut short")),
                    },
                    b'C' => answers.finish(affected(message.body)),
                    b'I' => answers.finish(0),
                    b'E' if failed.is_none() => {
                        let said = server_error(message.body);
                        // The server skips what comes after; a commit that fails without the
                        // session's end did not happen either.
                        let answered = answers.len();
                        prevented =
                            answered < commits_at || (answered == commits_at && !said.is_closed());
                        failed = Some(said);
                    }
                    b'1' if unnamed => {}
                    b'2' | b'E' => {}
                    _ => return Err(unexpected(message, "an exchange")),
                }
                Ok(())
            })
            .await;
        self.answers = answers;
        self.may_commit &= !prevented;
        finish(read, failed)?;
        if self.answers.len() != queued {
            self.in_flight = true; // not in step with the server: unusable
            let got = self.answers.len();
            return Err(Error::protocol(format!("{got} answers to {queued} executions")));
        }
        Ok(())
    }
}

/// The error of a round trip: what the server said, unless the connection broke afterwards.
pub(crate) fn finish(read: Result<(), Error>, failed: Option<Error>) -> Result<(), Error> {
    match (read, failed) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(said)) => Err(said),
        (Err(_), Some(said)) if said.is_closed() => Err(said),
        (Err(broken), _) => Err(broken),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Exchange for Session<S> {
    fn queue(&mut self, statement: StatementId, params: &[Param<'_>]) {
        let prepared = &self.prepared[statement.index()];
        prepared.bind(&mut self.out, params);
        // Outside a transaction block every statement commits by itself.
        let commits = match prepared.effect {
            Effect::Begins => false,
            Effect::Commits => true,
            Effect::Other => self.queued == 0 && self.status == TransactionStatus::Idle,
        };
        if commits && !self.may_commit {
            self.may_commit = true;
            self.commits_at = self.queued;
        }
        self.queued += 1;
        self.work.executions += 1;
    }

    async fn exchange(&mut self) -> Result<&Answers, Error> {
        self.run_queue().await?;
        Ok(&self.answers)
    }

    fn columns(&self, statement: StatementId) -> &[String] {
        &self.prepared[statement.index()].columns
    }

    async fn pause(&mut self, time: Duration) -> Result<(), Error> {
        sleep(time).await;
        Ok(())
    }
}

fn status(message: Message<'_>) -> Result<TransactionStatus, Error> {
    match message.body {
        b"I" => Ok(TransactionStatus::Idle),
        b"T" => Ok(TransactionStatus::Active),
        b"E" => Ok(TransactionStatus::Failed),
        body => Err(Error::protocol(format!("transaction status is {body:?}"))),
    }
}

/// The count that ends a command tag such as `INSERT 0 5`; 0 where there is none.
pub(crate) fn affected(body: &[u8]) -> u64 {
    let tag = body.strip_suffix(&[0]).unwrap_or(body);
    let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    tag[tag.len() - digits..].iter().fold(0, |count: u64, digit| {
        count.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    })
}

/// Names in a `RowDescription`: each ends with a zero and is followed by 18 bytes.
fn column_names(body: &[u8]) -> Result<Vec<String>, Error> {
    let cut = || Error::protocol("row description is cut short");
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(cut)?;
    let mut names = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
        names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        rest = rest.get(end + 1 + 18..).ok_or_else(cut)?;
    }
    Ok(names)
}

fn text_row(body: &[u8]) -> Result<Vec<Option<String>>, Error> {
    let cut = || Error::protocol("data row is cut short");
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(cut)?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, tail) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            row.push(None);
            rest = tail;
            continue;
        };
        let (value, tail) = tail.split_at_checked(length).ok_or_else(cut)?;
        row.push(Some(String::from_utf8_lossy(value).into_owned()));
        rest = tail;
    }
    Ok(row)
}
