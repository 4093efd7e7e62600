/// Why no code can be looked for in what should be a picture.
package enum PictureFlaw: UInt8, Error, CaseIterable {
  /// Neither PNG nor JPEG.
  case unknownFormat = 1
  /// It breaks the rules of its format.
  case damaged
  /// More bytes or more pixels than are looked at.
  case tooLarge
  case outOfMemory
  /// It cannot be read at all.
  case unreadable
  /// Not of a device that takes pictures, or of one that gives them in no form that can be read.
  case noCamera
  /// The camera stopped, or something else is using it.
  case cameraFailed
}
