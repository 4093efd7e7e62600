package import Domain
package import SystemIO

/// Why no code was read. Each case names the source.
package enum CodeReaderError: Failure, Equatable {
  /// The file, or the camera, cannot be opened.
  case system(SystemError)
  case noSuchCamera(String)
  case flaw(PictureFlaw, String)
  /// Standard input is a terminal, which cannot deliver a picture.
  case terminal
  /// Reading the picture took too much time or memory, or crashed the program that reads it.
  case gaveUp(String)
  /// The camera showed no suitable code.
  case timedOut(String)
  /// The program that reads pictures is not installed.
  case noDecoder
  case interrupted

  package var exitStatus: ExitStatus {
    switch self {
    case .system(let error): error.exitStatus
    case .terminal: .usage
    case .noSuchCamera, .timedOut, .noDecoder: .unavailable
    case .flaw(let flaw, _): flaw.isOfTheCamera ? .unavailable : .badData
    case .gaveUp: .badData
    case .interrupted: .failure
    }
  }

  package var isInterruption: Bool { self == .interrupted }

  package var description: String {
    switch self {
    case .system(let error): error.description
    case .noSuchCamera(let path): "there is no camera \(path): is it plugged in?"
    case .flaw(.unknownFormat, let name): "\(name): not a picture: expected PNG or JPEG"
    case .flaw(.empty, let name): "\(name): it is empty"
    case .flaw(.heif, let name): Self.other("HEIF", name)
    case .flaw(.webp, let name): Self.other("WebP", name)
    case .flaw(.gif, let name): Self.other("GIF", name)
    case .flaw(.tiff, let name): Self.other("TIFF", name)
    case .flaw(.bmp, let name): Self.other("BMP", name)
    case .flaw(.pdf, let name): Self.other("PDF", name)
    case .flaw(.svg, let name): Self.other("SVG", name)
    case .flaw(.damaged, let name): "\(name): a damaged picture"
    case .flaw(.tooLarge, let name): "\(name): too large: at most 32 MB and 50 million pixels"
    case .flaw(.outOfMemory, let name): "\(name): not enough memory to look at the picture"
    case .flaw(.unreadable, let name): "\(name): no picture came: reading failed"
    case .flaw(.noCamera, let name): "\(name): not a camera that can be used"
    case .flaw(.cameraFailed, let name): "\(name): the camera gives no pictures; is another program using it?"
    case .flaw(.unconfined, let name):
      "\(name): not read: this machine cannot confine stepctl-qr, and a picture may be an attack"
    case .terminal: "standard input is a terminal: send a picture into it, or give a file"
    case .gaveUp(let name): "\(name): the picture cannot be read: it takes too much time or memory, or is an attack"
    case .timedOut(let name): "\(name): the camera saw no such code in time"
    case .noDecoder:
      "stepctl-qr, which reads pictures, is missing: install it beside stepctl, or in ../libexec/stepctl"
    case .interrupted: "interrupted"
    }
  }

  private static func other(_ format: String, _ name: String) -> String {
    "\(name): \(format), which is not read: convert it to PNG or JPEG"
  }
}

/// Why stepctl-qr cannot look for codes.
package enum PictureFlaw: UInt8, Error, CaseIterable {
  /// Neither PNG nor JPEG.
  case unknownFormat = 1
  /// The picture violates its format.
  case damaged
  /// More bytes or more pixels than are accepted.
  case tooLarge
  case outOfMemory
  /// The picture cannot be read at all.
  case unreadable
  /// The device takes no pictures, or none in a supported format.
  case noCamera
  /// The camera stopped, or something else is using it.
  case cameraFailed
  /// stepctl-qr cannot give up its system calls here, so it reads nothing (`Confinement`).
  case unconfined
  /// No bytes at all.
  case empty
  /// Formats that people use for pictures, but that are not supported.
  case heif, webp, gif, tiff, bmp, pdf, svg

  fileprivate var isOfTheCamera: Bool {
    switch self {
    case .noCamera, .cameraFailed, .unconfined: true
    case .unknownFormat, .damaged, .tooLarge, .outOfMemory, .unreadable, .empty, .heif, .webp, .gif, .tiff, .bmp, .pdf,
      .svg:
      false
    }
  }
}
