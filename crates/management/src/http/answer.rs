//! Runs a handler on a thread that may be blocked, and hands out what it writes.
//!
//! A short answer goes out whole. A list goes out while it is made (see [`super::long`]). What takes longer is done
//! portion by portion ([`crate::reply::Work`]).

use super::body::Outgoing;
use super::current::current;
use super::long::{Long, gzip};
use super::made::{Hearer, Made};
use super::turns::{Ready, Turn, at_its_end};
use crate::call::{Call, Outcome};
use crate::caller::{Caller, NO_ANSWER};
use crate::fetches::Fetch;
use crate::portions::portions;
use crate::refusal::Refusal;
use crate::reply::{Awaited, Body, Reply, Work};
use crate::routes::{Changes, Needs, Route, check_tags, check_vhost};
use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPIRES, HeaderName,
    HeaderValue, PRAGMA, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use hyper::{Method, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// Bytes up to which a list goes out whole.
pub(crate) const WHOLE_BYTES_MAX: usize = 128 * 1024;
/// How long a change may take to be durable, and before that to find room in the log.
const DURABLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Says of messages that were taken that they may be there again after a crash.
const UNCERTAIN: HeaderName = HeaderName::from_static("x-courser-uncertain");
/// Bytes below which nothing is gained by compressing.
const GZIP_BYTES_MIN: usize = 300;

/// Says of a refusal that some of what was asked for may be done. From another group it comes to home, whose audit log
/// goes by it.
pub(crate) const PARTIAL: HeaderName = HeaderName::from_static("x-courser-partial");

/// How a request is answered.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub route: Route,
    pub is_gzip_wanted: bool,
}

/// How far a handler has come.
enum Handled {
    Made(Made),
    /// There is more to do.
    Working(Call, Box<dyn Work>),
    /// What comes of it, such as the confirm of a publish, is told later.
    Waiting(Call, Awaited),
    /// A change, which has to become durable.
    Changed(Call, Outcome),
}

impl Answer {
    /// Answers a request.
    pub async fn to(self, call: Call) -> Response<Outgoing> {
        if self.route.needs == Needs::Nothing && call.method != Method::POST {
            // These answer from what is at hand, also when everything else is busy.
            return self.hand_out_whole(self.handle(&call));
        }
        let (user, hearer) = (call.user().to_owned(), Hearer::of(&call, &self.route));
        let ready = match Ready::wait(&self.route, call).await {
            Ok(ready) => ready,
            Err(refused) => return refusal(&refused),
        };
        match self.made(ready, &user).await {
            Some(made) => hearer.send(made),
            None => interrupted(),
        }
    }

    /// Waits for the turn of a change that another group makes, and asks again whether its sender may make it. The turn lasts
    /// until what is returned with the request is dropped.
    pub async fn at_its_turn(&self, call: Call) -> Result<(Call, Turn), Refusal> {
        let Ready { mut call, asking, place, turn } = Ready::wait(&self.route, call).await?;
        let needs = self.route.needs;
        let looking = tokio::task::spawn_blocking(move || {
            let _place = place;
            match ask_again(&mut call, needs).and_then(|()| check_vhost(&call, needs)) {
                Err(_) if has_given_up(&call) => Err(Refusal::unavailable(NO_ANSWER)),
                let_in => let_in.map(|()| (call.unlimited(), turn)),
            }
        });
        let looked = looking.await;
        // Not before: it is given up when the client has gone.
        drop(asking);
        looked.unwrap_or_else(|_| Err(at_its_end()))
    }

    async fn made(self, ready: Ready, user: &str) -> Option<Made> {
        let Ready { mut call, asking, place, turn } = ready;
        let api = Arc::clone(&call.api);
        let handling = tokio::task::spawn_blocking(move || {
            let let_in = match turn {
                // It may have waited long.
                Some(_) => ask_again(&mut call, self.route.needs),
                None => look_again(&mut call, self.route.needs),
            };
            let handled = match let_in.and_then(|()| self.handle(&call)) {
                Ok(Reply { body: Body::Work(work), .. }) => {
                    Handled::Working(call.unlimited(), work)
                }
                Ok(Reply { body: Body::Awaited(outcome), .. }) => {
                    Handled::Waiting(call.unlimited(), outcome)
                }
                done if self.route.changes != Changes::Log => {
                    Handled::Made(self.hand_out(done).within_room(&call, &self.route, None))
                }
                done => Handled::Changed(call.unlimited(), done),
            };
            // Not before: the next one has its turn when this one is done, even if its client has gone.
            drop((turn, place));
            handled
        });
        let (call, done, fetch) = match handling.await.ok()? {
            Handled::Made(made) => return Some(made),
            Handled::Changed(call, done) => (call, done, None),
            // A publish has waited for its confirm.
            Handled::Waiting(call, outcome) => (call, outcome.await.map(Reply::settled), None),
            // A move goes on asking.
            Handled::Working(call, work) => self.work(call, work, user).await?,
        };
        drop(asking);
        let done = match done {
            // It is answered when it would survive a crash. No thread waits for that.
            Ok(reply) if self.route.changes == Changes::Log && !reply.is_settled => {
                certain(&call, reply).await
            }
            done => done,
        };
        if matches!(&done, Ok(reply) if !matches!(reply.body, Body::Empty)) {
            let place = api.answers.take(user, 1).await?;
            let making = tokio::task::spawn_blocking(move || {
                let made = self.hand_out(done).within_room(&call, &self.route, fetch);
                drop(place);
                made
            });
            return making.await.ok();
        }
        Some(self.hand_out(done))
    }

    /// Does work portion by portion, as long as its client waits.
    async fn work(
        &self,
        call: Call,
        work: Box<dyn Work>,
        user: &str,
    ) -> Option<(Call, Outcome, Option<Fetch>)> {
        let api = Arc::clone(&call.api);
        let fetch = match work.room() {
            // Its answer counts as one that is made at once.
            0 => None,
            room => match api.fetches.begin(&api.admin, user, room).await {
                Ok(fetch) => Some(fetch),
                Err(refused) => return Some((call, Err(refused), None)),
            },
        };
        let go_on = |(call, needs, work): &mut (Call, Needs, Box<dyn Work>)| {
            let let_in = look_again(call, *needs).and_then(|()| check_vhost(call, *needs));
            let done = let_in.and_then(|()| work.go_on(call)).transpose();
            done.map(|done| match work.has_changed() {
                true => done.map_err(Refusal::partial),
                false => done,
            })
        };
        let state = (call, self.route.needs, work);
        let ((call, _, _), done) = portions(&api.portions, user, state, go_on).await?;
        Some((call, done, fetch))
    }

    fn handle(&self, call: &Call) -> Outcome {
        // Where clients are silent, nothing else has told the broker the time lately.
        call.admin().set_time(call.api.now_ms());
        let done = check_vhost(call, self.route.needs).and_then(|()| (self.route.handler)(call));
        match done {
            // A change that is done is done.
            done if !has_given_up(call) || !is_question(&self.route) && done.is_ok() => done,
            _ => Err(Refusal::unavailable(NO_ANSWER)),
        }
    }

    /// Hands out what has been come to without a handler, as what one has come to.
    pub fn send(&self, call: &Call, done: Outcome) -> Response<Outgoing> {
        let made = self.hand_out(done).within_room(call, &self.route, None);
        Hearer::of(call, &self.route).send(made)
    }

    /// What is no list that is made while it goes out.
    fn hand_out_whole(&self, done: Outcome) -> Response<Outgoing> {
        match self.hand_out(done) {
            Made::Whole(answer) => answer,
            Made::Long(..) => interrupted(),
        }
    }

    fn hand_out(&self, done: Outcome) -> Made {
        let reply = match done {
            Ok(reply) => reply,
            Err(refused) => return Made::Whole(refusal(&refused)),
        };
        let mut head = empty(reply.status);
        set_headers(&mut head, &reply);
        let (content_type, bytes) = match reply.body {
            Body::Empty => return Made::Whole(head),
            // It is done before its answer goes out.
            Body::Work(_) | Body::Awaited(_) => return Made::Whole(interrupted()),
            Body::Json(bytes) => ("application/json", bytes),
            Body::Text(bytes, content_type) => (content_type, bytes),
            Body::Live(pieces, content_type) => {
                set_content_type(&mut head, content_type);
                *head.body_mut() = Outgoing::pieces(pieces);
                return Made::Whole(head);
            }
            Body::Rows(rows) => {
                set_content_type(&mut head, "application/json");
                return self.begin(Long::new(rows, self.is_gzip_wanted), head);
            }
        };
        set_content_type(&mut head, content_type);
        let is_packed = head.headers().contains_key(CONTENT_ENCODING);
        let packs = self.is_gzip_wanted && !is_packed && bytes.len() >= GZIP_BYTES_MIN;
        let (bytes, is_gzip) = match packs {
            true => gzip(&bytes).map_or((bytes, false), |packed| (packed, true)),
            false => (bytes, false),
        };
        if is_gzip {
            head.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *head.body_mut() = Outgoing::whole(bytes);
        Made::Whole(head)
    }

    /// Makes the beginning of a list, which may be all of it.
    fn begin(&self, mut long: Long, mut head: Response<Outgoing>) -> Made {
        if self.is_gzip_wanted {
            head.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        match long.make(WHOLE_BYTES_MAX) {
            Ok(true) => Made::Long(head, Box::new(long)),
            Ok(false) => {
                *head.body_mut() = Outgoing::whole(long.take());
                Made::Whole(head)
            }
            Err(error) => Made::Whole(refusal(&Refusal::internal(error))),
        }
    }
}

/// Looks whether the sender may still ask: a request waits for its place, and work between its portions. What another
/// program knows is asked where the request comes in; of what home passes on, a group looks at what it knows itself.
pub(crate) fn look_again(call: &mut Call, needs: Needs) -> Result<(), Refusal> {
    let is_known_elsewhere = call.caller.as_ref().is_some_and(Caller::is_known_elsewhere);
    match call.inside.is_none() && is_known_elsewhere {
        true => Ok(()),
        false => ask_again(call, needs),
    }
}

/// The same, and another program is asked too if that knows the sender. It may take long.
fn ask_again(call: &mut Call, needs: Needs) -> Result<(), Refusal> {
    let Some(caller) = call.caller.as_ref() else { return Ok(()) };
    let now_ms = call.api.now_ms();
    let caller = match call.inside {
        Some(_) => caller.again_inside(now_ms)?,
        None => caller.again(now_ms)?,
    };
    check_tags(&caller, needs)?;
    call.caller = Some(caller);
    Ok(())
}

/// Whether something could not be asked that had to be.
pub(super) fn has_given_up(call: &Call) -> bool {
    call.caller.as_ref().is_some_and(Caller::has_given_up)
}

/// Whether nothing is changed by what a route does.
pub(crate) fn is_question(route: &Route) -> bool {
    route.changes == Changes::Nothing
}

/// Waits until what has been changed so far is durable.
pub(crate) async fn durable(call: &Call) -> Result<(), Refusal> {
    let too_slow = || Refusal::internal("the disk is too slow: whether it is done is not certain");
    durable_or(call, too_slow).await
}

/// Waits until what an answer tells of is durable. Messages that it has taken go out even if that is not certain, unless another
/// node may have them by now: where they were, they are no more.
async fn certain(call: &Call, reply: Reply) -> Outcome {
    match durable(call).await {
        Err(_) if reply.has_taken && current(call.admin()).await.is_ok() => {
            Ok(reply.with_header(UNCERTAIN, "true"))
        }
        done => done.map(|()| reply),
    }
}

/// Has a change wait until there is room in the log, before it has a place: the handler would keep the place until then, and
/// requests that only ask need places too.
pub(super) async fn room_in_log(call: &Call) -> Result<(), Refusal> {
    match call.admin().log_may_block() {
        true => {
            durable_or(call, || Refusal::unavailable("the disk is too slow: nothing is done")).await
        }
        false => Ok(()),
    }
}

async fn durable_or(call: &Call, too_slow: impl FnOnce() -> Refusal) -> Result<(), Refusal> {
    match tokio::time::timeout(DURABLE_TIMEOUT, call.admin().durable()).await {
        Ok(done) => done.map_err(Refusal::from),
        Err(_) => Err(too_slow()),
    }
}

fn set_headers(head: &mut Response<Outgoing>, reply: &Reply) {
    let headers = head.headers_mut();
    for (name, value) in &reply.headers {
        // There may be several cookies.
        headers.append(name, value.clone());
    }
    if reply.no_store {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
        headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
        headers.insert(EXPIRES, HeaderValue::from_static("0"));
    }
}

pub(crate) fn set_content_type(head: &mut Response<Outgoing>, content_type: &'static str) {
    head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
}

/// The answer with a file of the page.
pub(super) fn file(reply: Reply) -> Response<Outgoing> {
    let mut head = empty(reply.status);
    set_headers(&mut head, &reply);
    if let Body::Text(bytes, content_type) = reply.body {
        set_content_type(&mut head, content_type);
        *head.body_mut() = Outgoing::whole(bytes);
    }
    head
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Outgoing> {
    let mut answer = Response::new(Outgoing::empty());
    *answer.status_mut() = status;
    answer
}

/// The answer that says why nothing is done.
pub(crate) fn refusal(refusal: &Refusal) -> Response<Outgoing> {
    let mut answer = empty(refusal.status);
    if refusal.challenge {
        let challenge = HeaderValue::from_static("Basic realm=\"RabbitMQ Management\"");
        answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if refusal.body.is_some() {
        set_content_type(&mut answer, "application/json");
        *answer.body_mut() = Outgoing::whole(refusal.to_json().into());
    }
    if refusal.is_partial {
        set_partial(&mut answer);
    }
    answer
}

/// Says of an answer that some of what was asked for may be done, although it is refused.
pub(crate) fn set_partial(answer: &mut Response<Outgoing>) {
    answer.headers_mut().insert(PARTIAL, HeaderValue::from_static("true"));
}

/// What a group has answered, as it came.
pub(crate) fn relayed_bytes(head: Response<()>, bytes: Bytes) -> Response<Outgoing> {
    let mut answer = head.map(|()| Outgoing::whole(bytes));
    for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        answer.headers_mut().remove(name);
    }
    answer
}

/// A handler has panicked, or the broker ends.
pub(crate) fn interrupted() -> Response<Outgoing> {
    refusal(&Refusal::internal("the request could not be finished"))
}
