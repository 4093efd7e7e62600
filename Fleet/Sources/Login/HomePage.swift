import Hummingbird

/// What a browser shows at the server's address: what this is, and how one begins.
enum HomePage {
  static func page(origin: String, terms: String, version: String) -> Response {
    func typed(_ command: String) -> String { "<p><code class=\"command\">\(escaped(command))</code></p>" }
    return WebPage(
      title: "Book a vehicle, and open its step",
      content: """
        <p>This is the server of a vehicle-sharing fleet. Riders use it with the program <code>stepctl</code>, in a
        terminal. It books a vehicle, and opens the entry step that you stand in front of.</p>
        <h2>Log in, or make an account</h2>
        \(typed("stepctl login \(origin)"))
        <p>Compare the code that it shows with the one on the page that it names. If you have no account yet, type your
        email address when it asks.</p>
        <h2>Book, and open</h2>
        \(typed("stepctl vehicles"))
        \(typed("stepctl book VEHICLE --for 2h"))
        \(typed("stepctl open"))
        <h2>A lost password</h2>
        \(typed("stepctl account password"))
        <p>A code comes by mail, with which you set a new one. On a device that you have not used before, add
        <code>--email</code> and your address.</p>
        <h2>A device that has a code for you</h2>
        <p><a href="/device">Enter the code that your terminal shows.</a></p>
        \(WebPage.terms(terms, version: version, isOpen: false))
        """
    ).response
  }
}
