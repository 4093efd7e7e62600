import CPostgres
import GRDB

package func versions() -> String { "\(PQlibVersion()) \(Database.self)" }
