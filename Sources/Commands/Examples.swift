import HTTP
import MQTT
package import Terminal

extension ProgramText {
  /// `stepctl`.
  package static let stepctl = ProgramText(
    bare: Standing.self,
    ahead: { words in
      guard let name = words.first else { return }
      if asking.contains(name) { CurlTransport.loadAhead() }
      if moving.contains(name) || asking.contains(name) { MQTTConnection.loadAhead() }
    },
    plain: PlainWords.command,
    examples: { Examples.of[$0] ?? [] },
    libraries: { LibraryVersions.all })

  /// The commands that contact a server.
  private static let asking = ["account", "book", "bookings", "login", "logout", "vehicles", "whoami"]

  /// The commands that contact a vehicle.
  private static let moving = ["close", "open", "status", "stop"]
}

/// Common command lines for the end of each command's help. A test runs them.
enum Examples {
  typealias Example = (typed: String, does: String)

  static let of: [String: [Example]] = [
    "stepctl": [
      ("stepctl", "where you stand, and what to type next"),
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
      ("stepctl open --by qr --qr /dev/video0", "by the code, through a camera"),
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
    "stepctl operator log": [
      ("stepctl operator log car", "what the vehicle did"),
      ("stepctl operator log car --verify", "and nothing is missing"),
    ],
    "stepctl traffic serve": [
      ("stepctl traffic serve --ca ca.pem --cert bridge.pem --key bridge.key", "a bridge of your own")
    ],
    "stepctl traffic watch": [("stepctl traffic watch --feed file:road.jsonl", "a picture of the road")],
    "stepctl enroll": [
      ("stepctl enroll --name anna --output request", "a file for the operator"),
      ("stepctl enroll --drawn", "a code on the terminal, to be photographed"),
      ("stepctl enroll --passphrase", "protect the device's key by a passphrase"),
    ],
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
    "stepctl calibrate": [
      ("stepctl calibrate --vehicle car/vehicle.toml", "walk it, step by step"),
      ("stepctl calibrate --again", "measure everything again, whatever was kept"),
      ("stepctl calibrate --captures walk --dry-run", "from recordings, without writing"),
    ],
    "stepctl evaluate": [
      ("stepctl evaluate walk/*.btsnoop --positions walk.csv", "how well the steps are found"),
      ("stepctl evaluate walk/*.btsnoop --positions walk.csv --plot plots", "and drawn, to be published"),
      ("stepctl evaluate --outcomes attempts.jsonl", "radio, tag and code compared"),
    ],
    "stepctl provision": [
      ("stepctl provision vehicle car", "all that a vehicle needs, in one folder"),
      ("stepctl provision token car --rider anna", "eight hours for a rider"),
    ],
    "stepctl provision vehicle": [
      ("stepctl provision vehicle car --name 'Rolling Chassis'", "with two steps"),
      ("stepctl provision vehicle car --host car.example --servo pwm", "reached by name"),
      ("stepctl provision vehicle car --start", "on the vehicle, as root: systemd runs it"),
      ("stepctl provision vehicle car --beacon left=hci0 --beacon right=hci1", "it sends its own beacons"),
      ("stepctl provision vehicle van --steps right", "with one step"),
      ("stepctl provision vehicle car --renew", "new certificates"),
    ],
    "stepctl provision keys": [
      ("stepctl provision keys car --output keys.txt", "on the vehicle; the file is for the operator")
    ],
    "stepctl provision token": [
      ("stepctl provision token car --rider anna --for 8h", "on this computer"),
      ("stepctl provision token car --device request -o access", "for the device that made the request"),
      ("stepctl provision token car --rider anna --steps left --from 08:00", "one step, from tomorrow morning"),
    ],
    "stepctl provision beacon": [
      ("stepctl provision beacon --step left --vehicle car/vehicle.toml", "what to program into it")
    ],
    "stepctl provision tag": [
      ("stepctl provision tag --step left --vehicle car/vehicle.toml", "a plain one"),
      ("stepctl provision tag --step left --sdm --vehicle car/vehicle.toml", "an NTAG 424 DNA"),
      ("stepctl provision tag --step left --batch --count 10", "one after the other"),
    ],
    "stepctl provision watcher": [
      ("stepctl provision watcher car --name dashboard", "a certificate that can read, and nothing else"),
      ("stepctl provision watcher car --name home --home-assistant", "and the messages for Home Assistant"),
    ],
    "stepctl provision qr": [
      ("stepctl provision qr --vehicle car/vehicle.toml", "the vehicle's, on the terminal"),
      ("stepctl provision qr --sheet -o steps.pdf --vehicle car/vehicle.toml", "a page for each step"),
    ],
    "stepctl config": [
      ("stepctl config show", "each setting, and where it comes from"),
      ("stepctl config import --qr car.png", "add a vehicle"),
    ],
    "stepctl config show": [("stepctl config show", "each setting, and where it comes from")],
    "stepctl config path": [("stepctl config path", "the files, the most important first")],
    "stepctl config import": [
      ("stepctl config import access", "what your operator gave you"),
      ("stepctl config import --qr car.png", "a picture of the vehicle's code"),
      ("stepctl config import --qr /dev/video0", "through a camera"),
    ],
    "stepctl operator": [
      ("stepctl operator tokens car", "what was handed out"),
      ("stepctl operator revoke car --rider anna", "take it back"),
    ],
    "stepctl operator init": [("stepctl operator init fleet --host mqtt.example", "one key and one broker for many")],
    "stepctl operator tokens": [("stepctl operator tokens car --rider anna", "one rider's")],
    "stepctl operator riders": [("stepctl operator riders car", "with their devices")],
    "stepctl operator vehicles": [("stepctl operator vehicles fleet", "a line each")],
    "stepctl operator tags": [("stepctl operator tags car", "a line each")],
    "stepctl operator revoke": [
      ("stepctl operator revoke car --rider anna", "every token of a rider"),
      ("stepctl operator revoke car --token 3fZk9Q", "one, by its name"),
    ],
    "stepctl operator publish": [("stepctl operator publish car", "after the broker was away")],
    "stepctl operator renew": [
      ("stepctl operator renew car --list", "when each certificate ends"),
      ("stepctl operator renew car --within 60d", "those that end soon"),
    ],
    "stepctl operator move": [("stepctl operator move fleet --host mqtt.example", "the broker has another name")],
    "stepctl operator keys": [("stepctl operator keys show car", "which ones count")],
    "stepctl operator keys show": [("stepctl operator keys show car", "which ones count")],
    "stepctl operator keys rotate": [("stepctl operator keys rotate car", "announce, and later switch")],
    "stepctl operator keys retire": [("stepctl operator keys retire car", "the old one counts no more")],
    "stepctl traffic": [("stepctl traffic delay --feed file:road.jsonl", "how late a feed is")],
    "stepctl traffic delay": [
      ("stepctl traffic delay --feed file:road.jsonl", "of a recording"),
      ("stepctl traffic delay --feed wss://bridge.example/feed --at 48.7758,9.1829", "of a bridge"),
    ],
    "stepctl traffic guard": [
      ("stepctl traffic guard road.jsonl --scene scene.json", "how well a step would have waited")
    ],
  ]
}
