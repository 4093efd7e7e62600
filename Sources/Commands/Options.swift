import ArgumentParser
import Bluetooth
import Configuration
import Domain
import NFC
import SystemIO
import Terminal

/// What every command that prints takes.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON, one object a line.")
  var json = false

  @Flag(name: .shortAndLong, help: "Print results and errors only.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Say more about what is going on; -vv shows messages too.")
  var verbose: Int

  @Flag(name: .customLong("no-color"), help: "Print without colors. So does NO_COLOR in the environment.")
  var noColor = false

  func console(_ context: Context) -> Console {
    let environment = context.environment
    let wantsColor = !noColor && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    return Console(context, isJSON: json, isQuiet: quiet, verbosity: verbose, isColored: wantsColor && !json)
  }
}

/// What a command takes that may have to ask.
struct InputOptions: ParsableArguments {
  @Flag(help: "Never ask; end where an answer is needed.")
  var noInput = false

  func questions(_ context: Context, _ interruption: Interruption) -> Questions {
    Questions(context, interruption, areAllowed: !noInput)
  }
}

/// Which vehicle is meant.
struct VehicleOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The vehicle: a file, or the name of a known one.", valueName: "file|name"),
    completion: LiveCompletion.vehicle)
  var vehicle: String?
}

/// With what to listen.
struct RadioOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "What to listen with: hciN, bluez:hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).",
      valueName: "spec"),
    completion: LiveCompletion.radio)
  var radio: String?
}

/// With what to read and write tags.
struct NFCOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The NFC reader, as libnfc names it: pn532_uart:/dev/ttyUSB0 (default: libnfc's own).",
      valueName: "connstring"),
    completion: .list(["pn532_uart:/dev/ttyUSB0", "pn532_i2c:/dev/i2c-1", "pn532_spi:/dev/spidev0.0", "pn53x_usb"]))
  var nfc: String?
}

/// Where a code is to be seen.
struct QROptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A picture of a code (PNG, JPEG), - for standard input, or a camera: /dev/video0.", valueName: "file|-|device"),
    completion: .file(extensions: ["png", "jpg", "jpeg"]))
  var qr: String?
}

/// Where to keep what was heard.
struct SaveOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Save what is heard as a btsnoop capture, into a new file.", valueName: "file"),
    completion: .file(extensions: ["btsnoop"]))
  var save: String?

  func validate() throws {
    if save == "-" { throw ValidationError("--save takes a file: standard output is for results.") }
  }

  /// The radio, recorded if that is wanted.
  func recorded(_ radio: any Radio) throws -> any Radio {
    try save.map { path throws(RadioError) in try RecordingRadio(radio, to: path) } ?? radio
  }
}

struct TimeoutOptions: ParsableArguments {
  @Option(
    name: .customLong("timeout"), parsing: .unconditional,
    help: ArgumentHelp(
      "How long to listen and to wait, 0.1 s to 1 h, as 10s or 2m (default: 10).", valueName: "seconds"))
  var given: TimeSpan?

  /// Seconds.
  var timeout: Double? { given?.seconds }

  var typed: String? { given?.text }
}

/// A length of time as people type it: `10` and `10s`, `500ms`, `2m`.
struct TimeSpan: ExpressibleByArgument {
  let seconds: Double
  let text: String

  init?(argument: String) {
    guard let seconds = Domain.seconds(typed: argument) else { return nil }
    (self.seconds, text) = (seconds, argument)
  }
}

extension Context {
  /// The settings, from the flags, the environment and the files, in this order.
  func settings(
    vehicle: String? = nil, radio: String? = nil, nfc: String? = nil, timeout: String? = nil
  ) throws -> Settings {
    try Settings(
      flags: Settings.Flags(vehicle: vehicle, radio: radio, nfc: nfc, timeout: timeout), environment: environment,
      folders: folders)
  }
}

extension Settings {
  /// What --vehicle has to be for another command to mean a vehicle; nil where it need not be given.
  func naming(_ file: VehicleFile) -> String? {
    if case .flag = vehicle.origin { return vehicle.value }
    guard vehicle.value == nil, let known = try? folders.vehicles(), known.count > 1 else { return nil }
    return known.first { $0.path == file.path }?.name
  }

  /// - Throws: `ConfigurationError`, which names the flag, the variable or the file.
  func radioSpec() throws -> RadioSpec {
    do throws(MalformedRadioSpec) { return try RadioSpec(radio.value) } catch {
      let capture = RadioSpec.btsnoop(radio.value)
      throw radio.origin.error(
        error.description,
        hint: Files.exists(radio.value) ? "for this file, give \(shellWord(capture.description))" : nil)
    }
  }

  /// The reader's connection string, checked; nil where libnfc is to choose.
  ///
  /// - Throws: `ConfigurationError`, which names the flag, the variable or the file.
  func reader() throws -> String? {
    guard let text = nfc.value else { return nil }
    do throws(NFCError) {
      try NFCReader.check(connection: text)
    } catch {
      guard case .malformedConnection(_, let reason) = error else { throw error }
      throw nfc.origin.error(reason)
    }
    return text
  }

  var patience: Duration { .milliseconds(Int64(timeout.value * 1000)) }
}

extension ParsableArguments {
  /// Throws for a folder without a name: what an unset variable of a script becomes.
  func check(folder: String, of whose: String = "vehicle") throws {
    guard !folder.isEmpty else { throw ValidationError("The \(whose)'s folder has no name.") }
  }
}
