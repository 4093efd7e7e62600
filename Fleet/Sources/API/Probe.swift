import Hummingbird

package let openAPI = PackageResources.openapi_json
