//! Before a run: what the workload needs in each database, done once over a connection of its own,
//! before any session prepares its statements.

use workload::Workload;

use crate::{
    clock::{Clock, SystemClock},
    connection::opener::ServerOpener,
    error::RunError,
    schedule::timeline::nanoseconds,
    shared::Shared,
    spec::Spec,
    worker::thread::connect_one,
};

/// Sets the databases up one after the other: several parts may lie in one. The first host does it
/// for all.
///
/// # Errors
///
/// A database cannot be reached or refuses, or the run was stopped meanwhile.
pub async fn set_up<W: Workload>(
    spec: &Spec,
    workload: &W,
    openers: &[ServerOpener],
    shared: &Shared,
) -> Result<(), RunError> {
    let steps = workload.setup();
    if steps.is_empty() || !spec.share.is_first() {
        return Ok(());
    }
    let clock = SystemClock::new().map_err(|e| RunError::internal(format!("open a timer: {e}")))?;
    let give_up_ns = clock.now_ns() + nanoseconds(spec.reconnect_give_up_s);
    for opener in openers {
        let bare = opener.bare();
        let connected = connect_one(&clock, &bare, shared, give_up_ns).await;
        let mut session = connected
            .map_err(|e| RunError::opening(&opener, &e))?
            .ok_or_else(|| RunError::internal("run was stopped while it was set up".into()))?;
        for sql in &steps {
            let done = session.simple(sql).await;
            done.map_err(|e| RunError::target(&format!("set up {opener}"), &e))?;
        }
        // What the server makes of the goodbye changes nothing.
        let _best_effort = session.close().await;
    }
    Ok(())
}
