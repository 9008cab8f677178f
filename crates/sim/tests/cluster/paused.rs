//! Nodes that are paused, and what their clients ask meanwhile.

use crate::linear::Question;
use crate::world::World;
use bytes::Bytes;

/// What waits at the sockets of a node that is paused.
#[derive(Default)]
pub struct Paused {
    pub packets: Vec<Bytes>,
    pub questions: Vec<Question>,
}

impl World {
    /// Nothing of a node runs, and it does not notice.
    pub fn pause(&mut self, at: usize) {
        if self.nodes[at].running.is_some() {
            self.paused.entry(at).or_default();
        }
    }

    /// It goes on: with what its clients have asked, which the threads of its connections hear before its group hears a packet.
    pub fn wake(&mut self, at: usize) {
        let Some(paused) = self.paused.remove(&at) else { return };
        paused.questions.into_iter().for_each(|question| self.ask_this(at, question));
        paused.packets.into_iter().for_each(|bytes| self.hand_over(bytes));
    }

    /// A node is paused while the others go on, for as long as it takes them to elect another one, or not. Its clients ask
    /// something at the end.
    pub fn pause_for_a_while(&mut self, at: usize) {
        self.pause(at);
        for _ in 0..10 + self.rng.below(60) {
            self.quiet_round();
            if let Some(leader) = self.leader().filter(|leader| *leader != at) {
                self.publish(leader);
                self.ask(leader);
            }
        }
        self.ask(at);
        self.wake(at);
    }

    /// A client of a node asks something, of a broker that may have been deposed.
    pub fn ask(&mut self, at: usize) {
        let World { nodes, rng, model, .. } = self;
        let Some(running) = &nodes[at].running else { return };
        let mut all = running.serving.iter().chain(&running.deposed);
        if all.next_back().is_none_or(|serving| serving.is_asked()) {
            return;
        }
        let question = match rng.one_in(4) {
            true => model.asks_for_message(),
            false => model.questions.ask(rng.number(), rng.number()),
        };
        match self.paused.get_mut(&at) {
            Some(paused) if paused.questions.is_empty() => paused.questions.push(question),
            Some(_) => {}
            None => self.ask_this(at, question),
        }
    }

    /// A client of the last broker of a node asks this.
    pub fn ask_this(&mut self, at: usize, question: Question) {
        if let Some(paused) = self.paused.get_mut(&at) {
            return paused.questions.push(question);
        }
        let World { nodes, model, .. } = self;
        let Some(running) = &mut nodes[at].running else { return };
        if let Some(serving) = running.serving.iter_mut().chain(&mut running.deposed).last() {
            serving.ask(question, model);
        }
    }
}
