import API

print(openAPI.count)
