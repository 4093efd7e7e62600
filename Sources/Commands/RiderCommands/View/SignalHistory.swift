/// How strongly and how often a beacon was received in each of the last seconds.
struct SignalHistory {
  private struct Second {
    var number = Int.min
    var frames = 0
    var sum = 0
    var levels = 0
  }

  /// Seconds of history: as many as a wide terminal shows.
  private static let capacity = 64
  /// The rate is the mean over this many whole seconds.
  private static let rateWindow = 5

  /// A ring: a second's place is its number modulo the capacity.
  private var seconds = [Second](repeating: Second(), count: capacity)
  private var first: Double?
  /// The number of frames with an RSSI.
  private(set) var readings = 0

  /// - Parameters:
  ///   - rssi: dBm; nil when it was not available.
  ///   - time: seconds of any clock.
  mutating func hear(rssi: Int8?, at time: Double) {
    if first ?? .infinity > time { first = time }
    let number = Int(time.rounded(.down))
    let place = Self.place(of: number)
    if seconds[place].number != number { seconds[place] = Second(number: number) }
    seconds[place].frames += 1
    if let rssi, rssi < 0 {
      seconds[place].sum += Int(rssi)
      seconds[place].levels += 1
      readings += 1
    }
  }

  /// Frames a second, over the last few whole seconds.
  func rate(at time: Double) -> Double {
    let now = Int(time.rounded(.down))
    let heard = (now - Self.rateWindow..<now).reduce(0) { $0 + (self[$1]?.frames ?? 0) }
    let first = first ?? time
    let span = min(Double(Self.rateWindow), Double(now) - first)
    // Before the first whole second has passed, the time since the first frame counts, at least one second.
    return span < 1 ? Double(heard + (self[now]?.frames ?? 0)) / max(1, time - first) : Double(heard) / span
  }

  /// The mean RSSI of each second up to the current one, dBm; nil for a second without a reading.
  func levels(_ count: Int, at time: Double) -> [Int?] {
    let now = Int(time.rounded(.down))
    return (now - min(count, Self.capacity) + 1...now).map { number in
      self[number].flatMap { $0.levels == 0 ? nil : $0.sum / $0.levels }
    }
  }

  private subscript(number: Int) -> Second? {
    let second = seconds[Self.place(of: number)]
    return second.number == number ? second : nil
  }

  private static func place(of number: Int) -> Int { (number % capacity + capacity) % capacity }
}
