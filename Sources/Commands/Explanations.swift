import CodeDrawing
import Domain
import Glibc
import MQTT
import Tags
import NFC
import CodeReading
import SystemIO
import Terminal

extension StepctlCommand {
  /// What the errors of the modules mean for the one who typed the command.
  package static func explain(_ error: any Error) -> any Error {
    switch error {
    case NFCError.interrupted, CodeReaderError.interrupted:
      Interrupted()
    case let error as NFCError: CommandFailure(error)
    case let error as TagJob.Unfinished: CommandFailure(error)
    case let error as CodeReaderError: CommandFailure(error)
    case let error as QRCode.Failure: CommandFailure(.usage, error.description)
    case let error as LabelSheet.Failure: CommandFailure(.usage, error.description)
    default: error
    }
  }
}

extension CommandFailure {
  init(_ error: NFCError) {
    switch error {
    case .malformedConnection: self.init(.configuration, error.description)
    case .notPermitted: self.init(.noPermission, error.description)
    case .tagGone:
      self.init(.inputOutput, error.description, hint: "hold it still, and run the command again")
    case .noAnswer, .otherTag, .refused: self.init(.inputOutput, error.description)
    case .unsupportedTag, .dynamicTag, .unsupported: self.init(.badData, error.description)
    case .content(.occupied):
      self.init(.badData, error.description, hint: "--replace-all gives up what else the tag holds")
    case .content: self.init(.badData, error.description)
    default: self.init(.unavailable, error.description)
    }
  }

  init(_ error: TagJob.Unfinished) {
    let cause = CommandFailure(error.cause)
    self.init(cause.exitStatus, cause.message, hint: error.advice)
  }

  init(_ error: CodeReaderError) {
    switch error {
    case .system(let error): self.init(error.exitStatus, error.description)
    case .terminal: self.init(.usage, error.description)
    case .noSuchCamera, .flaw(.noCamera, _), .flaw(.cameraFailed, _), .timedOut, .noDecoder:
      self.init(.unavailable, error.description)
    default: self.init(.badData, error.description)
    }
  }
}
