import Crypto
import Encoding
import HTTPTypes
import Hummingbird
import NIOCore
import Web

/// A page for a browser: plain HTML, without scripts, light or dark as the reader likes it.
struct WebPage {
  let title: String
  /// HTML.
  let content: String
  var status = HTTPResponse.Status.ok
  /// Besides those of every page.
  var headers: HTTPFields = [:]

  private static let style = """
    :root { color-scheme: light dark; background: Canvas; color: CanvasText }
    body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 2rem auto; padding: 0 1rem }
    label, details { display: block; margin-top: 1rem }
    input { font: inherit; width: 100%; padding: .5rem; box-sizing: border-box }
    input[type=checkbox] { width: auto }
    pre { white-space: pre-wrap; max-height: 20rem; overflow: auto }
    code { overflow-wrap: anywhere }
    .command { display: block; padding: .5rem .8rem; border-left: .3rem solid GrayText }
    input[name=user_code] { font-family: monospace; letter-spacing: .15em; text-transform: uppercase }
    button { font: inherit; padding: .6rem 1.2rem; margin: 1.5rem .5rem 0 0 }
    [role=alert] { border-left: .3rem solid #d33; padding-left: .8rem }
    """

  /// No script runs, nothing is loaded, no other page may frame this one, and a form goes only to this server.
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

  var response: Response {
    var headers = Self.headers
    headers.append(contentsOf: self.headers)
    let text = """
      <!doctype html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width">
      <title>\(escaped(title))</title>
      <style>\(Self.style)</style>
      </head>
      <body>
      <main>
      <h1>\(escaped(title))</h1>
      \(content)
      </main>
      </body>
      </html>

      """
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }

  /// The terms of use, which a key can scroll, too.
  ///
  /// - Parameter isOpen: whether they are shown at once.
  static func terms(_ text: String, version: String, isOpen: Bool) -> String {
    """
    <details\(isOpen ? " open" : "")><summary>Terms of use, version \(escaped(version))</summary>\
    <pre tabindex="0" role="region" aria-label="Terms of use">\(escaped(text))</pre></details>
    """
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
