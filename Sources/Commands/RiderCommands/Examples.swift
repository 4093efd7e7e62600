package import CommandParts
import HTTP
import MQTT
package import Terminal

extension ProgramText {
  /// `stepctl`.
  ///
  /// - Parameter examples: those of commands that are not a rider's.
  package static func stepctl(
    in context: Context = .process, adding examples: [String: [Examples.Example]] = [:]
  ) -> ProgramText {
    ProgramText(
      bare: Overview.self,
      brief: RiderHelp.self,
      ahead: { words in
        guard let name = words.first else { return }
        if asking.contains(name) { CurlTransport.loadAhead() }
        if moving.contains(name) || asking.contains(name) { MQTTConnection.loadAhead() }
      },
      plain: { words in PlainWords.request(words).map { request in { try request.run(in: context) } } },
      examples: { Examples.of[$0] ?? examples[$0] ?? [] },
      radios: Examples.radios,
      libraries: { LibraryVersions.all },
      execute: context.execute)
  }

  /// The commands that contact a server.
  private static let asking = ["account", "book", "bookings", "login", "logout", "vehicles", "whoami", "zones"]

  /// The commands that contact a vehicle.
  private static let moving = ["close", "open", "status", "stop"]
}

/// Common command lines for the end of each command's help. A test runs them.
package enum Examples {
  package typealias Example = (typed: String, does: String)

  /// What `--radio` takes.
  static let radios: [Example] = [
    ("hci0", "a Bluetooth adapter, by its number"), ("bluez:hci0", "the same, through bluetoothd"),
    ("h4:tcp:HOST:PORT, h4:unix:PATH", "a Bluetooth controller at the end of a stream (HCI H4)"),
    ("btsnoop:FILE", "a recording; - is standard input"),
    ("stepctl open --radio hci0 --call-radio hci1", "one listens to the vehicle, one calls it"),
  ]

  static let of: [String: [Example]] = [
    "stepctl": [
      ("stepctl", "where you stand, and the one next thing"),
      ("stepctl open", "the step that you stand in front of"),
      ("stepctl stop", "stop whatever moves"),
      ("stepctl doctor", "what does not work, and what mends it"),
    ],
    "stepctl open": [
      ("stepctl open", "the step that you are facing"),
      ("stepctl open left", "only if you are at the left one"),
      ("stepctl open --watch", "with a picture while you walk up"),
      ("stepctl open --import access", "for the first time, with what your operator gave you"),
      ("stepctl open --by nfc", "by the tag on the step"),
      ("stepctl open --by qr", "by the code, through the camera"),
    ],
    "stepctl close": [
      ("stepctl close", "the step that you are facing"), ("stepctl close left", "only if you are at the left one"),
    ],
    "stepctl stop": [("stepctl stop", "every step"), ("stepctl stop left", "one of them")],
    "stepctl status": [
      ("stepctl status", "how the steps stand"), ("stepctl status --watch --json", "every change, for a program"),
    ],
    "stepctl locate": [
      ("stepctl locate", "once"), ("stepctl locate --watch", "as you walk"),
      ("stepctl locate --radio btsnoop:walk.btsnoop", "from a recording"),
    ],
    "stepctl find": [
      ("stepctl find", "how far, and in which direction"), ("stepctl find --watch", "as you walk"),
    ],
    "stepctl enroll": [
      ("stepctl enroll --name anna --output request", "a file for the operator"),
      ("stepctl enroll --drawn", "a code on the terminal, to be photographed"),
      ("stepctl enroll --passphrase", "protect the device's key by a passphrase"),
    ],
    "stepctl unlock": [
      ("stepctl unlock", "ask now, and for 15 minutes not again"),
      ("stepctl unlock --for 1h", "for longer"),
    ],
    "stepctl lock": [("stepctl lock", "before the time ends")],
    "stepctl login": [
      ("stepctl login https://fleet.example", "with a code, in a browser"),
      ("stepctl login --email anna@example.org", "with a password, here"),
    ],
    "stepctl logout": [
      ("stepctl logout", "on this device"), ("stepctl logout --everywhere", "on a phone that was lost, too"),
    ],
    "stepctl whoami": [("stepctl whoami", "the account, and this device's key")],
    "stepctl vehicles": [
      ("stepctl vehicles", "what each is doing"), ("stepctl vehicles --from 08:00 --to 10:00", "which are free then"),
    ],
    "stepctl zones": [("stepctl zones", "where bookings should end")],
    "stepctl book": [
      ("stepctl book 'Rolling Chassis' --for 2h", "from now on"),
      ("stepctl book 'Rolling Chassis' --from 2026-11-23T08:00 --for 45m -y", "later, without being asked"),
    ],
    "stepctl bookings": [
      ("stepctl bookings", "those that have not ended"), ("stepctl bookings extend --for 1h", "an hour longer"),
    ],
    "stepctl bookings list": [("stepctl bookings list --all", "also those that have ended")],
    "stepctl bookings show": [("stepctl bookings show 0f3a", "by the beginning of its id")],
    "stepctl bookings extend": [
      ("stepctl bookings extend --for 1h", "an hour longer"), ("stepctl bookings extend --to 12:00", "until then"),
    ],
    "stepctl bookings cancel": [("stepctl bookings cancel", "before it was used")],
    "stepctl bookings end": [("stepctl bookings end", "now, and the vehicle is free")],
    "stepctl account": [
      ("stepctl account create https://fleet.example --email anna@example.org", "a code comes by mail"),
      ("stepctl account confirm 123456", "then `stepctl login`"),
    ],
    "stepctl account create": [
      ("stepctl account create https://fleet.example --email anna@example.org", "a code comes by mail")
    ],
    "stepctl account confirm": [("stepctl account confirm 123456", "the code that was mailed")],
    "stepctl account password": [
      ("stepctl account password", "a code comes by mail"),
      ("stepctl account password 123456", "set a new one with it"),
    ],
    "stepctl account export": [("stepctl account export -o me.json", "into a file that only you can read")],
    "stepctl account delete": [("stepctl account delete", "asks you to type its address")],
    "stepctl scan": [
      ("stepctl scan", "until Control-C"),
      ("stepctl scan --save walk.btsnoop --timeout 30s", "and keep what was heard"),
    ],
    "stepctl doctor": [
      ("stepctl doctor", "everything"), ("stepctl doctor --radio bluez:hci0", "with one radio"),
      ("stepctl doctor --json", "for a program"),
    ],
    "stepctl config": [
      ("stepctl config show", "each setting, and where it comes from"),
      ("stepctl config list", "the known vehicles"), ("stepctl config import --qr car.png", "add a vehicle"),
    ],
    "stepctl config show": [("stepctl config show", "each setting, and where it comes from")],
    "stepctl config list": [("stepctl config list", "the known vehicles, and your access to each")],
    "stepctl config forget": [("stepctl config forget car", "asks before it removes it")],
    "stepctl config path": [("stepctl config path", "the files, the most important first")],
    "stepctl config import": [
      ("stepctl config import access", "what your operator gave you"),
      ("stepctl config import --qr car.png", "a picture of the vehicle's code"),
      ("stepctl config import --qr /dev/video0", "through a camera"),
    ],
  ]
}
