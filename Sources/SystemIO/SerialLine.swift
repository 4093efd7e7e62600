import Glibc

/// The settings of a serial line (termios(3)).
package enum SerialLine {
  /// Makes the line transparent for bytes, without control lines, and drops what was received before.
  ///
  /// - Parameter speed: baud; one of 9600, 19200, 38400, 57600, 115200, 230400 and 460800.
  package static func prepare(_ line: borrowing Descriptor, speed: Int, _ path: String) throws(SystemError) {
    let number = line.number
    var settings = termios()
    _ = try check("use", path) { tcgetattr(number, &settings) }
    cfmakeraw(&settings)
    cfsetspeed(&settings, constant(speed))
    settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
    _ = try check("use", path) { tcsetattr(number, TCSANOW, &settings) }
    tcflush(number, TCIOFLUSH)
  }

  private static func constant(_ speed: Int) -> speed_t {
    let number =
      switch speed {
      case 9600: B9600
      case 19200: B19200
      case 38400: B38400
      case 57600: B57600
      case 115_200: B115200
      case 230_400: B230400
      case 460_800: B460800
      default: preconditionFailure("no serial line has \(speed) baud")
      }
    return speed_t(number)
  }
}
