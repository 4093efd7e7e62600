import CSodium

package func sodiumStarts() -> Bool { sodium_init() >= 0 }
