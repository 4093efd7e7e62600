/// A value and where it comes from.
package struct Setting<Value: Sendable>: Sendable {
  package let value: Value
  package let origin: SettingOrigin

  package init(_ value: Value, _ origin: SettingOrigin) {
    self.value = value
    self.origin = origin
  }
}

extension Setting: Equatable where Value: Equatable {}
