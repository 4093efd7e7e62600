/// The part of an IP address that belongs to one network customer: an IPv4 address, or the first 64 bits of an IPv6
/// address.
///
/// A customer with one IPv6 network has 2^64 addresses, so a limit for each address would be useless.
package func network(of address: String) -> String {
  // On a dual-stack socket ::ffff:192.0.2.1 is IPv4.
  if address.lowercased().hasPrefix("::ffff:"), address.contains(".") { return String(address.dropFirst(7)) }
  guard address.contains(":") else { return address }
  let halves = address.prefix { $0 != "%" }.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
  var groups = halves[0].split(separator: ":")
  if halves.count == 2 {
    let tail = halves[1].split(separator: ":")
    groups += Array(repeating: "0", count: max(0, 8 - groups.count - tail.count)) + tail
  }
  return groups.prefix(4).map { String($0.drop { $0 == "0" }) }.joined(separator: ":").lowercased() + "::/64"
}
