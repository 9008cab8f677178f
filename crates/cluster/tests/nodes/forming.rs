//! How nodes become a cluster, and which do not.

use crate::support::{Listening, PATIENCE, about, endpoint, formation};
use courser_cluster::NodeId;
use courser_cluster::forming::{Seen, Verdict, form, judge, look_around};
use courser_cluster::transport::{About, Formation};
use std::sync::Arc;

fn met(about: About) -> Seen {
    Seen { address: about.address.clone(), met: Ok(about) }
}

fn away(address: &str) -> Seen {
    Seen { address: address.into(), met: Err("connection refused".into()) }
}

fn formed(number: u64, name: &str, formation: &Formation) -> About {
    About { formation: Some(formation.clone()), ..about(number, name) }
}

#[test]
fn new_nodes_that_all_see_each_other_come_to_the_same_cluster() {
    let all = [about(5, "a"), about(3, "b"), about(4, "c")];
    let seen: Vec<Seen> = all.iter().cloned().map(met).collect();
    let verdicts: Vec<Verdict> = all.iter().map(|own| judge(own, &seen)).collect();
    let Verdict::Formed(first) = &verdicts[0] else { panic!("{:?}", verdicts[0]) };
    assert_eq!(first.founders, [NodeId(3), NodeId(4), NodeId(5)]);
    // That of the least number.
    assert_eq!(first.segment_bytes, 3 << 20);
    assert!(verdicts.iter().all(|one| one == &verdicts[0]));
    // The list may leave the node itself out.
    assert_eq!(judge(&all[0], &seen[1..]), verdicts[0]);
    // Others, or another name, are another cluster.
    let Verdict::Formed(two) = judge(&all[0], &seen[..2]) else { panic!("not formed") };
    assert_ne!(first.group, two.group);
    let renamed: Vec<About> =
        all.into_iter().map(|one| About { cluster: "test".into(), ..one }).collect();
    let seen: Vec<Seen> = renamed.iter().cloned().map(met).collect();
    let Verdict::Formed(other) = judge(&renamed[0], &seen) else { panic!("not formed") };
    assert_ne!(first.group, other.group);
}

#[test]
fn the_number_of_a_cluster_can_not_be_told_from_the_names_and_numbers_of_its_nodes() {
    let number = |seed| {
        let all = [about(5, "a"), About { seed, ..about(3, "b") }];
        let Verdict::Formed(cluster) = judge(&all[0], &all.clone().map(met)) else {
            panic!("not formed")
        };
        cluster.group
    };
    assert_ne!(number(1), number(2));
}

#[test]
fn the_only_node_with_data_begins_and_the_others_wait_to_be_added() {
    let with_data = |number, name| About { has_data: true, ..about(number, name) };
    let seen = [met(with_data(5, "a")), met(about(3, "b")), met(about(4, "c"))];
    assert_eq!(judge(&with_data(5, "a"), &seen), Verdict::Begins);
    assert_eq!(judge(&with_data(5, "a"), &[]), Verdict::Begins);
    let Verdict::Waits(whom) = judge(&about(3, "b"), &seen) else { panic!("it waits") };
    assert!(whom[0].1.contains("node 'a' has data"), "{whom:?}");
    // A node that is away may have data too.
    let verdict = judge(&with_data(5, "a"), &[seen[0].clone(), away("b:5680")]);
    assert!(matches!(verdict, Verdict::Waits(_)), "{verdict:?}");
    let two = [met(with_data(5, "a")), met(with_data(3, "b")), met(about(4, "c"))];
    for own in [with_data(5, "a"), with_data(3, "b"), about(4, "c")] {
        let Verdict::Wrong(why) = judge(&own, &two) else { panic!("two with data") };
        assert!(why.contains("'a'") && why.contains("'b'"), "{why}");
    }
    // What it has would be lost in a cluster that is there.
    let cluster = [met(formed(1, "b", &formation(&[1])))];
    assert!(matches!(judge(&with_data(5, "a"), &cluster), Verdict::Wrong(_)));
}

#[test]
fn nothing_is_formed_while_one_is_away() {
    let seen = [met(about(1, "a")), met(about(2, "b")), away("c:5680")];
    let verdict = judge(&about(1, "a"), &seen);
    assert_eq!(verdict, Verdict::Waits(vec![("c:5680".into(), "connection refused".into())]));
}

#[test]
fn a_founder_that_was_late_is_in_also_while_another_one_is_away() {
    let cluster = formation(&[1, 2, 3]);
    let seen = [met(formed(1, "a", &cluster)), met(about(2, "b")), away("c:5680")];
    assert_eq!(judge(&about(2, "b"), &seen), Verdict::Formed(cluster));
}

#[test]
fn a_node_with_a_new_folder_is_not_in_the_cluster_that_it_was_in() {
    let cluster = formation(&[1, 2, 3]);
    let seen = [met(formed(1, "a", &cluster)), met(about(4, "b")), met(formed(3, "c", &cluster))];
    let verdict = judge(&about(4, "b"), &seen);
    assert_eq!(verdict, Verdict::NotAdded(vec!["a".into(), "c".into()]));
}

#[test]
fn different_lists_of_addresses_are_noticed() {
    // The others have formed without the fourth, which this node was told of.
    let cluster = formation(&[1, 2, 3]);
    let seen = [met(formed(1, "a", &cluster)), met(about(2, "b")), met(about(4, "d"))];
    assert!(matches!(judge(&about(2, "b"), &seen), Verdict::Wrong(why) if why.contains("'d'")));
}

#[test]
fn two_clusters_and_two_nodes_of_one_name_are_noticed() {
    let (one, mut other) = (formation(&[1]), formation(&[2]));
    other.group = 8;
    let seen = [met(formed(1, "a", &one)), met(formed(2, "b", &other))];
    assert!(matches!(judge(&about(3, "c"), &seen), Verdict::Wrong(_)));
    let seen = [met(about(1, "a")), met(about(2, "a"))];
    assert!(matches!(judge(&about(3, "c"), &seen), Verdict::Wrong(why) if why.contains("'a'")));
}

/// The only node of a data folder, or one of several that have copies of it.
fn process(number: u64, name: &str, process: u64) -> About {
    About { process: Some(process), ..about(number, name) }
}

#[test]
fn nodes_with_copies_of_one_data_folder_form_no_cluster_and_are_named() {
    let seen = [met(process(1, "a", 10)), met(process(1, "b", 11)), met(process(2, "c", 12))];
    for own in seen.iter().filter_map(|one| one.met.as_ref().ok()) {
        let Verdict::Wrong(why) = judge(own, &seen) else { panic!("formed by '{}'", own.name) };
        assert!(why.contains("'a' (a:5680)") && why.contains("'b' (b:5680)"), "{why}");
    }
    // The same one at two addresses is itself.
    let seen = [met(process(1, "a", 10)), met(process(1, "a", 10))];
    assert!(matches!(judge(&process(1, "a", 10), &seen), Verdict::Formed(_)));
}

#[tokio::test]
async fn a_node_with_a_copy_of_the_data_folder_is_met_and_asked_nothing() {
    let own = endpoint(process(1, "a", 10));
    let copy = Listening::start(&endpoint(process(1, "b", 11))).await;
    let seen = look_around(&own, std::slice::from_ref(&copy.address)).await;
    assert_eq!(seen[0].met.as_ref().map(|about| &*about.name), Ok("b"));
    assert_eq!(own.about().address, "a:5680", "it is not itself reached there");
    // Both have formed a cluster of one before, which is the same.
    for end in [&own, &copy.endpoint] {
        end.change(|about| about.formation = Some(formation(&[1])));
    }
    let refused = own.ask(&copy.address, "join").await.expect_err("a refusal").to_string();
    assert!(refused.contains("'a' (a:5680)") && refused.contains("'b' (b:5680)"), "{refused}");
    assert!(refused.contains("with an empty folder"), "{refused}");
}

#[tokio::test]
async fn three_processes_form_one_cluster_whenever_they_start() {
    let first = Listening::start(&endpoint(about(1, "a"))).await;
    let second = Listening::start(&endpoint(about(2, "b"))).await;
    // No node is there yet; the port was free a moment ago.
    let third = Listening::start(&endpoint(about(3, "c"))).await;
    let addresses = [&first, &second, &third].map(|node| node.address.clone());
    drop(third);
    let forming = |node: &Listening| {
        let (endpoint, addresses) = (Arc::clone(&node.endpoint), addresses.clone());
        tokio::spawn(async move {
            let mut waited = Vec::new();
            let formation = form(&endpoint, &addresses, |why| waited.push(why.clone())).await;
            let formation = formation.expect("a formation");
            endpoint.change(|about| about.formation = Some(formation.clone()));
            (formation, waited)
        })
    };
    let early = [forming(&first), forming(&second)];
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(early.iter().all(|one| !one.is_finished()), "formed without the third");
    let third = Listening::start_at(&endpoint(about(3, "c")), &addresses[2]).await;
    let late = forming(&third);
    let mut formations = Vec::new();
    for (index, task) in early.into_iter().chain([late]).enumerate() {
        let done = tokio::time::timeout(PATIENCE, task).await.expect("in time");
        let (formation, waited) = done.expect("no panic");
        assert_eq!(index < 2, matches!(waited.first(), Some(Verdict::Waits(_))));
        formations.push(formation);
    }
    assert_eq!(formations[0].founders, [NodeId(1), NodeId(2), NodeId(3)]);
    assert!(formations.iter().all(|one| one == &formations[0]));
    // Each has found where it is reached itself.
    let own = [first, second, third].map(|node| node.endpoint.about().address);
    assert_eq!(own, addresses);
}
