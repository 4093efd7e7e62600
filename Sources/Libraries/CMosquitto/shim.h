#include <mosquitto.h>

// libmosquitto's TLS is OpenSSL, and it takes a context made by its caller (MOSQ_OPT_SSL_CTX).
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
