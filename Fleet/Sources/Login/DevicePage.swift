import Crypto
import Encoding
import HTTPTypes
import Hummingbird
import NIOCore
import Web

/// The state of the page.
struct Form {
  var code: String?
  var email: String?
  var problem: Problem?
  /// The terms that must be accepted first.
  var terms: (version: String, text: String)?
}

/// The page on which a person allows a login: plain HTML, without scripts.
enum DevicePage {
  private static let style = """
    body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 2rem auto; padding: 0 1rem }
    label { display: block; margin-top: 1rem }
    input { font: inherit; width: 100%; padding: .5rem; box-sizing: border-box }
    input[type=checkbox] { width: auto }
    pre { white-space: pre-wrap; max-height: 20rem; overflow: auto }
    input[name=user_code] { font-family: monospace; letter-spacing: .15em; text-transform: uppercase }
    button { font: inherit; padding: .6rem 1.2rem; margin: 1.5rem .5rem 0 0 }
    [role=alert] { border-left: .3rem solid #b00; padding-left: .8rem }
    """

  /// No script runs, nothing is loaded, no other page may frame this one, and the form goes only to this server.
  private static let headers: HTTPFields = [
    .contentType: "text/html; charset=utf-8",
    .cacheControl: "no-store",
    .contentSecurityPolicy:
      "default-src 'none'; style-src 'sha256-\(standardBase64(SHA256.hash(data: Array(style.utf8))))'; "
      + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    HTTPField.Name("X-Frame-Options")!: "DENY",
    .xContentTypeOptions: "nosniff",
    // With "no-referrer" browsers would send `Origin: null` even with our own form (Fetch, section 3.2).
    HTTPField.Name("Referrer-Policy")!: "same-origin",
  ]

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
        <details open><summary>Terms of use, version \(escaped(version))</summary><pre>\(escaped(text))</pre></details>
        <label><input type="checkbox" name="terms" value="\(escaped(version))" required> I accept these terms</label>
        """
      } ?? ""
    var headers: HTTPFields = [.setCookie: cookie]
    for field in form.problem?.headers ?? [:] { headers.append(field) }
    return page(
      """
      <h1>Log in a device</h1>
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
      """, status: form.problem?.status ?? .ok, headers: headers)
  }

  static func done(isApproved: Bool) -> Response {
    page(
      isApproved
        ? "<h1>Allowed</h1><p>The device is logged in. Go back to your terminal; you can close this page.</p>"
        : "<h1>Refused</h1><p>The device is not logged in. If you did not start this, somebody else may know your "
          + "password: change it.</p>")
  }

  private static func page(
    _ content: String, status: HTTPResponse.Status = .ok, headers extra: HTTPFields = [:]
  ) -> Response {
    var headers = headers
    headers.append(contentsOf: extra)
    let text = """
      <!doctype html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width">
      <title>Log in a device</title>
      <style>\(style)</style>
      </head>
      <body>
      <main>
      \(content)
      </main>
      </body>
      </html>

      """
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }
}

/// Escapes text for HTML, in an element and in an attribute.
func escaped(_ text: String) -> String {
  var result = ""
  for character in text.unicodeScalars {
    switch character {
    case "&": result += "&amp;"
    case "<": result += "&lt;"
    case ">": result += "&gt;"
    case "\"": result += "&quot;"
    case "'": result += "&#39;"
    default: result.unicodeScalars.append(character)
    }
  }
  return result
}

/// The Base64 variant of Content-Security-Policy.
private func standardBase64(_ digest: SHA256.Digest) -> String {
  // 32 bytes end with one padding character.
  String(Base64URL.encode(digest).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }) + "="
}
