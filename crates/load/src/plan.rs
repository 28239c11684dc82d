//! What a load is to do, from what was asked and from what is in the database.

use std::{
    collections::{BTreeMap, HashSet},
    thread::available_parallelism,
};

use serde_json::{Value, json};
use wire::{Session, Stream, Target, Timestamp};
use workload::{
    catalogue,
    dataset::{Dataset, Units},
    made::quoted,
};

use super::{
    ledger::{self, Begun},
    look::{self, Found, Seen},
    pieces::{self, Relation},
    progress::Work,
    report::Choice,
    server,
    share::copies_of,
    spec::{LoadSpec, Part},
    step_queue::StepQueue,
    steps::{Step, Terms},
    strategy::{self, Copies, Server},
    tables,
};
use drive::error::RunError;

/// More sessions than this do not fill one server faster.
const SESSIONS_MAX: usize = 16;
/// Indexes are built again when so many rows come as are there: keeping the indexes of TPC-C up
/// costs 1.9 times what building them costs a row, if rows come at their ends as these do.
const BUILDS_FROM_PERCENT: u64 = 100;

/// What was asked, checked as far as that goes without a server.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) spec: LoadSpec,
    pub(super) sessions: usize,
    /// The server, with settings that nobody's configuration may disturb.
    target: Target,
}

/// What is to be done.
pub(super) struct Plan {
    pub(super) dataset: Box<dyn Dataset>,
    pub(super) server: Server,
    pub(super) target: Target,
    pub(super) begun: Begun,
    /// Steps that were done before.
    pub(super) done: HashSet<String>,
    pub(super) filled: Vec<Relation>,
    pub(super) stored: Vec<Relation>,
    pub(super) choices: Vec<Choice>,
    /// `maintenance_work_mem` of a session.
    pub(super) memory_bytes: u64,
}

/// What is done to the database before the steps.
pub(super) enum Opening {
    /// Tables are created, in place of those of an earlier load if there is one.
    Create(Option<Box<Seen>>),
    /// A complete load is made one that is not.
    Reopen,
    /// A load goes on.
    Nothing,
}

impl Asked {
    /// Also tells how many tables there are.
    pub(super) fn new(spec: LoadSpec) -> Result<(Self, usize), RunError> {
        let sessions = spec
            .connections
            .unwrap_or_else(|| available_parallelism().map_or(1, usize::from).min(SESSIONS_MAX));
        let target = server::target(&spec, sessions)?;
        let asked = Self { spec, sessions, target };
        let tables = asked.dataset(asked.spec.loaded_at_unix_s)?.tables().len();
        Ok((asked, tables))
    }

    /// Whether it goes on with what another process has begun, beside others that do.
    pub(super) fn joins(&self) -> bool {
        self.spec.part.is_some_and(Part::joins)
    }

    pub(super) fn dataset(&self, loaded_at_unix_s: i64) -> Result<Box<dyn Dataset>, RunError> {
        dataset(&self.spec.workload, loaded_at_unix_s)
    }

    pub(super) async fn connect(&self) -> Result<Session<Stream>, RunError> {
        connect(&self.target).await
    }

    /// Looks at the database, decides, and creates what is not there. From here on there are
    /// tables that an error leaves behind.
    pub(super) async fn prepare(&self) -> Result<Plan, RunError> {
        let mut session = self.connect().await?;
        if self.spec.part == Some(Part::Reach) {
            let server = server::ask(&mut session).await?;
            let plan = self.fresh(server, self.dataset(self.spec.loaded_at_unix_s)?);
            let _unheard = session.close().await;
            return Ok(plan);
        }
        let (mut plan, opening) = self.draft(&mut session).await?;
        match opening {
            Opening::Create(earlier) => {
                let earlier = earlier.as_deref();
                tables::create(&*plan.dataset, &plan.begun, earlier, &mut session).await?;
            }
            Opening::Reopen => {
                tables::reopen(&*plan.dataset, &plan.begun, &plan.stored, &mut session).await?;
            }
            Opening::Nothing => {}
        }
        if let Some(routing) = server::routing(&*plan.dataset, &mut session).await? {
            plan.route(&routing);
        }
        // Everything is committed: a goodbye that is not heard changes nothing.
        let _unheard = session.close().await;
        Ok(plan)
    }

    /// What a load would do; nothing is touched.
    pub(super) async fn draft(
        &self,
        session: &mut Session<Stream>,
    ) -> Result<(Plan, Opening), RunError> {
        let server = server::ask(session).await?;
        let dataset = self.dataset(self.spec.loaded_at_unix_s)?;
        let seen = if self.joins() {
            // Who begins another load waits for this one's end.
            let joined = session.simple(tables::ATTENDANCE).await;
            joined.map_err(|e| RunError::target(&"join the load", &e))?;
            look::see(&*dataset, session).await?
        } else {
            look::look(&*dataset, session).await?
        };
        let schema = seen.schema.clone();
        let (mut plan, opening) = match self.decide(&seen)? {
            Decision::Fresh { drop } => {
                let earlier = drop.then(|| Box::new(seen));
                (self.fresh(server, dataset), Opening::Create(earlier))
            }
            Decision::Resume(begun, done) => {
                (self.resumed(server, *begun, done, &seen)?, Opening::Nothing)
            }
            Decision::TopUp(record) => {
                (self.topped_up(server, &record, &seen, session).await?, Opening::Reopen)
            }
        };
        // No table of somebody else's in another schema is ever meant.
        server::set(&mut plan.target, "search_path", quoted(&schema));
        Ok((plan, opening))
    }

    /// What to do about what was found. Nothing is touched yet.
    fn decide(&self, seen: &Seen) -> Result<Decision, RunError> {
        let refuse = |fact: String, hint: &str| Err(RunError::spec(fact, Some(hint)));
        let LoadSpec { resume, top_up, drop_ours, .. } = self.spec;
        let Seen { database, schema, .. } = seen;
        if !seen.foreign.is_empty() {
            return Err(seen.in_the_way());
        }
        if (resume || top_up || drop_ours) && !seen.added.is_empty() {
            return Err(seen.added_to());
        }
        match &seen.found {
            Found::Part(begun, done) if resume || self.joins() => {
                Ok(Decision::Resume(begun.clone(), done.clone()))
            }
            Found::Complete(record) if top_up => Ok(Decision::TopUp(record.clone())),
            Found::Complete(_) if resume => refuse(
                format!("the load in database {database} is complete, there is nothing to resume"),
                "It can be used as it is.",
            ),
            _ if self.joins() => refuse(
                format!("database {database} has no load that was begun"),
                "The head of the hosts begins it.",
            ),
            _ if resume => refuse(
                format!("database {database} has no load that could go on"),
                "Load it without --resume.",
            ),
            Found::Part(_, done) if !drop_ours => refuse(
                format!(
                    "database {database} has a load that did not end, {}",
                    done_text(done.len())
                ),
                "Go on with --resume, or begin again with --drop-ours.",
            ),
            _ if top_up => refuse(
                format!("database {database} has no complete load that could be added to"),
                "Load it without --top-up.",
            ),
            Found::Nothing => Ok(Decision::Fresh { drop: false }),
            _ if drop_ours => Ok(Decision::Fresh { drop: true }),
            Found::Remains(of) => refuse(
                format!("database {database} has a load {of} in schema {schema}"),
                "Load into another database, or drop it, and nothing else, with --drop-ours.",
            ),
            Found::Complete(_) | Found::Part(..) | Found::Unrecorded => refuse(
                format!("database {database} has a complete load in schema {schema}"),
                "Use it, load into another database, or drop it, and nothing else, with \
                 --drop-ours.",
            ),
        }
    }

    fn fresh(&self, server: Server, dataset: Box<dyn Dataset>) -> Plan {
        let mut begun = Begun {
            record: record(&*dataset),
            loaded_at_unix_s: self.spec.loaded_at_unix_s,
            copies: Copies::Batches,
            from_units: 0,
            builds: true,
        };
        let relations = pieces::all(&*dataset, None);
        let mut choices = self.choices();
        let terms = Terms {
            dataset: &*dataset,
            begun: &begun,
            filled: &relations,
            stored: &relations,
            version: server.version,
        };
        let (copies, choice) = strategy::copies(&terms.costs(), self.sessions, &server);
        let parts = dataset.partitions().is_some();
        let (copies, choice) = match self.spec.part {
            Some(_) if !parts => strategy::shared_out(),
            _ => (copies, choice),
        };
        begun.copies = self.spec.copies.unwrap_or(copies);
        if self.spec.copies.is_none() {
            choices.push(choice);
        }
        self.plan(server, dataset, begun, choices)
    }

    fn resumed(
        &self,
        server: Server,
        begun: Begun,
        done: HashSet<String>,
        seen: &Seen,
    ) -> Result<Plan, RunError> {
        let dataset = self.dataset(begun.loaded_at_unix_s)?;
        let record = record(&*dataset);
        self.require_same(&begun.record, &record, None)?;
        seen.require(&pieces::names(&*dataset))?;
        let plan = self.plan(server, dataset, begun, self.choices());
        Ok(Plan { done, ..plan })
    }

    async fn topped_up(
        &self,
        server: Server,
        found: &BTreeMap<String, String>,
        seen: &Seen,
        session: &mut Session<Stream>,
    ) -> Result<Plan, RunError> {
        let number = |key: &str| found.get(key).and_then(|value| value.parse::<i64>().ok());
        let loaded_at_unix_s = number("loaded_at_unix_s").unwrap_or(self.spec.loaded_at_unix_s);
        let dataset = self.dataset(loaded_at_unix_s)?;
        let (name, units) = (dataset.unit_name(), dataset.units());
        let record = record(&*dataset);
        self.require_same(found, &record, Some(name))?;
        let from = number(name).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        if from == 0 || from >= units {
            let fact = format!("{name} is {units}, the database has {from} already");
            return Err(RunError::spec(fact, Some("A load can only be added to.")));
        }
        let before = self.dataset_before(&*dataset, from, loaded_at_unix_s)?;
        if let Some(table) = differs(&*before, &*dataset) {
            let fact = format!("table {table} has other columns with {name} {units} than {from}");
            return Err(RunError::spec(fact, Some("Load anew with --drop-ours.")));
        }
        let ledger = |name: &String| name != ledger::TABLE;
        let mut names: Vec<String> = pieces::names(&*dataset).into_iter().filter(ledger).collect();
        names.extend(pieces::index_names(&*dataset));
        seen.require(&names)?;
        self.require_untouched(&*dataset, session).await?;
        let builds = u64::from(units - from) * 100 >= u64::from(from) * BUILDS_FROM_PERCENT;
        let copies = Copies::Batches;
        let begun = Begun { record, loaded_at_unix_s, copies, from_units: from, builds };
        let mut choices = self.choices();
        choices.push(Choice {
            name: "indexes",
            value: if builds { "dropped and built again" } else { "kept up" }.to_owned(),
            why: format!(
                "{} of {name} {units} are new; from {BUILDS_FROM_PERCENT}% of what is there on, \
                 building is faster",
                units - from
            ),
        });
        Ok(self.plan(server, dataset, begun, choices))
    }

    /// What was loaded when there were so many units.
    fn dataset_before(
        &self,
        dataset: &dyn Dataset,
        from: u32,
        loaded_at_unix_s: i64,
    ) -> Result<Box<dyn Dataset>, RunError> {
        let mut spec = self.spec.workload.clone();
        spec[dataset.unit_name()] = json!(from);
        self::dataset(&spec, loaded_at_unix_s)
    }

    fn plan(
        &self,
        server: Server,
        dataset: Box<dyn Dataset>,
        begun: Begun,
        mut choices: Vec<Choice>,
    ) -> Plan {
        let stored = pieces::all(&*dataset, None);
        // Rows that come later go through the table: the server knows their partition.
        let filled = if begun.from_units == 0 {
            stored.clone()
        } else {
            let units = Units::Range(begun.from_units..dataset.units());
            let growing = |at: &usize| dataset.growth(*at).is_some();
            let relation = |at: usize| Relation {
                table: at,
                name: dataset.tables()[at].name.clone(),
                partition: None,
                units: units.clone(),
            };
            (0..dataset.tables().len()).filter(growing).map(relation).collect()
        };
        let LoadSpec { maintenance_work_mem_bytes: asked, server_memory_bytes, .. } = self.spec;
        let (memory, choice) = strategy::memory(asked, server_memory_bytes, self.sessions, &server);
        choices.extend(choice);
        let mut target = self.target.clone();
        if let Some(bytes) = memory {
            server::set(&mut target, "maintenance_work_mem", format!("{}kB", bytes / 1024));
        }
        let done = HashSet::new();
        let memory_bytes = memory.unwrap_or(server.memory_bytes);
        Plan { dataset, server, target, begun, done, filled, stored, choices, memory_bytes }
    }

    fn choices(&self) -> Vec<Choice> {
        let why = "the server spends 0.4 to 1.0 times the CPU of text on it, table by table";
        let mut choices =
            vec![Choice { name: "format", value: "binary".into(), why: why.to_owned() }];
        if self.spec.connections.is_none() && self.spec.part.is_none() {
            let why = format!("one for each core of this machine, at most {SESSIONS_MAX}");
            let value = self.sessions.to_string();
            choices.push(Choice { name: "connections", value, why });
        }
        choices
    }

    /// What was loaded must be what is asked for, apart from the number of units.
    fn require_same(
        &self,
        found: &BTreeMap<String, String>,
        asked: &BTreeMap<String, String>,
        but: Option<&str>,
    ) -> Result<(), RunError> {
        let different = asked.iter().find(|(key, value)| {
            but != Some(key.as_str()) && found.get(*key).is_some_and(|other| other != *value)
        });
        let Some((key, value)) = different else { return Ok(()) };
        let fact = format!(
            "the load in database {} has {key} {}, asked is {value}",
            self.spec.connection.database, found[key]
        );
        Err(RunError::spec(fact, Some("Ask for the same, or load anew with --drop-ours.")))
    }

    async fn require_untouched(
        &self,
        dataset: &dyn Dataset,
        session: &mut Session<Stream>,
    ) -> Result<(), RunError> {
        let Some(sql) = dataset.untouched() else { return Ok(()) };
        let rows = session
            .simple(&sql)
            .await
            .map_err(|e| RunError::target(&"look for transactions", &e))?;
        let value = rows.into_iter().next().and_then(|row| row.into_iter().next()?);
        if value.as_deref() == Some("t") {
            return Ok(());
        }
        let fact = format!(
            "transactions changed database {} since it was loaded",
            self.spec.connection.database
        );
        Err(RunError::spec(fact, Some("Rows of different ages make no test: load anew.")))
    }
}

impl Plan {
    /// Everything that the steps follow from.
    pub(super) fn terms(&self) -> Terms<'_> {
        Terms {
            dataset: &*self.dataset,
            begun: &self.begun,
            filled: &self.filled,
            stored: &self.stored,
            version: self.server.version,
        }
    }

    /// All steps, or those of one host.
    pub(super) fn steps(&self, part: Option<Part>) -> Vec<Step> {
        match part {
            Some(Part::Copy(share)) => copies_of(&self.terms(), share),
            _ => self.terms().steps(),
        }
    }

    /// What is ahead.
    pub(super) fn work(&self, queue: &StepQueue) -> Work {
        let rows = queue.left(|step| step.rows(&*self.dataset));
        Work { rows, units: queue.left(|step| step.cost) }
    }

    /// The server told which unit is in which partition.
    fn route(&mut self, routing: &pieces::Routing) {
        self.stored = pieces::all(&*self.dataset, Some(routing));
        if self.begun.from_units == 0 {
            self.filled = self.stored.clone();
        }
    }

    /// What `pgdyno_load` is to remember.
    pub(super) fn record(&self) -> BTreeMap<String, String> {
        let mut record = self.begun.record.clone();
        record.insert("workload".into(), self.dataset.name().to_owned());
        record.insert("loaded_at_unix_s".into(), self.begun.loaded_at_unix_s.to_string());
        record
    }
}

/// A session of a load.
pub(super) async fn connect(target: &Target) -> Result<Session<Stream>, RunError> {
    let session = Session::connect(target, &[]).await;
    session.map_err(|e| RunError::opening(&target, &e))
}

/// What a load does about what it found.
enum Decision {
    /// Loads everything.
    Fresh { drop: bool },
    /// Goes on.
    Resume(Box<Begun>, HashSet<String>),
    /// Adds units to what this record speaks of.
    TopUp(BTreeMap<String, String>),
}

fn dataset(workload: &Value, loaded_at_unix_s: i64) -> Result<Box<dyn Dataset>, RunError> {
    let loaded_at = Timestamp::from_unix_micros(loaded_at_unix_s * 1_000_000);
    catalogue::dataset(workload, loaded_at).map_err(|e| RunError::spec(e.fact, e.hint.as_deref()))
}

/// What shapes the data.
fn record(dataset: &dyn Dataset) -> BTreeMap<String, String> {
    dataset.record().into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A table whose columns are not the same: pgbench numbers accounts wider from some scale on.
fn differs<'a>(before: &dyn Dataset, after: &'a dyn Dataset) -> Option<&'a str> {
    let mut pairs = before.tables().iter().zip(after.tables());
    pairs.find(|(one, other)| one.columns != other.columns).map(|(_, table)| table.name.as_str())
}

/// How much of an earlier load there is.
fn done_text(steps: usize) -> String {
    match steps {
        1 => "1 step of it is done".to_owned(),
        many => format!("{many} steps of it are done"),
    }
}
