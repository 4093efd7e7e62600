import SystemIO

/// An open file that several owners share, together with the lock on the file. The last owner closes it.
final class OpenFile: Sendable {
  let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}
