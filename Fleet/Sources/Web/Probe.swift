import Hummingbird
import Store

package typealias Probe = Store.Value
