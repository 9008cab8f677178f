//! What an answer has become, on its way to who hears it: a large one has its part of the memory for those, and goes out
//! piece by piece, within a time.

use super::answer::{WHOLE_BYTES_MAX, is_question, refusal};
use super::body::Outgoing;
use super::connection::Limits;
use super::current::is_to_be_current;
use super::long::{Long, PIECE_TIMEOUT};
use crate::Api;
use crate::call::Call;
use crate::fetches::{Fetch, no_room};
use crate::listener::Listener;
use crate::routes::Route;
use courser_broker::admin::Admin;
use hyper::body::Body as _;
use hyper::header::CONTENT_LENGTH;
use hyper::{Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// An answer that is ready to go out.
pub(super) enum Made {
    Whole(Response<Outgoing>),
    /// What stands before the body, and the body, of which the beginning is made.
    Long(Response<Outgoing>, Box<Long>),
}

/// Who hears an answer.
pub(super) struct Hearer {
    api: Arc<Api>,
    user: String,
    listener: Option<Listener>,
    /// Who knows whether all of it is current, if it has to be.
    admin: Option<Admin>,
    /// How long a piece may wait for it.
    patience: Duration,
}

impl Hearer {
    /// Who has made this call.
    pub fn of(call: &Call, route: &Route) -> Self {
        let is_to_be_current = is_to_be_current(route, StatusCode::OK);
        Hearer {
            api: Arc::clone(&call.api),
            user: call.user().to_owned(),
            listener: Listener::of_list(call, route.needs),
            admin: is_to_be_current.then(|| call.api.admin.clone()),
            patience: match call.inside {
                None => PIECE_TIMEOUT,
                Some(_) => Limits::INSIDE.write_timeout,
            },
        }
    }

    /// Has an answer go out.
    pub fn send(self, made: Made) -> Response<Outgoing> {
        match made {
            Made::Whole(answer) => answer,
            Made::Long(mut head, long) => {
                let Hearer { api, user, listener, admin, patience } = self;
                let places = Arc::clone(&api.answers);
                *head.body_mut() = long.send(places, user, listener, admin, patience);
                head
            }
        }
    }
}

impl Made {
    /// The answer with its part of the memory for large ones, which it may have already, if it is large; a refusal where none
    /// is left.
    pub fn within_room(self, call: &Call, route: &Route, fetch: Option<Fetch>) -> Made {
        let (fetches, admin, user) = (&call.api.fetches, &call.api.admin, call.user());
        match self {
            Made::Whole(mut answer) => {
                let bytes = answer.body().size_hint().lower() as usize;
                let fetch = match fetch {
                    Some(fetch) => match fetches.fitted(fetch, user, bytes) {
                        // What has been taken is not thrown away. It counts, and has one message more than its share at most.
                        Err(fetch) if !is_question(route) => Ok(fetch),
                        fitted => fitted.map_err(|_| no_room()),
                    },
                    None if bytes > WHOLE_BYTES_MAX => fetches.of(admin, user, bytes),
                    None => return Made::Whole(answer),
                };
                match fetch {
                    Ok(fetch) => answer.body_mut().hold(fetch),
                    Err(refused) => return Made::Whole(refusal(&refused)),
                }
                if bytes <= WHOLE_BYTES_MAX {
                    return Made::Whole(answer);
                }
                let long = Long::ready(answer.body_mut().take_whole());
                answer.headers_mut().insert(CONTENT_LENGTH, bytes.into());
                Made::Long(answer, Box::new(long))
            }
            Made::Long(head, mut long) => {
                let fetch = match long.take_room() {
                    None => fetches.of(admin, user, long.bytes()),
                    Some(mut fetch) => {
                        fetches.resize(&mut fetch, user, long.bytes()).map(|()| fetch)
                    }
                };
                match fetch {
                    Ok(fetch) => {
                        long.hold(fetch);
                        Made::Long(head, long)
                    }
                    Err(refused) => Made::Whole(refusal(&refused)),
                }
            }
        }
    }
}
