//! Two accounts at a time, in any order, from several threads.

use lockstead::ww::{Class, WwMutex, lock_all};

static ACCOUNTS: Class = Class::wound_wait("accounts");

fn pay(from: &WwMutex<i64>, to: &WwMutex<i64>, amount: i64) {
    let context = ACCOUNTS.begin();
    let mut both = lock_all(&context, &[from, to]).expect("two accounts");
    *both[0] -= amount;
    *both[1] += amount;
}

fn main() {
    let (mine, yours) = (WwMutex::new(&ACCOUNTS, 100), WwMutex::new(&ACCOUNTS, 100));
    std::thread::scope(|scope| {
        scope.spawn(|| pay(&mine, &yours, 30));
        scope.spawn(|| pay(&yours, &mine, 10));
    });
    println!("{} and {}", mine.into_inner(), yours.into_inner());
}
