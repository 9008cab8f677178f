//! Models of what threads hand to each other, in every order of their steps.

mod gate;
mod wakes;
