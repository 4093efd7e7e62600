import Access
import CommandParts
import Domain
import Encoding
import FileFormats
import MQTT
import Rider
import StepProtocol
import Terminal
import UserSettings

/// Adds a vehicle to this user's vehicles after the user has confirmed its operator.
struct Import {
  let source: ImportSource
  /// The vehicle's name here; nil for its own name.
  var name: String?
  var isTrusted = false
  /// Whether asking is forbidden.
  var noInput = false
  /// The advice when nobody can be asked.
  var advice = "use --yes to trust it"

  /// - Parameter check: throws if the imported vehicle is unsuitable. Then nothing is changed.
  func run(
    _ context: Context, _ settings: Settings, _ console: Console,
    check: (ImportedVehicle, VehicleStore.Place) throws -> Void = { _, _ in }
  ) throws -> (vehicle: ImportedVehicle, place: VehicleStore.Place) {
    let handover = try source.read(context, settings.patience, console.progress)
    let store = VehicleStore(settings.folders)
    let place = try store.place(for: handover, as: name)
    try check(handover, place)
    if isTrusted || place.isUnchanged(by: handover) {
      show(handover, place, console)
    } else {
      try confirm(handover, place, context)
    }
    return try (handover, store.install(handover, as: name))
  }

  // MARK: - Trust

  private func confirm(_ handover: ImportedVehicle, _ place: VehicleStore.Place, _ context: Context) throws {
    guard noInput || context.input.isTerminal else {
      throw CommandFailure(
        .noInput, "cannot ask whether to trust this: standard input is not a terminal",
        hint: advice)
    }
    // The user cannot confirm a fingerprint without seeing it, so it is printed even with -q.
    show(handover, place, Console(context))
    let questions = try Questions(context.streams, context.interruption(), areAllowed: !noInput)
    guard try questions.confirm("Trust it?", suggestion: false) else {
      throw CommandFailure(.failure, "not trusted; nothing was changed")
    }
  }

  private func show(_ handover: ImportedVehicle, _ place: VehicleStore.Place, _ console: Console) {
    let file = handover.vehicleFile
    console.note("vehicle", file.vehicle.name)
    console.note("", "\(file.vehicle.uuid)")
    if let broker = file.broker { console.note("broker", "\(broker)") }
    if let key = handover.operatorKey?.thumbprint {
      // 43 characters, split into two lines to fit 80 columns.
      console.note("operator", key.grouped)
      let origin =
        if let pinned = place.known?.operatorKey {
          pinned == handover.operatorKey ? "the same as before" : "new: the key before it vouches for it"
        } else if let sibling = place.sibling {
          "the same operator as \(printable(sibling))"
        } else if handover.isSigned {
          "new: compare it with what the operator shows"
        } else { "new, and nothing here is signed: accept it from the operator only" }
      console.note("", origin)
    } else {
      console.note("operator", "not named: nothing shows who made this")
    }
    if let rider = file.rider { console.note("rider", rider.name) }
    if let issued = handover.issued { console.note("signed", dateAndTime(issued)) }
    if let known = place.known {
      let changes = place.changes(by: handover)
      console.note("changes", changes.isEmpty ? "nothing" : changes.joined(separator: ", "))
      console.note("in", known.path)
    }
  }
}
