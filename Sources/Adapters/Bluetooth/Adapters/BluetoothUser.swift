import Glibc
import SystemIO

/// A program with open raw HCI sockets, which can scan, advertise or end another program's scan.
package struct BluetoothUser: Sendable, Hashable {
  package let process: Int32
  /// The kernel's name for it, at most 15 bytes.
  package let name: String

  /// The programs that this user may see. Only root sees the files of other users' processes.
  ///
  /// The kernel does not say which adapter a socket is bound to, nor what it is used for.
  package static func others() -> [BluetoothUser] {
    let sockets = hciSockets()
    if sockets.isEmpty { return [] }
    return processes().filter { $0 != getpid() }.compactMap { process in
      let open = names(in: "/proc/\(process)/fd").lazy.compactMap { Files.target(ofLink: "/proc/\(process)/fd/\($0)") }
      guard open.contains(where: sockets.contains) else { return nil }
      return BluetoothUser(process: process, name: name(of: process))
    }
  }

  /// Whether a program with that name runs.
  package static func isRunning(_ name: String) -> Bool { processes().contains { self.name(of: $0) == name } }

  /// In the form of the links in /proc: `socket:[4711]`.
  private static func hciSockets() -> Set<String> {
    // net/bluetooth/af_bluetooth.c, bt_seq_show: a heading, then one line per socket, with the inode in the sixth
    // column.
    guard let table = try? Files.read("/proc/net/hci") else { return [] }
    let lines = String(decoding: table, as: UTF8.self).split(separator: "\n").dropFirst()
    return Set(
      lines.compactMap { line in
        let fields = line.split(separator: " ")
        return fields.count > 5 ? "socket:[\(fields[5])]" : nil
      })
  }

  private static func processes() -> [Int32] { names(in: "/proc").compactMap { Int32($0) } }

  private static func name(of process: Int32) -> String {
    let bytes = (try? Files.read("/proc/\(process)/comm")) ?? []
    return String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
  }

  /// Empty for a process that has ended, or that this user may not see.
  private static func names(in folder: String) -> [String] { (try? Files.names(in: folder)) ?? [] }
}
