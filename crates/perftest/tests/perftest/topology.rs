//! Who publishes where, who consumes what.

use courser_perftest::Options;
use courser_perftest::topology::Topology;

fn topology(line: &str) -> Topology {
    Topology::new(&Options::parse_from_args(line.split_whitespace()).unwrap())
}

#[test]
fn one_queue_has_the_name_and_several_are_numbered() {
    assert_eq!(topology("perftest --queue q").queues, ["q"]);
    assert_eq!(topology("perftest --queue q --queues 3").queues, ["q-1", "q-2", "q-3"]);
}

#[test]
fn producers_and_consumers_spread_over_the_queues() {
    let topology = topology("perftest --queue q --queues 2 --producers 4 --consumers 3");
    assert_eq!(topology.consumed, [0, 1, 0]);
    assert_eq!(topology.keys, [["q-1"], ["q-2"], ["q-1"], ["q-2"]]);
}

#[test]
fn few_producers_share_many_queues() {
    let topology = topology("perftest --queue q --queues 5 --producers 2");
    assert_eq!(topology.keys, [vec!["q-1", "q-3", "q-5"], vec!["q-2", "q-4"]]);
    assert_eq!(topology.reaching(0, 7, 0), 3);
    assert_eq!(topology.reaching(0, 7, 4), 2);
    assert_eq!(topology.reaching(0, 7, 1), 0);
}

#[test]
fn a_routing_key_binds_all_queues() {
    let topology = topology("perftest --exchange x --routing-key k --queues 2 --producers 1");
    assert_eq!(topology.keys, [["k"]]);
    assert_eq!(
        (topology.binding_keys(0), topology.binding_keys(1)),
        (vec!["k".to_owned()], vec!["k".to_owned()])
    );
    assert!(topology.reaches(0, 0, 0) && topology.reaches(0, 0, 1));
}

#[test]
fn the_default_exchange_takes_a_routing_key_for_a_queues_name() {
    let topology = topology("perftest --queue q --routing-key elsewhere");
    assert!(!topology.reaches(0, 0, 0));
    assert_eq!(topology.reaching(0, 100, 0), 0);
}
