extension Vehicle {
  /// A name in letters that are easy to type, as part of a path: `kaefer` for `Käfer`, `bus-1` for `Bus 1`. It is empty
  /// for a name without such letters.
  public static func typable(_ name: String) -> String {
    let plain = name.lowercased().map { Self.plain[$0] ?? String($0) }.joined()
    return plain.split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }.joined(separator: "-")
  }

  /// Whether a person who types this means that name.
  public static func isMeant(_ name: String, by typed: String) -> Bool {
    let plain = typable(name)
    return name.lowercased() == typed.lowercased() || !plain.isEmpty && plain == typable(typed)
  }

  /// Letters of European languages, as people write them without an accent. A character is the same, however its accent
  /// is encoded.
  private static let plain: [Character: String] = {
    let groups = [
      "a": "àáâãåāăą", "ae": "äæ", "c": "çćĉċč", "d": "ďđð", "e": "èéêëēĕėęě", "g": "ĝğġģ", "h": "ĥħ",
      "i": "ìíîïĩīĭįı", "j": "ĵ", "k": "ķ", "l": "ĺļľł", "n": "ñńņňŋ", "o": "òóôõōŏő", "oe": "öøœ", "r": "ŕŗř",
      "s": "śŝşšș", "ss": "ß", "t": "ţťŧț", "th": "þ", "u": "ùúûũūŭůűų", "ue": "ü", "w": "ŵ", "y": "ýÿŷ",
      "z": "źżž",
    ]
    var table: [Character: String] = [:]
    for (plain, letters) in groups { for letter in letters { table[letter] = plain } }
    return table
  }()
}
