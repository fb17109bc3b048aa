//! The embedding example works as described.

#[allow(dead_code)] // its `main` prints
#[path = "../examples/embed.rs"]
mod embed;

const fn can_be_sent_to_a_thread<T: Send>(_: &T) {}

#[test]
fn a_program_of_ones_own_has_a_queue_with_books() {
    let (port, sender) = embed::run();
    port.check_books().unwrap();
    can_be_sent_to_a_thread(&port);
    assert_eq!(port.books().classes().count(), 2, "two flows are two classes");
    let [with_ecn, without] = [0, 1].map(|flow| port.books().class(flow));
    assert_eq!((with_ecn.arrived().packets, without.arrived().packets), (10_000, 2_500));
    // For the ECN-capable flow, RED marks packets that it would otherwise drop. The observer's counts equal
    // those of the books.
    assert!(with_ecn.marked_total().packets > 100);
    assert_eq!(without.marked_total().packets, 0);
    assert!(without.dropped_total().packets > 10);
    let total = port.books().total();
    assert_eq!(sender.losses, total.dropped_total().packets);
    assert_eq!(sender.marks, total.marked_total().packets);
    // An overloaded link is never idle for long.
    assert!(port.books().busy().as_secs_f64() > 0.99 * port.books().span().as_secs_f64());
}
