import API
import Booking
import Encoding
import Login

/// Tells riders, and the operator's program, what the server has for them.
struct Messages: Sendable {
  let mailer: any Mailer
  /// The operator's program; nil for none.
  let hook: ProgramQueue?
  /// The server's name in mails.
  let host: String

  func send(from service: FleetService) async throws {
    try await service.sendMessages { message in
      if let address = EmailAddress(message.email) {
        mailer.send(Mail(to: address, subject: message.subject, text: message.text(host: host)))
      }
      hook?.send(message.json.text + "\n")
    }
  }
}
