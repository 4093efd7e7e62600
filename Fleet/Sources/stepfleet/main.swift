import API
import HummingbirdTLS
import Login
import Store

print(sodiumStarts(), openAPI.count)
