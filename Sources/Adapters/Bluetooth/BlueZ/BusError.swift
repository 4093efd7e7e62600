/// What can go wrong on the system bus.
enum BusError: Error, Equatable {
  case interrupted
  /// libsystemd cannot be loaded, or there is no bus; in the system's words.
  case unavailable(reason: String)
  /// The bus went away.
  case disconnected(reason: String)
  /// There was no reply in time.
  case noReply
  /// The reply is an error, of this name.
  case failed(name: String, message: String)
}
