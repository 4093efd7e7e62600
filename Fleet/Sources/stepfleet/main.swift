import API
import HummingbirdTLS
import Login
import Store

print(versions(), sodiumStarts(), openAPI.count)
