/// A set that forgets its oldest element when it is full.
struct RecentSet<Element: Hashable & Sendable>: Sendable {
  private let capacity: Int
  private var order: [Element] = []
  private var oldest = 0
  private var elements: Set<Element> = []

  init(capacity: Int) { self.capacity = capacity }

  func contains(_ element: Element) -> Bool { elements.contains(element) }

  /// False when it was there already.
  @discardableResult
  mutating func insert(_ element: Element) -> Bool {
    guard elements.insert(element).inserted else { return false }
    if order.count < capacity {
      order.append(element)
    } else {
      elements.remove(order[oldest])
      order[oldest] = element
      oldest = (oldest + 1) % capacity
    }
    return true
  }
}
