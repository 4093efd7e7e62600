import HTTPTypes
import Hummingbird
import Web

/// The state of the page.
struct Form {
  var code: String?
  var email: String?
  var problem: Problem?
  /// The terms that must be accepted first.
  var terms: (version: String, text: String)?
}

/// The page on which a person allows a login.
enum DevicePage {
  /// - Parameters:
  ///   - token: the value that the form returns together with the cookie.
  ///   - cookie: the value of Set-Cookie.
  static func page(_ form: Form, token: String, cookie: String) -> Response {
    let shown = form.code.flatMap(UserCode.init)?.description ?? ""
    let question =
      shown.isEmpty
      ? "Enter the code that your terminal shows."
      : "<strong>Does your terminal show this code?</strong> If not, stop here: somebody else wants to use your account."
    let terms =
      form.terms.map { version, text in
        """
        \(WebPage.terms(text, version: version, isOpen: true))
        <label><input type="checkbox" name="terms" value="\(escaped(version))" required> I accept these terms</label>
        """
      } ?? ""
    var headers: HTTPFields = [.setCookie: cookie]
    for field in form.problem?.headers ?? [:] { headers.append(field) }
    return WebPage(
      title: form.problem == nil ? "Log in a device" : "Not logged in yet",
      content: """
        \(form.problem.map { "<p role=\"alert\">\(escaped($0.detail))</p>" } ?? "")
        <p>A program on a device asks to use your account.</p>
        <form method="post" action="/device">
        <input type="hidden" name="form_token" value="\(escaped(token))">
        <p>\(question)</p>
        <label>Code <input name="user_code" value="\(escaped(shown))" required maxlength="16" autocomplete="off" \
        autocapitalize="characters" spellcheck="false"></label>
        <label>Email <input name="email" type="email" value="\(escaped(form.email ?? ""))" required maxlength="254" \
        autocomplete="username"></label>
        <label>Password <input name="password" type="password" required maxlength="256" \
        autocomplete="current-password"></label>
        \(terms)
        <button name="decision" value="allow">Allow</button>
        <button name="decision" value="deny" formnovalidate>Refuse</button>
        </form>
        """, status: form.problem?.status ?? .ok, headers: headers
    ).response
  }

  static func done(isApproved: Bool) -> Response {
    WebPage(
      title: isApproved ? "Allowed" : "Refused",
      content: isApproved
        ? "<p>The device is logged in. Go back to your terminal; you can close this page.</p>"
        : "<p>The device is not logged in. If you did not start this, somebody else may know your password: change "
          + "it.</p>"
    ).response
  }
}
