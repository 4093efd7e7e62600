package import Domain
import FileFormats
import Geography
import Positioning
package import StepController
package import Traffic
package import TrafficFeed

extension ControllerFile {
  /// The source of a traffic feed, and its form.
  package struct Feed: Equatable, Sendable {
    package var address: FeedAddress
    package var credentials: FeedConnection.Credentials
    /// The radius around the vehicle that the bridge is asked for, metres.
    package var radius: Double
    package var axes: FeedFrame.Axes

    package init(
      address: FeedAddress, credentials: FeedConnection.Credentials, radius: Double = Self.standardRadius,
      axes: FeedFrame.Axes = .latlon
    ) {
      (self.address, self.credentials, self.radius, self.axes) = (address, credentials, radius, axes)
    }

    /// Anything that approaches at 200 km/h is then beyond the guard's look-ahead at first.
    package static let standardRadius = 300.0
  }

  /// The place of a step along its vehicle, metres behind the front, and how far the step extends.
  package struct StepSpan: Equatable, Sendable {
    package var from: Double
    package var to: Double
    package var reach: Double

    package init(from: Double, to: Double, reach: Double) { (self.from, self.to, self.reach) = (from, to, reach) }
  }

  /// Delays a step while something on the road approaches it.
  package struct Guard: Equatable, Sendable {
    package var feed: Feed
    /// The source of the vehicle's place, if it was not surveyed.
    package var receiver: HostPort?
    package var source: TrafficRules.Source
    /// Whether to look for the vehicle in the feed.
    package var isInFeed: Bool
    package var refusesBlind: Bool
    /// Metres.
    package var length: Double
    package var width: Double
    package var steps: [StepID: StepSpan]

    package init(
      feed: Feed, receiver: HostPort? = nil, source: TrafficRules.Source, isInFeed: Bool = false,
      refusesBlind: Bool = false, length: Double, width: Double, steps: [StepID: StepSpan]
    ) {
      self.feed = feed
      self.receiver = receiver
      self.source = source
      self.isInFeed = isInFeed
      self.refusesBlind = refusesBlind
      self.length = length
      self.width = width
      self.steps = steps
    }
  }

  enum GuardKey: String, TOMLKey {
    case feed, ca, cert, key, axes, place, gpsd, latitude, longitude, blind, steps
    case radius = "radius_m"
    case heading = "heading_deg"
    case error = "error_m"
    case length = "length_m"
    case width = "width_m"
  }

  fileprivate enum GuardStepKey: String, TOMLKey {
    case from = "from_m"
    case to = "to_m"
    case reach = "reach_m"
  }
}

extension ControllerFile.Guard {
  /// The source of the vehicle's place, as a word in the file.
  package enum Place: String, CaseIterable {
    case fixed, gpsd, feed
  }

  private enum Blind: String, CaseIterable {
    case allow, refuse
  }

  init(_ table: TOMLTable<ControllerFile.GuardKey>) throws(ConfigurationError) {
    feed = try ControllerFile.Feed(table)
    refusesBlind = try table.optional(.blind, .word(Blind.allCases)) == .refuse
    length = try table.required(.length, .number(in: 1...30))
    width = try table.required(.width, .number(in: 0.5...5))
    steps = [:]
    for (step, table) in try table.stepTables(.steps, ControllerFile.GuardStepKey.self) {
      steps[step] = try ControllerFile.StepSpan(table, length: length)
    }
    let place = try table.required(.place, .word(Place.allCases))
    isInFeed = place == .feed
    let latitude = try table.optional(.latitude, .number(in: -90...90))
    let longitude = try table.optional(.longitude, .number(in: -180...180))
    let heading = try table.optional(.heading, .number(in: 0...360)).map { $0 * .pi / 180 }
    let error = try table.optional(.error, .number(in: 0...TrafficGuard.mostPlaceError))
    receiver = try table.optional(.gpsd, .receiver)
    func refuse(_ keys: ControllerFile.GuardKey..., because reason: String) throws(ConfigurationError) {
      for key in keys where table.has(key) { throw table.error(key, reason) }
    }
    switch place {
    case .fixed: try refuse(.gpsd, because: #"is not used with place = "fixed""#)
    case .gpsd: receiver = receiver ?? GPSConnection.usual
    case .feed: try refuse(.heading, because: "the feed says where the vehicle points to")
    }
    if receiver != nil {
      try refuse(.latitude, .longitude, .error, because: "gpsd says where the vehicle is")
      source = .receiver(heading: heading)
      return
    }
    guard let latitude else { throw table.missing(.latitude) }
    guard let longitude else { throw table.missing(.longitude) }
    if place == .fixed, heading == nil { throw table.missing(.heading) }
    // Both values are in the range of a coordinate.
    let position = Coordinate(latitude: latitude, longitude: longitude)!
    let standard = place == .feed ? TrafficGuard.mostPlaceError : TrafficGuard.survey
    source = .given(position, error: error ?? standard, heading: heading ?? 0)
  }
}

extension TOMLForm<HostPort> {
  /// The address of a gpsd.
  static var receiver: TOMLForm {
    .text("HOST[:PORT]") { try? HostPort($0[...], usual: GPSConnection.usual.port) }
  }
}

extension ControllerFile.Feed {
  fileprivate init(_ table: TOMLTable<ControllerFile.GuardKey>) throws(ConfigurationError) {
    let text = try table.required(.feed, .text)
    do { address = try FeedAddress(text) } catch { throw table.error(.feed, error.description) }
    if case .recording(let path) = address { address = .recording(table.document.resolve(path)) }
    credentials = .init(
      authorities: try table.optional(.ca, table.path), certificate: try table.optional(.cert, table.path),
      key: try table.optional(.key, table.path))
    if (credentials.certificate == nil) != (credentials.key == nil) {
      throw table.missing(credentials.key == nil ? .key : .cert)
    }
    radius = try table.optional(.radius, .number(in: ClientLocation.radii)) ?? Self.standardRadius
    axes = try table.optional(.axes, .word(FeedFrame.Axes.allCases)) ?? .latlon
  }
}

extension ControllerFile.StepSpan {
  fileprivate init(_ table: TOMLTable<ControllerFile.GuardStepKey>, length: Double) throws(ConfigurationError) {
    from = try table.required(.from, .number(in: 0...length))
    to = try table.required(.to, .number(in: 0...length))
    reach = try table.required(.reach, .number(in: 0.05...2))
    guard to > from else { throw table.error(.to, "\(TOMLText.number(to)) is not more than from_m") }
  }
}
