import Domain
import StepController
import StepProtocol
import SystemIO

let left = StepID("left")!
let right = StepID("right")!
typealias UUID = Domain.UUID

/// The next message, or nil after 5 s, which nothing here takes.
func next<M>(_ mailbox: Mailbox<M>, within patience: Duration = .seconds(5)) -> M? {
  _ = try? waitReadable([mailbox.descriptor], until: .now + patience)
  return mailbox.take()
}
