import CSodium
import Hummingbird
import Web

package func sodiumStarts() -> Bool { sodium_init() >= 0 }
