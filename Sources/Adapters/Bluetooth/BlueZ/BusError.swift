/// An error on the system bus.
enum BusError: Error, Equatable {
  case interrupted
  /// libsystemd cannot be loaded, or there is no bus. The reason is from the system.
  case unavailable(reason: String)
  /// The bus went away.
  case disconnected(reason: String)
  /// There was no reply in time.
  case noReply
  /// The reply is an error with this name.
  case failed(name: String, message: String)
}

extension RadioError {
  /// The meaning of a bus error for a radio.
  ///
  /// - Parameter method: the called method of bluetoothd.
  init(_ error: BusError, radio: String, method: String = "AddMatch") {
    self =
      switch error {
      case .interrupted: .interrupted
      case .unavailable(let reason): .noSystemBus(radio: radio, reason: reason)
      case .disconnected(let reason): .lost(radio: radio, reason: "the system bus is gone: \(reason)")
      case .noReply: .noAnswer(radio: radio, command: method)
      case .failed("org.freedesktop.DBus.Error.ServiceUnknown", _),
        .failed("org.freedesktop.DBus.Error.NameHasNoOwner", _),
        // bluetoothd went away before it answered.
        .failed("org.freedesktop.DBus.Error.NoReply", _):
        .noBluetoothDaemon(radio: radio)
      case .failed("org.freedesktop.DBus.Error.UnknownObject", _),
        .failed("org.freedesktop.DBus.Error.UnknownMethod", _):
        .noAdapter(radio: radio)
      case .failed("org.bluez.Error.NotReady", _): .poweredOff(radio: radio)
      case .failed("org.freedesktop.DBus.Error.AccessDenied", _), .failed("org.bluez.Error.NotAuthorized", _):
        .notAuthorized(radio: radio)
      case .failed(let name, let message):
        .bluetoothd(radio: radio, method: method, name: name, message: message)
      }
  }
}
