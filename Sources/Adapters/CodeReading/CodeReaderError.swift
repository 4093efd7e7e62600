package import SystemIO

/// Why no code was read; each names where it was to come from.
package enum CodeReaderError: Error, Equatable, CustomStringConvertible {
  case system(SystemError)
  case noSuchCamera(String)
  case flaw(PictureFlaw, String)
  /// Standard input is a terminal, where nobody can type a picture.
  case terminal
  /// Reading the picture took too much time or memory, or broke the program that reads it.
  case gaveUp(String)
  /// The camera showed no code that will do.
  case timedOut(String)
  /// The program that reads pictures is not installed.
  case noDecoder
  case interrupted

  package var description: String {
    switch self {
    case .system(let error): error.description
    case .noSuchCamera(let path): "there is no camera \(path): is it plugged in?"
    case .flaw(.unknownFormat, let name): "\(name): not a picture: expected PNG or JPEG"
    case .flaw(.damaged, let name): "\(name): a damaged picture"
    case .flaw(.tooLarge, let name): "\(name): too large: at most 32 MB and 50 million pixels"
    case .flaw(.outOfMemory, let name): "\(name): not enough memory to look at the picture"
    case .flaw(.unreadable, let name): "\(name): cannot be read"
    case .flaw(.noCamera, let name): "\(name): not a camera that can be used"
    case .flaw(.cameraFailed, let name): "\(name): the camera gives no pictures; is another program using it?"
    case .terminal: "standard input is a terminal: send a picture into it, or give a file"
    case .gaveUp(let name): "\(name): the picture cannot be read: it takes too much time or memory, or is an attack"
    case .timedOut(let name): "\(name): the camera saw no such code in time"
    case .noDecoder:
      "stepctl-qr is not there, which reads pictures: install it beside stepctl, or in ../libexec/stepctl"
    case .interrupted: "interrupted"
    }
  }
}

/// Gives a system call's error its place in this module's.
func rethrowing<Result: ~Copyable>(_ body: () throws(SystemError) -> Result) throws(CodeReaderError) -> Result {
  do throws(SystemError) { return try body() } catch { throw .system(error) }
}
