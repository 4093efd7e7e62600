import HTTPTypes
import Hummingbird
import NIOCore
import Testing
import Web

@Suite struct FormFieldsTests {
  private func fields(_ text: String) -> FormFields? { FormFields(Array(text.utf8)) }

  @Test func `a form's field is there once, and a form is UTF-8`() {
    let form = fields("email=a%40b&password=a+b%26%3D%C3%A4&decision=")
    #expect(form?["email"] == "a@b")
    #expect(form?["password"] == "a b&=ä")
    #expect(form?["decision"] == nil && form?.has("decision") == true)
    #expect(form?["other"] == nil && form?.has("other") == false)
    #expect(fields("") != nil)
    for text in ["a=1&a=2", "a=%", "a=%4", "a=%GG", "a=%FF", (0..<17).map { "f\($0)=1" }.joined(separator: "&")] {
      #expect(fields(text) == nil, "\(text)")
    }
  }

  @Test func `a body of another type is refused`() async throws {
    func request(_ type: String?) -> Request {
      var headers = HTTPFields()
      headers[.contentType] = type
      return Request(
        head: .init(method: .post, scheme: "https", authority: "a", path: "/", headerFields: headers),
        body: .init(buffer: ByteBuffer(string: "a=1")))
    }
    #expect(try await FormFields(of: request("application/x-www-form-urlencoded; charset=utf-8"))?["a"] == "1")
    for type in ["application/json", nil] {
      await #expect(throws: Problem.self) { try await FormFields(of: request(type)) }
    }
  }
}
