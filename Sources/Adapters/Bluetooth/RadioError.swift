package import Domain
package import SystemIO

/// Why a radio cannot be used, or can no longer be used.
package enum RadioError: Failure, Equatable {
  /// A signal ended the wait.
  case interrupted

  // Captures.

  /// The capture cannot be opened, read or written (ENOENT, EACCES, EISDIR, EEXIST, ENOSPC…).
  case file(SystemError)
  /// The file is not a btsnoop capture, or its packets cannot be read.
  case notACapture(path: String, reason: String)
  /// The capture is truncated or overwritten at that byte. Everything before it has been delivered.
  case damaged(path: String, offset: UInt64, expected: String)

  // Adapters of this machine.

  /// The kernel has no Bluetooth, or none in this network namespace or container.
  case noBluetooth(radio: String)
  /// There is no adapter with that number.
  case noAdapter(radio: String)
  /// The adapter is powered off.
  case adapterDown(radio: String)
  /// Another program uses the adapter exclusively.
  case adapterInUse(radio: String)
  /// CAP_NET_RAW is missing.
  case notPermitted(radio: String, program: String)
  /// Any other error of the adapter's socket.
  case adapter(SystemError)

  // bluetoothd.

  /// There is no system bus.
  case noSystemBus(radio: String, reason: String)
  /// bluetoothd is not on the bus.
  case noBluetoothDaemon(radio: String)
  /// bluetoothd keeps the adapter powered off.
  case poweredOff(radio: String)
  /// The bus's policy or bluetoothd does not let this user scan.
  case notAuthorized(radio: String)
  /// bluetoothd answered with another error; the name is from D-Bus.
  case bluetoothd(radio: String, method: String, name: String, message: String)

  // Controllers.

  /// The connection failed; the reason is from the resolver or the kernel.
  case cannotConnect(radio: String, reason: String)
  /// The controller has no Bluetooth Low Energy.
  case noLowEnergy(radio: String)
  /// The radio can only listen, for example a capture.
  case cannotAdvertise(radio: String)
  /// The controller cannot send that many beacons at the same time.
  case tooFewSets(radio: String, sets: Int, beacons: Int)
  /// The controller refused a command (Core 5.4, Vol 1, Part F).
  case refused(radio: String, command: String, status: UInt8)
  /// The controller did not answer a command in time.
  case noAnswer(radio: String, command: String)
  /// The controller's data is not H4: no packet begins with this byte.
  case garbled(radio: String, offset: UInt64, byte: UInt8)
  /// The connection to the controller, or the adapter itself, went away.
  case lost(radio: String, reason: String)

  package var description: String {
    switch self {
    case .interrupted:
      "interrupted"
    case .file(let error):
      error.description
    case .notACapture(let path, let reason):
      "\(path) is not a btsnoop capture that can be read: \(reason)"
    case .damaged(let path, let offset, let expected):
      "\(path) is damaged at byte \(offset): expected \(expected)"
    case .noBluetooth(let radio):
      "cannot open \(radio): this kernel has no Bluetooth, or none in this container"
    case .noAdapter(let radio):
      "cannot open \(radio): there is no such adapter; `hciconfig` lists the adapters"
    case .adapterDown(let radio):
      "\(radio) is down; `bluetoothctl power on` or `sudo hciconfig \(radio) up` turns it on"
    case .adapterInUse(let radio):
      "\(radio) is used exclusively by another program (a virtual machine, Bumble, btproxy)"
    case .notPermitted(let radio, let program):
      "not permitted to use \(radio); `sudo setcap cap_net_raw+ep \(shellWord(program))` allows it"
    case .adapter(let error):
      error.description
    case .noSystemBus(let radio, let reason):
      "cannot open \(radio): no D-Bus system bus (\(reason)); `sudo systemctl start dbus` starts it"
    case .noBluetoothDaemon(let radio):
      "\(radio) needs bluetoothd, which is not running; `sudo systemctl start bluetooth` starts it"
    case .poweredOff(let radio):
      "\(radio) is powered off; `bluetoothctl power on` turns it on"
    case .notAuthorized(let radio):
      "not permitted to use \(radio): the system bus does not let this user speak to bluetoothd"
    case .bluetoothd(let radio, let method, let name, let message):
      "bluetoothd refused `\(method)` for \(radio): \(message.isEmpty ? name : message)"
    case .cannotConnect(let radio, let reason):
      "cannot connect to \(radio): \(reason)"
    case .noLowEnergy(let radio):
      "\(radio) has no Bluetooth Low Energy"
    case .cannotAdvertise(let radio):
      "\(radio) cannot advertise: it takes an adapter (hci0) or a controller (h4:…)"
    case .tooFewSets(let radio, let sets, let beacons):
      "\(radio) can send \(sets) advertisement\(sets == 1 ? "" : "s") at a time, not \(beacons): each beacon takes one, "
        + "and so does [link]; use one more adapter"
    case .refused(let radio, let command, let status):
      "\(radio) refused `\(command)` with status 0x\(String(status, radix: 16))"
    case .noAnswer(let radio, let command):
      "\(radio) did not answer `\(command)` in time"
    case .garbled(let radio, let offset, let byte):
      "\(radio) does not speak H4: byte \(offset) is 0x\(String(byte, radix: 16)), which begins no packet"
    case .lost(let radio, let reason):
      "lost \(radio): \(reason)"
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .file(let error): error.exitStatus
    case .notACapture, .damaged: .badData
    case .notPermitted, .notAuthorized: .noPermission
    case .cannotAdvertise, .tooFewSets: .configuration
    case .noBluetooth, .noAdapter, .adapterDown, .adapterInUse, .adapter, .noSystemBus, .noBluetoothDaemon, .poweredOff,
      .bluetoothd, .cannotConnect, .noLowEnergy, .refused, .noAnswer, .garbled, .lost, .interrupted:
      .unavailable
    }
  }

  package var hint: String? {
    switch self {
    case .notPermitted(let radio, _): "where bluetoothd runs, --radio bluez:\(radio) needs no permission"
    case .noBluetooth, .noAdapter: "`stepctl doctor` lists the radios"
    case .adapterDown, .adapterInUse, .refused, .noAnswer: "`stepctl doctor` looks for the reason"
    case .interrupted, .file, .notACapture, .damaged, .adapter, .noSystemBus, .noBluetoothDaemon, .poweredOff,
      .notAuthorized, .bluetoothd, .cannotConnect, .noLowEnergy, .cannotAdvertise, .tooFewSets, .garbled, .lost:
      nil
    }
  }

  package var isInterruption: Bool { self == .interrupted }
}
