//! Locks written as their data, and read as new locks: the feature `serde`.

use crate::{Hooks, LazyLock, Mutex, OnceLock, RwLock, poison};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error, Serialize, Serializer};

/// Waits for the mutex.
impl<T: ?Sized + Serialize, H: Hooks> Serialize for Mutex<T, H> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lock().serialize(serializer)
    }
}

/// Waits until it may read the data.
impl<T: ?Sized + Serialize, H: Hooks> Serialize for RwLock<T, H> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

/// Waits for the mutex; a poisoned one is an error.
impl<T: ?Sized + Serialize> Serialize for poison::Mutex<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.lock() {
            Ok(data) => data.serialize(serializer),
            Err(_) => Err(S::Error::custom("the mutex is poisoned")),
        }
    }
}

/// Waits to read; a poisoned lock is an error.
impl<T: ?Sized + Serialize> Serialize for poison::RwLock<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.read() {
            Ok(data) => data.serialize(serializer),
            Err(_) => Err(S::Error::custom("the reader-writer lock is poisoned")),
        }
    }
}

/// Writes an `Option`: nothing is waited for.
impl<T: Serialize> Serialize for OnceLock<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

/// Makes the data if nobody has.
impl<T: Serialize, F: FnOnce() -> T> Serialize for LazyLock<T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, H: Hooks> Deserialize<'de> for Mutex<T, H> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|data| Mutex::with_hooks(H::NEW, data))
    }
}

impl<'de, T: Deserialize<'de>, H: Hooks> Deserialize<'de> for RwLock<T, H> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|data| RwLock::with_hooks(H::NEW, data))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for poison::Mutex<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(poison::Mutex::new)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for poison::RwLock<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(poison::RwLock::new)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OnceLock<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = Option::<T>::deserialize(deserializer)?;
        Ok(data.map_or_else(OnceLock::new, OnceLock::from))
    }
}
