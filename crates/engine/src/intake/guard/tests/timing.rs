//! The time that a refusal takes tells nothing.

use http::{HeaderName, HeaderValue};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::mutated::good_requests;
use super::*;

/// S3: 100,000 samples a class in `./test --slow`, the classes taken in turn. How often one class takes longer than another, ties halved:
/// 0.5 when nothing tells them apart.
#[test]
fn a_wrong_key_and_a_wrong_signature_take_the_same_time() {
    if std::env::var_os("TRIBUTARY_SLOW").is_none() {
        return; // a matter of statistics, which a busy machine disturbs
    }
    let wrong = |mut sent: Sent| {
        for (name, value) in &mut sent.headers {
            if ["x-webhook-signature", "webhook-signature", "x-twilio-signature", "authorization"]
                .contains(&name.as_str())
            {
                let at = value.len() - 5;
                value[at] = if value[at] == b'1' { b'2' } else { b'1' };
            }
        }
        sent
    };
    let channels: Vec<Option<Arc<Keys>>> = vec![
        None,
        Some(generic_with(SECRET)),
        Some(twilio_with(SECRET)),
        Some(keys(&providers::postmark::SPEC, &Proofs::default())),
    ];
    for (_, sent) in good_requests() {
        let sent = wrong(sent);
        let mut headers = HeaderMap::new();
        for (name, value) in &sent.headers {
            headers.append(
                HeaderName::try_from(name.as_str()).expect("a name"),
                HeaderValue::from_bytes(value).expect("a value"),
            );
        }
        let sample = |keys: &Option<Arc<Keys>>| {
            let (base_url, target) = (&sent.base_url, &sent.target);
            let request = Request { headers: &headers, target, base_url, address: sent.address, now: at(sent.now) };
            let begun = std::time::Instant::now();
            let mut check = Check::begin(keys.as_ref().unwrap_or(&NOBODYS), request);
            check.update(&sent.body);
            assert!(std::hint::black_box(check.passes(&sent.body)).is_err());
            begun.elapsed().as_nanos()
        };
        let mut rng = StdRng::seed_from_u64(3);
        let mut worst = 0.0_f64;
        for attempt in 0.. {
            let mut times = vec![Vec::with_capacity(100_000); channels.len()];
            for _ in 0..100_000 {
                let first = rng.random_range(0..channels.len()); // none is always the one with a warm cache
                for nth in 0..channels.len() {
                    let class = (first + nth) % channels.len();
                    times[class].push(sample(&channels[class]));
                }
            }
            worst = (1..channels.len()).map(|class| (longer(&times[0], &times[class]) - 0.5).abs()).fold(0.0, f64::max);
            if worst < 0.05 || attempt == 2 {
                break;
            }
        }
        println!("{}: told apart by {worst:.4} at worst", sent.headers[0].0);
        assert!(worst < 0.05, "S3: {}: {worst:.4}", sent.headers[0].0);
    }
}

/// How often a value of `a` is larger than one of `b`.
fn longer(a: &[u128], b: &[u128]) -> f64 {
    let mut all: Vec<(u128, bool)> =
        a.iter().map(|time| (*time, true)).chain(b.iter().map(|time| (*time, false))).collect();
    all.sort_unstable();
    let (mut at, mut rank_sum) = (0, 0.0);
    while at < all.len() {
        let alike = all[at..].iter().take_while(|(time, _)| *time == all[at].0).count();
        let rank = at as f64 + (alike as f64 + 1.0) / 2.0;
        rank_sum += rank * all[at..at + alike].iter().filter(|(_, is_a)| *is_a).count() as f64;
        at += alike;
    }
    let (n, m) = (a.len() as f64, b.len() as f64);
    (rank_sum - n * (n + 1.0) / 2.0) / (n * m)
}
