import Glibc

/// Runs a command line of the shell to its end.
func shell(_ command: String) -> (status: Int32, output: String) {
  guard let pipe = popen(command, "r") else { return (-1, "") }
  var output: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 65536)
  while true {
    let count = fread(&chunk, 1, chunk.count, pipe)
    if count == 0 { break }
    output += chunk[..<count]
  }
  return (pclose(pipe) >> 8 & 0xFF, String(decoding: output, as: UTF8.self))
}
