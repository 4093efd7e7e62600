import CommandParts
import Operator
import SystemIO

extension LiveCompletion {
  static let rider = kind { words, _ in
    guard let folder = folder(words) else { return [] }
    let kept = (try? Files.names(in: "\(folder)/riders")) ?? []
    let listed = (try? VehicleFolder(folder).place.ledger().tokens.map(\.rider)) ?? []
    return Set(kept + listed).sorted()
  }
}
