import API
import Booking
import Encoding
import Logging
import Login

/// Tells riders, and the operator's program, what the server has for them.
struct Messages: Sendable {
  /// One of its own: codes by mail do not wait behind messages.
  let mailer: Sendmail
  /// The operator's program; nil for none.
  let hook: ProgramQueue?
  /// The server's name in mails.
  let host: String

  func send(from service: FleetService) async throws {
    try await service.sendMessages { message in
      if let address = EmailAddress(message.email) {
        await mailer.deliver(Mail(to: address, subject: message.subject, text: message.text(host: host)))
      }
      await hook?.deliver(message.json.text + "\n")
    }
  }
}
