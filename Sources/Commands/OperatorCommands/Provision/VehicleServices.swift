import Domain
import Encoding
import Glibc
import Operator
import SystemIO
import Terminal

/// The services of a vehicle on this computer: stepd, and the broker if the vehicle has its own.
struct VehicleServices {
  private struct Service {
    let name: String
    /// Where the service's unit looks for its files.
    let folder: String
  }

  private static let broker = Service(name: "stepd-broker", folder: "/var/lib/stepd-broker")
  private static let controller = Service(name: "stepd", folder: "/var/lib/stepctl")
  /// The path that the unit names.
  private static let mosquitto = "/usr/sbin/mosquitto"

  private let systemctl: String
  private let services: [Service]

  /// Checks whether the services can start, as far as that can be known before anything is made.
  init(hasBroker: Bool) throws {
    services = hasBroker ? [Self.broker, Self.controller] : [Self.controller]
    guard Files.isFolder("/run/systemd/system"),
      let systemctl = ["/usr/bin/systemctl", "/bin/systemctl"].first(where: Files.exists)
    else {
      throw CommandFailure(
        .unavailable, "--start needs systemd, which does not run this computer",
        hint: "without --start, the command says how to start broker and controller")
    }
    self.systemctl = systemctl
    guard geteuid() == 0 else {
      throw CommandFailure(
        .noPermission, "--start needs root: files go to /var/lib, and services are started", hint: "use sudo")
    }
    if hasBroker, !Files.exists(Self.mosquitto) {
      throw CommandFailure(.unavailable, "there is no \(Self.mosquitto)", hint: "sudo apt install mosquitto")
    }
    for service in services {
      guard try asks("cat", service.name) else {
        throw CommandFailure(
          .unavailable, "systemd knows no \(service.name).service",
          hint: "install the package stepd, or use `make install` in stepctl's own folder")
      }
      if let names = try? Files.names(in: service.folder), !names.isEmpty {
        throw CommandFailure(
          .failure, "\(service.folder) already has a vehicle's files; nothing was changed",
          hint: "copy single files by hand; for another vehicle, stop \(service.name) and move that folder away")
      }
    }
  }

  /// Copies a vehicle's files to the folders that the units name, makes systemd start the services now and at each
  /// boot, and returns when they run. If this fails, it undoes all of it.
  func start(_ vehicle: VehicleFolder, _ interruption: Interruption) throws {
    do {
      for service in services {
        service.name == Self.broker.name
          ? try vehicle.copyBroker(to: service.folder) : try vehicle.copyController(to: service.folder)
      }
      for service in services {
        guard try asks("enable", "--now", service.name), !interruption.isPending else {
          if interruption.isPending { throw Interrupted() }
          throw CommandFailure(
            .unavailable, "\(service.name).service does not start; nothing was left running",
            hint: "`journalctl -u \(service.name)` says why; `\(Self.again(vehicle))` tries again")
        }
      }
    } catch {
      for service in services {
        _ = try? asks("disable", "--now", service.name)
        _ = try? asks("reset-failed", service.name)
        // For a service with a dynamic user, systemd has moved the folder there and left a link.
        let moved = "/var/lib/private/\(Files.name(of: service.folder))"
        for copy in [moved, service.folder] { try? VehicleFolder.removeCopy(copy) }
      }
      throw error
    }
  }

  private static func again(_ vehicle: VehicleFolder) -> String {
    shellCommand("stepctl", "provision", "vehicle", vehicle.path, "--start")
  }

  var json: JSON { .array(services.map { .string("\($0.name).service") }) }

  /// `stepd-broker.service and stepd.service`
  var names: String { services.map { "\($0.name).service" }.joined(separator: " and ") }

  var folders: String { services.map(\.folder).joined(separator: " and ") }

  /// - Returns: whether systemctl succeeded. Its output is meant for people who type the command.
  private func asks(_ words: String...) throws -> Bool {
    var child = try ChildProcess(systemctl, arguments: words)
    // A unit can be longer than a pipe's buffer.
    _ = try? Files.readAll(child.output, systemctl)
    return child.wait() == .exited(0)
  }
}
