//! A table of channels by number. A client may use any number from 1 to 65535 however few channels it opens, so what
//! the table takes depends on the channels in it, not on their numbers.

use std::collections::BTreeMap;

/// Numbers below this are found by index. Clients count upwards, so those are nearly always enough. What the index takes
/// stays, and no limit counts it, so it is small.
const LOW_NUMBERS: usize = 64;

/// Something for each channel of a connection.
#[derive(Debug)]
pub(crate) struct Channels<T> {
    low: Vec<Option<Box<T>>>,
    high: BTreeMap<u16, Box<T>>,
}

impl<T> Default for Channels<T> {
    fn default() -> Self {
        Channels { low: Vec::new(), high: BTreeMap::new() }
    }
}

impl<T> Channels<T> {
    #[inline]
    pub fn get(&self, number: u16) -> Option<&T> {
        match self.low.get(usize::from(number)) {
            Some(channel) => channel.as_deref(),
            None => self.high.get(&number).map(|channel| &**channel),
        }
    }

    #[inline]
    pub fn get_mut(&mut self, number: u16) -> Option<&mut T> {
        match self.low.get_mut(usize::from(number)) {
            Some(channel) => channel.as_deref_mut(),
            None => self.high.get_mut(&number).map(|channel| &mut **channel),
        }
    }

    /// Puts in a channel, in place of any other with this number.
    pub fn insert(&mut self, number: u16, channel: T) {
        let index = usize::from(number);
        if index >= LOW_NUMBERS {
            self.high.insert(number, Box::new(channel));
            return;
        }
        if self.low.len() <= index {
            self.low.resize_with(index + 1, || None);
        }
        self.low[index] = Some(Box::new(channel));
    }

    pub fn remove(&mut self, number: u16) -> Option<Box<T>> {
        match self.low.get_mut(usize::from(number)) {
            Some(channel) => channel.take(),
            None => self.high.remove(&number),
        }
    }

    /// The numbers that are in use, from the lowest to the highest.
    pub fn numbers(&self) -> Vec<u16> {
        let low = (0..).zip(&self.low).filter(|(_, channel)| channel.is_some());
        low.map(|(number, _)| number).chain(self.high.keys().copied()).collect()
    }

    /// All channels, from the lowest number to the highest.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u16, &mut T)> {
        let low = (0..).zip(&mut self.low);
        let low = low.filter_map(|(number, channel)| Some((number, channel.as_deref_mut()?)));
        low.chain(self.high.iter_mut().map(|(number, channel)| (*number, &mut **channel)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_channel_takes_little_memory_whatever_its_number() {
        let mut channels = Channels::default();
        for number in [1, LOW_NUMBERS as u16 - 1, LOW_NUMBERS as u16, 2047, u16::MAX] {
            channels.insert(number, number);
            assert_eq!((channels.get(number), channels.numbers()), (Some(&number), vec![number]));
            let size_bytes = channels.low.capacity() * size_of::<Option<Box<u16>>>();
            assert!(size_bytes <= 1024, "{number}: {size_bytes}");
            assert_eq!(channels.remove(number).as_deref(), Some(&number));
            assert!(channels.numbers().is_empty() && channels.high.is_empty(), "{number}");
        }
    }
}
