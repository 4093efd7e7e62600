import Synchronization

/// A value behind a lock that closures and threads can share. `Mutex` is not copyable, so no closure can capture one.
final class Shared<Value: Sendable>: Sendable {
  let value: Mutex<Value>

  init(_ value: Value) { self.value = Mutex(value) }
}
