/// What a program's end says to a script. `stepctl(1)` lists them all, `stepd(8)` those that stepd ends with.
///
/// From 64 on they are those of sysexits.h, which shells and mail systems have used for decades.
package enum ExitStatus: Int32, CaseIterable, Sendable {
  case done = 0
  case failure = 1
  case notLocated = 3
  case otherSide = 4
  case refused = 5
  case unconfirmed = 6
  case usage = 64
  case badData = 65
  case noInput = 66
  case unavailable = 69
  case inputOutput = 74
  case noPermission = 77
  case configuration = 78
}
