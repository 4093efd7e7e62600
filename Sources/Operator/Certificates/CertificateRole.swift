import COpenSSL

/// What a certificate is for; all that is in it but key, serial number and time follows from that.
enum CertificateRole {
  /// Issues the others, and nothing that issues.
  case authority(vehicleName: String)
  case broker(BrokerHost)
  case controller
  /// Any rider: who it is stands in the token, which the broker cannot read.
  case rider

  /// The subject, and all of it. A client's is its name in the broker's access list.
  var commonName: String {
    switch self {
    case .authority(let name): Self.truncated("stepctl CA for \(name)")
    case .broker: "broker"
    case .controller: "controller"
    case .rider: "rider"
    }
  }

  /// Whole days of validity from the day of issue.
  var days: Int64 {
    switch self {
    case .authority: 3650
    case .broker, .controller: 825
    case .rider: 365
    }
  }

  /// The extensions, each as its NID and its value in the notation of x509v3_config(5).
  var extensions: [(identifier: Int32, value: String)] {
    let keyIdentifiers = [
      (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid:always"),
    ]
    let leaf =
      keyIdentifiers + [
        (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
      ]
    switch self {
    case .authority:
      // Without the authority key identifier, which a self-signed certificate need not have (RFC 5280 4.2.1.1).
      return [
        keyIdentifiers[0], (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
        (NID_key_usage, "critical,keyCertSign,cRLSign"),
      ]
    case .broker(let host):
      return leaf + [(NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, host.alternativeNames)]
    case .controller, .rider:
      return leaf + [(NID_ext_key_usage, "clientAuth")]
    }
  }

  /// A common name has at most 64 characters (RFC 5280 A.1, ub-common-name); what people see as one is not cut.
  private static func truncated(_ text: String) -> String {
    var text = text
    while text.unicodeScalars.count > 64 { text.removeLast() }
    return text
  }
}
