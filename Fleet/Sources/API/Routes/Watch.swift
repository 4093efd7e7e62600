import Booking
import HTTPTypes
package import Hummingbird
import Logging
import Synchronization
package import Web

/// Wraps every route: turns errors into problems, counts requests, and writes the log.
package struct Watch: RouterMiddleware {
  private let metrics: Metrics

  package init(_ metrics: Metrics) { self.metrics = metrics }

  package func handle(
    _ request: Request, context: FleetContext, next: (Request, FleetContext) async throws -> Response
  ) async throws -> Response {
    let begin = ContinuousClock.now
    var response: Response
    do {
      // The router takes several slashes for one. A proxy that lets only some paths through does not.
      if request.uri.path.contains("//") { throw Problem.notFound("path") }
      response = try await next(request, context)
    } catch {
      let problem = Problem(error)
      // A refusal is no failure of the server, even with status 503. Strangers can cause refusals.
      let isIntended = error is FleetRefusal || error is OperatorFailure || error is Problem && problem != .failed
      if problem.status.code >= 500, !isIntended {
        context.logger.error("failed", metadata: ["error": "\(error)"])
      }
      response = problem.response(from: request, context: context)
    }
    // An unknown path is not recorded, because strangers could fill log and metrics with any text.
    let route = context.endpointPath ?? "unknown"
    let duration = begin.duration(to: .now)
    metrics.count(request.method.rawValue, route, response.status.code, duration)
    context.logger.info(
      "request",
      metadata: [
        "method": "\(request.method.rawValue)", "route": "\(route)", "status": "\(response.status.code)",
        "ms": "\(duration / .milliseconds(1))",
      ])
    response.headers[.strictTransportSecurity] = "max-age=31536000"
    response.headers[.xContentTypeOptions] = "nosniff"
    return response
  }
}

extension Router where Context == FleetContext {
  /// Answers an unsupported method with the methods that the path has (RFC 9110 15.5.6). Called after all routes are
  /// added.
  package func refuseOtherMethods() {
    let known: [HTTPRequest.Method] = [
      .get, .head, .post, .put, .patch, .delete, .options, .trace, .connect, .init("QUERY")!,
    ]
    for (path, routes) in Dictionary(grouping: routes, by: { $0.path.description }) {
      // Hummingbird answers HEAD as GET.
      let allowed = Set(routes.map(\.method) + (routes.contains { $0.method == .get } ? [.head] : []))
      let list = allowed.map(\.rawValue).sorted().joined(separator: ", ")
      for method in known where !allowed.contains(method) {
        on(RouterPath(path), method: method) { _, _ -> Response in
          throw Problem(
            .methodNotAllowed, "method", "this path has only \(list)", headers: [.allow: list])
        }
      }
    }
  }
}

/// Counters and durations of requests, for Prometheus (text format 0.0.4).
package final class Metrics: Sendable {
  private struct Key: Hashable {
    let method: String
    let route: String
    let status: Int
  }

  private struct Sum {
    var count = 0
    var seconds = 0.0
    /// The number of requests that took at most as long as each of `bounds`.
    var buckets = [Int](repeating: 0, count: Metrics.bounds.count)

    mutating func add(_ seconds: Double) {
      count += 1
      self.seconds += seconds
      for (index, bound) in Metrics.bounds.enumerated() where seconds <= bound { buckets[index] += 1 }
    }
  }

  /// Seconds.
  private static let bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

  private let sums = Mutex<[Key: Sum]>([:])

  package init() {}

  func count(_ method: String, _ route: String, _ status: Int, _ duration: Duration) {
    let seconds = duration / .seconds(1)
    sums.withLock { sums in
      sums[Key(method: method, route: route, status: status), default: Sum()].add(seconds)
    }
  }

  package var text: String {
    let sums = sums.withLock { $0 }.sorted {
      ($0.key.route, $0.key.method, $0.key.status) < ($1.key.route, $1.key.method, $1.key.status)
    }
    var lines = [
      "# HELP stepfleet_request_seconds How long requests took.", "# TYPE stepfleet_request_seconds histogram",
    ]
    for (key, sum) in sums {
      let labels = "method=\"\(key.method)\",route=\"\(key.route)\",status=\"\(key.status)\""
      for (bound, count) in zip(Self.bounds, sum.buckets) {
        lines.append("stepfleet_request_seconds_bucket{\(labels),le=\"\(bound)\"} \(count)")
      }
      lines += [
        "stepfleet_request_seconds_bucket{\(labels),le=\"+Inf\"} \(sum.count)",
        "stepfleet_request_seconds_sum{\(labels)} \(sum.seconds)",
        "stepfleet_request_seconds_count{\(labels)} \(sum.count)",
      ]
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

extension Metrics {
  /// The operator's route. It is not among the riders': how many tokens count is nobody else's business.
  package func addAdminRoutes(
    to router: some RouterMethods<FleetContext>, _ gauges: @escaping @Sendable () async throws -> [Gauge]
  ) {
    router.get("/metrics") { [self] _, _ in
      Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4"],
        body: .init(byteBuffer: ByteBuffer(string: try await text + Gauge.text(of: gauges()))))
    }
  }
}
