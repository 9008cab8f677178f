//! From a publish or a dead letter to the queues at the end of its way.

use super::queue::{Outcome, Queue};
use super::{Entry, Letter, Message, Model, Moment, Path, Publish};
use crate::topology::{DEAD, WORK};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// What identifies a message for those who remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// The queue that remembers it; none if it is the direct exchange.
    place: Option<&'static str>,
    mark: u8,
}

/// The way of a publish.
#[derive(Debug, Default)]
struct Way {
    queues: Vec<&'static str>,
    /// Something on it has had the message.
    is_repeated: bool,
    /// To be remembered once the message has arrived.
    new: Option<Mark>,
}

impl Model {
    /// Brings dead letters to their queue. What that refuses, or what finds it gone, is lost, or waits
    /// for another try.
    pub(super) fn post(&mut self) -> Result<(), String> {
        loop {
            self.post_new()?;
            if self.commits {
                return Ok(());
            }
            let now_ms = self.now_ms;
            let again = self.queues.values_mut().flat_map(|queue| queue.take_stranded(now_ms));
            self.letters.extend(again);
            self.letters_had_waited |= !self.letters.is_empty();
            if self.letters.is_empty() {
                return Ok(());
            }
        }
    }

    /// The same, without those that wait for another try: that is a timer's, and what a client sent at once comes first.
    fn post_new(&mut self) -> Result<(), String> {
        self.bring_forward();
        while let Some(letter) = self.letters.pop_front() {
            self.post_one(letter)?;
        }
        Ok(())
    }

    /// Letters that wait for another try and were seen to arrive are posted as they were seen: their order is not
    /// promised, nor which of them finds the room that there is. Those that have not been tried keep their order among
    /// them.
    fn bring_forward(&mut self) {
        let are_among: BTreeSet<u64> = self.arrived.iter().copied().collect();
        if !self.queues.values().any(|queue| queue.has_letter(&are_among)) {
            return;
        }
        self.letters_had_waited = true;
        let mut first = VecDeque::new();
        for id in &self.arrived {
            let queues = self.queues.values_mut();
            let mut waits = queues.flat_map(|queue| queue.take_letters(|one| one == *id));
            let letter = waits.next().or_else(|| {
                let is_new = |letter: &Letter| are_among.contains(&letter.message.id);
                let at = self.letters.iter().position(is_new)?;
                self.letters.remove(at)
            });
            // One that is still to die was before the others.
            let Some(letter) = letter else { break };
            first.push_back(letter);
        }
        first.append(&mut self.letters);
        self.letters = first;
    }

    fn post_one(&mut self, letter: Letter) -> Result<(), String> {
        let dead = self.queues.get(DEAD);
        let has_arrived = self.arrived.contains(&letter.message.id);
        let is_behind = self.some_arrived && !has_arrived;
        let is_stuck =
            dead.is_none_or(|dead| dead.refuses_next() || is_behind && dead.may_refuse());
        let (is_there, from, now_ms) = (dead.is_some(), letter.from, self.now_ms);
        self.queues.get_mut(from).into_iter().for_each(|queue| queue.letter_is_posted(&letter));
        let is_lost_in_log = self.letters_left == Some(0);
        if is_lost_in_log || letter.to.at_least_once && is_stuck {
            let queue = self.queues.get_mut(from);
            queue.into_iter().for_each(|queue| queue.strand(letter.clone(), now_ms));
            return Ok(());
        }
        self.letters_gone += 1;
        self.letters_left = self.letters_left.map(|left| left - 1);
        self.arrived.retain(|id| *id != letter.message.id);
        if is_there {
            let id = letter.message.id;
            self.put(&[letter.message], &[DEAD])?;
            let there = self.queues[DEAD].ready().find(|entry| entry.message.id == id);
            self.passed.extend(there.map(|entry| (id, entry.clone())));
        }
        let queue = self.queues.get_mut(from);
        queue.into_iter().for_each(|queue| queue.letter_has_gone(now_ms));
        Ok(())
    }

    /// Publishes what takes the same way. Returns for each whether every queue took it.
    pub fn publish(&mut self, publishes: &[Publish]) -> Result<Vec<bool>, String> {
        let Some(first) = publishes.first() else { return Ok(Vec::new()) };
        if let (Path::Later, Some(delay_ms)) = (first.path, first.delay_ms) {
            for publish in publishes {
                self.exchanges.delay(publish, self.now_ms + delay_ms);
            }
            return Ok(vec![true; publishes.len()]);
        }
        let together = if self.go_apart(first) { 1 } else { publishes.len() };
        let mut taken = Vec::new();
        for part in publishes.chunks(together) {
            taken.extend(self.publish_now(part)?);
            self.post_new()?;
        }
        self.post()?;
        Ok(taken)
    }

    /// Publishes what takes the same way, of which no two have the same mark.
    fn publish_now(&mut self, publishes: &[Publish]) -> Result<Vec<bool>, String> {
        let way = self.way(&publishes[0], &mut Vec::new());
        let taken = self.send(publishes, &way)?;
        let new = way.new.filter(|_| taken.iter().all(|taken| *taken));
        new.into_iter().for_each(|new| self.remember(new));
        Ok(taken)
    }

    /// Publishes each by itself, and yet together: what has been there before is found out before the
    /// first of them comes. Returns whether all were taken.
    pub(super) fn publish_together(&mut self, publishes: &[Publish]) -> Result<bool, String> {
        let mut among_them = Vec::new();
        let ways: Vec<Way> = publishes.iter().map(|one| self.way(one, &mut among_them)).collect();
        let (mut all_taken, mut new) = (true, Vec::new());
        for (publish, way) in publishes.iter().zip(ways) {
            let taken = self.send(std::slice::from_ref(publish), &way)?;
            let is_taken = taken.iter().all(|taken| *taken);
            all_taken &= is_taken;
            new.extend(way.new.filter(|_| is_taken));
        }
        new.into_iter().for_each(|new| self.remember(new));
        Ok(all_taken)
    }

    /// The way of a publish, but for the exchange or the queue that has had it, or had one before it
    /// `among_them`, and but for the queue that holds one of the same now.
    fn way(&self, publish: &Publish, among_them: &mut Vec<Mark>) -> Way {
        let Publish { path, message, has_more_keys, .. } = publish;
        let mut queues = self.exchanges.route(*path, *has_more_keys, |name| self.exists(name));
        let of_queue = self.queues.get(WORK).filter(|_| queues.contains(&WORK));
        let is_held =
            of_queue.zip(message.mark).is_some_and(|(queue, mark)| queue.holds_same(mark));
        queues.retain(|queue| !is_held || *queue != WORK);
        let place = match of_queue.filter(|queue| queue.has_marks()) {
            _ if self.exchanges.has_marks(*path) => None,
            Some(_) => Some(WORK),
            None => return Way { queues, is_repeated: is_held, ..Way::default() },
        };
        let Some(mark) = message.mark else { return Way { queues, ..Way::default() } };
        let new = Mark { place, mark };
        let has_had = match place {
            None => self.exchanges.has_had(mark),
            Some(_) => of_queue.is_some_and(|queue| queue.has_had(mark)),
        };
        if has_had || among_them.contains(&new) {
            queues.retain(|queue| place.is_some_and(|place| place != *queue));
            return Way { queues, is_repeated: true, new: None };
        }
        // What arrives nowhere is not remembered.
        let new = Some(new).filter(|_| !queues.is_empty());
        among_them.extend(new);
        Way { queues, is_repeated: is_held, new }
    }

    /// Whether publishes go each by itself, and not as a batch, to where they go.
    pub fn go_apart(&self, publish: &Publish) -> bool {
        let Publish { path, has_more_keys, .. } = publish;
        let queues = self.exchanges.route(*path, *has_more_keys, |name| self.exists(name));
        let screens = self.queues.get(WORK).is_some_and(Queue::screens);
        // The broker reads the headers of each to see how long it has to wait.
        let may_wait = *path == Path::Later;
        let marked = self.exchanges.has_marks(*path) || screens && queues.contains(&WORK);
        *has_more_keys || may_wait || marked
    }

    /// Puts what takes the same way into the queues at its end, or returns it.
    fn send(&mut self, publishes: &[Publish], way: &Way) -> Result<Vec<bool>, String> {
        if way.queues.is_empty() {
            let is_returned = publishes[0].mandatory && !way.is_repeated;
            let mut returned = publishes.iter().filter(|_| is_returned);
            returned.try_for_each(|one| self.observed.take_return(one.message.id))?;
            return Ok(vec![true; publishes.len()]);
        }
        let messages: Vec<_> = publishes.iter().map(|one| Rc::clone(&one.message)).collect();
        self.put(&messages, &way.queues)
    }

    /// Whether the queue under test drops what has this mark.
    pub fn repeats(&self, mark: u8) -> bool {
        self.queues.get(WORK).is_some_and(|queue| queue.has_had(mark) || queue.holds_same(mark))
    }

    fn remember(&mut self, new: Mark) {
        match new.place.and_then(|name| self.queues.get_mut(name)) {
            Some(queue) => queue.remember(new.mark),
            None => self.exchanges.remember_mark(new.mark),
        }
    }

    /// Puts messages into queues. Returns for each whether all have taken it.
    fn put(
        &mut self,
        messages: &[Rc<Message>],
        queues: &[&'static str],
    ) -> Result<Vec<bool>, String> {
        let stamps = |name: &&'static str| {
            self.streams.contains_key(*name) || self.queues.get(*name).is_some_and(Queue::stamps)
        };
        let is_stamped = queues.iter().any(stamps);
        let entries: Vec<Entry> = messages
            .iter()
            .map(|message| {
                let is_stamped = is_stamped || message.ttl_ms.is_some();
                Entry::new(message, is_stamped.then_some(self.now_ms))
            })
            .collect();
        let mut taken = vec![true; messages.len()];
        let Model { queues: all, streams, observed, channels, letters, now_ms, .. } = self;
        let mut at = Moment { now_ms: *now_ms, observed, channels, letters };
        for name in queues {
            if let Some(stream) = streams.get_mut(name) {
                stream.publish(messages.iter().map(Rc::clone), &mut at)?;
            }
            let Some(queue) = all.get_mut(name) else { continue };
            let outcomes = queue.publish(&entries, !self.refuses_nothing, &mut at)?;
            for (taken, outcome) in taken.iter_mut().zip(outcomes) {
                *taken &= outcome != Outcome::Refused;
            }
        }
        Ok(taken)
    }

    pub(super) fn publish_each(&mut self, publishes: &[Publish]) -> Result<(), String> {
        publishes.iter().try_for_each(|one| self.publish(std::slice::from_ref(one)).map(drop))
    }
}
