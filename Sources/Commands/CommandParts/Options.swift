package import ArgumentParser
package import Bluetooth
import Certificates
import Domain
package import FileFormats
import NFC
package import SystemIO
package import Terminal
package import UserSettings

/// Options of every command that prints.
package struct OutputOptions: ParsableArguments {
  package init() {}

  @Flag(help: "Print JSON, one object a line.")
  package var json = false

  @Flag(name: .shortAndLong, help: "Print results and errors only.")
  package var quiet = false

  @Flag(name: .shortAndLong, help: "Say more about what is going on; -vv shows messages too.")
  package var verbose: Int

  @Flag(name: .customLong("no-color"), help: "Print without colors. So does NO_COLOR in the environment.")
  package var noColor = false

  /// What was typed.
  package var choice: OutputChoice {
    OutputChoice(isJSON: json, isQuiet: quiet, verbosity: verbose, hasColor: !noColor)
  }

  package func console(_ context: Context) -> Console { choice.console(context) }
}

/// How a command prints.
package struct OutputChoice: Equatable {
  package var isJSON = false
  package var isQuiet = false
  /// How often `-v` was given.
  package var verbosity = 0
  package var hasColor = true

  package init(isJSON: Bool = false, isQuiet: Bool = false, verbosity: Int = 0, hasColor: Bool = true) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.verbosity = verbosity
    self.hasColor = hasColor
  }

  package func console(_ context: Context) -> Console {
    let environment = context.environment
    let wantsColor = hasColor && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    return Console(context, isJSON: isJSON, isQuiet: isQuiet, verbosity: verbosity, isColored: wantsColor && !isJSON)
  }
}

/// Options of a command that may ask the user.
package struct InputOptions: ParsableArguments {
  package init() {}

  @Flag(help: "Never ask; end where an answer is needed.")
  package var noInput = false

  package func questions(_ context: Context, _ interruption: Interruption) -> Questions {
    Questions(context.streams, interruption, areAllowed: !noInput)
  }
}

/// Selects the vehicle.
package struct VehicleOptions: ParsableArguments {
  package init() {}

  @Option(
    help: ArgumentHelp("The vehicle: its folder, its file or its name.", valueName: "file|name"),
    completion: LiveCompletion.vehicle)
  package var vehicle: String?
}

/// Selects the vehicle, by an argument or by the option. For commands without another argument.
package struct NamedVehicleOptions: ParsableArguments {
  package init() {}

  @Argument(
    help: ArgumentHelp("The vehicle: its folder, its file or its name.", valueName: "vehicle"),
    completion: LiveCompletion.vehicle)
  var argument: String?

  @OptionGroup var option: VehicleOptions

  package var vehicle: String? { argument ?? option.vehicle }

  package func validate() throws {
    guard argument == nil || option.vehicle == nil else {
      throw ValidationError("The vehicle and --vehicle exclude each other.")
    }
  }
}

/// Selects the radio that listens.
package struct RadioOptions: ParsableArguments {
  package init() {}

  @Option(
    help: ArgumentHelp(
      "The radio that listens: hci0, bluez:hci0, or a recording as btsnoop:FILE (default: hci0).",
      valueName: "spec"),
    completion: LiveCompletion.radio)
  package var radio: String?
}

/// Selects the reader for tags.
package struct NFCOptions: ParsableArguments {
  package init() {}

  @Option(
    help: ArgumentHelp(
      "The NFC reader, as libnfc names it: pn532_uart:/dev/ttyUSB0 (default: libnfc's own).",
      valueName: "connstring"),
    completion: .list(["pn532_uart:/dev/ttyUSB0", "pn532_i2c:/dev/i2c-1", "pn532_spi:/dev/spidev0.0", "pn53x_usb"]))
  package var nfc: String?
}

/// Selects the source of a QR code's picture.
package struct QROptions: ParsableArguments {
  package init() {}

  @Option(
    help: ArgumentHelp(
      "A picture of a code (PNG, JPEG), - for standard input, or a camera: /dev/video0.", valueName: "file|-|device"),
    completion: .file(extensions: ["png", "jpg", "jpeg"]))
  package var qr: String?
}

/// Selects the file that keeps what the radio heard.
package struct SaveOptions: ParsableArguments {
  package init() {}

  @Option(
    help: ArgumentHelp("Save what is heard as a btsnoop capture, into a new file.", valueName: "file"),
    completion: .file(extensions: ["btsnoop"]))
  package var save: String?

  package func validate() throws {
    if save == "-" { throw ValidationError("--save takes a file: standard output is for results.") }
  }

  /// The radio, recorded if the user wants that.
  package func recorded(_ radio: any Radio) throws -> any Radio {
    try save.map { path throws(RadioError) in try RecordingRadio(radio, to: path) } ?? radio
  }
}

/// How fast a recording is played.
package struct PlayingOptions: ParsableArguments {
  package init() {}

  @Option(
    name: .customLong("speed"), parsing: .unconditional,
    help: ArgumentHelp(
      "On a terminal, play a recording so many times faster than its own time, 0.1 to 1000 (default: 1).",
      valueName: "times"))
  package var factor: Double?

  package var speed: Double { factor ?? 1 }

  package func validate() throws {
    if !(0.1...1000).contains(speed) { throw ValidationError("--speed takes 0.1 to 1000.") }
  }
}

package struct TimeoutOptions: ParsableArguments {
  package init() {}

  @Option(
    name: .customLong("timeout"), parsing: .unconditional,
    help: ArgumentHelp(
      "How long to listen and to wait, 0.1 s to 1 h, as 10s or 2m (default: 10).", valueName: "seconds"))
  package var given: TimeSpan?

  /// Seconds.
  package var timeout: Double? { given?.seconds }

  package var typed: String? { given?.text }
}

/// A duration as people type it: `10` and `10s`, `500ms`, `2m`.
package struct TimeSpan: ExpressibleByArgument, Equatable {
  package let seconds: Double
  package let text: String

  package init?(argument: String) {
    guard let seconds = Domain.seconds(typed: argument) else { return nil }
    (self.seconds, text) = (seconds, argument)
  }
}

extension Context {
  /// The settings from the flags, the environment and the files; the first of these that has a value decides.
  package func settings(
    vehicle: String? = nil, radio: String? = nil, nfc: String? = nil, timeout: String? = nil
  ) throws -> Settings {
    try Settings(
      flags: Settings.Flags(vehicle: vehicle, radio: radio, nfc: nfc, timeout: timeout), environment: environment,
      folders: folders)
  }
}

extension Settings {
  /// The value that `--vehicle` needs for another command to mean this vehicle; nil if it needs none.
  package func naming(_ file: VehicleFile) -> String? {
    if case .flag = vehicle.origin { return vehicle.value }
    guard vehicle.value == nil, let known = try? folders.vehicles(), known.count > 1 else { return nil }
    return known.first { $0.path == file.path }?.name
  }

  /// - Throws: `ConfigurationError`, which names the flag, the variable or the file.
  package func radioSpec() throws -> RadioSpec {
    do throws(MalformedRadioSpec) { return try RadioSpec(radio.value) } catch {
      let capture = RadioSpec.btsnoop(radio.value)
      throw radio.origin.error(
        error.description,
        hint: Files.exists(radio.value) ? "for this file, give \(shellWord(capture.description))" : nil)
    }
  }

  /// The reader's connection string, checked; nil lets libnfc choose.
  ///
  /// - Throws: `ConfigurationError`, which names the flag, the variable or the file.
  package func reader() throws -> String? {
    guard let text = nfc.value else { return nil }
    do throws(NFCError) {
      try NFCReader.check(connection: text)
    } catch {
      guard case .malformedConnection(_, let reason) = error else { throw error }
      throw nfc.origin.error(reason)
    }
    return text
  }

  package var patience: Duration { .milliseconds(Int64(timeout.value * 1000)) }
}

extension ParsableArguments {
  /// Throws for an empty folder name, which an unset variable in a script produces, and for a file in the folder.
  package func check(folder: String, of whose: String = "vehicle") throws {
    guard !folder.isEmpty else { throw ValidationError("The \(whose)'s folder has no name.") }
    guard Files.isFolder(folder) || !Files.exists(folder) else {
      throw ValidationError("Give the \(whose)'s folder: \(folder) is a file.")
    }
  }
}
