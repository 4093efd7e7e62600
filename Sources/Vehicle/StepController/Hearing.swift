package import Domain
import Ranging
import StepProtocol

/// A frame that an adapter of the vehicle heard.
package struct HeardFrame: Sendable, Equatable {
  package let frame: UUID
  /// The step whose adapter heard it.
  package let ear: StepID
  /// dBm.
  package let rssi: Int8
  /// When it was heard, on the controller's clock, milliseconds; may be too late, never too early.
  package let clock: Int64

  package init(_ frame: UUID, at ear: StepID, rssi: Int8, clock: Int64) {
    self.frame = frame
    self.ear = ear
    self.rssi = rssi
    self.clock = clock
  }
}

/// Where riders' devices are, as the vehicle's own adapters hear them: one adapter at each step.
///
/// This is `Ranging` in the other direction. There, a rider hears a beacon at each step; here, an adapter at each step
/// hears the rider. The path and the law are the same. The transmit power of the device is unknown. It shifts the
/// levels at all adapters alike, so it changes how near the device seems, but not which side.
package struct Hearing: Sendable {
  /// How long one frame is sent, milliseconds.
  static let slot: Int64 = 300
  static let slots = 32
  /// How long the answer that begins a call may take to reach the device, milliseconds. Together with `slot` this is
  /// less than a second, so a copy that comes a second later is refused.
  static let delay: Int64 = 500
  /// How many times per slot one adapter counts a frame. A device sends three per slot. A higher limit would let copies
  /// crowd them out.
  static let countsPerSlot = 8
  /// A device that asks for both steps has two calls.
  static let callsPerDevice = 2
  static let mostDevices = 64
  /// How late a frame may be reported, milliseconds.
  private static let patience: Int64 = 900
  /// How long a device is remembered after its last call, milliseconds.
  private static let memory = Int64(RangingModel.window * 1000)
  /// How often to locate all devices, milliseconds.
  package static let interval: Int64 = 500

  /// A question that was answered with a call request.
  struct Call: Sendable {
    let sender: Sender
    let challenge: [UInt8]
    /// When its first slot began, on the controller's clock.
    let begun: Int64
    let frames: [UUID]

    /// When none of its frames counts any more.
    var end: Int64 { begun + Hearing.slot * Int64(Hearing.slots) + Hearing.delay }
    func request(heard: StepID?) -> CallRequest {
      CallRequest(slot: Hearing.slot, slots: Hearing.slots, heard: heard)
    }
  }

  private struct Caller: Sendable {
    let device: VerificationKey
    var calls: [Call] = []
    var locator: Locator
    /// The step at which the device was last told that it is heard.
    var told: StepID?
    var until: Int64
  }

  /// A frame that an adapter may still hear.
  private struct Awaited: Sendable {
    let device: VerificationKey
    let from: Int64
    var counts: [StepID: Int] = [:]
  }

  /// The steps, with each one's adapter data in place of its beacon data.
  private let ears: [Step]
  private let vehicle: UUID
  private var lost: Set<StepID>
  /// In the order of their first questions.
  private var callers: [Caller] = []
  private var awaited: [UUID: Awaited] = [:]

  /// - Parameters:
  ///   - powers: for each step's adapter, the RSSI of a typical device at 1 m, dBm. Every step has one.
  package init(_ vehicle: Vehicle, powers: [StepID: Int8]) {
    self.vehicle = vehicle.uuid
    ears = vehicle.steps.map { step in
      Step(id: step.id, side: step.side, major: step.major, measuredPower: powers[step.id] ?? Self.usualPower)
    }
    // No adapter is known to listen yet.
    lost = Set(ears.map(\.id))
  }

  /// The RSSI of a device at 1 m if nobody has measured it, dBm.
  package static let usualPower = IBeacon.usualMeasuredPower

  /// Whether devices are asked to call, so that `decide` is due every `interval`.
  package var isUnderWay: Bool { !callers.isEmpty }

  /// Begins a device's call.
  ///
  /// - Returns: the frames that the adapters now wait for, and those that they no longer wait for.
  mutating func begin(
    _ key: CallKey, for sender: Sender, challenge: [UInt8], at clock: Int64
  ) -> (call: Call, awaited: [UUID], forgotten: [UUID]) {
    let frames = (0..<Self.slots).map { key.frame(ofSlot: $0, challenge: challenge) }
    let call = Call(sender: sender, challenge: challenge, begun: clock, frames: frames)
    var forgotten: [UUID] = []
    let at: Int
    if let index = callers.firstIndex(where: { $0.device == sender.device }) {
      at = index
    } else {
      if callers.count >= Self.mostDevices { forgotten += forget(callers.removeFirst().calls) }
      at = callers.count
      callers.append(Caller(device: sender.device, locator: Locator(steps: ears), until: 0))
    }
    while callers[at].calls.count >= Self.callsPerDevice { forgotten += forget([callers[at].calls.removeFirst()]) }
    callers[at].calls.append(call)
    callers[at].until = call.end + Self.memory
    for (number, frame) in call.frames.enumerated() {
      awaited[frame] = Awaited(device: sender.device, from: clock + Int64(number) * Self.slot)
    }
    return (call, call.frames, forgotten)
  }

  /// Takes a frame that an adapter heard. Ignores a frame that is not awaited, and one outside its slot.
  mutating func hear(_ heard: HeardFrame, at clock: Int64) {
    guard let entry = awaited[heard.frame], heard.clock <= clock, clock - heard.clock <= Self.patience,
      (entry.from..<entry.from + Self.slot + Self.delay).contains(heard.clock),
      entry.counts[heard.ear, default: 0] < Self.countsPerSlot, !lost.contains(heard.ear),
      let ear = ears.first(where: { $0.id == heard.ear }),
      let caller = callers.firstIndex(where: { $0.device == entry.device })
    else { return }
    awaited[heard.frame]?.counts[heard.ear, default: 0] += 1
    let frame = IBeacon(uuid: vehicle, major: ear.major, minor: 0, measuredPower: Self.usualPower)
    callers[caller].locator.hear(frame, rssi: heard.rssi, at: Double(heard.clock) / 1000)
  }

  /// An adapter began or ceased to listen. One adapter alone cannot tell the sides apart, so then no device is located.
  mutating func set(_ ear: StepID, isListening: Bool) {
    if isListening { lost.remove(ear) } else { lost.insert(ear) }
    for index in callers.indices { callers[index].locator = Locator(steps: ears) }
  }

  /// Locates all devices.
  ///
  /// - Returns: the devices whose place has changed, each with the step that it is now in reach of; and the frames that
  ///   are no longer awaited.
  mutating func decide(at clock: Int64) -> (changes: [(call: Call, heard: StepID?)], forgotten: [UUID]) {
    var changes: [(call: Call, heard: StepID?)] = []
    var forgotten: [UUID] = []
    for index in callers.indices {
      let heard = locate(index, at: clock)?.facing?.id
      let ended = callers[index].calls.filter { $0.end <= clock }
      callers[index].calls.removeAll { $0.end <= clock }
      forgotten += forget(ended)
      guard heard != callers[index].told else { continue }
      callers[index].told = heard
      changes += callers[index].calls.map { ($0, heard) }
    }
    callers.removeAll { $0.until <= clock }
    return (changes, forgotten)
  }

  /// The step at which a device was last told that it is heard. Answers to its other questions name the same step.
  func told(_ device: VerificationKey) -> StepID? { callers.first { $0.device == device }?.told }

  /// Where a device is now: the step that it is in reach of, and the zone there.
  mutating func place(of device: VerificationKey, at clock: Int64) -> (step: StepID, zone: Zone)? {
    guard let index = callers.firstIndex(where: { $0.device == device }), let location = locate(index, at: clock),
      let step = location.facing
    else { return nil }
    return (step.id, location.reading(of: step)?.zone ?? .unknown)
  }

  /// - Returns: nil if the device is not in reach of exactly one step.
  private mutating func locate(_ index: Int, at clock: Int64) -> Location? {
    let location = callers[index].locator.decide(at: Double(clock) / 1000)
    return lost.isEmpty && location.isLocated ? location : nil
  }

  private mutating func forget(_ calls: [Call]) -> [UUID] {
    let frames = calls.flatMap(\.frames)
    for frame in frames { awaited[frame] = nil }
    return frames
  }
}
