import RiderCommands

extension Examples {
  /// Those of technicians' and operators' commands.
  static let ofTechnicians: [String: [Example]] = [
    "stepctl operator log": [
      ("stepctl operator log car", "what the vehicle did"),
      ("stepctl operator log car --verify", "and nothing is missing"),
    ],
    "stepctl traffic serve": [
      ("stepctl traffic serve --ca ca.pem --cert bridge.pem --key bridge.key", "a bridge of your own")
    ],
    "stepctl traffic watch": [("stepctl traffic watch --feed file:road.jsonl", "a picture of the road")],
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
